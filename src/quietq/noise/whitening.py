"""Numbers in coordinates in which Gaussian noise is independent: exactly, and in float64 with a bound on its errors.

A release with correlated noise is a bijection of T f + sigma z with independent z. Here T has float64 entries, which
are binary fractions, so that T f is a binary fraction too, and is known exactly wherever it matters. How far T's
entries are from those of the ideal matrix is public, and far below the `ROOM` of `noise.exact_gaussian`.

Theorem. On a grid of step h, take any a between 0 and 1, and 0 < c <= 1/sqrt(1 - a^2). The rows f_0 and
c (f_{i+1} - a f_i) have a length of at most that of f in the exponential kernel of beta' = -ln(a)/h, and that one is at
most sqrt(max(beta'/beta, beta/beta')) times the one for beta, because both are sums of the same positive parts (theorem
of `noise.kernels`), each with a weight of 1, beta or 1/beta. So it does no harm that a and c are rounded,
if a keeps its logarithm to some 50 bits and c is rounded down. Proof: docs/theory.md#whitening.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from quietq.noise.kernels import Kernel
from quietq.privacy.errors import InvalidInput

ROUNDINGS = 2.0**-50
"""Eight roundings in float64: more than there are in each of the sums below, and in the bounds on them."""
_TINY = 2.0**-1000
"""Far above the smallest numbers, far below everything else."""
_SMALLEST_DECAY = 2.0**-500


class Whitened(NamedTuple):
    """T f in units of the public step: about, how far off that is at the most, and one number of it exactly."""

    about: Float[np.ndarray, "..."]
    errors: Float[np.ndarray, "..."]
    exactly: Callable[[int], Fraction]


def as_they_are(numbers: np.ndarray, step: float) -> Whitened:
    """For independent noise."""
    scaled = numbers / step  # a power of two: exact, unless it is tiny or overflows
    return Whitened(scaled, np.full(numbers.shape, _TINY), lambda i: _exactly(numbers.item(i), step))


def by_matrix(matrix: Float[np.ndarray, "n n"], numbers: Float[np.ndarray, " n"], step: float) -> Whitened:
    """For a few numbers."""
    scaled = numbers / step
    errors = np.abs(matrix) @ (np.abs(scaled) * (len(numbers) * ROUNDINGS) + _TINY) + _TINY

    def exactly(i: int) -> Fraction:
        pairs = zip(matrix[i].tolist(), numbers.tolist(), strict=True)
        return sum((Fraction(one) * _exactly(number, step) for one, number in pairs), Fraction(0))

    return Whitened(matrix @ scaled, errors, exactly)


def inverse(root: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    """A matrix whose product with the root is 1 but for a part in a billion, for certain.

    Then what it makes of numbers is longer by no more than that part than what the true inverse does.
    """
    found, n = np.linalg.inv(root), len(root)
    off = np.abs(found @ root - np.eye(n)) + n * ROUNDINGS * (np.abs(found) @ np.abs(root))
    if not np.linalg.norm(off) <= 2.0**-30:
        raise InvalidInput("The shape of the noise is too narrow in some direction to be drawn exactly.")
    return found


@dataclass(frozen=True)
class WhiteningStep:
    """From one point of an axis to the next: scale (f_{i+1} - (near - change) f_i), with `near` 0 or 1."""

    near: bool
    change: float
    scale: float

    @property
    def decay(self) -> Fraction:
        """a"""
        return Fraction(self.near) - Fraction(self.change)

    def along(self, axis: int, f: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One axis whitened, and how far off each number is, by float64 or because it was before."""
        f, errors = np.moveaxis(f, axis, 0), np.moveaxis(errors, axis, 0)
        difference, change = f[1:] - self.near * f[:-1], self.change * f[:-1]
        sizes = np.abs(difference) + np.abs(change)
        before = errors[1:] + (self.near + abs(self.change)) * errors[:-1]
        spread = self.scale * (sizes * ROUNDINGS + before * (1 + ROUNDINGS) + _TINY)
        white = np.concatenate([f[:1], self.scale * (difference + change)])
        return np.moveaxis(white, 0, axis), np.moveaxis(np.concatenate([errors[:1], spread]), 0, axis)

    def weights(self, i: int) -> list[tuple[int, Fraction]]:
        """Which points the i-th number comes from, and their weights."""
        scale = Fraction(self.scale)
        return [(i, scale), (i - 1, -scale * self.decay)] if i else [(0, Fraction(1))]


@lru_cache(maxsize=64)
def step_of(beta: float, levels: int) -> WhiteningStep:
    """For a = exp(-beta h) with h = 2^-levels, as 1 - change or as it is, whichever keeps its logarithm."""
    exponent = -beta * 2.0**-levels
    near = exponent > -0.5
    change = -math.expm1(exponent) if near else -max(math.exp(exponent), _SMALLEST_DECAY)
    gap, scale = 1 - WhiteningStep(near, change, 1.0).decay ** 2, 1.0
    if gap > 0:
        scale = 1 / math.sqrt(gap)
        while Fraction(scale) ** 2 * gap > 1:
            scale = math.nextafter(scale, 0.0)
    found = WhiteningStep(near, change, scale)
    if not (gap > 0 and stretch(found, beta, levels) <= 1 + 2.0**-40):
        raise InvalidInput(f"beta {beta!r} is too small for {levels} levels to be drawn exactly.")
    return found


def stretch(step: WhiteningStep, beta: float, levels: int) -> float:
    """At most how much longer numbers are by this step than in the kernel's own norm, for certain."""
    if step.decay <= Fraction(_SMALLEST_DECAY):
        return 1 + ROUNDINGS  # points are independent in both norms, but for a part of that size
    context = Context(prec=400)  # 1 - 2^-1000 has that many digits
    decay = context.divide(Decimal(step.decay.numerator), Decimal(step.decay.denominator))
    ideal = context.multiply(Decimal(beta), Decimal(2.0**-levels))
    ratio = float(context.divide(-context.ln(decay), ideal))
    return math.sqrt(max(ratio, 1 / ratio)) * (1 + ROUNDINGS)


def on_grid_axes(kernel: Kernel, levels: int, numbers: np.ndarray, step: float) -> Whitened:
    """For a kernel's path on a grid, axis by axis; a kernel of several tables has one more axis in front."""
    tables = [[step_of(factor.beta, levels) for factor in table] for table in kernel.tables]
    several = len(tables) > 1
    parts = numbers / step if several else [numbers / step]
    each = [_along_axes(table, part) for table, part in zip(tables, parts, strict=True)]
    about, errors = (np.stack(parts) if several else parts[0] for parts in zip(*each, strict=True))

    def exactly(i: int) -> Fraction:
        place = tuple(int(one) for one in np.unravel_index(i, numbers.shape))
        axes, before = (tables[place[0]], place[:1]) if several else (tables[0], ())
        at, outputs = place[len(before) : len(before) + len(axes)], place[len(before) + len(axes) :]
        corners = itertools.product(*(axis.weights(j) for axis, j in zip(axes, at, strict=True)))
        return sum(
            (
                math.prod((weight for _, weight in corner), start=Fraction(1))
                * _exactly(numbers.item(before + tuple(j for j, _ in corner) + outputs), step)
                for corner in corners
            ),
            Fraction(0),
        )

    return Whitened(about, errors, exactly)


def _along_axes(axes: Sequence[WhiteningStep], f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    errors = np.full(f.shape, _TINY)
    for axis, step in enumerate(axes):
        f, errors = step.along(axis, f, errors)
    return f, errors


def _exactly(number: float, step: float) -> Fraction:
    return Fraction(number) / Fraction(step)
