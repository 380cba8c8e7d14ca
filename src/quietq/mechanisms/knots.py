"""Noise on the increments of a reward between a few knots, with straight lines between them: Gaussian, or pure.

What one person can do to the increments, and the noise that hides it, are in `noise.increments`, with their theorems:
"k-norm" noise is pure, "knots" noise is Gaussian and shaped like what one person can do. The constant is left out,
because it changes no policy when all episodes have the same length.

Proofs: docs/theory.md#k-norm and docs/theory.md#shaped-noise.
"""

import math
from abc import abstractmethod
from collections.abc import Generator
from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from quietq.mechanisms.release import SLACK, AnyFeedback, Mechanism, Query
from quietq.noise.box import box_for
from quietq.noise.increments import IncrementNoise, KnotNoise, least_shape, products_about_mean, to_curve
from quietq.noise.laws import RoundedLaw
from quietq.noise.own_values import on_knots
from quietq.noise.rounding import check_size, largest_and_error, widen_ball
from quietq.privacy import Budget, Certificate, InvalidInput, LipschitzBall
from quietq.privacy.assumptions import Code
from quietq.privacy.checks import count
from quietq.privacy.norms import sensitivity
from quietq.released.private_function import PrivateKnots

KINK_LOSS = 90**-0.5
"""What straight lines between knots lose at a kink by which the slope changes by 1: root mean square over where it
lies, in units of 1/pieces^(3/2)."""


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
        self.wider = widen_ball(ball, self.pieces, self.error, SLACK)
        self.conditions = (Code.INCREMENTS_BETWEEN_KNOTS(self.pieces + 1),)
        self.law = self.make_law()
        self.sigma = self.law.sigma
        if feedback.largest is not None:  # increments may be twice that, and no refusal may hang on them
            check_size(2 * feedback.largest, self.sigma)

    @abstractmethod
    def typical_noise(self) -> float:
        """About its size, before values that are not exact widen the ball."""

    @abstractmethod
    def make_law(self) -> RoundedLaw:
        """The noise that hides the ball, `wider` by the errors of values."""

    def run(self) -> Generator[Query, np.ndarray, np.ndarray]:
        return (yield Query(self.values, sensitivity(self.law.norm, self.wider), self.law))

    def values(self, feedback: AnyFeedback) -> Float[np.ndarray, " pieces"]:
        return np.diff(on_knots(feedback.functions()[0], self.box, self.pieces, self._exact, self.largest))

    def result(self, released: np.ndarray, certificate: Certificate) -> PrivateKnots:
        return PrivateKnots(to_curve(released), self.box, certificate)

    def noise_error(self) -> float:
        return self.sigma

    @cached_property
    def expected_error(self) -> float:
        """With one kink of half the declared slope up and down, which is what a mean over people may well have."""
        return math.hypot(self.noise_error(), KINK_LOSS * self._slope / self.pieces**1.5)


class Increments(OnKnots):
    """Increments between knots, with pure noise."""

    name = "k-norm"
    pure = True
    tried = (4, 6, 8, 12, 16)

    def typical_noise(self) -> float:
        return IncrementNoise(self.budget.epsilon, self.ball, self.pieces).sigma

    def make_law(self) -> RoundedLaw:
        return IncrementNoise(self.budget.epsilon, self.wider, self.pieces)


class ShapedKnots(OnKnots):
    """Increments, with the Gaussian noise that hides them best."""

    name = "knots"

    def typical_noise(self) -> float:
        """A difference from one end of the ball to the other alone needs that much."""
        return min(self.ball.lipschitz / self.pieces, 2 * self.ball.radius) / self.budget.mu

    def make_law(self) -> RoundedLaw:
        root = np.linalg.cholesky(least_shape(self.wider, self.pieces)) / self.budget.mu
        sigma = math.sqrt(float(np.sum(root**2)) / len(root))
        return KnotNoise(sigma, root / sigma)

    def noise_error(self) -> float:
        """Of the curve about its mean."""
        spread = self.sigma**2 * self.law.covariance  # pyright: ignore[reportAttributeAccessIssue]
        return math.sqrt(float(np.sum(spread * products_about_mean(self.pieces))) / (self.pieces + 1))
