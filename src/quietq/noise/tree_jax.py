"""The tree path in JAX: the same construction from the root down, compiled, in float64.

float64 is switched on by its context manager around the call and never for the user's process.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.scipy.special import ndtri
from jaxtyping import Float

from quietq.noise.entropy import normal_from_bits, threefry
from quietq.noise.kernels.exponential import beyond, midpoint


def evaluate(key: tuple[np.uint64, np.uint64], index: np.ndarray, beta: float, levels: int) -> Float[np.ndarray, "..."]:
    """Unit-variance values at grid indices 0 ... 2^levels."""
    weights, deviations = np.array([midpoint(beta, level) for level in range(levels)]).T
    carried, variance = beyond(beta, 1.0)
    with jax.enable_x64(True):
        rest = (jnp.array(one) for one in ([carried, math.sqrt(variance)], weights, deviations))
        return np.asarray(_descend(levels, jnp.array(key, dtype=jnp.uint64), jnp.asarray(index), *rest))


@functools.partial(jax.jit, static_argnums=0)
def _descend(levels: int, key: Array, index: Array, ends: Array, weights: Array, deviations: Array) -> Array:
    size = np.uint64(2**levels)
    inside = jnp.minimum(index, size - np.uint64(1))

    def normal(node: Array) -> Array:
        bits, _ = threefry((key[0], key[1]), (node, jnp.zeros_like(node)), settle=lax.optimization_barrier)
        return normal_from_bits(bits, inverse=ndtri)

    def halve(points: Array, level: Array, interval: tuple[Array, Array]) -> tuple[Array, Array]:
        left, right = interval
        half = np.uint64(1) << (np.uint64(levels - 1) - level.astype(jnp.uint64))
        node = (points & ~(half + half - np.uint64(1))) + half
        middle = (left + right) * weights[level] + deviations[level] * normal(node)
        middle = lax.optimization_barrier(middle)  # used twice: compute it once
        upper = (points & half) != np.uint64(0)
        return jnp.where(upper, middle, left), jnp.where(upper, right, middle)

    # Many queries share their first ancestors: the first levels are computed once for all, on a grid of their own.
    shared = min(levels, max(index.size.bit_length() - 5, 0))
    shift = np.uint64(levels - shared)
    grid = jnp.arange(2**shared, dtype=jnp.uint64) << shift
    left = normal(jnp.zeros_like(grid))
    right = ends[0] * left + ends[1] * normal(jnp.full_like(grid, size))
    left, right = lax.fori_loop(0, shared, functools.partial(halve, grid), (left, right))
    at = inside >> shift
    left, right = lax.fori_loop(shared, levels, functools.partial(halve, inside), (left[at], right[at]))
    return jnp.where(index == size, right, left)
