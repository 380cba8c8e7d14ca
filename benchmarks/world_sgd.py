"""Person-level DP-SGD of an ensemble of networks, and penalised planning in it: the recipe of PriMORL.

Rio, Barlier, Colin & Thomas ("Differentially Private Deep Model-Based Reinforcement Learning", 2024): an ensemble of
dynamics models is trained with each person's clipped gradient, over all its members together, and rewards are reduced
by how far the members disagree. Here all people are in every step, which is the least noise for a number of steps, and
the relation is that one is replaced. Clipping and noise are jax-privacy's. Where people's states and changes are is
paid for, and networks may be given the features that quietq is given, made white, and a straight part.
"""

import math
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax_privacy import clipped_grad
from jax_privacy.noise_addition import gaussian_privatizer

from benchmarks.planners import Imagined, plan
from benchmarks.search import Settings
from benchmarks.session_data import Array, Policy, Rng, Steps, System
from benchmarks.world_peers import BUDGET, regress, some_rows
from benchmarks.world_twin import with_constant
from quietq.feedback.spaces import Spaces

Weights = dict[str, Any]
ROWS = 16
"""Of each person, at random."""
BLOCK, BLOCKS = 250, 20
SIZES, FEW = (10, 16, 48), 6
"""People who are taken at once, the most of such blocks, and sizes that inputs, and outputs if they are not few, are
filled up to with zeros: one compiled loop serves many systems."""
RARE = -3.0
"""The log-odds of an end, at first."""
STARTS = 0.05
"""Of mu squared, for first states."""
_LADDER = 0.5 ** np.arange(11)


def network(steps: Steps, settings: Settings, seed: int) -> Policy:
    return plan(train(steps, settings, seed), steps.system, seed)


def train(steps: Steps, settings: Settings, seed: int) -> "Network":
    system, rng = steps.system, np.random.default_rng([seed, 9])
    spaces, model, some = system.spaces, system.model, some_rows(steps, ROWS, rng).unit()
    moved, there = list(model.learned(spaces.states)), some.there.astype(float)
    change = 2 * (some.after - some.states)[..., moved]
    inputs, scale = _scaled(system, settings, some.states, change, there, rng)
    rewards, ended = (2 * some.rewards - 1)[..., None], some.ended[..., None]
    targets = np.concatenate([change / scale, rewards, ended], axis=-1)
    mask = np.r_[np.ones(len(moved)), float(model.reward is None), 0.0]
    end = np.r_[np.zeros(len(mask) - 1), float(model.end is None and system.ends)]
    seen = inputs(some.states, some.actions)
    sizes, outputs = settings["widths"], _filled(len(mask), FEW)
    weights = _start(seen.shape[-1], (*sizes, outputs), settings["members"], rng)
    weights["layers"][-1][1][:, len(mask) - 1] = RARE
    mu = BUDGET.mu * math.sqrt(1 - settings["scales"] - (STARTS if model.start is None else 0.0))
    weights = _descend(
        weights,
        _blocks(seen, _filled(seen.shape[-1])),
        _blocks(targets, outputs),
        _blocks(there[..., None], 1),
        *(np.pad(one, (0, outputs - len(one))).astype(np.float32) for one in (mask, end)),
        len(seen),
        *_numbers(settings, mu),
        jax.random.key(seed, impl="rbg"),
    )
    first = None
    if model.start is None:
        begin = 2 * steps.unit().states[:, :1] - 1
        each = np.ones((len(begin), 1))
        found = regress(each[..., None], begin, each, BUDGET.mu * math.sqrt(STARTS), 1.0, rng)
        first = (found.slopes[0] + 1) / 2, np.sqrt(np.diag(found.left)) / 2
    arrays = _without_padding(weights, seen.shape[-1], targets.shape[-1])
    return Network(system, arrays, inputs, scale, settings["penalty"], settings["apart"], first)


def noise_multiplier(steps: int, mu: float) -> float:
    """Of a clipped gradient's length, for the sum over people: another person's moves it by up to two lengths."""
    return 2 * math.sqrt(steps) / mu


def _numbers(settings: Settings, mu: float) -> tuple[float, ...]:
    kind, rate = settings["optimiser"]
    return (
        settings["clip"],
        noise_multiplier(settings["steps"], mu),
        float(kind == "adam"),
        rate,
        settings["steps"],
        settings["averaged"],
        float(settings["straight"]),
    )


def _filled(columns: int, *sizes: int) -> int:
    return next(size for size in (*sizes, *SIZES) if size >= columns)


def _blocks(rows: Array, columns: int) -> Array:
    """With people and columns of zeros, which no gradient comes from."""
    found = np.zeros((BLOCKS * BLOCK, ROWS, columns), np.float32)
    found[: len(rows), : rows.shape[1], : rows.shape[2]] = rows
    return found.reshape(BLOCKS, BLOCK, ROWS, columns)


@dataclass(frozen=True, eq=False)
class Inputs:
    """What networks see of states and actions: states in deviations from a middle, or features that are made white."""

    system: System
    middle: Array
    deviation: Array
    """Of states, in the unit box."""
    features: bool
    white: Array
    """What makes features white, if they are taken."""

    def __call__(self, states: Array, actions: Array) -> Array:
        spaces = self.system.spaces
        if self.features:
            return self._features(states, actions) @ self.white[:, 1:]
        seen = np.clip((states - self.middle) / self.deviation, -5, 5)
        acted = spaces.join(states, actions)[..., spaces.states :]
        return np.concatenate([seen, 2 * acted - 1], axis=-1)

    def _features(self, states: Array, actions: Array) -> Array:
        spaces = self.system.spaces
        return with_constant(self.system.model.feature_map(spaces)(spaces.join(states, actions)))

    @classmethod
    def of(cls, system: System, middle: Array, deviation: Array, features: bool) -> "Inputs":
        """White for independent normal states of this middle and deviation and uniform actions: nobody's are needed."""
        found = cls(system, middle, deviation, features, np.eye(1))
        if not features:
            return found
        rng, spaces = np.random.default_rng(0), system.spaces
        states = np.clip(middle + deviation * rng.standard_normal((4096, len(middle))), 0, 1)
        actions = rng.integers(0, spaces.actions, 4096) if spaces.actions else rng.random((4096, spaces.numbers))
        phi = found._features(states, actions)
        gram = phi.T @ phi / len(phi)
        white = np.linalg.inv(np.linalg.cholesky(gram + 1e-8 * np.eye(len(gram)))).T
        return cls(system, middle, deviation, features, white)


def _scaled(
    system: System, settings: Settings, states: Array, change: Array, there: Array, rng: Rng
) -> tuple[Inputs, Array]:
    """How large changes are, and where states are; "public" takes the box for states, "spread" its middle alone."""
    kind, size = settings["scaling"], states.shape[-1]
    mu, middle = BUDGET.mu * math.sqrt(settings["scales"]), np.zeros(size)
    if kind == "place":
        mu = mu / math.sqrt(2)
        own = ((2 * states - 1) * there[..., None]).sum(axis=1) / there.sum(axis=1)[:, None]
        noise = 2 * math.sqrt(size) / (len(own) * mu)
        middle = np.clip(own.mean(axis=0) + noise * rng.standard_normal(size), -1, 1)
    if kind == "public":
        return Inputs.of(system, np.full(size, 0.5), np.full(size, 12**-0.5), settings["features"]), _sizes(
            change, there, mu, rng
        )
    sizes = _sizes(np.concatenate([change, 2 * states - 1 - middle], axis=-1), there, mu, rng)
    spread = sizes[change.shape[-1] :] / 2
    return Inputs.of(system, (middle + 1) / 2, spread, settings["features"]), sizes[: change.shape[-1]]


def _sizes(values: Array, there: Array, mu: float, rng: Rng) -> Array:
    """For each column twice the largest rung of a ladder that more than half of all values exceed.

    A person gives for each column how many of their values lie between which rungs, as shares of 1: another person's
    move them by at most sqrt(2) for each column.
    """
    between = np.diff((np.abs(values)[..., None] > np.r_[np.inf, _LADDER]) * there[..., None, None], axis=-1)
    share = (between.sum(axis=1) / there.sum(axis=1)[:, None, None]).mean(axis=0)
    noise = math.sqrt(2 * values.shape[-1]) / (len(values) * mu)
    over = np.cumsum(share + noise * rng.standard_normal(share.shape), axis=-1) > 0.5
    return 2 * np.array([_LADDER[np.argmax(row)] if row.any() else _LADDER[-1] for row in over])


def _start(inputs: int, sizes: tuple[int, ...], members: int, rng: Rng) -> Weights:
    """All members at once, each with another start; the last layers start small, and the straight parts at 0."""
    before, last = (_filled(inputs), *sizes), len(sizes) - 1
    drawn = [
        (rng.normal(0, one**-0.5, (members, rows, columns)) * (0.1 if i == last else 1)).astype(np.float32)
        for i, (one, (rows, columns)) in enumerate(zip((inputs, *sizes), pairwise(before), strict=False))
    ]
    layers = [(one, np.zeros((members, one.shape[-1]), np.float32)) for one in drawn]
    return {"layers": layers, "straight": np.zeros((members, before[0], before[-1]), np.float32)}


def _without_padding(weights: Any, inputs: int, outputs: int) -> Weights:
    layers = [[np.asarray(leaf, float) for leaf in pair] for pair in weights["layers"]]
    layers[0][0] = layers[0][0][:, :inputs]
    layers[-1] = [leaf[..., :outputs] for leaf in layers[-1]]
    return {"layers": layers, "straight": np.asarray(weights["straight"], float)[:, :inputs, :outputs]}


def values(weights: Weights, x: Any, xp: Any) -> Any:
    """(members, rows, outputs) of rows."""
    layers = weights["layers"]
    hidden = xp.broadcast_to(x, (layers[0][0].shape[0], *x.shape))
    for i, (matrix, bias) in enumerate(layers):
        hidden = hidden @ matrix + bias[:, None, :]
        if i < len(layers) - 1:
            hidden = xp.tanh(hidden)
    return hidden + x @ weights["straight"]


def _loss(mask: Any, end: Any, weights: Weights, x: Any, y: Any, there: Any) -> Any:
    """The mean over a person's rows and over members: Huber's, and logistic for ends."""
    found = values(weights, x, jnp)
    squares = optax.huber_loss(found, jnp.broadcast_to(y, found.shape), delta=3.0) * mask
    log_odds = found @ end
    ends = optax.sigmoid_binary_cross_entropy(log_odds, jnp.broadcast_to(y @ end, log_odds.shape))
    rows = (squares.sum(axis=-1) + end.sum() * ends) * there[:, 0]
    return rows.mean(axis=0).sum() / jnp.maximum(there.sum(), 1.0)


def _with_straight(straight: Any, gradient: Any) -> Any:
    """1 keeps the straight part, and 0 leaves it out."""
    return gradient | {"straight": straight * gradient["straight"]}


@jax.jit
def _descend(
    weights: Weights,
    x: Any,
    y: Any,
    there: Any,
    mask: Any,
    end: Any,
    people: Any,
    clip: Any,
    noise: Any,
    adam: Any,
    rate: Any,
    steps: Any,
    averaged: Any,
    straight: Any,
    key: Any,
) -> Weights:
    """All steps in one compiled loop; a rate that falls to a tenth, and the mean of the last weights."""
    optimisers = optax.scale_by_adam(), optax.trace(0.9)
    gradient = clipped_grad(
        partial(_loss, mask, end),
        l2_clip_norm=clip,
        rescale_to_unit_norm=True,
        batch_argnums=(1, 2, 3),
        keep_batch_dim=False,
        pre_clipping_transform=partial(_with_straight, straight),
    )
    privatiser = gaussian_privatizer(stddev=noise, prng_key=key)
    first = steps - jnp.maximum(1, jnp.round(averaged * steps).astype(int))
    nothing = jax.tree.map(jnp.zeros_like, weights)

    def step(i: Any, carry: Any) -> Any:
        weights, moves, random, total = carry
        summed = jax.lax.fori_loop(
            0,
            (people + BLOCK - 1) // BLOCK,
            lambda block, sofar: jax.tree.map(jnp.add, sofar, gradient(weights, x[block], y[block], there[block])),
            nothing,
        )
        noisy, random = privatiser.update(summed, random)
        mean = jax.tree.map(lambda leaf: leaf / people, _with_straight(straight, noisy))
        changes, moves = zip(*(one.update(mean, old) for one, old in zip(optimisers, moves, strict=True)), strict=True)
        now = rate * (1 - 0.9 * i / steps)
        weights = jax.tree.map(lambda leaf, one, other: leaf - now * jnp.where(adam > 0, one, other), weights, *changes)
        total = jax.tree.map(lambda old, new: old + jnp.where(i >= first, new, 0.0), total, weights)
        return weights, moves, random, total

    begin = weights, tuple(one.init(weights) for one in optimisers), privatiser.init(weights), nothing
    total = jax.lax.fori_loop(0, steps, step, begin)[3]
    return jax.tree.map(lambda leaf: leaf / (steps - first), total)


@dataclass(frozen=True, eq=False)
class Network:
    """A model of the system: the members' mean, or each of them, and a penalty for how far they disagree."""

    system: System
    weights: Weights
    inputs: Inputs
    scale: Array
    penalty: float
    apart: bool
    """Whether plans are made for members apart, and not for their mean."""
    first: tuple[Array, Array] | None

    @property
    def spaces(self) -> Spaces:
        return self.system.spaces

    def typical(self) -> tuple[Array, Array]:
        return self.inputs.middle, self.inputs.deviation

    def start(self, number: int, rng: Rng) -> Array:
        assert self.first is not None
        middle, spread = self.first
        return np.clip(middle + spread * rng.standard_normal((number, len(middle))), 0.0, 1.0)

    def plausible(self, number: int, rng: Rng) -> Array | None:
        """The numbers of members."""
        return np.arange(number) % len(self.weights["straight"]) if self.apart else None

    def step(self, states: Array, actions: Array, draws: Array, worlds: Array | None = None) -> Imagined:
        spaces, model = self.spaces, self.system.model
        points = self.inputs(states, actions)
        found = values(self.weights, points.reshape(-1, points.shape[-1]), np)
        found = found.reshape(len(found), *points.shape[:-1], -1)
        apart = np.linalg.norm(found[..., :-2].std(axis=0), axis=-1)
        mean = found.mean(axis=0) if worlds is None else found[worlds, np.arange(len(worlds))]
        after = states.copy()
        after[..., model.learned(spaces.states)] += mean[..., :-2] * self.scale / 2
        after = np.clip(after, 0.0, 1.0)
        box, acting = spaces.box, spaces.action_box
        low, width = np.array(box.low), np.array(box.width)
        acted = actions if acting is None else np.array(acting.low) + actions * np.array(acting.width)
        for i, move in model.moves.items():
            after[..., i] = np.clip((move(low + states * width, acted, low + after * width) - low[i]) / width[i], 0, 1)
        if model.reward is not None:
            rewards = model.reward(low + states * width, acted, low + after * width)
        else:
            rewards = spaces.low + (spaces.high - spaces.low) * np.clip(0.5 + mean[..., -2] / 2, 0, 1)
        ends = 1 / (1 + np.exp(-np.clip(mean[..., -1], -30, 30))) if self.system.ends else np.zeros(apart.shape)
        if model.end is not None:
            ends = np.asarray(model.end(low + after * width), float)
        paid = self.penalty * (spaces.high - spaces.low) * apart
        return Imagined(after, rewards - paid, ends, np.zeros(apart.shape, bool))
