"""Kernels of finite rank, K(x, y) = phi(x) . phi(y), and the Gaussian process mechanism in them: noise on the weights.

Theorem. For f = theta . phi, releasing theta + z with z ~ N(0, sigma^2 I) is the Gaussian process mechanism in this
kernel and releases the whole function; neighbours with |theta - theta'| <= Delta get mu = Delta/sigma. Where features
are redundant, two thetas of one function can be distinguished: what is protected is the norm of the weights as given. A
function that is projected on finitely many terms can differ by a little more than it did before, by the kernel's
`stretch`. Proof: docs/theory.md#features.

Random features that merely *approximate* another kernel are noise for their own K, not for the kernel they approximate:
a truncated path has directions without any noise.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float
from scipy.special import spherical_jn

from quietq.feedback.own_function import OwnFunction
from quietq.mechanisms.path import GaussianProcessMechanism, InKernel, check_outputs
from quietq.mechanisms.release import AnyFeedback
from quietq.noise.box import Box
from quietq.noise.laws import Gaussian
from quietq.noise.rounding import check_exact, check_values, values_at
from quietq.privacy import Assumption, Budget, Certificate, InvalidInput, Relation, RkhsBall
from quietq.privacy.assumptions import Code
from quietq.privacy.checks import ask_code, count, instance, numbers, positive
from quietq.privacy.relations import RIDGE, AnyKernel, BandLimitedNorm, FeatureNorm, norm_by
from quietq.released.private_function import PrivateFunction

_named: dict[str, list[Callable[[np.ndarray], np.ndarray]]] = {}
"""Functions by their names, so that a relation declared in one of them is not taken for that of another."""
_WIDEST = 1000.0  # half width of a band: some 3200 terms, and projecting on them takes the better part of a minute


class FiniteRank(ABC):
    """A kernel given by finitely many features; a function is its vector of weights."""

    rank: int
    """Number of features."""
    dimension: int
    """Number of coordinates of a state."""

    @property
    @abstractmethod
    def norm(self) -> FeatureNorm | BandLimitedNorm:
        """Returns the record by which relations and certificates know the kernel."""

    @property
    def sample_points(self) -> Float[np.ndarray, " samples"] | None:
        """Where a function is looked at to be projected on the features, if it can be."""
        return None

    @property
    def stretch(self) -> float:
        """Returns how much projecting can lengthen a difference of norm 1."""
        return self.norm.stretch

    def project(self, values: np.ndarray) -> Float[np.ndarray, "features ..."]:
        """Returns the weights of a function that has these values at the sample points."""
        raise InvalidInput(f"A {type(self).__name__} kernel takes the function's weights, not the function.")

    @property
    def worst_projection(self) -> float:
        """The length that errors of size 1 can have in the weights, by projection or as they are given."""
        return math.sqrt(self.rank)

    @abstractmethod
    def features(self, x: np.ndarray) -> Float[np.ndarray, "points features"]:
        """phi at points in unit coordinates."""

    def unit_weights(self, rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
        """Returns differences of norm 1 for an audit to try: each weight alone, and 20 random directions."""
        for number, row in enumerate(np.concatenate([np.eye(self.rank), rng.normal(size=(20, self.rank))])):
            yield "one weight" if number < self.rank else "random", row / np.linalg.norm(row)

    def covariance(self, x: np.ndarray, y: np.ndarray) -> Float[np.ndarray, "rows columns"]:
        """Returns K(x_i, y_j) for points x and y, in unit coordinates."""
        return self.features(np.asarray(x, float)) @ self.features(np.asarray(y, float)).T

    def norm_on(self, points: np.ndarray, values: np.ndarray) -> float:
        """Returns the norm of the least-norm interpolant of a function that is known at `points` only."""
        return norm_by(self.covariance(points, points), values)


@dataclass(frozen=True, repr=False)
class FeatureKernel(FiniteRank):
    """phi(x) . phi(y) for a public feature map phi, from (points,) or (points, d) to (points, rank).

    phi is part of what is released: a closure, a bound method or a partial takes the data that it holds along, into
    every pickle of a private function with this kernel. Make phi of public things only.

    phi must look at one point at a time and remember nothing.

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
        values = self._ask(x)
        if values.shape != (len(x), self.rank):
            raise InvalidInput(f"phi must return shape (points, {self.rank}), a row of {self.rank} for each point.")
        return values

    def _ask(self, x: np.ndarray) -> Float[np.ndarray, "..."]:
        where = "an array of points in [0, 1]: it must take all of them"
        return numbers("phi's values", ask_code("phi", self.phi, x.copy(), where=where))

    @property
    def norm(self) -> FeatureNorm:
        return FeatureNorm(self._name, self.rank, self.dimension)

    @property
    def _name(self) -> str:
        """The name of phi, whose repr could show data that it is bound to; no two functions have the same."""
        named = getattr(self.phi, "__name__", type(self.phi).__name__)  # what NumPy 2.0's functions have
        name = str(getattr(self.phi, "__qualname__", named))
        known = _named.setdefault(name, [])
        if not any(self.phi is one for one in known):
            known.append(self.phi)
        number = next(place for place, one in enumerate(known) if one is self.phi)
        return f"{name} ({number + 1})" if number else name

    def __repr__(self) -> str:
        return f"FeatureKernel(phi={self._name}, rank={self.rank}, dimension={self.dimension})"


@dataclass(frozen=True)
class BandLimited(FiniteRank):
    """sinc(2 W (x - y)) with W = half_width, for functions without frequencies above W, as finitely many features.

    Expansion (Gegenbauer): K(x, y) = sum_n (2n + 1) j_n(2 pi W (x - 1/2)) j_n(2 pi W (y - 1/2)) with spherical Bessel
    functions j_n. About pi W terms matter; the tail falls faster than any power, and is cut where it adds less than
    `tolerance` to the variance. A truncated path has directions without noise, so a function must be *projected on the
    same terms* before the noise is added: `project` does that, and says by how much it can stretch a difference.
    """

    half_width: float
    tolerance: float = 1e-20
    dimension: int = field(default=1, init=False, repr=False)
    rank: int = field(default=0, init=False)
    """Terms kept: the rest adds at most `tolerance` to the variance, at the ends, where it is largest."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "half_width", positive("half_width", self.half_width))
        object.__setattr__(self, "tolerance", positive("tolerance", self.tolerance))
        if self.half_width > _WIDEST:
            raise InvalidInput(f"half_width must be at most {_WIDEST:g}, not {self.half_width!r}.")
        reach = math.pi * self.half_width
        n = np.arange(math.ceil(reach) + 60 + math.ceil(12 * reach ** (1 / 3)))
        tail = np.cumsum(((2 * n + 1) * spherical_jn(n, reach) ** 2)[::-1])[::-1]
        if not tail[-1] <= self.tolerance <= 0.5:
            raise InvalidInput(f"tolerance must be between {tail[-1]:g} and 0.5, not {self.tolerance!r}.")
        object.__setattr__(self, "rank", int(np.argmax(tail <= self.tolerance)))

    def features(self, x: np.ndarray) -> Float[np.ndarray, "points features"]:
        return _bessel(self.rank, 2 * math.pi * self.half_width * (np.asarray(x, float) - 0.5))

    @property
    def norm(self) -> BandLimitedNorm:
        return BandLimitedNorm(self.half_width, self.tolerance, self.rank)

    @property
    def sample_points(self) -> Float[np.ndarray, " samples"]:
        """Chebyshev points at which a function is looked at in order to project it."""
        n = 2 * self.rank
        return (1 - np.cos((np.arange(n) + 0.5) * math.pi / n)) / 2

    @cached_property
    def _projection(self) -> np.ndarray:
        e = self.features(self.sample_points)
        found = np.linalg.solve(e @ e.T + RIDGE * np.eye(len(e)), e).T
        # A system of condition 1e10: what it is solved to must still be a contraction, for all that noise has room for.
        if not np.linalg.norm(found @ e, 2) <= 1 + 2.0**-21:
            raise InvalidInput(f"half_width {self.half_width!r} is too wide to project functions exactly enough.")
        return found

    def project(self, values: np.ndarray) -> Float[np.ndarray, "features ..."]:
        """Projects by ridge regression: a contraction on the terms."""
        return self._projection @ values

    @property
    def worst_projection(self) -> float:
        """The length that `project` gives to errors of size 1 in the values, its own rounding of such sizes included.

        The matrix is no longer than 1/(2 sqrt ridge), see `stretch`; a sum of so many products in float64 errs by as
        many times 2^-53 of the products' sizes, in each of `rank` weights, and values err by 2^-49 of their size.
        """
        samples = 2 * self.rank
        return math.sqrt(samples) / (2 * math.sqrt(RIDGE)) * (1 + samples * math.sqrt(self.rank) / 2**4)


def _bessel(terms: int, z: np.ndarray) -> np.ndarray:
    n = np.arange(terms)
    sign = np.where(z[:, None] < 0, (-1.0) ** n, 1.0)
    return sign * np.sqrt(2 * n + 1) * spherical_jn(n, np.abs(z)[:, None])


@dataclass(frozen=True, eq=False, repr=False)
class PrivateWeights(PrivateFunction):
    """Released weights of public features. A file cannot hold the features, so it is not published."""

    arrays: ClassVar = ("weights",)
    weights: Float[np.ndarray, "..."]
    kernel: FiniteRank
    box: Box
    certificate: Certificate

    def __call__(self, states: object) -> Float[np.ndarray, "..."]:
        """Returns weights . phi at the states; the weights' further axes are outputs."""
        x, dimension = self.box.to_unit(states), self.box.dimension
        shape = x.shape if dimension == 1 else x.shape[:-1]
        rows = x.reshape(-1) if dimension == 1 else x.reshape(-1, dimension)
        return (self.kernel.features(rows) @ self.weights).reshape(shape + self.weights.shape[1:])


class WeightNoise(InKernel):
    """Independent Gaussian noise on the weights of a function: what `FiniteRankMechanism` releases by."""

    name = "weights"
    error_unit = "of each weight"
    kernel: FiniteRank

    def __init__(
        self, feedback: AnyFeedback, budget: Budget, kernel: FiniteRank, *, radius: float, **options: Any
    ) -> None:
        instance("kernel", kernel, FiniteRank, "FeatureKernel or BandLimited")
        super().__init__(feedback, budget, kernel, radius=radius * kernel.stretch, **options)

    @property
    def conditions(self) -> tuple[Assumption, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return (Code.PUBLIC_POINTS(),)

    def prepare(self, radius: float, levels: int | None) -> float:
        return self.kernel.worst_projection * math.sqrt(self.outputs)

    @cached_property
    def law(self) -> Gaussian:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Gaussian(self.sigma, self.kernel.norm)

    def values(self, feedback: AnyFeedback) -> Float[np.ndarray, "..."]:
        """Returns the function's weights, one row per feature; a function is evaluated and projected."""
        assert isinstance(feedback, OwnFunction)
        source, kernel = feedback.source, self.kernel
        if callable(source):
            points = kernel.sample_points
            values = np.zeros(0) if points is None else values_at(source, self.box.from_unit(points), self._exact)
            check_values(values, self.largest)
            weights = kernel.project(values)
        else:
            if self._exact:
                check_exact("weights", source)
            weights = numbers("weights", source)
            if weights.ndim < 1 or weights.shape[0] != kernel.rank:
                raise InvalidInput(f"weights must have {kernel.rank} rows, one per feature, not shape {weights.shape}.")
            check_values(weights, self.largest)
        check_outputs(weights.shape[1:], self.relation, self.box)
        return weights

    def result(self, released: np.ndarray, certificate: Certificate) -> PrivateWeights:
        return PrivateWeights(released, self.kernel, self.box, certificate)


class FiniteRankMechanism(GaussianProcessMechanism):
    """The Gaussian process mechanism in a kernel of finite rank, which adds noise to the weights of one function, once.

    `apply` takes the weights of a FeatureKernel, and weights or a function for BandLimited. What it releases can be
    evaluated anywhere in the box, and is not published to a file.

    >>> lines = FeatureKernel(lambda x: np.stack([np.ones_like(x), x], axis=-1), rank=2)
    >>> private = FiniteRankMechanism(lines, 0.02, Budget(0.9, 1e-4)).apply([0.1, 0.2])
    >>> private([0.1, 0.5]).shape, private.certificate.standing
    ((2,), 'certified')
    """

    noise = WeightNoise

    @classmethod
    def for_relation(
        cls, relation: Relation, budget: Budget, *, level: bool = True, **options: Any
    ) -> "GaussianProcessMechanism":
        """Returns the mechanism in the kernel that an RkhsBall was declared in."""
        if not isinstance(relation, RkhsBall):
            raise InvalidInput("relation must be an RkhsBall in the kernel of finite rank that the noise is to have.")
        return cls(
            _finite_rank(relation.kernel), relation.rkhs_radius(relation.kernel), budget, relation=relation, **options
        )


def _finite_rank(norm: AnyKernel) -> FiniteRank:
    """The kernel of a norm: features are found by the name that was given to their function in this process."""
    if isinstance(norm, BandLimitedNorm):
        return BandLimited(norm.half_width, norm.tolerance)
    if isinstance(norm, FeatureNorm):
        for functions in _named.values():
            for phi in functions:
                kernel = FeatureKernel(phi, norm.rank, norm.dimension)
                if kernel.norm == norm:
                    return kernel
    raise InvalidInput(f"There is no kernel of finite rank here for {norm}.")
