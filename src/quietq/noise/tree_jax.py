"""The tree path in JAX: the same construction from the root down, compiled, in float64.

float64 is switched on by its context manager around the call and never for the user's process.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float

from quietq.noise.entropy import threefry
from quietq.noise.kernels.exponential import beyond, midpoint


def evaluate(key: tuple[np.uint64, np.uint64], index: np.ndarray, beta: float, levels: int) -> Float[np.ndarray, "..."]:
    """Unit-variance values at grid indices 0 ... 2^levels."""
    weights, deviations = np.array([midpoint(beta, level) for level in range(levels)]).T
    carried, variance = beyond(beta, 1.0)
    with jax.enable_x64(True):
        ends = jnp.array([carried, math.sqrt(variance)])
        values = _descend(
            levels,
            jnp.array(key, dtype=jnp.uint64),
            jnp.asarray(index),
            ends,
            jnp.array(weights),
            jnp.array(deviations),
        )
        return np.asarray(values)


@functools.partial(jax.jit, static_argnums=0)
def _descend(levels: int, key: Array, index: Array, ends: Array, weights: Array, deviations: Array) -> Array:
    size = np.uint64(2**levels)
    inside = jnp.minimum(index, size - np.uint64(1))

    def normal(node: Array) -> Array:
        bits, _ = threefry((key[0], key[1]), (node, jnp.zeros_like(node)), settle=lax.optimization_barrier)
        return normal_from_bits(bits)

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


def normal_from_bits(bits: Array) -> Array:
    """One standard normal from each uint64: the lowest bit is the sign, the highest 52 the tail probability.

    Wichura's approximation (AS 241, Applied Statistics 1988): accurate to 1e-16, and every branch is a polynomial that
    vectorises; XLA's own inverse is less accurate in the tail or slower. Agrees with
    `quietq.noise.entropy.normal_from_bits` to a few units in the last place.
    """
    tail = ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-53
    q = 0.5 - tail
    near = q <= 0.425
    root = jnp.sqrt(-jnp.log(tail))
    far = root > 5.0
    r = 0.180625 - q * q
    t = jnp.where(far, root - 5.0, root - 1.6)
    over = jnp.where(near, q * _polynomial(_A, r), jnp.where(far, _polynomial(_E, t), _polynomial(_C, t)))
    under = jnp.where(near, _polynomial(_B, r), jnp.where(far, _polynomial(_F, t), _polynomial(_D, t)))
    over = jnp.where((bits & np.uint64(1)) == np.uint64(1), over, -over)
    return over / under  # last: what follows a division XLA computes apart, and would make the bits again for the sign


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    value = jnp.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        value = value * x + c
    return value


# AS 241's coefficients, lowest power first: A/B near the middle, C/D and E/F in the tail.
# fmt: off
_A = (
    3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
    4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3,
)
_B = (
    1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
    2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3,
)
_C = (
    1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
    1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4,
)
_D = (
    1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
    1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9,
)
_E = (
    6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
    2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7,
)
_F = (
    1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
    7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15,
)
# fmt: on
