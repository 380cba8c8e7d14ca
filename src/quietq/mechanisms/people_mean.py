"""One query of everybody's rows: the mean of one vector per person, with independent Gaussian noise.

Theorem. If each person's vector is a function of their rows and of earlier answers, held to length B, then replacing
one of N people moves the mean by at most 2B/N, and by sqrt(2) B/N where no two vectors can be more than a right angle
apart. See `docs/theory.md`, section 11.
"""

import math

from quietq.feedback.row_statistics import COMPANY
from quietq.feedback.statistic import Vector
from quietq.mechanisms.laws import Gaussian
from quietq.mechanisms.mechanism import SLACK, Query
from quietq.mechanisms.weights import Independent
from quietq.privacy.checks import positive
from quietq.privacy.norms import NORMS, Norm, Record

_FARTHEST = {"mean-of-people": 2.0, "mean-within-right-angles": math.sqrt(2)}
"""How far apart the vectors of two people can be, in units of the bound."""


def mean_of_people(statistic: Vector, people: int, mu: float, fraction: float = 1.0) -> Query:
    """Where a random fraction of the people is asked, each of them counts for as much more."""
    company = COMPANY * math.sqrt(statistic.size) * statistic.bound
    farthest = _FARTHEST[statistic.norm] if fraction == 1 else 2.0
    sensitivity = (farthest * statistic.bound / people * SLACK + company) / fraction
    law = Gaussian(sensitivity / mu, Independent({"kind": statistic.norm, "bound": statistic.bound}))
    return Query(lambda feedback: feedback.mean(statistic), sensitivity, law, fraction)


def _difference(norm: Record, relation: Record) -> float | None:
    if relation["kind"] != "one-person":
        return None
    return _FARTHEST[norm["kind"]] * norm["bound"] / relation["people"]


NORMS["mean-of-people"] = Norm(
    fields={"bound": positive},
    difference=_difference,
    words=lambda norm: f"the length of a mean of people's vectors, each held to {norm['bound']:g}",
    families=("gaussian",),
)
NORMS["mean-within-right-angles"] = Norm(
    fields={"bound": positive},
    difference=_difference,
    words=lambda norm: (
        f"the length of a mean of people's vectors, each held to {norm['bound']:g}, no two of which are more than a "
        "right angle apart"
    ),
    families=("gaussian",),
)
