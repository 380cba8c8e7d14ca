"""Noise of a new kind, in one file, as a contributor would write it: Laplace noise on the increments between knots."""

import math
import secrets
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from quietq.mechanisms.knots import OnKnots
from quietq.noise.exact import LazyUniform, exponentials, round_exactly
from quietq.noise.laws import KNorm
from quietq.privacy.norms import IncrementGauge
from quietq.privacy.relations import LipschitzBall


@dataclass(frozen=True)
class Laplace(KNorm):
    """Noise in the body of all increments whose sizes come to the ball's slope at the most.

    Whatever one person can do to the increments lies in it, so its gauge is at most that of the norm it states.
    """

    ball: LipschitzBall
    pieces: int

    @property
    def norm(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        return IncrementGauge(self.pieces, self.ball.radius, self.ball.lipschitz)

    @property
    def sigma(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        return math.sqrt(2) * self.ball.lipschitz / self.rate

    def distance(self, difference):
        return float(np.abs(difference).sum()) / self.ball.lipschitz

    def draws(self, entropy, number):
        one, other = np.log(entropy.uniforms((2, number, self.pieces)))
        return (one - other) * self.ball.lipschitz / self.rate

    def round_exactly(self, numbers, step, random_bits=secrets.randbits):
        """A Laplace number is the difference of two exponential ones."""
        pairs = [(LazyUniform(random_bits), LazyUniform(random_bits)) for _ in range(self.pieces)]

        def noise():
            scaled = self.rate / self.ball.lipschitz
            return [(exponentials([one]) + -exponentials([other])) / scaled for one, other in pairs]

        return round_exactly(numbers, noise, [uniform for pair in pairs for uniform in pair], step)


class LaplaceKnots(OnKnots):
    """Increments differ by at most the slope in the sum of their sizes."""

    name = "laplace"
    pure = True

    def typical_noise(self):
        return self.ball.lipschitz / self.budget.epsilon

    @cached_property
    def law(self):
        return Laplace(math.nextafter(self.budget.epsilon, 0.0), self.wider, self.pieces)
