"""A path on a whole dyadic grid, drawn in one go: for tables. It is drawn in floating point, or exactly.

Theorem. On a grid of step h, take any a between 0 and 1, and 0 < c <= 1/sqrt(1 - a^2). The rows f_0 and
c (f_{i+1} - a f_i) have a length of at most that of f in the exponential kernel of beta' = -ln(a)/h, and that one is at
most sqrt(max(beta'/beta, beta/beta')) times the one for beta, because both are sums of the same positive parts (theorem
of `privacy.relations`), each with a weight of 1, beta or 1/beta. So it does no harm that a and c are rounded,
if a keeps its logarithm to some 50 bits and c is rounded down. Proof: docs/theory.md#whitening.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from quietq.noise.box import Box
from quietq.noise.entropy import Entropy
from quietq.noise.exact_gaussian import ROUNDINGS, TINY, Whitened, in_steps
from quietq.noise.laws import Gaussian
from quietq.privacy.checks import count, plural
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import Exponential, whiten

MOST_POINTS = 2**26
"""The most points of a table; the one more a row that closes its grid is not counted."""
_SMALLEST_DECAY = 2.0**-500


def draw_grid(kernel: Exponential, levels: int, outputs: tuple[int, ...], entropy: Entropy) -> Float[np.ndarray, "..."]:
    """Independent paths of unit variance on the grid, one for each of `outputs`, which are the last axes.

    Along an axis of step h, g_{i+1} = e^{-beta h} g_i + sqrt(1 - e^{-2 beta h}) z: a linear recursion, and the product
    kernel is that recursion along every axis. A kernel of several tables has one more axis in front.
    """
    levels = count("levels", levels)
    grid = check_grid(kernel, levels, math.prod(outputs))
    return grid_of_normals(kernel, levels, [entropy.normals(grid + outputs) for _ in kernel.tables])


def grid_of_normals(kernel: Exponential, levels: int, normals: Sequence[np.ndarray]) -> Float[np.ndarray, "..."]:
    """The paths that these normals make, one array for each of the kernel's tables; the arrays are used up."""
    from scipy.signal import lfilter  # slow to import

    tables = []
    for betas, g in zip(kernel.tables, normals, strict=True):
        for axis, beta in enumerate(betas):
            decay = -beta * 2.0**-levels
            scale = math.sqrt(-math.expm1(2 * decay))
            np.moveaxis(g, axis, 0)[0] /= scale  # where a path begins, its variance is 1
            g = np.asarray(lfilter([scale], [1.0, -math.exp(decay)], g, axis=axis))
        tables.append(g)
    return tables[0] if len(tables) == 1 else np.stack(tables)


def grid_axes(kernel: Exponential) -> int:
    return len(kernel.tables[0]) + (len(kernel.tables) > 1)


def check_grid(kernel: Exponential, levels: int, outputs: int = 1) -> tuple[int, ...]:
    """The shape of one of the kernel's tables, if it is of a size that a machine can hold."""
    levels, dimension = count("levels", levels), max(map(len, kernel.tables))  # a NumPy integer would overflow below
    cells = 2 ** min(levels * dimension, 64)
    if cells * outputs > MOST_POINTS:
        raise InvalidInput(
            f"levels {levels} in {plural(dimension, 'dimension')} with {plural(outputs, 'output')} is a table "
            f"of more than {MOST_POINTS} values: use fewer levels{' or outputs' if outputs > 1 else ''}."
        )
    return (2**levels + 1,) * dimension


def look_up(table: np.ndarray, box: Box, levels: int, states: object) -> Float[np.ndarray, "..."]:
    """The table's values at the grid points nearest to the states."""
    index = np.rint(box.to_unit(states) * 2.0 ** count("levels", levels)).astype(np.int64)
    return np.asarray(table[index if box.dimension == 1 else tuple(np.moveaxis(index, -1, 0))])


# The same path in coordinates in which its noise is independent, exactly.


@dataclass(frozen=True)
class WhiteningStep:
    """One step from a point of an axis to the next: scale (f_{i+1} - (near - change) f_i), with `near` 0 or 1."""

    near: bool
    change: float
    scale: float

    @property
    def decay(self) -> Fraction:
        """a"""
        return Fraction(self.near) - Fraction(self.change)

    def along(self, axis: int, f: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One axis whitened, and the error of each number, by float64 or from before."""
        f, errors = np.moveaxis(f, axis, 0), np.moveaxis(errors, axis, 0)
        difference, change = f[1:] - self.near * f[:-1], self.change * f[:-1]
        sizes = np.abs(difference) + np.abs(change)
        before = errors[1:] + (self.near + abs(self.change)) * errors[:-1]
        spread = self.scale * (sizes * ROUNDINGS + before * (1 + ROUNDINGS) + TINY)
        white = np.concatenate([f[:1], self.scale * (difference + change)])
        return np.moveaxis(white, 0, axis), np.moveaxis(np.concatenate([errors[:1], spread]), 0, axis)

    def weights(self, i: int) -> list[tuple[int, Fraction]]:
        """Returns which points the i-th number comes from, and their weights."""
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


@dataclass(frozen=True)
class GridNoise(Gaussian):
    """Gaussian noise of a kernel's path on the grid {0, 2^-levels, ..., 1}^d: one table, or one per part of an additive
    kernel, which has one more axis in front.
    """

    norm: Exponential
    """The kernel."""
    levels: int

    def __post_init__(self) -> None:
        super().__post_init__()
        for beta in set(self.norm.betas):
            step_of(beta, self.levels)  # refuses what cannot be drawn exactly before anything is spent

    def _tables(self, values: np.ndarray) -> Sequence[np.ndarray]:
        return list(values) if len(self.norm.tables) > 1 else [values]

    def unit(self, shape: tuple[int, ...], simulated: Entropy) -> Float[np.ndarray, "..."]:
        return draw_grid(self.norm, self.levels, shape[grid_axes(self.norm) :], simulated)

    def distance(self, difference: np.ndarray) -> float:
        """The norm, in the kernel, of what takes these values on the grid: the length of the normals behind it."""
        square, points = 0.0, np.arange(2**self.levels + 1) * 2.0**-self.levels
        for betas, table in zip(self.norm.tables, self._tables(difference), strict=True):
            for axis, beta in enumerate(betas):
                table = np.moveaxis(whiten(beta, points, np.moveaxis(table, axis, -1)), -1, axis)
            square += float(np.sum(table**2))
        return math.sqrt(square)

    def whiten(self, numbers: np.ndarray, step: float) -> Whitened:
        """Axis by axis, with a bound on the errors of each number; exactly by the corners that it comes from."""
        tables = [[step_of(beta, self.levels) for beta in table] for table in self.norm.tables]
        each = []
        for axes, about in zip(tables, self._tables(numbers / step), strict=True):
            errors = np.full(about.shape, TINY)
            for axis, one in enumerate(axes):
                about, errors = one.along(axis, about, errors)
            each.append((about, errors))
        several = len(tables) > 1

        def exactly(i: int) -> Fraction:
            place = tuple(int(one) for one in np.unravel_index(i, numbers.shape))
            axes, before = (tables[place[0]], place[:1]) if several else (tables[0], ())
            at, outputs = place[len(before) : len(before) + len(axes)], place[len(before) + len(axes) :]
            corners = itertools.product(*(axis.weights(j) for axis, j in zip(axes, at, strict=True)))
            return sum(
                (
                    math.prod((weight for _, weight in corner), start=Fraction(1))
                    * in_steps(numbers.item(before + tuple(j for j, _ in corner) + outputs), step)
                    for corner in corners
                ),
                Fraction(0),
            )

        about, errors = (np.stack(parts) if several else parts[0] for parts in zip(*each, strict=True))
        return Whitened(about, errors, exactly)

    def restore(self, whitened: np.ndarray) -> Float[np.ndarray, "..."]:
        return grid_of_normals(self.norm, self.levels, self._tables(whitened.copy()))
