"""Plays of bandits against Bernoulli arms, many at a time: what elimination and episodes lose, and step by step others.

Elimination and episodes decide rarely, so the policies themselves are played in blocks, whose answers are binomial: the
same in law. The others decide after every answer, and are written once more here, compiled over time and over runs.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from quietq.learning.bandits import Policy
from quietq.learning.bandits.policy import UNITS
from quietq.learning.bandits.tree_ucb import levels_for

ARMS = {
    "two arms": (0.75, 0.7),
    "five arms": (0.75, 0.625, 0.5, 0.375, 0.25),
    "sixteen arms": (0.75, *(0.6,) * 15),
}
_AT_ONCE = 1000  # steps whose random numbers are drawn together


def in_blocks(policy: Policy, means: np.ndarray, arrivals: int, generator: np.random.Generator) -> float:
    """The regret of one run: what always showing the best arm would have brought more, in expectation."""
    shown, left = np.zeros(len(means), np.int64), arrivals
    while left > 0:
        ahead = policy._ahead()  # pyright: ignore[reportPrivateUsage]
        if ahead.sum() > left:  # people are shown arms in turn
            ahead = np.minimum(ahead, -(-left // np.count_nonzero(ahead)))
        for arm in np.flatnonzero(ahead):
            answers = int(ahead[arm])
            policy._take(int(arm), int(generator.binomial(answers, means[arm])) * UNITS, answers)  # pyright: ignore[reportPrivateUsage]
        shown += ahead
        left -= int(ahead.sum())
    return float(shown @ (means.max() - means))


def step_by_step(
    index: Callable[..., Any], start: Callable[[int, int], Any], after: Callable[..., Any], means: np.ndarray,
    arrivals: int, runs: int, seed: int,
) -> np.ndarray:  # fmt: skip
    """The regret of each run of a policy that shows the arm of the highest index, compiled.

    `index(t, answers, ones, state, draws)` has shape (runs, arms), `after(answers, arm, state, draws)` is the state
    after an answer about an arm. Both get the step's own uniform numbers, of shape (runs, arms + 2).
    """
    arms, chunks = len(means), -(-arrivals // _AT_ONCE)

    def step(carry: Any, given: Any) -> tuple[Any, None]:
        answers, ones, state = carry
        t, draws = given
        scores = jnp.where(answers > 0, index(t, answers, ones, state, draws[:, :arms]), jnp.inf)
        arm = jnp.argmax(scores, axis=1)
        shown = (arm[:, None] == jnp.arange(arms)) & (t < arrivals)
        won = draws[:, arms] < jnp.asarray(means, jnp.float32)[arm]
        answers = answers + shown
        state = after(answers, arm, state, draws[:, arms + 1])
        return (answers, ones + shown * won[:, None], state), None

    @jax.jit
    def chunk(carry: Any, number: Any, key: Any) -> Any:
        draws = jax.random.uniform(jax.random.fold_in(key, number), (_AT_ONCE, runs, arms + 2), minval=1e-9)
        return lax.scan(step, carry, (number * _AT_ONCE + jnp.arange(_AT_ONCE), draws))[0]

    carry = (jnp.zeros((runs, arms), jnp.int32), jnp.zeros((runs, arms), jnp.float32), start(runs, arms))
    key = jax.random.key(seed, impl="rbg")
    for number in range(chunks):
        carry = chunk(carry, number, key)
    return np.asarray(carry[0], np.float64) @ (means.max() - means)


def _nothing(runs: int, arms: int) -> tuple[()]:
    return ()


def ucb(means: np.ndarray, arrivals: int, runs: int, seed: int, exploration: float = 1.1) -> np.ndarray:
    """`learning.bandits.UCB`."""

    def index(t: Any, answers: Any, ones: Any, state: Any, draws: Any) -> Any:
        n = jnp.maximum(answers, 1)
        return ones / n + jnp.sqrt(exploration * jnp.log(jnp.maximum(t, 1)) / (2 * n))

    return step_by_step(index, _nothing, lambda answers, arm, state, draws: state, means, arrivals, runs, seed)


def local(means: np.ndarray, arrivals: int, runs: int, seed: int, epsilon: float) -> np.ndarray:
    """`learning.bandits.LocalUCB`: what is reported has means nearer to a half, in the same order."""
    keeps = 1 / (1 + math.exp(-epsilon))
    shown = 0.5 + (2 * keeps - 1) * (means - 0.5)
    return ucb(shown, arrivals, runs, seed) / (2 * keeps - 1)


def thompson(means: np.ndarray, arrivals: int, runs: int, seed: int) -> np.ndarray:
    """`learning.bandits.Thompson`, in NumPy, whose Beta numbers are the faster ones."""
    generator, arms = np.random.default_rng(seed), len(means)
    ones, answers, each = np.zeros((runs, arms)), np.zeros((runs, arms)), np.arange(runs)
    for _ in range(arrivals):
        arm = generator.beta(1 + ones, 1 + answers - ones).argmax(axis=1)
        answers[each, arm] += 1
        ones[each, arm] += generator.random(runs) < means[arm]
    return answers @ (means.max() - means)


def tree(
    means: np.ndarray, arrivals: int, runs: int, seed: int, epsilon: float, sampling: Any, noise: Any
) -> np.ndarray:
    """`learning.bandits.TreeUCB`. Its two constants may be columns, one row for each run."""
    levels = levels_for(arrivals)
    scale, places = levels / epsilon, jnp.arange(levels)

    def index(t: Any, answers: Any, ones: Any, state: Any, draws: Any) -> Any:
        n, log = jnp.maximum(answers, 1), jnp.log(jnp.maximum(t, 2))
        nodes = lax.population_count(answers)
        of_noise = scale * (jnp.sqrt(4 * nodes * log) + log)
        return (ones + state[1]) / n + sampling * jnp.sqrt(log / (2 * n)) + noise * of_noise / n

    def after(answers: Any, arm: Any, state: Any, draws: Any) -> Any:
        """The noise of the arm's nodes: those that the new answer completes become one, with noise of its own."""
        each = jnp.arange(runs)
        n, nodes = answers[each, arm], state[0][each, arm]
        level = lax.population_count((n & -n) - 1)[:, None]
        centred = draws - 0.5
        fresh = -scale * jnp.sign(centred) * jnp.log1p(-2 * jnp.abs(centred) * (1 - 1e-7))
        nodes = jnp.where(places < level, 0.0, jnp.where(places == level, fresh[:, None], nodes))
        return state[0].at[each, arm].set(nodes), state[1].at[each, arm].set(nodes.sum(axis=1))

    def start(runs: int, arms: int) -> Any:
        return jnp.zeros((runs, arms, levels)), jnp.zeros((runs, arms))

    return step_by_step(index, start, after, means, arrivals, runs, seed)


@functools.cache
def arms_of(name: str) -> np.ndarray:
    return np.array(ARMS[name])
