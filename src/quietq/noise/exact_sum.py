"""Numbers + exact Gaussian noise, rounded once to a public step, with as many random bits as the rounding needs.

Theorem. The result is round((T f + s z)/step), a function of the ideal sum and of nothing else, with z exactly standard
normal and T, f, s and the step binary fractions. Rounding is post-processing, so it is exactly mu-GDP with
mu = |T (f - f')|/s. Float64 decides only where its proven error leaves one whole number; else fractions do, with more
digits of z. That ends with probability 1, because a continuous sum lies on no boundary between two whole numbers.
"""

import math
from fractions import Fraction

import numpy as np
from jaxtyping import Float

from quietq.noise.exact_normals import Chance, Normals, draw_normals
from quietq.noise.whitening import ROUNDINGS, Whitened

ROOM = 1 + 2.0**-19
"""Exact noise is so much larger than stated. That covers what public constants are rounded by: a grid's states, which
can make slopes steeper by a part of 2^-20, sensitivities and costs by 1e-9 each, and matrices by 2^-30."""
_AT_ONCE = 2**16


def add_exactly(
    whitened: Whitened, sigma: float, step: float, chance: Chance | None = None
) -> Float[np.ndarray, "..."]:
    """T f + sigma z in multiples of the step, as float64 numbers. Those of 2^53 steps and more may be rounded again."""
    chance, scale = Chance() if chance is None else chance, sigma * ROOM / step
    about, errors = whitened.about.ravel(), whitened.errors.ravel()
    rounded = np.empty(about.size)
    for start in range(0, about.size, _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        rounded[part] = _round(whitened, about[part], errors[part], start, scale, chance)
    return rounded.reshape(whitened.about.shape) * step + 0.0


def _round(
    whitened: Whitened, about: np.ndarray, errors: np.ndarray, start: int, scale: float, chance: Chance
) -> Float[np.ndarray, " part"]:
    normals = draw_normals(about.size, chance)
    z = normals.about()
    unknown = 2.0**-chance.bits + ROUNDINGS  # of z: the digits that were not drawn, and roundings
    with np.errstate(over="ignore", invalid="ignore"):
        sums = about + scale * z
        off = errors + ROUNDINGS * (np.abs(about) + scale * np.abs(z)) + scale * unknown
        rounded = np.rint(sums)
        clear = 0.5 - np.abs(sums - rounded) > off  # not where a number is infinite or none
    for i in np.flatnonzero(~clear).tolist():
        rounded[i] = round_exactly(whitened.exactly(start + i), Fraction(scale), normals, i)
    return rounded


def round_exactly(value: Fraction, scale: Fraction, normals: Normals, i: int) -> int:
    """value + scale times the i-th normal, rounded, by as many of its digits as it takes."""
    places, ends = 1, (0, 1)
    while ends[0] != ends[1]:
        ends = tuple(math.floor(value + scale * end + Fraction(1, 2)) for end in normals.between(i, places))
        places += 1
    return ends[0]
