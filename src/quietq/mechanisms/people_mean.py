"""One query of everybody's rows: the mean of one vector per person, with independent Gaussian noise.

Theorem. If each person's vector is a function of their rows and of earlier answers, held to length B, then replacing
one of N people moves the mean by at most 2B/N, and by sqrt(2) B/N where no two vectors can be more than a right angle
apart. Proof: docs/theory.md#mean-of-people.
"""

import math

from quietq.feedback.row_statistics import COMPANY
from quietq.feedback.statistic import Vector
from quietq.mechanisms.laws import Gaussian, Independent
from quietq.mechanisms.mechanism import SLACK, Query
from quietq.privacy.norms import MeanOfPeople


def mean_of_people(statistic: Vector, people: int, mu: float) -> Query:
    """The query that costs `mu`: the mean of the statistic over so many people, each held to its bound."""
    company = COMPANY * math.sqrt(statistic.size) * statistic.bound
    assert issubclass(statistic.norm, MeanOfPeople)
    norm = statistic.norm(statistic.bound)
    sensitivity = norm.diameter * statistic.bound / people * SLACK + company
    law = Gaussian(sensitivity / mu, Independent(norm))
    return Query(lambda feedback: feedback.mean(statistic), sensitivity, law)
