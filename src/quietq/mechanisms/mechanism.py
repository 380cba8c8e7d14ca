"""A release is a thing: a mechanism asks queries, and `release` answers them with noise.

A `Query` is one noisy look at the data: numbers, how far apart neighbours can be in them, and the law of the noise. A
`Mechanism` is a generator of queries, each of which may depend on the answers so far; that is what adaptive composition
allows. It never sees a number that was not noised. `release` adds up what the queries cost and refuses one beyond what
was charged, so that a mechanism cannot promise more than it noises.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from quietq.feedback.feedback import Feedback
from quietq.noise.box import Box, Domain
from quietq.privacy import Assumption, Budget, Certificate, Cost, InvalidInput, Query as Query, Relation

SLACK = 1 + 1e-6
"""Each person's part is computed in floating point: this much more noise covers it many times over.

People are summed in whole numbers, and what rounds after that is in the allowance for rounding."""


@dataclass(frozen=True)
class Task:
    """What is public about a release before it is made, for which mechanisms propose themselves."""

    relation: Relation
    budget: Budget
    domain: Domain | None = None
    slope: float | None = None
    """Of the mean reward, per width of the box, if it was declared."""
    largest: float | None = None
    """A bound on the size of all values, if it was declared."""
    accuracy: float | None = None
    """How far off values are at the most, if they are less exact than float64."""
    fewest: bool = False
    """Whether a table is to have no more points than a reward of the declared slope needs."""
    pieces: int | None = None
    """Between knots, if a number was asked for."""
    level: bool = False
    """Whether a constant counts, because episodes can end early."""
    asked: bool = False
    """Whether the mechanism was asked for by name: then it says what is wrong instead of proposing nothing."""
    gives: str = "function"
    """What the feedback gives: mechanisms that take something else do not apply."""
    loss: Any = None
    """What a model of everybody's rows is judged by, where the feedback gives rows."""
    features: Any = None
    """A public map that the model is to be made of; by default the mechanism's own."""
    spaces: Any = None
    """Where states, actions and rewards of sessions lie."""
    world: Any = None
    """What a world of sessions is to be made of, if it was said."""

    @classmethod
    def of(cls, feedback: Feedback, budget: Budget) -> "Task":
        """What is public about this feedback."""
        return cls(
            feedback.relation, budget, feedback.box, feedback.slope, feedback.largest, gives=feedback.gives,
            loss=feedback.loss, features=feedback.features, spaces=feedback.spaces,
        )  # fmt: skip

    def refuse(self, why: str) -> "list[Mechanism]":
        """No mechanism; says why if it was asked for."""
        if self.asked:
            raise InvalidInput(why)
        return []


class Mechanism(ABC):
    """A way of releasing: what is charged, what is asked, and what becomes of the answers. Nothing private is in it."""

    name: ClassVar[str]
    """As in `privatise(..., noise=name)`."""
    releases: ClassVar[str] = "reward"
    """What is released; certificates call the method releases/name."""
    takes: ClassVar[str] = "function"
    """Which feedback it is for: that which `gives` the same."""
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

    @classmethod
    def propose(cls, task: Task) -> Sequence["Mechanism"]:
        """The mechanisms of this kind that could do the task; none where the kind does not apply."""
        return []
