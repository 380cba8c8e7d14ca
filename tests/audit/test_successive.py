"""Noise that is kept for two rounds hides nothing: the listing with J = 1 gives its rewards away, to rounding."""

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import pytest

from quietq.noise.box import Box
from quietq.paper.agents.jax_world import as_jax
from quietq.paper.algorithm import Published
from quietq.paper.attacks.successive import Round, SuccessiveSteps, released_rounds, rewards_from_successive
from quietq.paper.discrete import Tabular
from quietq.privacy import InvalidInput, LipschitzBall
from quietq.worlds.world import World

KNOTS = 9
REWARDS = np.random.default_rng(0).random(KNOTS).astype(np.float32).astype(np.float64)  # as the learner sees them


@dataclass(frozen=True)
class Line(World):
    """Nine states in a row, a step to the left or to the right, and now and then a new start."""

    name: ClassVar[str] = "line"
    actions: ClassVar[int] = 2
    action_names: ClassVar[tuple[str, ...]] = ("left", "right")
    draws: ClassVar[int] = 1
    steps: int = 4

    box: ClassVar[Box] = Box((0.0,), (1.0,))

    def start(self, draws: Any, xp: Any) -> Any:
        return xp.floor(draws * KNOTS) / (KNOTS - 1)

    def move(self, state: Any, action: Any, draws: Any, xp: Any) -> tuple[Any, Any]:
        side = xp.where(xp.asarray(action) == 1, 1.0, -1.0)[..., None] / (KNOTS - 1)
        moved = xp.clip(state + side, 0.0, 1.0)
        return xp.asarray(moved, dtype=state.dtype), xp.zeros(moved.shape[:-1], dtype=bool)

    def reward(self, state: Any, xp: Any) -> Any:
        return state[..., 0]

    def relation(self, people: int) -> LipschitzBall:
        return LipschitzBall(1 / people, 2 / people)


SHORT = Line(steps=1)  # every step starts anywhere


def text(**changes: Any) -> Published:
    return Published.text(**({"sigma": 0.74, "network": "splines", "features": KNOTS, "resets": 1} | changes))


def exploring(sigma: float) -> Published:
    return text(sigma=sigma, explore_first=1.0, explore_last=1.0, learning_rate=6.0, gamma=0.5)


def rounds_of(method: Published, world: Line, rounds: int) -> list[Round]:
    table = jnp.asarray(REWARDS, jnp.float32)
    reward = as_jax(lambda states: table[jnp.rint(states * (KNOTS - 1)).astype(jnp.int32)])
    return released_rounds(method, world, reward, rounds)


def attacked(method: Published, rounds: list[Round]) -> list[np.ndarray]:
    """The rewards that each pair of rounds tells, NaN where it does not."""
    return [
        rewards_from_successive(before, after, steps, method.learning_rate, method.gamma)
        for (before, _), (after, steps) in itertools.pairwise(rounds)
    ]


@pytest.mark.slow
def test_one_path_for_the_whole_run_gives_the_rewards_away() -> None:
    """As listed: greedy, the paper's step size of 3e-4, batches of 64, its sigma for epsilon 0.45."""
    method = text()
    rounds = rounds_of(method, Line(), 4)
    told = attacked(method, rounds)
    for one, (_, steps) in zip(told, rounds[1:], strict=True):
        assert set(np.flatnonzero(np.isfinite(one))) == set(steps.next_state)
        assert np.nanmax(np.abs(one - REWARDS)) <= 1e-9
    assert np.any(np.isfinite(told), axis=0).sum() >= 7
    assert (np.isfinite(told).sum(axis=1) >= 4).all()
    assert rounds[0][0].dtype == np.float64
    assert jnp.zeros(1).dtype == jnp.float32  # the switch to double precision was for this run only


@pytest.mark.slow
def test_noise_redrawn_in_every_round_defeats_this_attack() -> None:
    method = text(resets=None)
    for told in attacked(method, rounds_of(method, Line(), 4)):
        assert np.nanmedian(np.abs(told - REWARDS)) > 1e3  # sigma B/alpha is 1.6e5


@pytest.mark.slow
def test_noise_kept_for_two_rounds_out_of_four_is_enough() -> None:
    method = text(resets=2)
    worst = [np.nanmax(np.abs(one - REWARDS)) for one in attacked(method, rounds_of(method, Line(), 4))]
    assert worst[0] <= 1e-9
    assert worst[1] > 1e3
    assert worst[2] <= 1e-9


@pytest.mark.slow
def test_with_one_path_the_release_becomes_the_optimal_value_whatever_sigma_is() -> None:
    """And exploring tells every reward in one round. The values are about 1, the noise about 30."""
    method = exploring(sigma=30.0)
    rounds = rounds_of(method, SHORT, 120)
    told = attacked(method, rounds[:2])[0]
    assert np.abs(told - REWARDS).max() <= 1e-9  # of all of them: none is NaN
    following = np.clip(np.arange(KNOTS)[:, None] + [-1, 1], 0, KNOTS - 1)
    world = Tabular(np.eye(KNOTS)[following], REWARDS[following], method.gamma)
    values = np.zeros(KNOTS)
    for _ in range(300):
        values = world.q(values).max(axis=1)
    np.testing.assert_allclose(rounds[-1][0], world.q(values), rtol=0, atol=1e-6)


def test_ends_of_episodes_and_states_that_no_step_led_to() -> None:
    rng = np.random.default_rng(3)
    before, rewards = rng.normal(size=(5, 2)), rng.normal(size=5)
    steps = SuccessiveSteps(
        rng.integers(5, size=40), rng.integers(2, size=40), rng.integers(4, size=40), rng.random(40) < 0.3
    )
    following = np.where(steps.terminated, 0.0, before.max(axis=1)[steps.next_state])
    errors = rewards[steps.next_state] + 0.9 * following - before[steps.state, steps.action]
    after = before.copy()
    np.add.at(after, (steps.state, steps.action), 0.1 / 40 * errors)
    told = rewards_from_successive(before, after, steps, 0.1, 0.9)
    assert np.isfinite(told).tolist() == [True] * 4 + [False]
    np.testing.assert_allclose(told[:4], rewards[:4], atol=1e-11)


def test_wrong_input_is_refused_in_a_sentence() -> None:
    nowhere = np.zeros(1, int)
    steps = SuccessiveSteps(nowhere, nowhere, nowhere, np.zeros(1, bool))
    with pytest.raises(InvalidInput, match="before and after must be tables of one shape"):
        rewards_from_successive(np.zeros((3, 2)), np.zeros((2, 2)), steps, 0.1, 0.9)
    for method in (Published.code(), Published.text()):
        with pytest.raises(InvalidInput, match="method must be Published"):
            rounds_of(method, Line(), 1)
