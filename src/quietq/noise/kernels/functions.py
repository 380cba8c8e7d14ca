"""Functions on [0, 1] whose kernel norm can be computed: value, slope and where the slope jumps."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from quietq.privacy.errors import InvalidInput

Real = Float[np.ndarray, "..."] | float


@dataclass(frozen=True)
class Differentiable:
    """A function and its derivative, smooth between `breaks`.

    >>> parabola = Differentiable(lambda x: x**2, lambda x: 2 * x)
    """

    value: Callable[[Real], Real]
    slope: Callable[[Real], Real]
    breaks: tuple[float, ...] = ()

    def __sub__(self, other: "Differentiable") -> "Differentiable":
        return Differentiable(
            lambda x: self.value(x) - other.value(x),
            lambda x: self.slope(x) - other.slope(x),
            tuple(sorted({*self.breaks, *other.breaks})),
        )


def piecewise_linear(knots: object, values: object) -> Differentiable:
    """The function through (knots, values), straight between them; the knots go from 0 to 1.

    >>> tent = piecewise_linear([0, 0.5, 1], [0, 0.5, 0])
    >>> float(tent.value(0.25)), float(tent.slope(0.75))
    (0.25, -1.0)
    """
    x, y = np.asarray(knots, dtype=float), np.asarray(values, dtype=float)
    if x.ndim != 1 or x.shape != y.shape or len(x) < 2 or x[0] != 0 or x[-1] != 1 or not (np.diff(x) > 0).all():
        raise InvalidInput("knots must rise from 0 to 1, with one value each.")
    slopes = np.diff(y) / np.diff(x)

    def slope(points: Real) -> Real:
        return np.asarray(slopes[np.clip(np.searchsorted(x, points, side="right") - 1, 0, len(slopes) - 1)])

    return Differentiable(lambda points: np.asarray(np.interp(points, x, y)), slope, tuple(x))
