"""Plays of linear bandits, many runs at a time: fresh rows for each arrival, weights of length a half.

Answers are learned in batches of 32, so that noisy sums are looked at after each batch only. In between the noise
moves as it would step by step: a tree's nodes below a batch are never looked at, and that of a Toeplitz matrix, a
linear recursion, goes 32 steps at once. The law is that of the policies, fed in such batches.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from quietq.learning.bandits import Linear, LinearTree, LinUCB
from quietq.learning.bandits.lin_ucb import confidence, numbers_of
from quietq.learning.bandits.running_sums import Factors, spreads

ARMS, BATCH = 10, 32
Rows = Callable[[np.random.Generator, tuple[int, ...], int], np.ndarray]
"""From a shape of (runs, batch, arms) and a number of features to rows, of length 1 at the most."""


class _TreeNoise:
    """Of a binary counter of batches."""

    def __init__(self, policy: Any, shape: tuple[int, int], generator: np.random.Generator) -> None:
        self.nodes, self.generator = np.zeros((policy.arrivals.bit_length() + 1, *shape)), generator

    def move(self, batches: int) -> tuple[np.ndarray, float]:
        level = (batches & -batches).bit_length() - 1
        self.nodes[:level] = 0
        self.nodes[level] = self.generator.standard_normal(self.nodes.shape[1:])
        return self.nodes.sum(axis=0), float(batches.bit_count())


class _FactorNoise:
    """Of decoding: buffers and the running sum, by a matrix whose powers are known."""

    def __init__(self, policy: Any, shape: tuple[int, int], generator: np.random.Generator) -> None:
        way = Factors(policy.arrivals, 1, 1.0)
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


class _NoNoise:
    def __init__(self, policy: Any, shape: tuple[int, int], generator: np.random.Generator) -> None:
        self.nothing = np.zeros(shape)

    def move(self, batches: int) -> tuple[np.ndarray, float]:
        return self.nothing, 0.0


_NOISE: dict[type, Any] = {Linear: _FactorNoise, LinearTree: _TreeNoise, LinUCB: _NoNoise}


def directions(generator: np.random.Generator, shape: tuple[int, ...], d: int) -> np.ndarray:
    """Unit vectors."""
    drawn = generator.standard_normal((*shape, d))
    return drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)


def play(
    policy: Any, arrivals: int, runs: int, seed: int, rows: Rows = directions, width: Any = None
) -> dict[int, np.ndarray]:
    """The regret of each run, after each tenth of the arrivals; `width` may be a number for each run."""
    d, arms, generator = policy.dimension, policy.arms, np.random.default_rng(seed)
    widths = np.broadcast_to(policy.width if width is None else width, (runs,))[:, None]
    theta = directions(generator, (runs,), d) / 2
    noise = _NOISE[type(policy)](policy, (runs, numbers_of(d)), generator)
    sigma = 0.0 if type(policy) is LinUCB else policy.law.sigma
    gram, moment, regret, found = np.zeros((runs, d, d)), np.zeros((runs, d)), np.zeros(runs), {}
    pairs, each = np.triu_indices(d, 1), np.ix_(np.arange(runs), np.arange(BATCH))
    off, variance = noise.nothing if sigma == 0 else np.zeros((runs, numbers_of(d))), 0.0
    for batch in range(arrivals // BATCH):
        shift, theirs = confidence(d, batch * BATCH, sigma * np.sqrt(variance), policy._wrong, policy.weights)
        noisy = gram + shift * np.eye(d)
        noisy[:, range(d), range(d)] += sigma * off[:, :d]
        noisy[:, pairs[0], pairs[1]] += sigma * off[:, d:-d] / np.sqrt(2)
        noisy[:, pairs[1], pairs[0]] += sigma * off[:, d:-d] / np.sqrt(2)
        inverse = np.linalg.inv(noisy)
        estimate = np.einsum("rij,rj->ri", inverse, moment + sigma * off[:, -d:] / np.sqrt(2))
        x = rows(generator, (runs, BATCH, arms), d).reshape(runs, BATCH * arms, d)
        raised = np.sqrt(np.maximum(((x @ inverse) * x).sum(axis=2), 0.0))
        scores = (x @ estimate[..., None])[..., 0] + widths * theirs * raised
        arm = scores.reshape(runs, BATCH, arms).argmax(axis=2)
        x = x.reshape(runs, BATCH, arms, d)
        true = np.einsum("rbai,ri->rba", x, theta)
        chosen = x[(*each, arm)]
        value = true[(*each, arm)]
        regret += (true.max(axis=2) - value).sum(axis=1)
        y = (generator.random((runs, BATCH)) < 0.5 + value) - 0.5
        gram += chosen.transpose(0, 2, 1) @ chosen
        moment += np.einsum("rbi,rb->ri", chosen, y)
        off, variance = noise.move(batch + 1)
        if (batch + 1) * BATCH * 10 // arrivals > batch * BATCH * 10 // arrivals:
            found[(batch + 1) * BATCH] = regret.copy()
    return found
