"""K-norm noise on the increments between knots: pure epsilon-DP, delta = 0.

The theorem, the body of what one person can do to the increments and the exact draw from it are in `noise.increments`.
The constant is left out, because it changes no policy when all episodes have the same length.

Proof: docs/theory.md#k-norm.
"""

from quietq.mechanisms.knots import OnKnots
from quietq.mechanisms.laws import KNorm, KnownLaw
from quietq.noise.increments import IncrementBody


class Increments(OnKnots):
    """Increments between knots, with pure noise."""

    name = "k-norm"
    pure = True
    tried = (4, 6, 8, 12, 16)

    def typical_noise(self) -> float:
        return IncrementBody(self.ball, self.pieces).typical_noise(self.budget.epsilon)

    def make_law(self) -> KnownLaw:
        return KNorm(IncrementBody(self.wider, self.pieces), self.budget.epsilon)
