"""A new world and a new method are a file and an entry of a table each; the command line knows all names."""

import json
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import quietq as qq
from quietq.cli import options
from quietq.feedback import FEEDBACK
from quietq.mechanisms.candidates import MECHANISMS
from quietq.paper.method_table import METHOD_TABLE, Described
from quietq.privacy.norms import TRAINED_METHODS, ObservedRewards, TrainedMethod
from quietq.worlds import WORLDS, find_world, plan_on_grid
from quietq.worlds.environment import gymnasium_id, register_worlds

LAMP = '''
from dataclasses import dataclass
from typing import Any, ClassVar

from quietq.noise.box import Box
from quietq.privacy import relations
from quietq.worlds.world import World


@dataclass(frozen=True)
class Lamp(World):
    """Brightness, which people like at 0.5."""

    name: ClassVar[str] = "lamp"
    actions: ClassVar[int] = 2
    action_names: ClassVar[tuple[str, ...]] = ("darker", "brighter")
    box: ClassVar[Box] = Box((0.0,), (1.0,))
    draws: ClassVar[int] = 1
    steps: int = 20

    def move(self, state: Any, action: Any, draws: Any, xp: Any) -> Any:
        moved = xp.clip(state + (2 * xp.asarray(action)[..., None] - 1) * draws / 4, 0.0, 1.0)
        return moved, xp.zeros(moved.shape[:-1], dtype=bool)

    def reward(self, state: Any, xp: Any) -> Any:
        return 0.5 - xp.abs(state[..., 0] - 0.5)

    def relation(self, people: int) -> Any:
        return relations.people(people, 0.0, 0.5, 1.0)
'''
ECHO = '''
from dataclasses import dataclass
from typing import ClassVar

from quietq.paper.agents.hyper_parameters import option
from quietq.paper.baselines.venkitasubramaniam import InputNoise


@dataclass(frozen=True, kw_only=True)
class Echo(InputNoise):
    """As `input`, and louder."""

    name: ClassVar[str] = "echo"
    loudness: float = option(0.5, "How loud it is.")
'''


@pytest.fixture
def lamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "lamp.py").write_text(LAMP)
    monkeypatch.syspath_prepend(tmp_path)
    import lamp  # pyright: ignore[reportMissingImports]

    monkeypatch.setitem(WORLDS, "lamp", lamp.Lamp)
    register_worlds()
    yield
    del gymnasium.registry["quietq/Lamp-v0"]
    del sys.modules["lamp"]


@pytest.fixture
def echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("jax")
    from quietq.paper.methods import METHODS

    (tmp_path / "echo.py").write_text(ECHO)
    monkeypatch.syspath_prepend(tmp_path)
    import echo  # pyright: ignore[reportMissingImports]

    monkeypatch.setitem(METHODS, "echo", echo.Echo)
    monkeypatch.setitem(METHOD_TABLE, "echo", Described("certified", "each observed reward", "As input, and louder."))
    monkeypatch.setitem(TRAINED_METHODS, "echo", TrainedMethod("certified", ObservedRewards))
    yield
    del sys.modules["echo"]


def test_a_world_is_a_file_and_an_entry(lamp, quietq):
    env = gymnasium.make("quietq/Lamp-v0")
    assert env.reset(seed=1)[0] in env.observation_space
    world = find_world("lamp")
    assert plan_on_grid(world, cells=32)(np.array([[0.1], [0.9]])).tolist() == [1, 0]
    pytest.importorskip("jax")
    small = "--set widths=8 --set batch=16 --set start=16 --set replay=100"
    code, out, err = quietq(f"paper train none lamp --steps 100 {small} --json")
    assert (code, err) == (0, "")
    assert len(json.loads(out)["not_private"]["score"]) == 1


def test_a_method_is_a_file_and_its_entries(echo, quietq):
    from quietq.paper import Agent

    listed = json.loads(quietq("paper methods --json")[1])["methods"]
    assert [one["noise"] for one in listed if one["name"] == "echo"] == ["each observed reward"]
    assert "As input, and louder" in quietq("paper methods")[1]
    assert "loudness=0.5  <float>\n      How loud it is." in quietq("paper methods echo")[1]
    promise = "--people 50 --epsilon 0.9 --delta 1e-4"
    code, out, err = quietq(f"paper train echo walk {promise} --steps 100 --set loudness=2 --out run --json")
    assert (code, err) == (0, "")
    assert json.loads(out)["certificate"]["method"] == "echo"
    agent = Agent.load("run/agent.qq")
    assert (type(agent.method).__name__, getattr(agent.method, "loudness")) == ("Echo", 2.0)  # noqa: B009
    states = np.linspace(0, 1, 9)
    assert np.allclose(qq.load("run/agent.qq")(states), agent.q_values(states[:, None]), atol=1e-5)


def test_names_are_those_of_the_classes():
    for name in WORLDS:
        assert find_world(name).name == name
    assert [gymnasium_id(name) for name in WORLDS] == [
        "quietq/Walk-v0",
        "quietq/Thermostat-v0",
        "quietq/Navigation-v0",
    ]
    for name, kind in MECHANISMS.items():
        assert kind.name == name


def test_the_command_line_knows_all_names():
    """Literals, so that help and completion load nothing."""
    assert tuple(MECHANISMS) == options.NOISES
    assert tuple(WORLDS) == options.WORLDS
    assert tuple(FEEDBACK) == (*options.REWARD_FEEDBACK, "sessions")
    assert {name: one.standing for name, one in METHOD_TABLE.items()} == {
        name: one.standing for name, one in TRAINED_METHODS.items()
    }


def test_the_tables_of_methods_agree():
    pytest.importorskip("jax")
    from quietq.paper.methods import METHODS

    assert list(METHODS) == [name for name, one in METHOD_TABLE.items() if one.in_worlds]
