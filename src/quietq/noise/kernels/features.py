"""Kernels of finite rank, K(x, y) = phi(x) . phi(y): exact in any dimension.

Theorem. For f = theta . phi, releasing theta + z with z ~ N(0, sigma^2 I) is the Gaussian process mechanism in this
kernel and releases the whole function; neighbours with |theta - theta'| <= Delta get mu = Delta/sigma. Where features
are redundant, two thetas of one function can be told apart: what is protected is the norm of the weights as given.

Random features that merely *approximate* another kernel are noise for their own K, not for the kernel they approximate:
a truncated path has directions without any noise.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from quietq.noise.kernels.base import Kernel
from quietq.privacy.checks import count, numbers
from quietq.privacy.errors import InvalidInput


class FiniteRank(Kernel):
    """A kernel given by finitely many features; a function is its vector of weights."""

    rank: int
    """Number of features."""

    @abstractmethod
    def features(self, x: np.ndarray) -> Float[np.ndarray, "points features"]:
        """phi at points in unit coordinates."""

    def covariance(self, x: np.ndarray, y: np.ndarray) -> Float[np.ndarray, "rows columns"]:
        """phi(x_i) . phi(y_j)."""
        return self.features(np.asarray(x, float)) @ self.features(np.asarray(y, float)).T

    def inner(self, f: np.ndarray, g: np.ndarray) -> float:
        """The inner product of two weight vectors."""
        return float(self.weights(f) @ self.weights(g))

    def norm(self, f: np.ndarray) -> float:
        """The norm of a weight vector."""
        return float(np.linalg.norm(self.weights(f)))

    def weights(self, f: object) -> Float[np.ndarray, " features"]:
        """`f` as a vector of this many weights."""
        vector = numbers("weights", f)
        if vector.shape != (self.rank,):
            raise InvalidInput(f"weights must have shape ({self.rank},), one a feature, not {vector.shape}.")
        return vector


@dataclass(frozen=True, repr=False)
class Features(FiniteRank):
    """phi(x) . phi(y) for a public feature map phi, from (points,) or (points, d) to (points, rank).

    phi is part of what is released: a closure, a bound method or a partial takes the data that it holds along, into
    every pickle of a private function with this kernel. Make phi of public things only.

    >>> kernel = Features(lambda x: np.stack([np.ones_like(x), x], axis=-1), rank=2)
    >>> kernel.covariance(np.array([0.0, 1.0]), np.array([1.0]))
    array([[1.],
           [2.]])
    """

    phi: Callable[[np.ndarray], np.ndarray]
    rank: int
    dimension: int = 1

    def __post_init__(self) -> None:
        if not callable(self.phi):
            raise InvalidInput(f"phi must be a function of points, not {type(self.phi).__name__}.")
        object.__setattr__(self, "rank", count("rank", self.rank))
        object.__setattr__(self, "dimension", count("dimension", self.dimension))

    def features(self, x: np.ndarray) -> Float[np.ndarray, "points features"]:
        """phi at points in unit coordinates, its shape checked."""
        values = numbers("phi's values", self.phi(x))
        if values.shape != (len(x), self.rank):
            raise InvalidInput(
                f"phi must return shape ({len(x)}, {self.rank}) for {len(x)} points, not {values.shape}."
            )
        return values

    def describe(self) -> dict[str, object]:
        """The kernel in JSON; phi itself stays with the code that made it."""
        return {"kind": "features", "phi": self._name, "rank": self.rank, "dimension": self.dimension}

    @property
    def _name(self) -> str:
        """Of phi; its repr could show data that it is bound to."""
        return str(getattr(self.phi, "__qualname__", type(self.phi).__name__))

    def __repr__(self) -> str:
        return f"Features(phi={self._name}, rank={self.rank}, dimension={self.dimension})"
