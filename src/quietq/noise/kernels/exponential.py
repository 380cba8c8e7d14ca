"""The exponential kernel exp(-beta |x - y|) on [0, 1]: Ornstein-Uhlenbeck paths, room for all Lipschitz functions.

Theorem. It reproduces in <f, g> = (f(0) g(0) + f(1) g(1))/2 + (1/2 beta) int f' g' + (beta/2) int f g. Hence |f| <= rho
and |f'| <= l give |f|^2 <= rho^2 + beta rho^2/2 + l^2/(2 beta), approached by a zigzag, and least at beta = l/rho,
where it is rho^2 + rho l.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from quietq.noise.kernels.base import Kernel
from quietq.noise.kernels.functions import Differentiable
from quietq.privacy.checks import positive

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


@dataclass(frozen=True)
class Exponential(Kernel):
    """exp(-beta |x - y|), in one dimension.

    >>> round(Exponential(beta=4.0).lipschitz_radius(0.01, 0.04), 8)  # 0.01 sqrt 5
    0.02236068
    """

    beta: float
    dimension: int = field(default=1, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", positive("beta", self.beta))

    @property
    def tables(self) -> tuple[tuple["Exponential", ...], ...]:
        return ((self,),)

    def covariance(self, x: np.ndarray, y: np.ndarray) -> Float[np.ndarray, "rows columns"]:
        return np.exp(-self.beta * np.abs(np.subtract.outer(np.asarray(x, float), np.asarray(y, float))))

    def describe(self) -> dict[str, object]:
        return {"kind": "exponential", "beta": self.beta}

    def lipschitz_radius(self, radius: float, lipschitz: float) -> float:
        return math.sqrt(radius**2 * (1 + self.beta / 2) + lipschitz**2 / (2 * self.beta))

    def inner(self, f: Differentiable, g: Differentiable) -> float:
        """<f, g>, by Gauss-Legendre between the breaks: exact for piecewise polynomials.

        >>> kernel = Exponential(3.0)
        >>> f = Differentiable(np.sin, np.cos)
        >>> abs(kernel.inner(f, kernel.section(0.3)) - math.sin(0.3)) < 1e-12
        True
        """
        breaks = np.unique([0.0, 1.0, *f.breaks, *g.breaks])
        panels = np.linspace(0, 1, max(2, math.ceil(self.beta) + 1))  # exponentials need panels of about 1/beta
        edges = np.unique(np.concatenate([breaks, panels]))
        edges = edges[np.append(True, np.diff(edges) > 1e-15)]
        half = np.diff(edges)[:, None] / 2
        x = edges[:-1, None] + half * (1 + _NODES)
        integrand = f.slope(x) * g.slope(x) / (2 * self.beta) + self.beta / 2 * f.value(x) * g.value(x)
        ends = np.array([0.0, 1.0])
        return float(np.sum(half * _WEIGHTS * integrand) + np.sum(f.value(ends) * g.value(ends)) / 2)

    def norm(self, f: Differentiable) -> float:
        return math.sqrt(self.inner(f, f))

    def section(self, y: float) -> Differentiable:
        """K(., y), the function that represents evaluation at y."""
        return Differentiable(
            lambda x: np.exp(-self.beta * np.abs(x - y)),
            lambda x: -self.beta * np.sign(x - y) * np.exp(-self.beta * np.abs(x - y)),
            (float(y),),
        )

    def inner_on(self, points: np.ndarray, f: np.ndarray, g: np.ndarray) -> float:
        """f' K^-1 g at increasing points, by the Markov property: O(points)."""
        whitened = [whiten(self.beta, points, values) for values in (f, g)]
        return float(whitened[0] @ whitened[1])


def whiten(beta: float, points: np.ndarray, values: np.ndarray) -> Float[np.ndarray, "..."]:
    """Values at increasing points (last axis) as independent N(0, 1) increments, if they are a path of this kernel."""
    decay = -beta * np.diff(points)
    steps = (values[..., 1:] - np.exp(decay) * values[..., :-1]) / np.sqrt(-np.expm1(2 * decay))
    return np.concatenate([values[..., :1], steps], axis=-1)
