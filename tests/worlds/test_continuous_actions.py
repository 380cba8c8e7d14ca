"""Rewards in environments whose actions are numbers: every kind of reward, and rewards of the action too."""

from typing import Any

import gymnasium
import numpy as np
import polars
import pytest
from gymnasium.spaces import Box as Space
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from quietq.feedback import Ratings
from quietq.mechanisms import GaussianProcessMechanism, privatise
from quietq.privacy import Budget, Exponential, InvalidInput, people
from quietq.released.private_model import PrivateModel
from quietq.worlds import PrivateReward
from quietq.worlds.reader import Reader

BUDGET = Budget(1.0, 1e-5)
PLANE = [(0.0, 1.0), (0.0, 1.0)]


class Room(gymnasium.Env):
    """A point in the unit square that is pushed about."""

    observation_space, action_space = Space(0.0, 1.0, (2,)), Space(-0.1, 0.1, (2,))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.at = self.np_random.random(2).astype(np.float32)
        return self.at, {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.at = np.clip(self.at + np.asarray(action), 0, 1).astype(np.float32)
        return self.at, 1e6, False, False, {}


def rated(columns: list[str], box: list[tuple[float, float]]) -> PrivateModel:
    """What 50 people like, of so many columns: only that it is a fitted model matters here."""
    rng = np.random.default_rng(0)
    low, high = np.array(box, float).T
    places = rng.uniform(low, high, size=(500, len(columns)))
    rating = np.clip(1 - np.abs((places - low) / (high - low) - 0.5).sum(axis=1), 0, 1)
    rows = {"person": np.repeat(np.arange(50), 10), "rating": rating} | dict(zip(columns, places.T, strict=True))
    people = Ratings.read(polars.DataFrame(rows), box=box, low=0, high=1, people=50, state=columns)
    return privatise(people, BUDGET, simulate=0)


MODEL = rated(["x", "y"], PLANE)


def test_stock_sac_learns_from_a_fitted_model() -> None:
    sb3 = pytest.importorskip("stable_baselines3")
    import torch

    torch.set_num_threads(1)
    assert isinstance(MODEL, PrivateModel)
    env = PrivateReward(TimeLimit(Room(), 20), MODEL)
    sac = sb3.SAC("MlpPolicy", env, learning_starts=100, seed=0, policy_kwargs={"net_arch": [16]}, device="cpu")
    sac.learn(200)
    buffer: Any = sac.replay_buffer
    assert buffer.pos == 200
    expected = MODEL(buffer.next_observations[:200, 0].astype(np.float64))
    assert buffer.rewards[:200, 0] == pytest.approx(expected, abs=1e-6)


def test_every_kind_of_reward() -> None:
    unit, line = people(50, 0, 0.5, 1), lambda s: 0.5 - abs(s - 0.5)
    path = privatise(line, BUDGET, relation=unit, simulate=1)
    plane = GaussianProcessMechanism(Exponential((1.0, 1.0)), 0.02, BUDGET, domain=PLANE, levels=4)
    for private, state in (
        (path, 0),
        (privatise(line, BUDGET, relation=unit, simulate=1, noise="knots"), 1),
        (privatise(line, BUDGET, relation=unit, simulate=1, noise="k-norm", pieces=4), 1),
        (plane.simulate(lambda s: s.prod(axis=-1), 2), None),
        (MODEL, None),
    ):
        env = PrivateReward(Room(), private, state=state)
        env.reset(seed=0)
        after, reward, *_ = env.step(np.array([0.05, -0.05], np.float32))
        assert reward == private(after.astype(np.float64) if state is None else float(after[state]))


def test_a_reward_of_state_and_action() -> None:
    """The reward's box has the state's coordinates, and then the action's."""
    both = rated(["x", "push", "turn"], [(0, 1), (-0.1, 0.1), (-0.1, 0.1)])
    env = PrivateReward(Room(), both, on="state-action", state=0)
    before, _ = env.reset(seed=0)
    for action in np.array([[0.05, -0.05], [0.1, 0.1], [-0.1, 0.02]], np.float32):
        after, reward, *_ = env.step(action)
        assert reward == both([float(before[0]), *np.clip(action.astype(np.float64), -0.1, 0.1)])
        before = after
    many = PrivateReward(SyncVectorEnv([Room] * 3), both, on="state-action", state=0)
    starts, _ = many.reset(seed=0)
    taken = many.action_space.sample()
    places = np.hstack([starts[:, :1], taken]).astype(np.float64)
    assert np.array_equal(many.step(taken)[1], both(np.clip(places, both.box.low, both.box.high)))


def test_what_does_not_fit() -> None:
    both = rated(["x", "push", "turn"], [(0, 1), (-0.1, 0.1), (-0.1, 0.1)])
    for private, state, words in (
        (MODEL, 0, "state's coordinates and then the action's"),
        (both, None, "A state has 2 numbers, but the reward's box has 1 for it"),
    ):
        with pytest.raises(InvalidInput, match=words):
            PrivateReward(Room(), private, on="state-action", state=state).reset(seed=0)
    env = PrivateReward(Room(), both, on="state-action", state=0)
    env.reset(seed=0)
    with pytest.raises(InvalidInput, match=r"A state or action has the value 0\.5"):
        env.step([0.5, 0.0])
    with pytest.raises(InvalidInput, match="actions must be 2 numbers for each of 3 states"):
        Reader(both, "state-action", 0, "refuse", Room.action_space, Room.observation_space).rewards(
            np.zeros((3, 1)), None, np.zeros((1, 2))
        )
    with pytest.raises(InvalidInput, match="must have one output per action; or one value"):
        PrivateReward(gymnasium.make("CartPole-v1"), MODEL, on="state-action", state=[0, 1])
