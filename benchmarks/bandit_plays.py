"""Plays of bandits against Bernoulli arms, many at a time: what elimination and episodes lose, and step by step others.

Elimination and episodes decide rarely, so the policies themselves are played in blocks, whose answers are binomial: the
same in law. The others decide after every answer, and are written once more here, compiled over time and over runs.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from quietq.online import Elimination, Episodes, Linear
from quietq.online.linear import confidence, numbers_of
from quietq.online.policy import UNITS
from quietq.online.running_sums import Factors, spreads
from quietq.online.ucb import levels_for

ARMS = {
    "two arms": (0.75, 0.7),
    "five arms": (0.75, 0.625, 0.5, 0.375, 0.25),
    "sixteen arms": (0.75, *(0.6,) * 15),
}
_AT_ONCE = 1000  # steps whose random numbers are drawn together


def in_blocks(
    policy: Elimination | Episodes, means: np.ndarray, arrivals: int, generator: np.random.Generator
) -> float:
    """The regret of one run: what always showing the best arm would have brought more, in expectation."""
    shown, left = np.zeros(len(means), np.int64), arrivals
    while left > 0:
        ahead = answers_ahead(policy)
        if ahead.sum() > left:  # people are shown arms in turn
            ahead = np.minimum(ahead, -(-left // np.count_nonzero(ahead)))
        for arm in np.flatnonzero(ahead):
            answers = int(ahead[arm])
            policy._take(int(arm), int(generator.binomial(answers, means[arm])) * UNITS, answers)  # pyright: ignore[reportPrivateUsage]
        shown += ahead
        left -= int(ahead.sum())
    return float(shown @ (means.max() - means))


def answers_ahead(policy: Elimination | Episodes) -> np.ndarray:
    """How many answers about each arm may be given at once, by their sum: nothing is decided before the last."""
    state = policy.state
    if isinstance(policy, Episodes):
        waited = max(policy._needed - int(state.answers[state.arm]), 1)  # pyright: ignore[reportPrivateUsage]
        return np.where(np.arange(policy.arms) == state.arm, waited, 0)
    waited = policy.epoch.answers - state.answers if state.left.sum() > 1 else np.full(policy.arms, 2**40)
    return np.where(state.left, waited, 0)


def step_by_step(
    raised: Callable[[Any, Any], Any],
    means: np.ndarray,
    arrivals: int,
    runs: int,
    seed: int,
    levels: int = 0,
    scale: Any = 0.0,
) -> np.ndarray:
    """The regret of each run of a policy that shows the arm of the highest raised mean, compiled.

    `raised(log, answers)` is what a mean of so many answers is raised by, of shape (arms, runs), at a time of this
    logarithm. Sums are exact, or from trees of so many levels with Laplace noise of this scale on each node.
    """
    arms, chunks = len(means), -(-arrivals // _AT_ONCE)
    numbers, each = jnp.arange(arms)[:, None], jnp.arange(runs)
    true = jnp.asarray(means, jnp.float32)[:, None]

    def step(carry: Any, given: Any) -> tuple[Any, None]:
        answers, sums, noises, noise = carry
        t, uniforms, fresh = given
        log = jnp.log(jnp.maximum(t, 2).astype(jnp.float32))
        scores = jnp.where(answers > 0, (sums + noise) / answers + raised(log, answers), jnp.inf)
        arm = jnp.min(jnp.where(scores == scores.max(axis=0), numbers, arms), axis=0)
        shown = (arm == numbers) & (t < arrivals)
        answers = answers + shown
        sums = sums + (shown & (uniforms < jnp.where(shown, true, 0.0).sum(axis=0)))
        if levels:
            n = jnp.where(shown, answers, 0).sum(axis=0)
            # the nodes of n answers are those of n without its last 1 in binary, and a fresh one
            before, place = n & (n - 1), (arm * (levels + 1) * runs) + each
            total = noises[place + jnp.where(before > 0, _last_one(before), levels) * runs] + fresh
            noises = noises.at[place + _last_one(n) * runs].set(total, unique_indices=True)
            noise = jnp.where(shown, total, noise)
        return (answers, sums, noises, noise), None

    @jax.jit
    def chunk(carry: Any, number: Any, key: Any) -> Any:
        drawn = jax.random.uniform(jax.random.fold_in(key, number), (2 if levels else 1, _AT_ONCE, runs), minval=1e-9)
        centred = drawn[-1] - 0.5
        fresh = -scale * jnp.sign(centred) * jnp.log1p(-2 * jnp.abs(centred) * (1 - 1e-7))
        return lax.scan(step, carry, (number * _AT_ONCE + jnp.arange(_AT_ONCE), drawn[0], fresh))[0]

    zeros = jnp.zeros((arms, runs))
    carry = (zeros.astype(jnp.int32), zeros, jnp.zeros(arms * (levels + 1) * runs if levels else 0), zeros)
    key = jax.random.key(seed, impl="rbg")
    for number in range(chunks):
        carry = chunk(carry, number, key)
    return (means.max() - means) @ np.asarray(carry[0], np.float64)


def _last_one(n: Any) -> Any:
    """The place of the last 1 in binary."""
    return lax.population_count((n & -n) - 1)


def ucb(means: np.ndarray, arrivals: int, runs: int, seed: int, exploration: Any = 1.1) -> np.ndarray:
    """Upper confidence bounds. Constants, here and below, may be one number for each run."""
    return step_by_step(lambda log, n: jnp.sqrt(exploration * log / (2 * n)), means, arrivals, runs, seed)


def local(means: np.ndarray, arrivals: int, runs: int, seed: int, epsilon: float, exploration: Any = 1.1) -> np.ndarray:
    """Local flips: what is reported has means nearer to a half, in the same order."""
    keeps = 1 / (1 + math.exp(-epsilon))
    shown = 0.5 + (2 * keeps - 1) * (means - 0.5)
    return ucb(shown, arrivals, runs, seed, exploration) / (2 * keeps - 1)


def tree(
    means: np.ndarray, arrivals: int, runs: int, seed: int, epsilon: float, sampling: Any, noise: Any
) -> np.ndarray:
    """Upper confidence bounds of sums from a tree."""
    levels = levels_for(arrivals)
    scale = levels / epsilon

    def raised(log: Any, n: Any) -> Any:
        of_noise = scale * (jnp.sqrt(4 * lax.population_count(n) * log) + log)
        return sampling * jnp.sqrt(log / (2 * n)) + noise * of_noise / n

    return step_by_step(raised, means, arrivals, runs, seed, levels, scale)


@functools.cache
def arms_of(name: str) -> np.ndarray:
    return np.array(ARMS[name])


LINEAR_ARMS = 10
BATCH = 32
"""Answers that a linear policy learns at once."""


@dataclass(frozen=True)
class LinUCB:
    """Least squares raised by their widths, without privacy (Abbasi-Yadkori, Pal & Szepesvari 2011), for rows of length
    at most 1."""

    dimension: int
    width: float
    arms: int = LINEAR_ARMS
    weights: float = 0.5


class _FactorNoise:
    """Of decoding: buffers and the running sum, by a matrix whose powers are known."""

    def __init__(self, arrivals: int, shape: tuple[int, int], generator: np.random.Generator) -> None:
        way = Factors(arrivals, 1, 1.0)
        scales, decays = np.array(way.scales), np.array(way.decays)
        n = len(scales) + 1
        one = np.block([[np.diag(decays) - scales, np.zeros((n - 1, 1))], [-scales, np.ones((1, 1))]])
        powers = [np.linalg.matrix_power(one, k) @ np.ones(n) for k in range(BATCH)]
        values, vectors = np.linalg.eigh(sum(np.outer(p, p) for p in powers))
        self.matrix, self.root = np.linalg.matrix_power(one, BATCH), vectors * np.sqrt(np.maximum(values, 0))
        self.state, self.generator = np.zeros((*shape, n)), generator
        self.spread = functools.partial(spreads, way.scales, way.decays)

    def move(self, batches: int) -> tuple[np.ndarray, float]:
        fresh = self.generator.standard_normal(self.state.shape)
        self.state = self.state @ self.matrix.T + fresh @ self.root.T
        return self.state[..., -1], float(self.spread(batches * BATCH))


def directions(generator: np.random.Generator, shape: tuple[int, ...], d: int) -> np.ndarray:
    """Unit vectors."""
    drawn = generator.standard_normal((*shape, d))
    return drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)


def play_linear(policy: Linear | LinUCB, arrivals: int, runs: int, seed: int) -> np.ndarray:
    """The regret of each run.

    Noisy sums are looked at after each batch only. In between the noise moves as it would step by step: that of a
    Toeplitz matrix, a linear recursion, goes a batch at once. The law is that of the policies, fed in such batches.
    """
    d, arms, generator = policy.dimension, policy.arms, np.random.default_rng(seed)
    theta = directions(generator, (runs,), d) / 2
    sigma, wrong, noise = 0.0, 0.05, None
    if isinstance(policy, Linear):
        sigma, wrong = policy.law.sigma, 1 / arrivals
        noise = _FactorNoise(arrivals, (runs, numbers_of(d)), generator)
    gram, moment, regret = np.zeros((runs, d, d)), np.zeros((runs, d)), np.zeros(runs)
    pairs, each = np.triu_indices(d, 1), np.ix_(np.arange(runs), np.arange(BATCH))
    off, variance = np.zeros((runs, numbers_of(d))), 0.0
    for batch in range(arrivals // BATCH):
        shift, theirs = confidence(d, batch * BATCH, sigma * np.sqrt(variance), wrong, policy.weights)
        noisy = gram + shift * np.eye(d)
        noisy[:, range(d), range(d)] += sigma * off[:, :d]
        noisy[:, pairs[0], pairs[1]] += sigma * off[:, d:-d] / np.sqrt(2)
        noisy[:, pairs[1], pairs[0]] += sigma * off[:, d:-d] / np.sqrt(2)
        inverse = np.linalg.inv(noisy)
        estimate = np.einsum("rij,rj->ri", inverse, moment + sigma * off[:, -d:] / np.sqrt(2))
        x = directions(generator, (runs, BATCH, arms), d).reshape(runs, BATCH * arms, d)
        raised = np.sqrt(np.maximum(((x @ inverse) * x).sum(axis=2), 0.0))
        scores = (x @ estimate[..., None])[..., 0] + policy.width * theirs * raised
        arm = scores.reshape(runs, BATCH, arms).argmax(axis=2)
        x = x.reshape(runs, BATCH, arms, d)
        true = np.einsum("rbai,ri->rba", x, theta)
        chosen = x[(*each, arm)]
        value = true[(*each, arm)]
        regret += (true.max(axis=2) - value).sum(axis=1)
        y = (generator.random((runs, BATCH)) < 0.5 + value) - 0.5
        gram += chosen.transpose(0, 2, 1) @ chosen
        moment += np.einsum("rbi,rb->ri", chosen, y)
        if noise is not None:
            off, variance = noise.move(batch + 1)
    return regret
