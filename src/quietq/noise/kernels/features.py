"""Kernels of finite rank, K(x, y) = phi(x) . phi(y): exact in any dimension.

Theorem. For f = theta . phi, releasing theta + z with z ~ N(0, sigma^2 I) is the Gaussian process mechanism in this
kernel and releases the whole function; neighbours with |theta - theta'| <= Delta get mu = Delta/sigma. Where features
are redundant, two thetas of one function can be told apart: what is protected is the norm of the weights as given.

Random features that merely *approximate* another kernel are noise for their own K, not for the kernel they approximate:
a truncated path has directions without any noise.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from quietq.noise.kernels.base import Kernel
from quietq.privacy.checks import count, numbers
from quietq.privacy.errors import InvalidInput, QuietqError

_POINTS = 64
_ROUNDING = 1e-9  # of the largest feature; matrix products round differently in batches of another size
_ROUNDING_SHORT = 1e-4  # for maps in float32


class FiniteRank(Kernel):
    """A kernel given by finitely many features; a function is its vector of weights."""

    rank: int
    """Number of features."""

    @property
    def sample_points(self) -> Float[np.ndarray, " samples"] | None:
        """Where a function is looked at to be projected on the features, if it can be."""
        return None

    @property
    def stretch(self) -> float:
        """By how much projecting can lengthen a difference of norm 1."""
        return 1.0

    def project(self, values: np.ndarray) -> Float[np.ndarray, "features ..."]:
        """The weights of a function that has these values at the sample points."""
        raise InvalidInput(f"A {type(self).__name__} kernel takes the function's weights, not the function.")

    @property
    def worst_projection(self) -> float:
        """The length that errors of size 1 can have in the weights, by projection or as they are given."""
        return math.sqrt(self.rank)

    @abstractmethod
    def features(self, x: np.ndarray) -> Float[np.ndarray, "points features"]:
        """phi at points in unit coordinates."""

    def covariance(self, x: np.ndarray, y: np.ndarray) -> Float[np.ndarray, "rows columns"]:
        return self.features(np.asarray(x, float)) @ self.features(np.asarray(y, float)).T

    def inner(self, f: np.ndarray, g: np.ndarray) -> float:
        return float(self.weights(f) @ self.weights(g))

    def norm(self, f: np.ndarray) -> float:
        return float(np.linalg.norm(self.weights(f)))

    def weights(self, f: object) -> Float[np.ndarray, " features"]:
        vector = numbers("weights", f)
        if vector.shape != (self.rank,):
            raise InvalidInput(f"weights must have shape ({self.rank},), one a feature, not {vector.shape}.")
        return vector


@dataclass(frozen=True, repr=False)
class FeatureKernel(FiniteRank):
    """phi(x) . phi(y) for a public feature map phi, from (points,) or (points, d) to (points, rank).

    phi is part of what is released: a closure, a bound method or a partial takes the data that it holds along, into
    every pickle of a private function with this kernel. Make phi of public things only.

    phi must look at one point at a time and remember nothing: a map that standardises what it is given would mix rows.
    Before `Ratings.read` shows it anybody's rows, `check_rowwise` refuses one that does not; for what it does elsewhere
    than at the points asked it has to be trusted, and the certificate says so.

    >>> kernel = FeatureKernel(lambda x: np.stack([np.ones_like(x), x], axis=-1), rank=2)
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
        values = self._ask(x)
        if values.shape != (len(x), self.rank):
            raise InvalidInput(f"phi must return shape (points, {self.rank}), a row of {self.rank} for each point.")
        return values

    def _ask(self, x: np.ndarray) -> Float[np.ndarray, "..."]:
        """What phi returns, as numbers. Points may be private, so a failure of phi's own is named and not quoted."""
        failure = ""
        try:
            return numbers("phi's values", self.phi(x.copy()))
        except QuietqError:
            raise
        except Exception as error:
            failure = type(error).__name__
        raise InvalidInput(f"phi failed with {failure} on an array of points in [0, 1].")

    def check_rowwise(self) -> None:
        """Asks phi at public random points in parts, one by one, in another order and twice: answers must agree."""
        source = np.random.default_rng(_POINTS)
        shape = (_POINTS,) if self.dimension == 1 else (_POINTS, self.dimension)
        points = source.random(shape)
        whole = self.features(points)
        bound = float(np.abs(whole).max())
        if not np.isfinite(bound):
            raise InvalidInput(
                "phi must return finite numbers everywhere in the box, which is [0, 1] in each coordinate."
            )
        exact = np.asarray(self.phi(points.copy())).dtype.itemsize > 4
        allowed = (_ROUNDING if exact else _ROUNDING_SHORT) * bound
        order, cuts = source.permutation(_POINTS), np.sort(source.integers(1, _POINTS, 3))
        shuffled = np.empty_like(whole)
        shuffled[order] = self.features(points[order])
        parts = np.concatenate([self.features(part) for part in np.split(points, cuts) if len(part)])
        alone = np.concatenate([self.features(points[i : i + 1]) for i in range(0, _POINTS, 4)])
        again = self.features(points)
        for other, first in ((shuffled, whole), (parts, whole), (alone, whole[::4]), (again, whole)):
            if not np.abs(other - first).max() <= allowed:
                raise InvalidInput(
                    "phi must look at one point at a time and remember nothing, but its features of a point change "
                    "with the points that it is asked along with, or from one call to the next: fix what it subtracts, "
                    "divides by or counts beforehand, from public numbers."
                )

    def describe(self) -> dict[str, object]:
        """The kernel in JSON; phi itself stays with the code that made it."""
        return {"kind": "features", "phi": self._name, "rank": self.rank, "dimension": self.dimension}

    @property
    def _name(self) -> str:
        """Of phi; its repr could show data that it is bound to."""
        return str(getattr(self.phi, "__qualname__", type(self.phi).__name__))

    def __repr__(self) -> str:
        return f"FeatureKernel(phi={self._name}, rank={self.rank}, dimension={self.dimension})"
