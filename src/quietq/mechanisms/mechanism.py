"""A release is a thing: a mechanism asks queries, and `release` answers them with noise.

A `Query` is one noisy look at the data: numbers, how far apart neighbours can be in them, and the law of the noise. A
`Mechanism` is a generator of queries, each of which may depend on the answers so far; that is what adaptive composition
allows. It never sees a number that was not noised. `release` adds up what the queries cost and refuses one beyond what
was charged, so that a mechanism cannot promise more than it noises.

Theorem (mean of people). If each person's vector is a function of their rows and of earlier answers, held to length B,
then replacing one of N people moves the mean by at most 2B/N, and by sqrt(2) B/N where no two vectors can be more than
a right angle apart. `mean_of_people` is the query with Gaussian noise for that. Proof: docs/theory.md#mean-of-people.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Generator
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from quietq.feedback.feedback import Feedback
from quietq.feedback.own_function import HoldsFunctions, OwnFunction
from quietq.feedback.row_statistics import COMPANY
from quietq.feedback.statistic import Vector
from quietq.noise.box import Box
from quietq.noise.laws import Gaussian, Independent
from quietq.privacy import Assumption, Budget, Certificate, Cost, InvalidInput, Query as Query, Relation
from quietq.privacy.norms import MeanOfPeople

SLACK = 1 + 1e-6
"""Each person's part is computed in floating point: this much more noise covers it many times over.

People are summed in whole numbers, and what rounds after that is in the allowance for rounding."""
AnyFeedback = Feedback | OwnFunction
"""What a mechanism releases. Its relation, box, slope and bounds are public, and all that a choice looks at."""


class Mechanism(ABC):
    """A way of releasing: what is charged, what is asked, and what becomes of the answers. Nothing private is in it.

    It is made of what is public about the feedback, and of a budget. What takes time to compute is computed when it is
    needed first: a mechanism that is only asked for its `expected_error` draws nothing up.
    """

    name: ClassVar[str]
    """As in `privatise(..., noise=name)`."""
    releases: ClassVar[str] = "reward"
    """What is released; certificates call the method releases/name."""
    pure: ClassVar[bool] = False
    """Whether its noise is pure, without a delta: "auto" takes it only where the budget's delta is 0."""
    relation: Relation
    budget: Budget
    box: Box
    largest: float
    """What queries look at stays below it in size."""
    error: float
    """How far off values are at the most; the queries' sensitivities allow for it."""
    conditions: tuple[Assumption, ...]
    """What the promise stands on, besides what feedback, noise and account say themselves."""
    remarks: tuple[str, ...] = ()
    error_unit: ClassVar[str] = "root mean square, in units of the reward"
    """Of what `expected_error` tells."""
    asks_code: ClassVar[bool] = True
    """Whether functions of the caller's may see people's rows: where they fail may tell of them, so it must cost. Where
    nothing but quietq's own code looks at rows, it is False: what is refused at once then costs nothing."""

    @classmethod
    def is_for(cls, feedback: AnyFeedback) -> bool:
        """Whether it can release this kind of feedback: by default functions of states, and not rows or sessions."""
        return isinstance(feedback, HoldsFunctions) and feedback.loss is None

    @property
    def people(self) -> int:
        """Returns the declared number of people, where the relation counts them."""
        if self.relation.people is None:
            raise InvalidInput(f"Noise {self.name!r} is for a declared number of people, not for {self.relation}.")
        return self.relation.people

    @property
    def cost(self) -> Cost:
        """All that an account is charged, before the first look: by default the whole budget."""
        return Cost.apart(self.budget.epsilon) if self.pure else Cost.gaussian(self.budget.mu)

    @abstractmethod
    def run(self) -> Generator[Query, np.ndarray, Any]:
        """Yields queries, is sent their rounded noisy answers, and returns what is released."""

    @abstractmethod
    def result(self, released: Any, certificate: Certificate) -> Any:
        """The released thing, from what `run` returned."""

    def expected_error(self) -> float:
        """How far off the release must be expected to be: public, and "auto" takes the least.

        Root mean square over states, apart from a constant and in units of the reward, unless `error_unit` differs.
        """
        return math.inf


def mean_of_people(statistic: Vector, people: int, mu: float) -> Query:
    """The query that costs `mu`: the mean of the statistic over so many people, each clipped to its bound."""
    assert issubclass(statistic.norm, MeanOfPeople)
    sensitivity, law = _noise_of_mean(statistic.norm, statistic.bound, statistic.size, people, mu)
    return Query(lambda feedback: feedback.mean(statistic), sensitivity, law)


@lru_cache(maxsize=16)
def _noise_of_mean(kind: type[MeanOfPeople], bound: float, size: int, people: int, mu: float) -> tuple[float, Gaussian]:
    """The sensitivity of a mean of vectors, by the theorem above, and its noise: the same in all rounds of a fit."""
    norm = kind(bound)
    sensitivity = norm.diameter * bound / people * SLACK + COMPANY * math.sqrt(size) * bound
    return sensitivity, Gaussian(sensitivity / mu, Independent(norm))
