"""Norms of whole functions in the Hilbert space of an exponential kernel, its products and its sums.

`inner` is <f, g> = (f(0) g(0) + f(1) g(1))/2 + (1/2 beta) int f' g' + (beta/2) int f g (docs/theory.md, section 7).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import Exponential

Real = Float[np.ndarray, "..."] | float
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


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


def inner(kernel: Exponential, f: Differentiable, g: Differentiable) -> float:
    """<f, g>, by Gauss-Legendre between the breaks: exact for piecewise polynomials."""
    breaks = np.unique([0.0, 1.0, *f.breaks, *g.breaks])
    panels = np.linspace(0, 1, max(2, math.ceil(kernel.beta) + 1))  # exponentials need panels of about 1/beta
    edges = np.unique(np.concatenate([breaks, panels]))
    edges = edges[np.append(True, np.diff(edges) > 1e-15)]
    half = np.diff(edges)[:, None] / 2
    x = edges[:-1, None] + half * (1 + _NODES)
    integrand = f.slope(x) * g.slope(x) / (2 * kernel.beta) + kernel.beta / 2 * f.value(x) * g.value(x)
    ends = np.array([0.0, 1.0])
    return float(np.sum(half * _WEIGHTS * integrand) + np.sum(f.value(ends) * g.value(ends)) / 2)


def norm_of(kernel: Exponential, f: Differentiable | Sequence[Differentiable]) -> float:
    """Of a function; in several dimensions, of one that is given coordinate by coordinate."""
    if isinstance(f, Differentiable):
        return math.sqrt(inner(kernel, f, f))
    squares = [inner(Exponential(beta), one, one) for beta, one in zip(kernel.betas, f, strict=True)]
    return math.sqrt(np.sum(squares) if kernel.summed else np.prod(squares))


def section(kernel: Exponential, y: float) -> Differentiable:
    """K(., y), the function that represents evaluation at y."""
    return Differentiable(
        lambda x: np.exp(-kernel.beta * np.abs(x - y)),
        lambda x: -kernel.beta * np.sign(x - y) * np.exp(-kernel.beta * np.abs(x - y)),
        (float(y),),
    )
