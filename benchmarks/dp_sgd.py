"""Per-person DP-SGD by jax-privacy's clipping, sampling and noise, for the peers that learn by it.

A person is one example, whose gradient is that of a loss over all their rows. The rate may fall, and the last weights
are averaged (De et al. 2022). The relation is that one person is replaced: libraries account for one who is added or
removed, which allows half the noise.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

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

import quietq as qq

Weights = list[tuple[jax.Array, jax.Array]]
"""A matrix and a bias for each layer."""
Loss = Callable[..., jax.Array]
"""Of weights and one person's part of each array of data."""


@dataclass(frozen=True)
class Descent:
    rate: float
    decay: float
    """What the rate falls to, in a straight line from 1."""
    clip: float
    steps: int
    averaged: float
    """The share of the last weights whose mean is taken."""
    sampling: float = 1.0
    """With which probability a person is in a step."""
    adam: bool = True
    """Or plain steps."""

    def run(self, loss: Loss, weights: Weights, data: tuple[np.ndarray, ...], budget: qq.Budget, seed: int) -> Weights:
        """The weights in the end. Arrays of data have people for their first axis."""
        people, optimiser = len(data[0]), optax.scale_by_adam() if self.adam else optax.identity()
        arrays = tuple(jnp.asarray(array, jnp.float32) for array in data)
        moves = optimiser.init(weights)
        random = gaussian_privatizer(stddev=1, prng_key=jax.random.key(seed, impl="rbg")).init(weights)
        noise = noise_multiplier(self.sampling, self.steps, budget) * self.clip
        averaged, total = max(1, round(self.steps * self.averaged)), jax.tree.map(jnp.zeros_like, weights)
        sampled = CyclicPoissonSampling(self.sampling, self.steps).batch_iterator(people, seed)
        for step, chosen in enumerate(sampled):
            left_out = np.ones(people, bool)
            left_out[chosen] = False
            summed, random = _noisy_sum(loss, weights, arrays, left_out, self.clip, noise, random)
            change, moves = optimiser.update(jax.tree.map(lambda leaf: leaf / (people * self.sampling), summed), moves)
            rate = self.rate * (1 - step / self.steps * (1 - self.decay))
            weights = jax.tree.map(lambda leaf, by, rate=rate: leaf - rate * by, weights, change)
            if step >= self.steps - averaged:
                total = jax.tree.map(jnp.add, total, weights)
        return jax.tree.map(lambda leaf: leaf / averaged, total)


@partial(jax.jit, static_argnums=0)
def _noisy_sum(
    loss: Loss,
    weights: Weights,
    data: tuple[jax.Array, ...],
    left_out: jax.Array,
    clip: float,
    noise: float,
    random: optax.OptState,
) -> tuple[optax.Updates, optax.OptState]:
    arguments = tuple(range(1, 1 + len(data)))
    gradient = clipped_grad(loss, l2_clip_norm=clip, batch_argnums=arguments, keep_batch_dim=False)
    summed = gradient(weights, *data, is_padding_example=left_out)
    return gaussian_privatizer(stddev=noise, prng_key=0).update(summed, random)


@cache
def noise_multiplier(sampling: float, steps: int, budget: qq.Budget) -> float:
    """Noise on a sum, over the clip. By privacy-loss distributions, as the library does; for all people in every step
    there is a formula, because another person's gradient moves the sum by up to two clips."""
    everybody = 2 * math.sqrt(steps) / budget.mu
    if sampling == 1:
        return everybody

    def excess(scale: float) -> float:
        one = from_gaussian_mechanism(
            scale,
            value_discretization_interval=1e-3,
            sampling_prob=sampling,
            neighboring_relation=dpa.NeighboringRelation.REPLACE_ONE,
        )
        return one.self_compose(steps).get_epsilon_for_delta(budget.delta) - budget.epsilon

    return float(brentq(excess, sampling * everybody / 2, everybody, rtol=1e-3))  # type: ignore[arg-type]
