"""A model of a system by person-level DP-SGD: one network for changes, rewards and ends, whose steps are planned in.

All people are in every step, which is the least noise for a number of steps. How large changes are is paid for, and the
network sees the features that quietq is given, made white. Of what was tried on the development systems, this was best
in the mean; ensembles that are penalised where their members disagree (PriMORL's recipe), networks of states as they
are, and a part of the budget for where states are were among it.
"""

import math
from dataclasses import dataclass
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import optax

import quietq as qq
from benchmarks.dp_sgd import Descent, Loss, Weights
from benchmarks.systems import Array, Rng, Steps, System
from benchmarks.world_peers import BUDGET, first_states, some_rows
from benchmarks.world_twin import with_constant
from quietq.feedback.spaces import Spaces
from quietq.worlds.private_env import Step

ROWS = 16
"""Of each person, at random."""
UNITS = 32
DESCENT = Descent(rate=0.03, decay=0.1, clip=0.1, steps=200, averaged=0.6)
SIZES, STARTS = 0.2, 0.05
"""Of mu squared, for how large changes are, and for first states if they are not known."""
MIDDLE, DEVIATION = 0.5, 12**-0.5
"""Of uniform states."""


def train(steps: Steps, seed: int, budget: qq.Budget = BUDGET) -> "Network":
    system, rng = steps.system, np.random.default_rng([seed, 9])
    spaces, model, some = system.spaces, system.model, some_rows(steps, ROWS, rng).unit()
    there = some.there.astype(float)
    change = 2 * (some.after - some.states)[..., model.learned(spaces.states)]
    scale = sizes(change, there, budget.mu * math.sqrt(SIZES), rng)
    targets = [change / scale]
    if model.reward is None:
        targets.append((2 * some.rewards - 1)[..., None])
    numbers = sum(one.shape[-1] for one in targets)
    if model.end is None and system.ends:
        targets.append(some.ended[..., None])
    white = white_features(system)
    seen, told = features_of(system, some.states, some.actions) @ white, np.concatenate(targets, axis=-1)
    into = rng.normal(0, seen.shape[-1] ** -0.5, (seen.shape[-1], UNITS))
    out = rng.normal(0, 0.1 * UNITS**-0.5, (UNITS, told.shape[-1]))
    bias = np.where(np.arange(told.shape[-1]) < numbers, 0.0, -3.0)  # log-odds: ends are rare
    start = [(into, np.zeros(UNITS)), (out, bias)]
    weights: Weights = [(jnp.asarray(matrix, jnp.float32), jnp.asarray(row, jnp.float32)) for matrix, row in start]
    rest = 1 - SIZES - (STARTS if model.start is None else 0.0)
    left = qq.Budget.from_mu(budget.mu * math.sqrt(rest), budget.delta)
    weights = DESCENT.run(loss_of(numbers), weights, (seen, told, there), left, seed)
    first = None
    if model.start is None:
        first = first_states(steps.unit(), budget.mu * math.sqrt(STARTS), 1.0, rng)
    arrays = [(np.asarray(matrix, float), np.asarray(row, float)) for matrix, row in weights]
    return Network(system, arrays, white, scale, first)


def features_of(system: System, states: Array, actions: Array) -> Array:
    return with_constant(system.model.feature_map(system.spaces)(system.spaces.join(states, actions)))


def white_features(system: System) -> Array:
    """What makes features white for independent normal states and uniform actions, without the constant: nobody's are
    needed."""
    rng, spaces = np.random.default_rng(0), system.spaces
    states = np.clip(MIDDLE + DEVIATION * rng.standard_normal((4096, spaces.states)), 0, 1)
    actions = rng.integers(0, spaces.actions, 4096) if spaces.actions else rng.random((4096, spaces.numbers))
    phi = features_of(system, states, actions)
    gram = phi.T @ phi / len(phi)
    return np.linalg.inv(np.linalg.cholesky(gram + 1e-8 * np.eye(len(gram)))).T[:, 1:]


def sizes(values: Array, there: Array, mu: float, rng: Rng) -> Array:
    """For each column twice the largest rung of a ladder that more than half of all values exceed.

    A person gives for each column how many of their values lie between which rungs, as shares of 1: another person's
    move them by at most sqrt(2) for each column.
    """
    ladder = 0.5 ** np.arange(11)
    between = np.diff((np.abs(values)[..., None] > np.r_[np.inf, ladder]) * there[..., None, None], axis=-1)
    share = (between.sum(axis=1) / there.sum(axis=1)[:, None, None]).mean(axis=0)
    noise = math.sqrt(2 * values.shape[-1]) / (len(values) * mu)
    over = np.cumsum(share + noise * rng.standard_normal(share.shape), axis=-1) > 0.5
    return 2 * np.array([ladder[np.argmax(row)] if row.any() else ladder[-1] for row in over])


@cache
def loss_of(numbers: int) -> Loss:
    """The mean over a person's rows: Huber's for so many outputs, and logistic for ends if there is one more."""

    def loss(weights: Weights, x: jax.Array, y: jax.Array, there: jax.Array) -> jax.Array:
        (into, first), (out, second) = weights
        found = jnp.tanh(x @ into + first) @ out + second
        missed = optax.huber_loss(found[:, :numbers], y[:, :numbers], delta=3.0).sum(axis=-1)
        ends = optax.sigmoid_binary_cross_entropy(found[:, numbers:], y[:, numbers:]).sum(axis=-1)
        return ((missed + ends) * there).sum() / jnp.maximum(there.sum(), 1.0)

    return loss


@dataclass(frozen=True, eq=False)
class Network:
    """A model of the system, as planners take it."""

    system: System
    weights: list[tuple[Array, Array]]
    white: Array
    scale: Array
    """What changes are divided by."""
    first: tuple[Array, Array] | None
    """Mean and covariance of first states."""

    @property
    def spaces(self) -> Spaces:
        return self.system.spaces

    def typical(self) -> tuple[Array, Array]:
        return np.full(self.spaces.states, MIDDLE), np.full(self.spaces.states, DEVIATION)

    def start(self, number: int, rng: Rng) -> Array:
        assert self.first is not None
        middle, covariance = self.first
        return np.clip(middle + np.sqrt(np.diag(covariance)) * rng.standard_normal((number, len(middle))), 0.0, 1.0)

    def plausible(self, number: int, rng: Rng) -> None:
        return None

    def step(self, states: Array, actions: Array, draws: Array, worlds: Array | None = None) -> Step:
        spaces, model = self.spaces, self.system.model
        (into, first), (out, second) = self.weights
        found = np.tanh(features_of(self.system, states, actions) @ self.white @ into + first) @ out + second
        box, acting, moved = spaces.box, spaces.action_box, len(self.scale)
        low, width = np.array(box.low), np.array(box.width)
        after = states.copy()
        after[..., model.learned(spaces.states)] += found[..., :moved] * self.scale / 2
        after = np.clip(after, 0.0, 1.0)
        acted = actions if acting is None else np.array(acting.low) + actions * np.array(acting.width)
        for i, move in model.moves.items():
            after[..., i] = np.clip((move(low + states * width, acted, low + after * width) - low[i]) / width[i], 0, 1)
        if model.reward is not None:
            rewards = model.reward(low + states * width, acted, low + after * width)
        else:
            rewards = spaces.low + (spaces.high - spaces.low) * np.clip(0.5 + found[..., moved] / 2, 0, 1)
        ends = np.zeros(states.shape[:-1])
        if model.end is not None:
            ends = np.asarray(model.end(low + after * width), float)
        elif self.system.ends:
            ends = 1 / (1 + np.exp(-np.clip(found[..., -1], -30, 30)))
        return Step(after, rewards, ends, np.zeros(states.shape[:-1], bool))
