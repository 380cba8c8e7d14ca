"""Noise on the increments of a reward between a few knots, with straight lines between them: pure, or Gaussian.

The constant is left out, because it changes no policy when all episodes have the same length.

Theorem ("k-norm"; Hardt & Talwar 2010). If neighbours' vectors u, u' of d numbers differ by an element of a symmetric
convex body K, then u + z with density proportional to exp(-epsilon |z|_K) is epsilon-DP, by the triangle inequality. z
is Gamma(d + 1, 1/epsilon) times a uniform point of K.

Here u are the increments of a reward between d + 1 knots. Neighbours in a LipschitzBall(rho, l) differ by increments
|u_i| <= l/d whose running sum has a range of at most 2 rho. Uniform points of that body come from a cube by rejection,
which is exact. A release is drawn in real numbers and rounded once (`noise.exact`), so delta is 0, not almost 0.

Theorem ("knots"). If neighbours' increments differ by u with u' S^-1 u <= 1, then adding N(0, S/mu^2) is mu-GDP. What
values at knots differ by is the body {|v_j| <= rho, |v_{j+1} - v_j| <= l/d}, and u are the increments of v. A convex
function is largest at a vertex, and increments are linear in v, so it is enough that the increments of all vertices
fulfil the inequality. What is made small is the variance of the curve about its mean, |L'u|^2 for increments u. In
coordinates y = L'u the ellipsoid of least trace is found from weights w on vertices: S = c M^(1/2) with
M = sum w_i y_i y_i', and multiplying w_i by y_i' M^(-1/2) y_i/trace M^(1/2) raises the dual bound until it meets the
primal. Whatever the weights, c = max_i y_i' M^(-1/2) y_i makes the inequality true: a search that stops early costs
noise, never privacy.

Proofs: docs/theory.md#k-norm and docs/theory.md#shaped-noise.
"""

import functools
import itertools
import math
import secrets
from abc import abstractmethod
from collections.abc import Generator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from quietq.mechanisms.release import SLACK, AnyFeedback, Mechanism, Query
from quietq.noise.box import box_for
from quietq.noise.entropy import Entropy, SeededEntropy
from quietq.noise.exact import Enclosure, LazyUniform, RandomBits, Undecided, decide, exponentials, round_exactly
from quietq.noise.exact_gaussian import Whitened, by_matrix, inverse
from quietq.noise.laws import Gaussian, KNorm, RoundedLaw
from quietq.noise.rounding import check_allowance, check_size, check_values, largest_and_error, values_at
from quietq.privacy import Budget, Certificate, InvalidInput, LipschitzBall
from quietq.privacy.assumptions import Assumption, Code
from quietq.privacy.checks import count
from quietq.privacy.norms import IncrementGauge, ShapedIncrements, vertices
from quietq.released.private_function import PrivateKnots

KINK_LOSS = 90**-0.5
"""What straight lines between knots lose at a kink by which the slope changes by 1: root mean square over where it
lies, in units of 1/pieces^(3/2)."""
_AT_ONCE = 20_000  # points of the cube


# What is released: increments between equally spaced knots, with noise of either kind.


class OnKnots(Mechanism):
    """Noise on the increments of a function between equally spaced knots of an interval."""

    asks_code = False
    remarks = (
        "The reward's level was not measured, so values are up to a constant; that matters where episodes can end "
        "early, and noise 'path' has a level.",
    )
    tried: ClassVar[tuple[int, ...]] = (4, 6, 8)
    """Numbers of pieces, where none was asked for."""

    def __init__(self, feedback: AnyFeedback, budget: Budget, pieces: int) -> None:
        ball = feedback.relation
        if not isinstance(ball, LipschitzBall):
            raise InvalidInput(
                "Noise on knots works in one dimension only, and not with features: use noise='auto' here, without "
                "pieces and with a delta above 0."
            )
        if ball.actions != 1:
            raise InvalidInput("Noise on knots is for one reward function; use noise='path' with several actions.")
        self.relation = self.ball = ball
        self.budget, self.pieces = budget, count("pieces", pieces)
        self._slope, self._exact = feedback.slope or 0.0, feedback.accuracy is None
        noise = self.typical_noise()
        self.box = box_for(1, feedback.box)
        self.largest, self.error = largest_and_error(
            noise, ball.radius, ball.people, feedback.largest, feedback.accuracy
        )
        # Nothing is amplified: both neighbours' values err by no more than `error`. An increment errs twice as much,
        # and once more by its own rounding.
        steeper = 5 * self.error * self.pieces
        check_allowance(steeper, ball.lipschitz, self.error)
        check_allowance(2 * self.error, ball.radius, self.error)
        self.wider = LipschitzBall(ball.radius * SLACK + 2 * self.error, ball.lipschitz * SLACK + steeper)
        # Increments may be twice as large as declared values, and no refusal may hang on them.
        check_size(2 * (feedback.largest or 0.0), self.sigma)

    @abstractmethod
    def typical_noise(self) -> float:
        """About its size, before values that are not exact widen the ball."""

    @cached_property
    @abstractmethod
    def law(self) -> RoundedLaw:
        """The noise that hides the ball, `wider` by the errors of values."""

    @property
    def sigma(self) -> float:
        """Returns the size of the noise."""
        return self.law.sigma

    @cached_property
    def conditions(self) -> tuple[Assumption, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return (Code.INCREMENTS_BETWEEN_KNOTS(self.pieces + 1),)

    def run(self) -> Generator[Query, np.ndarray, np.ndarray]:
        return (yield Query(self.values, self.law.norm.sensitivity(self.wider), self.law))

    def values(self, feedback: AnyFeedback) -> Float[np.ndarray, " pieces"]:
        knots = self.box.from_unit(np.linspace(0, 1, self.pieces + 1))
        values = values_at(feedback.functions()[0], knots, self._exact)
        if values.shape != knots.shape:
            raise InvalidInput(f"The function must return one value for each of {len(knots)} states at once.")
        check_values(values, self.largest)
        return np.diff(values)

    def result(self, released: np.ndarray, certificate: Certificate) -> PrivateKnots:
        return PrivateKnots(to_curve(released), self.box, certificate)

    def noise_error(self) -> float:
        return self.sigma

    @cached_property
    def expected_error(self) -> float:
        """Returns the error for one kink of half the declared slope, which a mean over people may well have."""
        return math.hypot(self.noise_error(), KINK_LOSS * self._slope / self.pieces**1.5)


class Increments(OnKnots):
    """Increments between knots, with pure noise."""

    name = "k-norm"
    pure = True
    tried = (4, 6, 8, 12, 16)

    def typical_noise(self) -> float:
        return IncrementNoise(self.budget.epsilon, self.ball, self.pieces).sigma

    @cached_property
    def law(self) -> RoundedLaw:
        return IncrementNoise(self.budget.epsilon, self.wider, self.pieces)


class ShapedKnots(OnKnots):
    """Increments, with the Gaussian noise that hides them best."""

    name = "knots"

    def typical_noise(self) -> float:
        """A difference from one end of the ball to the other alone needs that much."""
        return min(self.ball.lipschitz / self.pieces, 2 * self.ball.radius) / self.budget.mu

    @cached_property
    def root(self) -> Float[np.ndarray, "pieces pieces"]:
        """Returns what standard normals are multiplied by to become the noise."""
        return np.linalg.cholesky(least_shape(self.wider, self.pieces)) / self.budget.mu

    @property
    def sigma(self) -> float:
        return math.sqrt(float(np.sum(self.root**2)) / self.pieces)

    @cached_property
    def law(self) -> RoundedLaw:
        return KnotNoise(self.sigma, self.root / self.sigma)

    def noise_error(self) -> float:
        """Returns the error of the curve about its mean."""
        spread = self.sigma**2 * covariance(self.root / self.sigma)
        return math.sqrt(float(np.sum(spread * products_about_mean(self.pieces))) / (self.pieces + 1))


# The noise that hides what one person can do to the increments.


@dataclass(frozen=True)
class IncrementNoise(KNorm):
    """Pure noise in the body of what replacing one person can do to the increments between knots."""

    ball: LipschitzBall
    pieces: int
    """d, the number of increments"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= count("pieces", self.pieces) <= 32:
            raise InvalidInput(f"K-norm noise has 1 to 32 pieces between knots, not {self.pieces}.")

    def distance(self, difference: np.ndarray) -> float:
        path = np.append(0.0, np.cumsum(difference))
        steepest = np.abs(difference).max() / (self.ball.lipschitz / self.pieces)
        return float(max(steepest, np.ptp(path) / (2 * self.ball.radius)))

    @property
    def norm(self) -> IncrementGauge:  # pyright: ignore[reportIncompatibleVariableOverride]
        return IncrementGauge(self.pieces, self.ball.radius, self.ball.lipschitz)

    @cached_property
    def sigma(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Root mean square of the noise in the released function, up to its constant, by a fixed simulation."""
        curves = to_curve(self.draws(SeededEntropy(0), 2000))
        return math.sqrt(float(np.mean(curves**2)))

    def draws(self, entropy: Entropy, number: int) -> Float[np.ndarray, "number pieces"]:
        exponentials = -np.log(entropy.uniforms((number, self.pieces + 1)))
        length = exponentials.sum(axis=1, keepdims=True) / self.rate  # Gamma(pieces + 1, 1/rate)
        return length * self.uniform(entropy, number)

    def round_exactly(
        self, numbers: np.ndarray, step: float, random_bits: RandomBits = secrets.randbits
    ) -> Float[np.ndarray, " pieces"]:
        lengths = [LazyUniform(random_bits) for _ in range(self.pieces + 1)]
        point = self.uniform_exactly(random_bits)

        def noise() -> list[Enclosure]:
            length = exponentials(lengths) * self.half / self.rate  # Gamma(pieces + 1, 1/rate)
            return [length * (2 * uniform.enclosure() + -1) for uniform in point]

        return round_exactly(numbers, noise, [*lengths, *point], step)

    def uniform(self, entropy: Entropy, points: int = 1) -> Float[np.ndarray, "points pieces"]:
        found, accepted, tries = [], 0, 0
        while accepted < points:
            self._check_tries(tries)
            cube = 2 * entropy.uniforms((_AT_ONCE, self.pieces)) - 1
            found.append(self.half * cube[_spread(cube) <= self._most_spread])
            accepted += len(found[-1])
            tries += _AT_ONCE
        return np.concatenate(found)[:points]

    def uniform_exactly(self, random_bits: RandomBits = secrets.randbits) -> list[LazyUniform]:
        """A uniform point of the body in real numbers, by where it lies between -half and half in each coordinate.

        Almost every point of the cube is clearly in the body or clearly not after 64 bits; the rest are asked for more.
        """
        tries, at_once = 0, 512
        clearly = 1e-9  # relative; float64 errs by far less
        while True:
            self._check_tries(tries)
            size = at_once * self.pieces
            drawn = random_bits(64 * size).to_bytes(8 * size, "little")
            words = np.frombuffer(drawn, dtype="<u8").reshape(at_once, self.pieces)
            spread = _spread(words.astype(np.float64) * 2.0**-63 - 1)
            for row in np.flatnonzero(spread <= self._most_spread * (1 + clearly)):
                point = [LazyUniform(random_bits, 64, int(word)) for word in words[row]]
                if spread[row] <= self._most_spread * (1 - clearly) or self._holds(point):
                    return point
            tries += at_once

    def _holds(self, point: list[LazyUniform]) -> bool:
        """Says whether a point of the cube is in the body, in whole numbers."""
        limit = Fraction(2 * self.ball.radius) / Fraction(self.half)  # of sums of numbers from -1 to 1

        def holds() -> bool:
            sums = [0, *itertools.accumulate(2 * uniform.places - 2**uniform.bits for uniform in point)]
            beyond = max(sums) - min(sums) - limit * 2 ** point[0].bits
            if -4 * len(point) < beyond <= 4 * len(point):  # each sum is known to within 2 a number
                raise Undecided
            return beyond < 0

        return decide(holds, point)

    @property
    def half(self) -> float:
        """Half of the side of the smallest cube that holds the body."""
        return min(self.ball.lipschitz / self.pieces, 2 * self.ball.radius)

    @property
    def _most_spread(self) -> float:
        return 2 * self.ball.radius / self.half

    def _check_tries(self, tries: int) -> None:
        if tries >= 4_000_000:
            raise InvalidInput(f"{self.pieces} pieces are too many for this range and slope: use fewer knots.")


def _spread(increments: np.ndarray) -> Float[np.ndarray, " points"]:
    sums = np.cumsum(increments, axis=1)
    return np.maximum(sums.max(axis=1), 0) - np.minimum(sums.min(axis=1), 0)


def to_curve(increments: np.ndarray) -> Float[np.ndarray, "... knots"]:
    zero = np.zeros((*increments.shape[:-1], 1))
    curve = np.concatenate([zero, np.cumsum(increments, axis=-1)], axis=-1)
    return curve - curve.mean(axis=-1, keepdims=True)


@dataclass(frozen=True, eq=False)
class KnotNoise(Gaussian):
    """Gaussian noise on increments, sigma L z; the mean variance of L z is 1."""

    norm: ShapedIncrements = field(init=False, repr=False)
    root: Float[np.ndarray, "pieces pieces"]
    """L"""
    inverse: Float[np.ndarray, "pieces pieces"] = field(init=False, repr=False)
    """The inverse of L, as close as exact noise needs it; where there is none, it is refused."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "inverse", inverse(self.root))
        object.__setattr__(self, "norm", ShapedIncrements(covariance(self.root).tolist()))

    def distance(self, difference: np.ndarray) -> float:
        return float(np.linalg.norm(np.linalg.solve(self.root, difference)))

    def unit(self, shape: tuple[int, ...], simulated: Entropy) -> Float[np.ndarray, " pieces"]:
        return self.root @ simulated.normals(shape)

    def whiten(self, numbers: np.ndarray, step: float) -> Whitened:
        return by_matrix(self.inverse, numbers, step)

    def restore(self, whitened: np.ndarray) -> Float[np.ndarray, " pieces"]:
        return self.root @ whitened


def covariance(root: Float[np.ndarray, "pieces pieces"]) -> Float[np.ndarray, "pieces pieces"]:
    """Returns the covariance of L z, by L."""
    found = root @ root.T
    return (found + found.T) / 2


def products_about_mean(pieces: int) -> Float[np.ndarray, "pieces pieces"]:
    """G with u'Gu the squared length, about its mean, of the curve whose increments are u."""
    curves = to_curve(np.eye(pieces))
    return curves @ curves.T


def least_shape(ball: LipschitzBall, pieces: int) -> Float[np.ndarray, "pieces pieces"]:
    """S for increments between pieces + 1 equally spaced knots."""
    step = ball.lipschitz / pieces / ball.radius
    # twelve digits, rounded up, so that the same bounds for other numbers of people find the same shape
    return ball.radius**2 * _unit_shape(float(f"{step:.11e}") * (1 + 1e-10), pieces)


@functools.lru_cache(maxsize=64)
def _unit_shape(step: float, pieces: int) -> np.ndarray:
    # Vertices of what one person can do, in coordinates in which lengths are those of curves about their mean.
    lower = np.linalg.cholesky(products_about_mean(pieces))
    points = np.unique(np.diff(vertices(step, pieces), axis=1), axis=0) @ lower
    weights = np.full(len(points), 1 / len(points))
    root, scores = np.eye(pieces), np.ones(1)
    for _ in range(2000):
        root, inverse_root = _roots(points.T @ (weights[:, None] * points))
        scores = np.einsum("ij,jk,ik->i", points, inverse_root, points)
        trace = np.trace(root)
        if scores.max() <= trace * 1.0005:  # the dual bound: no shape has a trace less by more than that
            break
        weights *= scores / trace
        weights /= weights.sum()
    back = np.linalg.inv(lower)
    return back.T @ root @ back * scores.max() * (1 + 1e-9)


def _roots(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, values[-1] * 1e-12)
    return (vectors * np.sqrt(values)) @ vectors.T, (vectors / np.sqrt(values)) @ vectors.T
