"""Noise of a new kind, in one file, as a contributor would write it: Laplace noise on increments between knots."""

import math
from dataclasses import dataclass

import numpy as np

from quietq.mechanisms.knots import OnKnots
from quietq.mechanisms.laws import KNorm
from quietq.noise.exact import LazyUniform, exponentials, round_exactly
from quietq.privacy import norms
from quietq.privacy.checks import count


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

        def noise():
            return [(exponentials([one]) + -exponentials([other])) / rate for one, other in pairs]

        return round_exactly(numbers, noise, [uniform for pair in pairs for uniform in pair], step)

    def typical_noise(self, rate):
        return math.sqrt(2) / rate


class LaplaceKnots(OnKnots):
    """Increments differ by at most lipschitz/pieces each, so by lipschitz in the sum of sizes."""

    name = "laplace"
    pure = True

    def typical_noise(self):
        return self.ball.lipschitz / self.budget.epsilon

    def make_law(self):
        return KNorm(Diamond(self.pieces), math.nextafter(self.budget.epsilon / self.wider.lipschitz, 0.0))


norms.NORMS["sum-of-sizes"] = norms.Norm(
    fields={"count": count},
    difference=lambda norm, relation: relation["lipschitz"] if relation["kind"] == "lipschitz-ball" else None,
    words=lambda norm: f"the sum of the sizes of {norm['count']} numbers",
    dimension=lambda norm: 1,
    families=("pure",),
)
