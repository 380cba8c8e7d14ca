"""The additive kernel: a sum of one-dimensional kernels, one a coordinate. Cheap in any dimension.

Theorem. For f(x) = f_1(x_1) + ... + f_d(x_d), releasing every f_i with independent noise of the i-th kernel is a
Gaussian process mechanism in the direct sum, whose squared norm is the sum of the squared norms of the parts; the
released sum has the kernel sum_i K_i. That is the norm of the parts as they are given: a sum has many splits into parts
(a constant may go to any of them), and two of these can be told apart.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from quietq.noise.kernels.base import Kernel
from quietq.noise.kernels.exponential import Exponential
from quietq.noise.kernels.functions import Differentiable
from quietq.privacy.checks import instance
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import LipschitzBall


@dataclass(frozen=True)
class Additive(Kernel):
    """sum_i K_i(x_i, y_i).

    >>> kernel = Additive((Exponential(4.0), Exponential(2.0)))
    >>> round(kernel.radius_of([LipschitzBall(0.01, 0.04), LipschitzBall(0.01, 0.02)]), 6)
    0.028284
    """

    parts: tuple[Exponential, ...]
    dimension: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        instance("parts", self.parts, Sequence, "a sequence of Exponential, one a coordinate")
        object.__setattr__(self, "parts", tuple(self.parts))
        object.__setattr__(self, "dimension", len(self.parts))
        if not self.parts:
            raise InvalidInput("parts must hold at least one Exponential, not none.")
        for part in self.parts:
            instance("Each of parts", part, Exponential, "Exponential, one a coordinate")

    @property
    def tables(self) -> tuple[tuple[Exponential, ...], ...]:
        return tuple((part,) for part in self.parts)

    def covariance(self, x: np.ndarray, y: np.ndarray) -> Float[np.ndarray, "rows columns"]:
        x, y = np.asarray(x, float), np.asarray(y, float)
        return np.sum([part.covariance(x[:, i], y[:, i]) for i, part in enumerate(self.parts)], axis=0)

    def describe(self) -> dict[str, object]:
        return {"kind": "additive", "parts": [part.describe() for part in self.parts]}

    def inner(self, f: Sequence[Differentiable], g: Sequence[Differentiable]) -> float:
        return math.fsum(part.inner(a, b) for part, a, b in zip(self.parts, f, g, strict=True))

    def norm(self, f: Sequence[Differentiable]) -> float:
        return math.sqrt(self.inner(f, f))

    def radius_of(self, balls: Sequence[LipschitzBall]) -> float:
        """The radius of one Lipschitz ball a coordinate, all of which may move at once."""
        if len(balls) != self.dimension:
            raise InvalidInput(f"One ball a coordinate is needed, {self.dimension} in all, not {len(balls)}.")
        return math.sqrt(math.fsum(ball.rkhs_radius(k) ** 2 for ball, k in zip(balls, self.parts, strict=True)))
