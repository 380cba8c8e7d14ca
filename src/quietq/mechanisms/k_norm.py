"""K-norm noise on the increments between knots: pure epsilon-DP, delta = 0.

The theorem, the body of what one person can do to the increments and the exact draw from it are in `noise.increments`.
The constant is left out, because it changes no policy when all episodes have the same length.
"""

from quietq.mechanisms.knots import OnIncrements
from quietq.mechanisms.laws import KNorm, Law
from quietq.mechanisms.mechanism import Mechanism, Task
from quietq.noise.increments import IncrementBody
from quietq.privacy.checks import count, positive
from quietq.privacy.norms import NORMS, Norm, Record
from quietq.privacy.words import plural


class Increments(OnIncrements):
    """Increments between knots, with pure noise."""

    name = "k-norm"
    pure = True
    tried = (4, 6, 8, 12, 16)

    def typical_noise(self) -> float:
        return IncrementBody(self.ball, self.pieces).typical_noise(self.budget.epsilon)

    def make_law(self) -> Law:
        return KNorm(IncrementBody(self.wider, self.pieces), self.budget.epsilon)

    @classmethod
    def propose(cls, task: Task) -> list[Mechanism]:
        return [] if task.gaussian and not task.asked and not task.budget.is_pure else super().propose(task)


def _difference(norm: Record, relation: Record) -> float | None:
    """The gauge of one body of increments, at most over another: its steepest step, or its whole range."""
    if relation["kind"] != "lipschitz-ball" or relation["actions"] != 1:
        return None
    radius, lipschitz = relation["radius"], relation["lipschitz"]
    steepest = min(lipschitz, 2 * radius * norm["pieces"]) / norm["lipschitz"]
    return max(steepest, min(2 * radius, lipschitz) / (2 * norm["radius"]))


NORMS["increments"] = Norm(
    fields={"pieces": count, "radius": positive, "lipschitz": positive},
    difference=_difference,
    words=lambda norm: (
        f"the gauge of what differences of at most {norm['radius']:g}, of slope at most {norm['lipschitz']:g}, can "
        f"do to {plural(norm['pieces'], 'increment')} between knots"
    ),
    dimension=lambda norm: 1,
    families=("pure",),
)
