"""Noise of a new kind, in one file, as a contributor would write it: Laplace noise on the values at a few knots."""

import math
from dataclasses import dataclass

import numpy as np

from quietq.mechanisms.laws import KNorm
from quietq.mechanisms.mechanism import Mechanism, Query, propose_pieces
from quietq.mechanisms.private_function import PrivateKnots
from quietq.noise.allowance import largest_and_error
from quietq.noise.evaluation import on_knots
from quietq.noise.exact import Enclosure, LazyUniform, exponentials, round_exactly
from quietq.privacy import norms
from quietq.privacy.certificate import Assumption
from quietq.privacy.checks import count
from quietq.privacy.cost import Cost


@dataclass(frozen=True)
class Diamond:
    """The unit ball of the sum of sizes, for so many numbers."""

    size: int

    @property
    def norm(self):
        return {"kind": "sum-of-sizes", "count": self.size}

    def gauge(self, difference):
        return float(np.abs(difference).sum())

    def draw(self, rate, entropy):
        return (np.log(entropy.uniforms((self.size,))) - np.log(entropy.uniforms((self.size,)))) / rate

    def add_exactly(self, numbers, rate, step):
        """A Laplace number is the difference of two exponential ones."""
        pairs = [(LazyUniform(), LazyUniform()) for _ in range(self.size)]
        scale = Enclosure.exactly(1) / Enclosure.exactly(rate)

        def noise():
            return [(exponentials([one]) + -exponentials([other])) * scale for one, other in pairs]

        return round_exactly(numbers, noise, [uniform for pair in pairs for uniform in pair], step)

    def typical_noise(self, rate):
        return math.sqrt(2) / rate


class LaplaceKnots(Mechanism):
    """Values at knots differ by at most the radius each, so by (pieces + 1) times it in the sum of sizes."""

    name = "laplace"

    def __init__(self, ball, budget, box, pieces, task):
        self.relation, self.budget, self.box, self.pieces = ball, budget, box, pieces
        self.largest, self.error = largest_and_error(
            ball.radius / budget.epsilon, ball.radius, ball.people, task.largest, task.accuracy
        )
        self.sensitivity = (pieces + 1) * (ball.radius * (1 + 1e-6) + 2 * self.error)
        self.law = KNorm(Diamond(pieces + 1), math.nextafter(budget.epsilon / self.sensitivity, 0.0))
        self.conditions = (Assumption("Only the values at public knots were looked at, and noised once.", True),)

    @property
    def cost(self):
        return Cost.apart(self.budget.epsilon)

    def run(self):
        return (yield Query(self._values, self.sensitivity, self.law))

    def _values(self, feedback):
        return on_knots(feedback.functions()[0], self.box, self.pieces, True, self.largest)

    def result(self, released, certificate):
        return PrivateKnots(released, self.box, certificate)

    def expected_error(self):
        return self.law.sigma

    @classmethod
    def propose(cls, task):
        return propose_pieces(cls, task)


norms.register(
    "sum-of-sizes",
    norms.Norm(
        fields={"count": count},
        difference=lambda norm, relation: (
            norm["count"] * relation["radius"] if relation["kind"] == "lipschitz-ball" else None
        ),
        words=lambda norm: f"the sum of the sizes of {norm['count']} numbers",
        dimension=lambda norm: 1,
        families=("pure",),
    ),
)
