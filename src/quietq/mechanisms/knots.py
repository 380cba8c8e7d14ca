"""Gaussian noise on the increments between a few knots, shaped by the ellipsoid of least trace around what one person
can do.

Theorem. If neighbours' increments differ by u with u' S^-1 u <= 1, then adding N(0, S/mu^2) is mu-GDP.

The values' differences are the body {|v_j| <= rho, |v_{j+1} - v_j| <= l/d}, and u are the increments of v. A convex
function is largest at a vertex, and increments are linear in v, so it is enough that the increments of all vertices
fulfil the inequality. The constant is left out, as K-norm noise does; what is made small is the variance of the curve
about its mean, |L'u|^2 for increments u. In coordinates y = L'u the least trace is found from weights w on vertices:
S = c M^(1/2) with M = sum w_i y_i y_i', and multiplying w_i by y_i' M^(-1/2) y_i/trace M^(1/2) raises the dual bound
until it meets the primal. Whatever the weights, c = max_i y_i' M^(-1/2) y_i makes the inequality true: a search that
stops early costs noise, never privacy.

Proof: docs/theory.md#shaped-noise.
"""

import math
from abc import abstractmethod
from collections.abc import Generator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from quietq.mechanisms.laws import Gaussian, KnownLaw
from quietq.mechanisms.mechanism import SLACK, Mechanism, Query, Task
from quietq.noise import Box, Entropy
from quietq.noise.box import box_for
from quietq.noise.increments import to_curve
from quietq.noise.own_values import on_knots
from quietq.noise.rounding import check_size, largest_and_error, widen_ball
from quietq.noise.whitening import Whitened, by_matrix, inverse
from quietq.privacy import Budget, Certificate, InvalidInput, LipschitzBall
from quietq.privacy.assumptions import Code
from quietq.privacy.checks import count
from quietq.privacy.norms import ShapedIncrements, sensitivity, vertices
from quietq.released.private_function import PrivateKnots


class OnKnots(Mechanism):
    """Noise on the increments of a function between equally spaced knots of an interval, straight lines between them.

    The constant is left out: it changes no policy when all episodes have the same length.
    """

    asks_code = False
    remarks = (
        "The reward's level was not looked at, so values are up to a constant; that matters where episodes can end "
        "early, and noise 'path' has a level.",
    )
    tried: ClassVar[tuple[int, ...]] = (4, 6, 8)
    """Numbers of pieces, where none was asked for."""

    def __init__(self, ball: LipschitzBall, budget: Budget, box: Box, pieces: int, task: Task) -> None:
        self.relation = self.ball = ball
        self.budget, self.box, self.pieces = budget, box, pieces
        self._slope, self._exact = task.slope or 0.0, task.accuracy is None
        size = self.typical_noise()
        self.largest, self.error = largest_and_error(size, ball.radius, ball.people, task.largest, task.accuracy)
        self.wider = widen_ball(ball, pieces, self.error, SLACK)
        self.law = self.make_law()
        self.conditions = (Code.INCREMENTS_BETWEEN_KNOTS(pieces + 1),)
        if task.largest is not None:  # increments may be twice that, and no refusal may hang on them
            check_size(2 * task.largest, self.sigma)

    @abstractmethod
    def typical_noise(self) -> float:
        """About its size, before values that are not exact widen the ball."""

    @abstractmethod
    def make_law(self) -> KnownLaw:
        """The noise that hides the ball, `wider` by the errors of values."""

    @property
    def sigma(self) -> float:
        return self.law.sigma

    def run(self) -> Generator[Query, np.ndarray, np.ndarray]:
        return (yield Query(self.values, sensitivity(self.law.norm, self.wider), self.law))

    def values(self, feedback: Any) -> Float[np.ndarray, " pieces"]:
        return np.diff(on_knots(feedback.functions()[0], self.box, self.pieces, self._exact, self.largest))

    def result(self, released: np.ndarray, certificate: Certificate) -> PrivateKnots:
        return PrivateKnots(to_curve(released), self.box, certificate)

    def noise_error(self) -> float:
        return self.sigma

    def expected_error(self) -> float:
        """With one kink of half the declared slope up and down, which is what a mean over people may well have."""
        # What straight lines between knots lose at a kink by which the slope changes by 1: root mean square over where
        # it lies, in units of 1/pieces^(3/2).
        kink = 90**-0.5
        return math.hypot(self.noise_error(), kink * self._slope / self.pieces**1.5)

    @classmethod
    def propose(cls, task: Task) -> list[Mechanism]:
        """One mechanism for each number of pieces between knots that range and slope allow."""
        ball = task.relation
        if task.level:
            return task.refuse(f"Noise {cls.name!r} leaves the reward's level out: use noise='path', which has one.")
        if not isinstance(ball, LipschitzBall):
            return task.refuse(
                "Noise on knots works in one dimension only, and not with features: use noise='auto' here, without "
                "pieces."
            )
        if ball.actions != 1:
            return task.refuse("Noise on knots is for one reward function; use noise='path' with several actions.")
        pure = task.budget.is_pure
        if task.slope is None and task.pieces is None and not task.asked and not pure:
            return []  # nothing is known of the detail that knots would lose
        found: list[Mechanism] = []
        refusal: InvalidInput | None = None
        for pieces in cls.tried if task.pieces is None else (count("pieces", task.pieces),):
            try:
                found.append(cls(ball, task.budget, box_for(1, task.domain), pieces, task))
            except InvalidInput as error:  # too many pieces, or too fine for values of this accuracy
                refusal = error
        if refusal is not None and not found and (task.asked or pure or task.pieces is not None):
            raise refusal
        return found


@dataclass(frozen=True, eq=False)
class KnotShape:
    """Noise on increments of a mean variance of 1: L z."""

    root: Float[np.ndarray, "pieces pieces"]
    """L"""
    inverse: Float[np.ndarray, "pieces pieces"] = field(init=False, repr=False)
    """Of L, as close as exact noise needs it; where there is none, that is refused before anything is spent."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "inverse", inverse(self.root))

    @property
    def norm(self) -> ShapedIncrements:
        shape = self.root @ self.root.T
        return ShapedIncrements(((shape + shape.T) / 2).tolist())

    def draw(self, shape: tuple[int, ...], entropy: Entropy) -> Float[np.ndarray, " pieces"]:
        return self.root @ entropy.normals(shape)

    def length(self, difference: np.ndarray) -> float:
        return float(np.linalg.norm(np.linalg.solve(self.root, difference)))

    def whiten(self, numbers: np.ndarray, step: float) -> Whitened:
        return by_matrix(self.inverse, numbers, step)

    def restore(self, whitened: np.ndarray) -> Float[np.ndarray, " pieces"]:
        return self.root @ whitened


class ShapedKnots(OnKnots):
    """Increments, with the Gaussian noise that hides them best."""

    name = "knots"

    def typical_noise(self) -> float:
        """A difference from one end of the ball to the other alone needs that much."""
        return min(self.ball.lipschitz / self.pieces, 2 * self.ball.radius) / self.budget.mu

    def make_law(self) -> KnownLaw:
        root = np.linalg.cholesky(least_shape(self.wider, self.pieces)) / self.budget.mu
        sigma = math.sqrt(float(np.sum(root**2)) / len(root))
        self.shape = KnotShape(root / sigma)
        return Gaussian(sigma, self.shape)

    def noise_error(self) -> float:
        shape = np.array(self.shape.norm.shape)
        return math.sqrt(float(np.sum(self.sigma**2 * shape * _about_mean(self.pieces))) / (self.pieces + 1))

    @classmethod
    def propose(cls, task: Task) -> list[Mechanism]:
        if task.budget.is_pure:
            return task.refuse("Noise 'knots' is Gaussian and needs delta above 0; 'k-norm' works with delta = 0.")
        return super().propose(task)


def _about_mean(pieces: int) -> Float[np.ndarray, "pieces pieces"]:
    """G with u'Gu the squared length, about its mean, of the curve whose increments are u."""
    curves = to_curve(np.eye(pieces))
    return curves @ curves.T


def least_shape(ball: LipschitzBall, pieces: int) -> Float[np.ndarray, "pieces pieces"]:
    """S for increments between pieces + 1 equally spaced knots."""
    step = ball.lipschitz / pieces / ball.radius
    # twelve digits, rounded up, so that the same bounds for other numbers of people find the same shape
    return ball.radius**2 * _unit_shape(float(f"{step:.11e}") * (1 + 1e-10), pieces)


@lru_cache(maxsize=64)
def _unit_shape(step: float, pieces: int) -> np.ndarray:
    lower = np.linalg.cholesky(_about_mean(pieces))
    points = np.unique(np.diff(vertices(step, pieces), axis=1), axis=0) @ lower
    weights = np.full(len(points), 1 / len(points))
    for _ in range(2000):
        root, inverse = _roots(points.T @ (weights[:, None] * points))
        score = np.einsum("ij,jk,ik->i", points, inverse, points)
        trace = np.trace(root)
        if score.max() <= trace * 1.0005:
            break
        weights *= score / trace
        weights /= weights.sum()
    root, inverse = _roots(points.T @ (weights[:, None] * points))
    largest = np.einsum("ij,jk,ik->i", points, inverse, points).max()
    back = np.linalg.inv(lower)
    return back.T @ root @ back * largest * (1 + 1e-9)


def _roots(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, values[-1] * 1e-12)
    return (vectors * np.sqrt(values)) @ vectors.T, (vectors / np.sqrt(values)) @ vectors.T
