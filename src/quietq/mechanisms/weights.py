"""Noise on the weights of public features: the whole function w . phi is released at once.

Theorem. If neighbours' weights differ by at most Delta in the Euclidean norm, then w + N(0, (Delta/mu)^2 I) is mu-GDP
(`Weights`; it is the Gaussian process mechanism in the kernel phi . phi), and w + z of density proportional to
exp(-epsilon |z|/Delta) is epsilon-DP, without a delta (`BallWeights`; see `noise.ball`). A function that is projected
on finitely many terms can differ by a little more than it did before, by the kernel's `stretch`.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.mechanisms.laws import Gaussian, KNorm, Law
from quietq.mechanisms.mechanism import SLACK, Mechanism, Query, Task
from quietq.mechanisms.private_function import PrivateWeights
from quietq.noise.allowance import check_allowance, largest_and_error
from quietq.noise.ball import Ball
from quietq.noise.box import Box, box_for
from quietq.noise.entropy import Entropy
from quietq.noise.evaluation import check_outputs, in_weights
from quietq.noise.kernels import FiniteRank
from quietq.privacy import Assumption, Budget, Certificate, Cost, InvalidInput, Relation


@dataclass(frozen=True)
class Independent:
    """Independent normals; `norm` is what certificates call their Euclidean norm."""

    norm: dict[str, Any]

    def draw(self, shape: tuple[int, ...], entropy: Entropy) -> Float[np.ndarray, "..."]:
        return entropy.normals(shape)

    def length(self, difference: np.ndarray) -> float:
        return float(np.linalg.norm(difference))


class Weights(Mechanism):
    """Gaussian noise on the weights."""

    name = "weights"

    def __init__(
        self,
        relation: Relation,
        budget: Budget,
        kernel: FiniteRank,
        radius: float,
        box: Box,
        *,
        largest: float | None = None,
        accuracy: float | None = None,
    ) -> None:
        """`radius` is the most that neighbours' weights differ by, before rounding."""
        self.relation, self.budget, self.kernel, self.box = relation, budget, kernel, box
        self.outputs = getattr(relation, "actions", 1)
        radius *= kernel.stretch
        about = self._law(radius).sigma
        self.largest, self.error = largest_and_error(about, radius, relation.people, largest, accuracy)
        self._exact = accuracy is None
        allowance = 2 * self.error * kernel.worst_projection * self.outputs**0.5
        check_allowance(allowance, radius, self.error)
        self.sensitivity = radius + allowance
        self.law = self._law(self.sensitivity)
        self.sigma = self.law.sigma
        looked = "given as weights"
        if kernel.sample_points is not None:
            looked = "looked at only at public sample points and projected, or given as weights"
        self.conditions = (Assumption(f"The function was {looked}, noised once, and not kept.", True),)

    def _law(self, sensitivity: float) -> Law:
        return Gaussian(sensitivity / self.budget.mu, Independent(self.kernel.describe()))

    def run(self) -> Generator[Query, np.ndarray, np.ndarray]:
        return (yield Query(self._weights, self.sensitivity, self.law))

    def _weights(self, feedback: Any) -> Float[np.ndarray, "..."]:
        weights = in_weights(feedback.weights(), self.kernel, self.box, self._exact, self.largest)
        check_outputs(weights.shape[1:], self.relation, self.box)
        return weights

    def result(self, released: np.ndarray, certificate: Certificate) -> PrivateWeights:
        return PrivateWeights(released, self.kernel, self.box, certificate)

    def expected_error(self) -> float:
        return self.sigma

    @classmethod
    def propose(cls, task: Task) -> list[Mechanism]:
        kernel = getattr(task.relation, "kernel", None)
        if not isinstance(kernel, FiniteRank):
            return task.refuse(f"Noise {cls.name!r} is for weights of features, which this relation does not have.")
        if refusal := cls._unfit(task, kernel):
            return task.refuse(refusal)
        radius, box = task.relation.rkhs_radius(kernel) * SLACK, box_for(kernel.dimension, task.domain)
        return [cls(task.relation, task.budget, kernel, radius, box, largest=task.largest, accuracy=task.accuracy)]

    @classmethod
    def _unfit(cls, task: Task, kernel: FiniteRank) -> str:
        pure = task.budget.is_pure
        return "Noise 'weights' is Gaussian and needs delta above 0; 'ball' works with delta = 0." if pure else ""


class BallWeights(Weights):
    """Pure noise of uniform direction and Gamma length, on all weights together."""

    name = "ball"
    remarks = ("Noise of uniform direction and Gamma length, in all weights together: pure, without a delta.",)

    def _law(self, sensitivity: float) -> Law:
        body = Ball(self.kernel.rank * self.outputs, self.kernel.describe())
        return KNorm(body, math.nextafter(self.budget.epsilon / sensitivity, 0.0))  # not a last place too much

    @property
    def cost(self) -> Cost:
        return Cost.apart(self.budget.epsilon)

    def _weights(self, feedback: Any) -> Float[np.ndarray, "..."]:
        weights = super()._weights(feedback)
        if weights.size != self.kernel.rank * self.outputs:
            raise InvalidInput(
                f"There must be {self.outputs} column(s) of weights, as the relation says, not shape {weights.shape}."
            )
        return weights

    @classmethod
    def _unfit(cls, task: Task, kernel: FiniteRank) -> str:
        if kernel.sample_points is not None:
            return "Noise 'ball' is for weights of features; use noise='weights' for a function that is projected."
        return "'auto' takes Gaussian noise." if task.gaussian and not (task.asked or task.budget.is_pure) else ""
