"""The product kernel exp(-sum_i beta_i |x_i - y_i|), the paper's proposal for several dimensions.

Its space holds functions with a bounded *mixed* derivative. Lipschitz is not enough in two dimensions or more, and a
plain ReLU network is not in it: so there is no radius for a Lipschitz ball, only for a declared RkhsBall. Paths are
exact: independent normals, passed through the one-dimensional recursion along each axis in turn.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from quietq.noise.kernels.base import Kernel
from quietq.noise.kernels.exponential import Exponential
from quietq.noise.kernels.functions import Differentiable
from quietq.privacy.checks import instance, positive
from quietq.privacy.errors import InvalidInput

MOST_DIMENSIONS = 3


@dataclass(frozen=True)
class Product(Kernel):
    """prod_i exp(-beta_i |x_i - y_i|), up to three dimensions.

    >>> Product((1.0, 2.0)).dimension
    2
    """

    betas: tuple[float, ...]
    dimension: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        instance("betas", self.betas, Sequence, "a sequence of numbers, one a coordinate")
        object.__setattr__(self, "betas", tuple(positive("beta", beta) for beta in self.betas))
        object.__setattr__(self, "dimension", len(self.betas))
        if not 1 <= len(self.betas) <= MOST_DIMENSIONS:
            raise InvalidInput(
                f"Product has 1 to {MOST_DIMENSIONS} dimensions, not {len(self.betas)}: its exact path needs "
                "(levels + 2)^d terms a query; use Additive or FeatureKernel beyond that."
            )

    @property
    def parts(self) -> tuple[Exponential, ...]:
        return tuple(Exponential(beta) for beta in self.betas)

    @property
    def tables(self) -> tuple[tuple[Exponential, ...], ...]:
        return (self.parts,)

    def covariance(self, x: np.ndarray, y: np.ndarray) -> Float[np.ndarray, "rows columns"]:
        x = np.asarray(x, float).reshape(-1, self.dimension)
        y = np.asarray(y, float).reshape(-1, self.dimension)
        return np.prod([part.covariance(x[:, i], y[:, i]) for i, part in enumerate(self.parts)], axis=0)

    def describe(self) -> dict[str, object]:
        return {"kind": "product", "betas": list(self.betas)}

    def inner(self, f: Sequence[Differentiable], g: Sequence[Differentiable]) -> float:
        """<f, g> of two products of one-dimensional functions, given factor by factor."""
        return math.prod(part.inner(a, b) for part, a, b in zip(self.parts, f, g, strict=True))

    def norm(self, f: Sequence[Differentiable]) -> float:
        return math.sqrt(self.inner(f, f))
