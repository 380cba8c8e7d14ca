"""A new world and a new method are a file and a line each: these are such files, and nothing else knows of them."""

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import quietq as qq
from quietq import registry, worlds
from quietq.registry import FEEDBACK, MECHANISMS, METHODS, WORLDS, Method, World, owner
from quietq.worlds import find_world, plan_on_grid

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

from quietq.learning.input import InputNoise
from quietq.learning.options import option


@dataclass(frozen=True, kw_only=True)
class Echo(InputNoise):
    """As `input`, and louder."""

    name: ClassVar[str] = "echo"
    loudness: float = option(0.5, "How loud it is.")
'''


@pytest.fixture
def lamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "lamp.py").write_text(LAMP)
    monkeypatch.setattr(worlds, "__path__", [*worlds.__path__, str(tmp_path)])
    monkeypatch.setitem(WORLDS, "lamp", World("quietq.worlds.lamp:Lamp", "quietq/Lamp-v0"))
    registry.register_worlds()
    yield
    del gymnasium.registry["quietq/Lamp-v0"]


@pytest.fixture
def echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learning = pytest.importorskip("quietq.learning")
    (tmp_path / "echo.py").write_text(ECHO)
    monkeypatch.setattr(learning, "__path__", [*learning.__path__, str(tmp_path)])
    line = Method("quietq.learning.echo:Echo", "certified", "each observed reward", "As input, and louder.")
    monkeypatch.setitem(METHODS, "echo", line)


def test_a_world_is_a_file_and_a_line(lamp, quietq):
    listed = json.loads(quietq("worlds --json")[1])["worlds"]
    assert [one["gymnasium_id"] for one in listed if one["name"] == "lamp"] == ["quietq/Lamp-v0"]
    env = gymnasium.make("quietq/Lamp-v0")
    assert env.reset(seed=1)[0] in env.observation_space
    world = find_world("lamp")
    assert plan_on_grid(world, cells=32)(np.array([[0.1], [0.9]])).tolist() == [1, 0]
    pytest.importorskip("jax")
    code, out, err = quietq("train none lamp --steps 100 --widths 8 --batch 16 --start 16 --replay 100 --json")
    assert (code, err) == (0, "")
    assert len(json.loads(out)["not_private"]["score"]) == 1


def test_a_method_is_a_file_and_a_line(echo, quietq):
    listed = json.loads(quietq("methods --json")[1])["methods"]
    assert [one["noise"] for one in listed if one["name"] == "echo"] == ["each observed reward"]
    assert "As input, and louder" in quietq("train --help")[1]
    page = quietq("train echo --help")[1]
    assert "--loudness <float>" in page
    assert "How loud it is (0.5)." in page
    promise = "--people 50 --epsilon 0.9 --delta 1e-4"
    code, out, err = quietq(f"train echo walk {promise} --steps 100 --loudness 2 --out run --json")
    assert (code, err) == (0, "")
    assert json.loads(out)["certificate"]["method"] == "echo"
    agent = qq.Agent.load("run/agent.qq")
    assert (type(agent.method).__name__, getattr(agent.method, "loudness")) == ("Echo", 2.0)  # noqa: B009
    states = np.linspace(0, 1, 9)
    assert np.allclose(qq.load("run/agent.qq")(states), agent.q_values(states[:, None]), atol=1e-5)


def test_names_are_those_of_the_classes():
    for name in WORLDS:
        assert find_world(name).name == name
    for name, entry in MECHANISMS.items():
        assert entry.load().name == name  # or nobody could load what it releases
    for entry in FEEDBACK.values():
        assert callable(entry.load())


def test_whose_certificate_it_is():
    assert [owner(name) for name in ("input", "reward/path", "gaussian-process")] == [
        "quietq.learning.input", "quietq.mechanisms.path", "quietq.mechanisms.gaussian_process",
    ]  # fmt: skip
    assert [owner(name) for name in ("reward/observed", "independent-gaussian")] == [
        "quietq.worlds.observed", "quietq.worlds.own_noise",
    ]  # fmt: skip
    assert [owner(name) for name in ("", "magic", "reward/magic", "os/path")] == [None] * 4
