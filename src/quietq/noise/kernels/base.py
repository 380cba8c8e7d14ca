"""What every kernel offers, and functions on [0, 1] whose norm in it can be computed."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.privacy.errors import InvalidInput, NoRkhsRadius

Real = Float[np.ndarray, "..."] | float


class Kernel(ABC):
    """A covariance on [0, 1]^d whose Hilbert space norm says how much noise a function needs."""

    dimension: int
    """Number of coordinates of a state."""

    @property
    def tables(self) -> tuple[tuple[Any, ...], ...]:
        """The tables that an exact path on a grid consists of, each the product of its exponential kernels, one per
        axis; none where there is no such path.
        """
        return ()

    @abstractmethod
    def covariance(self, x: np.ndarray, y: np.ndarray) -> Float[np.ndarray, "rows columns"]:
        """K(x_i, y_j) for points x and y, in unit coordinates."""

    @abstractmethod
    def describe(self) -> dict[str, object]:
        """The kernel in JSON, with its `kind`."""

    @abstractmethod
    def inner(self, f: Any, g: Any) -> float:
        """<f, g>, of functions in the form that the kernel takes them."""

    def norm(self, f: Any) -> float:
        return math.sqrt(self.inner(f, f))

    def lipschitz_radius(self, radius: float, lipschitz: float) -> float:
        """Sup of the norm over |f| <= radius with slope at most lipschitz; NoRkhsRadius where it is infinite."""
        raise NoRkhsRadius(
            f"A ball of Lipschitz functions is not bounded in the norm of the {self.describe()['kind']} kernel; "
            "use Exponential for such a relation, or state an RkhsBall in this kernel."
        )

    def inner_on(self, points: np.ndarray, f: np.ndarray, g: np.ndarray) -> float:
        """f' K^-1 g for functions known at `points` only: the inner product of their least-norm interpolants.

        This is what separates two releases that are seen at these points: the best test between f and f' has
        d' = norm_on(points, f - f')/sigma. Dense; O(points^3).
        """
        from scipy.linalg import cho_factor, cho_solve

        return float(f @ cho_solve(cho_factor(self.covariance(points, points)), g))

    def norm_on(self, points: np.ndarray, values: np.ndarray) -> float:
        return math.sqrt(self.inner_on(points, values, values))


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
