"""Person-level DP-SGD of an ensemble of networks, and penalised planning in it: the recipe of PriMORL.

Rio, Barlier, Colin & Thomas ("Differentially Private Deep Model-Based Reinforcement Learning", 2024): an ensemble of
dynamics models is trained with each person's clipped gradient, over all its members together, and rewards are reduced
by how far the members disagree. Here all people are in every step, which is the least noise for a number of steps, and
the relation is that one is replaced. Clipping and noise are jax-privacy's.
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
from benchmarks.session_data import Array, Policy, Rng, Steps, System
from benchmarks.world_peers import BUDGET, Settings, regress
from quietq.feedback.spaces import Spaces

Weights = list[tuple[Any, Any]]
ROWS = 32
"""Of each person, at random."""
MEMBERS = 3
SCALES, STARTS = 0.1, 0.05
"""Of mu squared, for how large changes are, and for first states."""
_LADDER = 0.5 ** np.arange(11)


def network(steps: Steps, settings: Settings, seed: int) -> Policy:
    return plan(train(steps, settings, seed), steps.system, seed)


def train(steps: Steps, settings: Settings, seed: int) -> "Network":
    system, unit, rng = steps.system, steps.unit(), np.random.default_rng([seed, 9])
    spaces, model = system.spaces, system.model
    moved = list(model.learned(spaces.states))
    chosen, there = _chosen(steps.there, rng)
    inputs = 2 * spaces.join(np.take_along_axis(unit.states, chosen[..., None], 1), _acted(unit, chosen)) - 1
    change = 2 * np.take_along_axis(unit.after - unit.states, chosen[..., None], 1)[..., moved]
    scale = _scales(change, there, BUDGET.mu * math.sqrt(SCALES), rng)
    rewards, ended = (np.take_along_axis(one, chosen, 1)[..., None] for one in (unit.rewards - 0.5, steps.ended))
    targets = np.concatenate([change / scale, 2 * rewards, ended], axis=-1)
    learned = np.r_[np.ones(len(moved)), float(model.reward is None), float(model.end is None and system.ends)]
    data = tuple(jnp.asarray(one, jnp.float32) for one in (inputs, targets, there))
    weights = _start((inputs.shape[-1], *settings["widths"], targets.shape[-1]), rng)
    mu, number = BUDGET.mu * math.sqrt(1 - SCALES - STARTS), settings["steps"]
    noise = 2 * math.sqrt(number) / mu * settings["clip"]
    optimiser = optax.adam(optax.linear_schedule(settings["rate"], 0.1 * settings["rate"], number))
    moves, mask = optimiser.init(weights), jnp.asarray(learned, jnp.float32)
    random = gaussian_privatizer(stddev=1, prng_key=jax.random.key(seed, impl="rbg")).init(weights)
    for _ in range(number):
        summed, random = _noisy_sum(weights, *data, mask, settings["clip"], noise, random)
        change_, moves = optimiser.update(jax.tree.map(lambda leaf: leaf / len(inputs), summed), moves)
        weights = optax.apply_updates(weights, change_)
    first = None
    if model.start is None:
        begin = 2 * unit.states[:, :1] - 1
        each = np.ones((len(begin), 1))
        found, _, spread = regress(each[..., None], begin, each, BUDGET.mu * math.sqrt(STARTS), 1.0, rng)
        first = (found[0] + 1) / 2, np.sqrt(np.diag(spread)) / 2
    arrays = [(np.asarray(matrix, float), np.asarray(bias, float)) for matrix, bias in list(weights)]  # pyright: ignore[reportArgumentType, reportGeneralTypeIssues]
    return Network(system, arrays, scale, settings["penalty"], first)


def _chosen(there: Array, rng: Rng) -> tuple[Array, Array]:
    """As many steps of each person, drawn from theirs; who has fewer has some that do not count."""
    order = np.argsort(np.where(there, rng.random(there.shape), 2.0), axis=1)[:, :ROWS]
    return order, np.take_along_axis(there, order, 1).astype(float)


def _acted(unit: Steps, chosen: Array) -> Array:
    listed = unit.actions.ndim == 2
    return np.take_along_axis(unit.actions, chosen if listed else chosen[..., None], 1)


def _scales(change: Array, there: Array, mu: float, rng: Rng) -> Array:
    """For each coordinate the largest rung of a ladder that more than 3 in 10 changes exceed; paid for."""
    over = (np.abs(change)[..., None] > _LADDER) * there[..., None, None]
    share = over.sum(axis=1) / np.maximum(there.sum(axis=1), 1)[:, None, None]
    found = share.mean(axis=0)
    found = found + math.sqrt(share[0].size) * math.sqrt(2) / (len(share) * mu) * rng.standard_normal(found.shape)
    return np.array([_LADDER[np.argmax(row > 0.3)] if (row > 0.3).any() else _LADDER[-1] for row in found])


def _start(sizes: tuple[int, ...], rng: Rng) -> Weights:
    """All members at once, each with another start; the last layers start at 0."""
    drawn = [rng.normal(0, pair[0] ** -0.5, (MEMBERS, *pair)).astype(np.float32) for pair in pairwise(sizes)]
    drawn[-1] *= 0.1
    return [(jnp.asarray(one), jnp.zeros((MEMBERS, one.shape[-1]), jnp.float32)) for one in drawn]


def values(weights: Weights, x: Any, xp: Any) -> Any:
    """(members, rows, outputs) of rows."""
    hidden = xp.broadcast_to(x, (MEMBERS, *x.shape))
    for i, (matrix, bias) in enumerate(weights):
        hidden = hidden @ matrix + bias[:, None, :]
        if i < len(weights) - 1:
            hidden = xp.tanh(hidden)
    return hidden


def _loss(weights: Weights, x: Any, y: Any, there: Any, mask: Any) -> Any:
    found = values(weights, x, jnp)
    squares = optax.huber_loss(found[..., :-1], jnp.broadcast_to(y[..., :-1], found[..., :-1].shape), delta=3.0)
    ends = optax.sigmoid_binary_cross_entropy(found[..., -1:], jnp.broadcast_to(y[..., -1:], found[..., -1:].shape))
    rows = (jnp.concatenate([squares, ends], axis=-1) * mask).sum(axis=-1) * there
    return rows.mean(axis=0).sum() / jnp.maximum(there.sum(), 1.0)


@jax.jit
def _noisy_sum(weights: Weights, x: Any, y: Any, there: Any, mask: Any, clip: Any, noise: Any, random: Any) -> Any:
    gradient = clipped_grad(
        partial(_masked, mask), l2_clip_norm=clip, batch_argnums=(1, 2, 3), keep_batch_dim=False
    )  # fmt: skip
    return gaussian_privatizer(stddev=noise, prng_key=0).update(gradient(weights, x, y, there), random)


def _masked(mask: Any, weights: Weights, x: Any, y: Any, there: Any) -> Any:
    return _loss(weights, x, y, there, mask)


@dataclass(frozen=True, eq=False)
class Network:
    """A model of the system: the members' mean, and a penalty for how far they disagree."""

    system: System
    weights: Weights
    scale: Array
    penalty: float
    first: tuple[Array, Array] | None

    @property
    def spaces(self) -> Spaces:
        return self.system.spaces

    def typical(self) -> tuple[Array, Array]:
        return np.full(self.spaces.states, 0.5), np.full(self.spaces.states, 12**-0.5)

    def start(self, number: int, rng: Rng) -> Array:
        assert self.first is not None
        middle, spread = self.first
        return np.clip(middle + spread * rng.standard_normal((number, len(middle))), 0.0, 1.0)

    def plausible(self, number: int, rng: Rng) -> None:
        """Members of the ensemble are averaged, and paid for where they differ."""

    def step(self, states: Array, actions: Array, draws: Array, worlds: Array | None = None) -> Imagined:
        spaces, model = self.spaces, self.system.model
        points = 2 * spaces.join(states, actions) - 1
        found = values(self.weights, points.reshape(-1, points.shape[-1]), np)
        found = found.reshape(MEMBERS, *points.shape[:-1], -1)
        apart = np.linalg.norm(found[..., :-2].std(axis=0), axis=-1)
        mean = found.mean(axis=0)
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
