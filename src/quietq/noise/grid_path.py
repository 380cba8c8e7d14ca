"""A path on a whole dyadic grid, drawn in one go: for tables."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from quietq.noise.box import UNIT, Box, Domain, box_for
from quietq.noise.entropy import Entropy, SystemEntropy
from quietq.noise.kernels import Additive, Exponential, Kernel, Product, whiten
from quietq.privacy.checks import count, instance, positive
from quietq.privacy.errors import InvalidInput
from quietq.privacy.words import plural

MOST_POINTS = 2**26
"""Of a table; the one more a row that closes its grid is not counted."""


class GridPath:
    """One path of an Exponential or Product kernel on the grid {0, 2^-levels, ..., 1}^d; a query snaps to the grid.

    Of an Additive kernel it is a sum of tables, one per coordinate.
    """

    def __init__(
        self,
        kernel: Exponential | Product | Additive,
        levels: int = 16,
        sigma: float = 1.0,
        domain: Domain | None = None,
        entropy: Entropy | None = None,
    ) -> None:
        instance("kernel", kernel, Exponential | Product | Additive, "Exponential, Product or Additive")
        self.kernel, self.levels = kernel, count("levels", levels)
        self.sigma, self.box = positive("sigma", sigma), box_for(kernel.dimension, domain)
        self.values = self.sigma * draw_grid(kernel, self.levels, (), SystemEntropy() if entropy is None else entropy)
        self.values.flags.writeable = False

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        if len(self.kernel.tables) == 1:
            return look_up(self.values, self.box, self.levels, states)
        unit = self.box.to_unit(states)
        return np.asarray(sum(look_up(part, UNIT, self.levels, unit[..., i]) for i, part in enumerate(self.values)))

    def __repr__(self) -> str:
        return f"GridPath({self.kernel}, levels={self.levels}, sigma={self.sigma:g}, domain={self.box})"


def draw_grid(kernel: Kernel, levels: int, outputs: tuple[int, ...], entropy: Entropy) -> Float[np.ndarray, "..."]:
    """Independent paths of unit variance on the grid, one for each of `outputs`, which are the last axes.

    Along an axis of step h, g_{i+1} = e^{-beta h} g_i + sqrt(1 - e^{-2 beta h}) z: a linear recursion, and the product
    kernel is that recursion along every axis. A kernel of several tables has one more axis in front.
    """
    levels = count("levels", levels)
    grid = check_grid(kernel, levels, math.prod(outputs))
    return grid_of_normals(kernel, levels, [entropy.normals(grid + outputs) for _ in kernel.tables])


def grid_of_normals(kernel: Kernel, levels: int, normals: Sequence[np.ndarray]) -> Float[np.ndarray, "..."]:
    """The paths that these normals make, one array for each of the kernel's tables; the arrays are used up."""
    tables = [_table_of_normals(*each, levels) for each in zip(kernel.tables, normals, strict=True)]
    return tables[0] if len(tables) == 1 else np.stack(tables)


def _table_of_normals(factors: Sequence[Exponential], g: np.ndarray, levels: int) -> Float[np.ndarray, "..."]:
    from scipy.signal import lfilter  # slow to import

    for axis, factor in enumerate(factors):
        decay = -factor.beta * 2.0**-levels
        scale = math.sqrt(-math.expm1(2 * decay))
        first = [slice(None)] * g.ndim
        first[axis] = slice(0, 1)
        g[tuple(first)] /= scale
        g = np.asarray(lfilter([scale], [1.0, -math.exp(decay)], g, axis=axis))
    return g


def grid_length(kernel: Kernel, levels: int, values: np.ndarray) -> float:
    """The norm, in the kernel, of what takes these values on the grid: the length of the normals behind such a path."""
    square, points = 0.0, np.arange(2**levels + 1) * 2.0**-levels
    for factors, table in zip(kernel.tables, [values] if len(kernel.tables) == 1 else values, strict=True):
        for axis, factor in enumerate(factors):
            table = np.moveaxis(whiten(factor.beta, points, np.moveaxis(table, axis, -1)), -1, axis)
        square += float(np.sum(table**2))
    return math.sqrt(square)


def grid_axes(kernel: Kernel) -> int:
    return len(kernel.tables[0]) + (len(kernel.tables) > 1)


def check_grid(kernel: Kernel, levels: int, outputs: int = 1) -> tuple[int, ...]:
    """The shape of one of the kernel's tables, if it is of a size that a machine can hold."""
    levels, dimension = count("levels", levels), max(map(len, kernel.tables))  # a NumPy integer would overflow below
    cells = 2 ** min(levels * dimension, 64)
    if cells * outputs > MOST_POINTS:
        raise InvalidInput(
            f"levels {levels} in {plural(dimension, 'dimension')} with {plural(outputs, 'output')} is a table "
            f"of more than {MOST_POINTS} values: use fewer levels{' or outputs' if outputs > 1 else ''}."
        )
    return (2**levels + 1,) * dimension


def grid_points(box: Box, levels: int) -> Float[np.ndarray, "..."]:
    """The grid's states: (points,) in one dimension, else (points, d) in the table's order."""
    levels = count("levels", levels)
    axis = np.arange(2**levels + 1) * 2.0**-levels
    if box.dimension == 1:
        return box.from_unit(axis)
    mesh = np.meshgrid(*[axis] * box.dimension, indexing="ij")
    return box.from_unit(np.stack(mesh, axis=-1).reshape(-1, box.dimension))


def look_up(table: np.ndarray, box: Box, levels: int, states: object) -> Float[np.ndarray, "..."]:
    """The table's values at the grid points nearest to the states."""
    index = np.rint(box.to_unit(states) * 2.0 ** count("levels", levels)).astype(np.int64)
    return np.asarray(table[index if box.dimension == 1 else tuple(np.moveaxis(index, -1, 0))])
