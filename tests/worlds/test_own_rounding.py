"""Rounding of an environment's own reward: two neighbours' rewards, as they were clipped, against the path's norm."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from quietq import Budget, InvalidInput, PrivateReward, people
from quietq.privacy import Code, Exponential
from quietq.privacy.relations import SupBall
from quietq.worlds.own_reward import OwnReward

BUDGET = Budget(0.9, 1e-4)


class Visits(gymnasium.Env):
    """Visits states in turn, each of which has its reward."""

    def __init__(self, states: np.ndarray, rewards: Any) -> None:
        self.observation_space, self.action_space = Box(0.0, 1.0, (1,), np.float64), Discrete(2)
        self.states, self.rewards, self.t = states, rewards, -1

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        return self._at(0), {}

    def _at(self, index: int) -> np.ndarray:
        return np.array([self.states[index]], self.observation_space.dtype)

    def step(self, action: Any) -> tuple[np.ndarray, Any, bool, bool, dict]:
        self.t += 1
        return self._at(self.t), self.rewards[self.t], False, False, {}


def rounded(values: np.ndarray, dtype: type, up: np.ndarray) -> np.ndarray:
    """Each value as the nearest number of the type below or above it, as an adversary would round."""
    down = values.astype(dtype)
    down = np.where(down > values, np.nextafter(down, dtype(-np.inf)), down)
    return np.where(up, np.nextafter(down, dtype(np.inf)), down).astype(dtype)


def distance(states: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
    """d' of two neighbouring rewards, over what was released: the first reward at every state that is not too near."""
    ball = people(50, low=0, high=0.5, slope=1)
    accuracy = 1e-6 if first.dtype == np.float32 else None  # of float32 at the most 8 units in the last place of 0.5
    env = PrivateReward.of(Visits(states, first), ball, BUDGET, accuracy=accuracy)
    env.reset()
    released: dict[float, int] = {}
    seen = [env.step(0)[1] for _ in states]
    for index, value in enumerate(seen):
        released.setdefault(value, index)
    order = sorted(released.values(), key=lambda index: states[index])
    assert env.certificate.sigma is not None
    difference = first.astype(float)[order] - second.astype(float)[order]
    return Exponential(ball.best_beta()).norm_on(states[order], difference) / env.certificate.sigma


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("spread", [1e-15, 1e-7, 1.0])
def test_states_that_come_close_do_not_show_how_rewards_were_rounded(dtype: type, spread: float) -> None:
    states = np.sort(0.4 + 0.6 * spread * np.random.default_rng(0).random(500))
    tent = 0.5 - np.abs(states - 0.5)
    zigzag = 0.01 - np.abs((states * 4) % 2 - 1) * 0.01  # within what one person of 50 can do
    even = np.arange(len(states)) % 2 == 0
    d = distance(states, rounded(tent, dtype, even), rounded(tent + zigzag, dtype, ~even))
    assert d <= BUDGET.mu


def own(given: Any, relation: Any = None, **more: Any) -> OwnReward:
    relation = people(50, low=0, high=0.5, slope=1) if relation is None else relation
    env = PrivateReward.of(Visits(np.array([0.1, 0.9, 0.5]), given), relation, BUDGET, **more)
    env.reset()
    return env


def trusted(env: OwnReward) -> str:
    return next(one.text for one in env.certificate.assumptions if "computed to within" in one.text)


@pytest.mark.parametrize(("relation", "more"), [(None, {}), (SupBall(0.01), {"rewards": 3})])
def test_rewards_of_a_less_exact_type_are_covered_by_a_declared_accuracy_alone(
    relation: Any, more: dict[str, Any]
) -> None:
    plain = own([0.1, 1, np.int8(1)], relation, **more)
    before = plain.certificate
    for _ in range(3):
        plain.step(0)
    assert plain.certificate == before
    for kind in (np.float32, np.float16):
        later = own([0.1, kind(0.1), 0.2], relation, **more)
        later.step(0)
        with pytest.raises(InvalidInput, match=f"a {kind.__name__}, less exact than the float64 that the noise covers"):
            later.step(0)
        later.step(0)
        told = own([kind(0.1), 0.1, 0.2], relation, **more, accuracy=1e-4)
        for _ in range(3):
            told.step(0)
        assert "computed to within 0.0001" in trusted(told)
        assert plain.certificate.sigma < told.certificate.sigma  # type: ignore[operator]
    with pytest.raises(InvalidInput, match="cannot be released with a sensitivity of"):
        own([0.1], relation, **more, accuracy=1.0)


def test_rewards_are_clipped_to_a_public_size() -> None:
    env = own([1e6, -1e6, 1e300])
    (bound,) = (float(one.values[0]) for one in env.certificate.assumptions if one.code is Code.REWARDS_CLIPPED)
    sigma = env.certificate.sigma
    assert sigma is not None
    seen = [env.step(0)[1] for _ in range(3)]
    assert max(np.abs(seen)) < bound + 12 * sigma
    assert any(one.enforced and f"clipped to {bound:g} in size" in one.text for one in env.certificate.assumptions)
