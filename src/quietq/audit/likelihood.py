"""The best test of a private reward, for every kind of noise: Neyman and Pearson's likelihood ratio.

Gaussian noise: a projection on the inverse covariance times the difference (`projection`), whose scores are normal with
means -mu^2/2 and mu^2/2 and deviation mu, where mu is how far apart the two worlds are. Pure noise has a density
proportional to exp(-epsilon |x - u|) in some norm, so there the log of the ratio is epsilon (|x - u| - |x - u'|).
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from quietq.audit.distinguisher import Expected
from quietq.audit.projection import optimal_weights
from quietq.feedback.ratings import Ratings
from quietq.mechanisms.knots import least_shape
from quietq.mechanisms.mechanism import SLACK
from quietq.mechanisms.private_function import PrivateFunction, PrivateKnots, PrivateSum, PrivateTable, PrivateWeights
from quietq.noise.grid_path import grid_points
from quietq.noise.increments import IncrementBody
from quietq.noise.kernels import Additive, Exponential
from quietq.privacy.budget import Budget
from quietq.privacy.checks import positive
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import LipschitzBall, Relation

Source = Any
"""What `privatise` takes: Ratings, a function, a function a coordinate, or weights."""


class BestTest(NamedTuple):
    """Neyman and Pearson's test of one source against another."""

    score: Callable[[Any], float]
    """Of a release: above 0 where the second source is the likelier."""
    mu: float | None
    """How far apart the two are in Gaussian DP, exactly; None for pure noise, which has no mu."""

    @property
    def expected(self) -> Expected | None:
        """How scores come out, which is known for Gaussian noise."""
        return None if self.mu is None else Expected(-(self.mu**2) / 2, self.mu, self.mu**2 / 2, self.mu)


def best_test(before: Source, after: Source, relation: Relation, budget: Budget, release: PrivateFunction) -> BestTest:
    """The best test between releases of two sources, with noise of the kind and size of the given `release`.

    Of that one only what is public is used: the kind, the grid and sigma.
    """
    one, other = secret(before, release), secret(after, release)
    difference, middle = other - one, (one + other) / 2
    if is_pure(release):
        norm = _pure_norm(relation, release)
        return BestTest(lambda seen: norm(noised(seen) - one) - norm(noised(seen) - other), None)
    weights = _inverse_covariance(relation, budget, release, difference)
    mu = math.sqrt(max(float(difference @ weights), 0.0))
    return BestTest(lambda seen: float((weights * (noised(seen) - middle)).sum()), mu)


def is_pure(release: PrivateFunction) -> bool:
    """Whether its noise is that of pure epsilon-DP."""
    return release.certificate.method in ("reward/k-norm", "reward/ball")


def noised(release: PrivateFunction) -> Float[np.ndarray, " numbers"]:
    """The numbers that noise was added to, in one row."""
    match release:
        case PrivateTable():
            return release.values
        case PrivateSum():
            return np.concatenate([part.values for part in release.parts])
        case PrivateKnots():
            return np.diff(release.values) if is_pure(release) else release.values
        case PrivateWeights():
            return release.weights.ravel()
    raise InvalidInput(f"There is no best test for a release of kind {type(release).__name__}.")


def secret(source: Source, release: PrivateFunction) -> Float[np.ndarray, " numbers"]:
    """The same numbers without noise."""
    if isinstance(release, PrivateWeights):
        return np.ravel(source.weights() if isinstance(source, Ratings) else np.asarray(source, np.float64))
    functions: Any = source.functions() if isinstance(source, Ratings) else [source] if callable(source) else source
    if isinstance(release, PrivateKnots):
        knots = functions[0](release.box.from_unit(np.linspace(0, 1, len(release.values))))
        return np.diff(knots) if is_pure(release) else knots
    tables: Any = release.parts if isinstance(release, PrivateSum) else (release,)
    parts = zip(functions, tables, strict=True)
    return np.concatenate([part(grid_points(table.box, table.levels)) for part, table in parts])


def _inverse_covariance(
    relation: Relation, budget: Budget, release: PrivateFunction, difference: np.ndarray
) -> Float[np.ndarray, " numbers"]:
    """The inverse of the Gaussian noise's covariance times the difference."""
    if isinstance(release, PrivateKnots):
        return np.linalg.solve(least_shape(_wider(relation), len(difference) - 1), difference) * budget.mu**2
    variance = positive("sigma", release.certificate.sigma) ** 2
    if isinstance(release, PrivateWeights):
        return difference / variance
    own = getattr(relation, "kernel", None)
    kernels = own.parts if isinstance(own, Additive) else (Exponential(relation.best_beta()),)
    parts = zip(kernels, np.split(difference, len(kernels)), strict=True)
    return np.concatenate([optimal_weights(kernel, part) for kernel, part in parts]) / variance


def _pure_norm(relation: Relation, release: PrivateFunction) -> Callable[[np.ndarray], float]:
    """The norm in which pure noise falls off exponentially, up to a factor."""
    if isinstance(release, PrivateKnots):
        return IncrementBody(_wider(relation), len(release.values) - 1).gauge
    return lambda numbers: float(np.linalg.norm(numbers))


def _wider(relation: Relation) -> LipschitzBall:
    """The ball that noise on knots is made for."""
    if not isinstance(relation, LipschitzBall):
        raise InvalidInput(f"Noise on knots belongs to a LipschitzBall, not to {type(relation).__name__}.")
    return LipschitzBall(relation.radius * SLACK, relation.lipschitz * SLACK)
