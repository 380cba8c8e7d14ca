"""A checkpoint holds normals that are still to be used: a copy of it repeats what was released, or is refused."""

import shutil
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
import optax
import pytest
from agent_cases import BUDGET, FIFTY, IN_PIECES, POINTS, SPENDERS

from quietq import Accountant, InvalidInput
from quietq.learning import Agent, NetworkValueNoise, OutputNoise, ValueNoise, checkpoint
from quietq.learning.trainer import spaces_of
from quietq.learning.training import Training
from quietq.registry import WORLDS
from quietq.worlds import WALK, WalkWorld, find_world
from quietq.worlds.jax_rewards import WorldReward

PROMISE: dict[str, Any] = {"relation": FIFTY, "budget": BUDGET}


class Share(float):
    """A number that may do anything when it is used."""


@dataclass(frozen=True)
class Elsewhere(WalkWorld):
    """Code that no hash knows."""


@dataclass(frozen=True, kw_only=True)
class Otherwise(OutputNoise):
    """Code that no hash knows."""


class Brighter(WorldReward):
    """Code that no hash knows."""


@pytest.mark.parametrize(
    ("field", "method", "world", "reward"),
    [
        ("optimiser", NetworkValueNoise(**PROMISE, batch=50, optimiser=optax.sgd(1.0)), "walk", None),
        ("gamma", ValueNoise(**PROMISE, round_steps=50, gamma=Share(0.9)), "walk", None),
        ("gamma", ValueNoise(**PROMISE, round_steps=50, gamma=np.float64(0.5)), "walk", None),
        ("method", Otherwise(**PROMISE), "walk", None),
        ("world", SPENDERS["output"](), Elsewhere(), None),
        ("world", SPENDERS["output"](), WalkWorld(reach=Share(0.25)), None),
        ("reward", SPENDERS["output"](), "walk", lambda states: 0.5 - abs(states - 0.5)),
        ("reward", SPENDERS["output"](), "walk", Brighter(WalkWorld())),  # pyright: ignore[reportCallIssue]
        ("reward", SPENDERS["output"](), "walk", WorldReward(Elsewhere())),
    ],
)
def test_what_no_hash_can_tell_apart_has_no_checkpoint(tmp_path, field, method, world, reward):
    """Two such programs would go on with the same normals: their difference would have no noise."""
    accountant, folder = Accountant(BUDGET), tmp_path / "run"
    with pytest.raises(InvalidInput, match=f"^{field} must be .* nothing was drawn or spent"):
        Agent(world, method, seed=1, reward=reward, account=accountant).learn(200, directory=folder)
    assert accountant.spent_mu == 0
    assert not folder.exists()


def test_what_is_not_a_release_may_be_kept_all_the_same(tmp_path):
    own = lambda states: 0.5 * states  # noqa: E731
    training: dict[str, Any] = {"world": WALK, "spaces": spaces_of(WALK), "method": SPENDERS["output"](), "reward": own}
    Training(**training, seed=1, **IN_PIECES, simulate=1, directory=tmp_path)


@pytest.mark.parametrize("name", WORLDS)
def test_worlds_of_the_package_are_known_by_their_numbers(name):
    assert checkpoint.is_known(find_world(name))


def test_a_copy_gives_the_same_bits_or_is_refused(tmp_path, monkeypatch):
    method, accountant = SPENDERS["value"](), Accountant(BUDGET)

    def copied(event):
        if event.step == 100:
            shutil.copytree(tmp_path / "run", tmp_path / "copy")

    def learn(folder, method=method, seed=1, **further):
        agent = Agent("walk", method, seed=seed, account=accountant)
        return agent.learn(**IN_PIECES, directory=tmp_path / folder, **further)

    first = learn("run", callback=copied)
    others = [
        {"method": replace(method, gamma=0.8)},
        {"method": replace(method, explore=np.nextafter(0.5, 1).item())},
        {"seed": 2},
    ]
    for other in others:
        with pytest.raises(InvalidInput, match="of another training"):
            learn("copy", resume=True, **other)
    for changed in ("hash_of_code", "version"):
        with monkeypatch.context() as patch:
            patch.setattr(checkpoint, changed, lambda place: "another")
            with pytest.raises(InvalidInput, match="of another training"):
                learn("copy", resume=True)
    usual = jax.config.jax_threefry_partitionable  # pyright: ignore[reportAttributeAccessIssue]
    try:
        jax.config.update("jax_threefry_partitionable", not usual)  # other random actions from the same seed
        with pytest.raises(InvalidInput, match="of another training"):
            learn("copy", resume=True)
    finally:
        jax.config.update("jax_threefry_partitionable", usual)
    for folder in ("copy", "run"):
        again = learn(folder, resume=True, progress="compiled")
        np.testing.assert_array_equal(first.q_values(POINTS), again.q_values(POINTS))
    assert accountant.spent_mu == pytest.approx(BUDGET.mu)


def test_a_folder_that_cannot_be_written_to_costs_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "blocked" / f".{checkpoint.NAME}.part").mkdir(parents=True)
    accountant = Accountant(BUDGET)
    for folder in (tmp_path / "file", tmp_path / "blocked", "/proc/self/fdinfo"):
        with pytest.raises(InvalidInput, match=r"directory must be a folder .* nothing was drawn or spent"):
            Agent("walk", SPENDERS["output"](), account=accountant).learn(40, directory=folder)
    assert accountant.spent_mu == 0
