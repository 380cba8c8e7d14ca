"""Pure noise on numbers that neighbours change by at most a size each, whatever the others do.

Theorem (Hardt & Talwar 2010, for a cube). If each of n numbers differs by at most Delta, then adding z of density
proportional to exp(-epsilon max|z_i|/Delta) is epsilon-DP, by the triangle inequality. z is Gamma(n + 1, Delta/epsilon)
times a uniform point of the cube [-1, 1]^n, of deviation Delta sqrt((n + 1)(n + 2)/3)/epsilon, where Gaussian noise has
Delta sqrt(n)/mu.
"""

import math

import numpy as np
from jaxtyping import Float

from quietq.noise.entropy import Entropy
from quietq.privacy.interactive import cube_deviation


def deviation(numbers: int) -> float:
    """Of each number, in units of Delta/epsilon.

    >>> round(deviation(10) / 0.9, 1), round(deviation(14) / 0.9, 1)
    (7.4, 9.9)
    """
    return cube_deviation(numbers)


def draw_cube(shape: tuple[int, ...], entropy: Entropy) -> Float[np.ndarray, "..."]:
    """Such noise of deviation 1, in floating point."""
    numbers = math.prod(shape)
    length = -np.log(entropy.uniforms((numbers + 1,))).sum()
    return length / deviation(numbers) * (2 * entropy.uniforms(shape) - 1)
