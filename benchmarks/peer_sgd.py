"""Per-person DP-SGD with jax-privacy: its clipping, sampling and noise.

A person is one example: the gradient is that of the mean squared error of their rows. Steps are Adam's or plain ones,
of a rate that may fall; the last weights may be averaged (De et al. 2022).
"""

import math
from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise
from typing import Any

import dp_accounting as dpa
import jax
import jax.numpy as jnp
import numpy as np
import optax
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism
from jax_privacy import clipped_grad
from jax_privacy.batch_selection import CyclicPoissonSampling
from jax_privacy.noise_addition import gaussian_privatizer
from scipy.optimize import brentq

from benchmarks.families import Array, States
from benchmarks.peers import BUDGET, People, Reward
from benchmarks.search import Settings

Weights = list[tuple[jax.Array, jax.Array]]
_OPTIMISERS = {"adam": optax.scale_by_adam(), "plain": optax.identity(), "momentum": optax.trace(0.9)}


def train(
    people: People,
    features: Callable[[States], Array],
    widths: tuple[int, ...],
    settings: Settings,
    seed: int,
) -> Reward:
    """The features are public and computed once."""
    count, sampling, steps = len(people.y), settings["sampling"], settings["steps"]
    inputs, said = jnp.asarray(features(people.states), jnp.float32), jnp.asarray(people.y, jnp.float32)
    weights = _start((inputs.shape[-1], *widths, 1), np.random.default_rng(seed))
    moves = _OPTIMISERS[settings["optimiser"]].init(weights)
    random = gaussian_privatizer(stddev=1, prng_key=jax.random.key(seed, impl="rbg")).init(weights)
    noise = noise_multiplier(sampling, steps) * settings["clip"]
    averaged, total = last_steps(steps, settings["averaged"]), jax.tree.map(jnp.zeros_like, weights)
    for step, chosen in enumerate(CyclicPoissonSampling(sampling, steps).batch_iterator(count, seed)):
        left_out = np.ones(count, bool)
        left_out[chosen] = False
        summed, random = _noisy_sum(weights, inputs, said, left_out, settings["clip"], noise, random)
        rate = settings["rate"] * falls(step / steps, settings["decay"])
        weights, moves = _move(settings["optimiser"], weights, summed, moves, count * sampling, rate)
        if step >= steps - averaged:
            total = _add(total, weights)
    mean = jax.tree.map(lambda leaf: leaf / averaged, total)
    return lambda x: np.asarray(_value(mean, jnp.asarray(features(x), jnp.float32)), float)


def last_steps(steps: int, fraction: float) -> int:
    """How many of the last weights are averaged."""
    return max(1, round(steps * fraction))


def falls(done: float, end: float) -> float:
    """The rate, in a straight line from 1 to its end."""
    return 1 - done * (1 - end)


@cache
def noise_multiplier(sampling: float, steps: int) -> float:
    """By privacy-loss distributions, as the library does; for all people in every step there is a formula."""
    everybody = 2 * math.sqrt(steps) / BUDGET.mu
    if sampling == 1:
        return everybody
    relation = dpa.NeighboringRelation.REPLACE_ONE

    def excess(scale: float) -> float:
        one = from_gaussian_mechanism(
            scale, value_discretization_interval=1e-3, sampling_prob=sampling, neighboring_relation=relation
        )
        return one.self_compose(steps).get_epsilon_for_delta(BUDGET.delta) - BUDGET.epsilon

    return float(brentq(excess, sampling * everybody / 2, everybody, rtol=1e-3))  # type: ignore[arg-type]


@jax.jit
def _noisy_sum(weights: Weights, x: Any, y: Any, left_out: Any, clip: Any, noise: Any, random: Any) -> Any:
    gradient = clipped_grad(_loss, l2_clip_norm=clip, batch_argnums=(1, 2), keep_batch_dim=False)
    summed = gradient(weights, x, y, is_padding_example=left_out)
    return gaussian_privatizer(stddev=noise, prng_key=0).update(summed, random)


@partial(jax.jit, static_argnums=0)
def _move(kind: str, weights: Weights, total: Any, moves: Any, batch: Any, rate: Any) -> tuple[Weights, Any]:
    change, moves = _OPTIMISERS[kind].update(jax.tree.map(lambda leaf: leaf / batch, total), moves)
    return jax.tree.map(lambda leaf, by: leaf - rate * by, weights, change), moves


@jax.jit
def _add(total: Weights, weights: Weights) -> Weights:
    return jax.tree.map(jnp.add, total, weights)


def _loss(weights: Weights, x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.mean((_value(weights, x) - y) ** 2)


def _start(sizes: tuple[int, ...], generator: np.random.Generator) -> Weights:
    """The last layer starts at 0: then so does the reward, which is centred."""
    drawn = [generator.normal(0, pair[0] ** -0.5, pair).astype(np.float32) for pair in pairwise(sizes)]
    drawn[-1][:] = 0
    return [(jnp.asarray(matrix), jnp.zeros(matrix.shape[1])) for matrix in drawn]


@jax.jit
def _value(weights: Weights, x: jax.Array) -> jax.Array:
    for matrix, bias in weights[:-1]:
        x = jnp.tanh(x @ matrix + bias)
    matrix, bias = weights[-1]
    return (x @ matrix + bias)[..., 0]
