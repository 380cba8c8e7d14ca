"""Per-person DP-SGD with jax-privacy: its clipping, sampling and noise, with Adam.

A person is one example: the gradient is that of the mean squared error over their rows. Weights are averaged over the
second half of the steps, which helps (De et al. 2022).
"""

import math
from collections.abc import Callable
from functools import cache
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

from benchmarks.peers import BUDGET, People, Reward, Settings

Weights = list[tuple[jax.Array, jax.Array]]
_ADAM = optax.scale_by_adam()


def train(
    people: People, settings: Settings, seed: int, features: Callable[[Any], Any], widths: tuple, replace: bool
) -> Reward:
    """The features are public and computed once. `replace`: for which relation noise is made."""
    count, sampling, steps, clip = len(people.y), settings["sampling"], settings["steps"], settings["clip"]
    inputs, ratings = jnp.asarray(features(people.x), jnp.float32), jnp.asarray(people.y, jnp.float32)
    most = count if sampling == 1 else int(count * sampling + 6 * math.sqrt(count * sampling))
    first, second = jax.random.split(jax.random.key(seed))
    weights = _start((inputs.shape[-1], *widths, 1), first)
    adam = _ADAM.init(weights)
    privatiser = gaussian_privatizer(stddev=noise_multiplier(sampling, steps, replace) * clip, prng_key=second)
    noise, path = privatiser.init(weights), []
    for chosen in CyclicPoissonSampling(sampling, steps).batch_iterator(count, seed):
        batch = np.full(most, -1)
        batch[: len(chosen)] = chosen
        total = _clipped_sum(weights, inputs[batch], ratings[batch], batch < 0, clip)
        noisy, noise = privatiser.update(total, noise)
        weights, adam = _move(weights, noisy, adam, count * sampling, settings["learning rate"])
        path.append(weights)
    averaged = jax.tree.map(lambda *leaves: sum(leaves) / len(leaves), *path[steps // 2 :])
    return lambda x: np.asarray(_value(averaged, jnp.asarray(features(x), jnp.float32)), float)


@cache
def noise_multiplier(sampling: float, steps: int, replace: bool) -> float:
    """By privacy-loss distributions, as the library does; for all people in every step there is a formula."""
    everybody = (2 if replace else 1) * math.sqrt(steps) / BUDGET.mu
    if sampling == 1:
        return everybody
    relation = dpa.NeighboringRelation.REPLACE_ONE if replace else dpa.NeighboringRelation.ADD_OR_REMOVE_ONE

    def excess(scale: float) -> float:
        one = from_gaussian_mechanism(
            scale, value_discretization_interval=1e-3, sampling_prob=sampling, neighboring_relation=relation
        )
        return one.self_compose(steps).get_epsilon_for_delta(BUDGET.delta) - BUDGET.epsilon

    return float(brentq(excess, sampling * everybody / 2, everybody, rtol=1e-3))  # type: ignore[arg-type]


@jax.jit
def _clipped_sum(weights: Weights, x: jax.Array, y: jax.Array, padding: jax.Array, clip: Any) -> Weights:
    gradient = clipped_grad(_loss, l2_clip_norm=clip, batch_argnums=(1, 2), keep_batch_dim=False)
    return gradient(weights, x, y, is_padding_example=padding)


@jax.jit
def _move(weights: Weights, total: Any, adam: Any, batch: Any, rate: Any) -> tuple[Weights, Any]:
    change, adam = _ADAM.update(jax.tree.map(lambda leaf: leaf / batch, total), adam)
    return jax.tree.map(lambda leaf, by: leaf - rate * by, weights, change), adam


def _loss(weights: Weights, x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.mean((_value(weights, x) - y) ** 2)


def _start(sizes: tuple[int, ...], key: jax.Array) -> Weights:
    """The last layer starts at 0: then so does the reward, which is centred."""
    pairs = list(pairwise(sizes))
    keys = jax.random.split(key, len(pairs))
    drawn = [jax.random.normal(k, pair) / math.sqrt(pair[0]) for k, pair in zip(keys, pairs, strict=True)]
    drawn[-1] = jnp.zeros_like(drawn[-1])
    return [(matrix, jnp.zeros(matrix.shape[1])) for matrix in drawn]


@jax.jit
def _value(weights: Weights, x: jax.Array) -> jax.Array:
    for matrix, bias in weights[:-1]:
        x = jnp.tanh(x @ matrix + bias)
    matrix, bias = weights[-1]
    return (x @ matrix + bias)[..., 0]
