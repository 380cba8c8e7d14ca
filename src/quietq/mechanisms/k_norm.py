"""K-norm noise on the increments between knots: pure epsilon-DP, delta = 0.

The theorem, the body of what one person can do to the increments and the exact draw from it are in `noise.increments`.
The constant is left out, because it changes no policy when all episodes have the same length.
"""

import math
from collections.abc import Generator
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.mechanisms.laws import KNorm
from quietq.mechanisms.mechanism import SLACK, Mechanism, Query, Task, propose_pieces
from quietq.mechanisms.private_function import PrivateKnots
from quietq.noise.allowance import largest_and_error, widen_ball
from quietq.noise.box import Box
from quietq.noise.evaluation import on_knots
from quietq.noise.increments import IncrementBody, to_curve
from quietq.privacy import Assumption, Budget, Certificate, Cost, LipschitzBall
from quietq.privacy.checks import count, positive
from quietq.privacy.norms import Norm, Record, largest_difference, register
from quietq.privacy.words import plural


class Increments(Mechanism):
    """Increments between equally spaced knots, straight lines between them; the constant is dropped."""

    name = "k-norm"

    def __init__(self, ball: LipschitzBall, budget: Budget, box: Box, pieces: int, task: Task) -> None:
        self.relation, self.budget, self.box, self.pieces = ball, budget, box, pieces
        self._slope, self._exact = task.slope or 0.0, task.accuracy is None
        about = IncrementBody(ball, pieces).typical_noise(budget.epsilon)
        self.largest, self.error = largest_and_error(about, ball.radius, ball.people, task.largest, task.accuracy)
        self._wider = widen_ball(ball, pieces, self.error, SLACK)
        self.law = KNorm(IncrementBody(self._wider, pieces), budget.epsilon)
        self.sigma = self.law.sigma
        looked = f"Only the increments between {pieces + 1} public knots were looked at, noised once, not kept."
        self.conditions = (Assumption(looked, True),)

    @property
    def cost(self) -> Cost:
        return Cost.apart(self.budget.epsilon)

    def run(self) -> Generator[Query, np.ndarray, np.ndarray]:
        sensitivity = largest_difference(self.law.body.norm, self._wider.describe())
        return (yield Query(self._increments, sensitivity, self.law))

    def _increments(self, feedback: Any) -> Float[np.ndarray, " pieces"]:
        return np.diff(on_knots(feedback.functions()[0], self.box, self.pieces, self._exact, self.largest))

    def result(self, released: np.ndarray, certificate: Certificate) -> PrivateKnots:
        return PrivateKnots(to_curve(released), self.box, certificate)

    def expected_error(self) -> float:
        """Root mean square of the noise about its own mean, and of straight lines between knots."""
        return math.hypot(self.sigma, self._slope / (2 * self.pieces**1.5))

    @classmethod
    def propose(cls, task: Task) -> list[Mechanism]:
        return [] if task.gaussian and not task.asked and not task.budget.is_pure else propose_pieces(cls, task)


def _difference(norm: Record, relation: Record) -> float | None:
    """The gauge of one body of increments, at most over another: its steepest step, or its whole range."""
    if relation["kind"] != "lipschitz-ball" or relation["actions"] != 1:
        return None
    radius, lipschitz = relation["radius"], relation["lipschitz"]
    steepest = min(lipschitz, 2 * radius * norm["pieces"]) / norm["lipschitz"]
    return max(steepest, min(2 * radius, lipschitz) / (2 * norm["radius"]))


register(
    "increments",
    Norm(
        fields={"pieces": count, "radius": positive, "lipschitz": positive},
        difference=_difference,
        words=lambda norm: (
            f"the gauge of what differences of at most {norm['radius']:g}, of slope at most {norm['lipschitz']:g}, can "
            f"do to {plural(norm['pieces'], 'increment')} between knots"
        ),
        dimension=lambda norm: 1,
        families=("pure",),
    ),
)
