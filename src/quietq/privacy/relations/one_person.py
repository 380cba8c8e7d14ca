"""Relations that replace all that one person gave: their rows, their trajectory, or their answers as they come by."""

from dataclasses import dataclass
from typing import ClassVar

from quietq.privacy.checks import count, optional, positive
from quietq.privacy.errors import InvalidInput
from quietq.privacy.kinds import Record
from quietq.privacy.relations.relation import Relation
from quietq.privacy.words import plural


@dataclass(frozen=True)
class Trajectories(Relation):
    """X ~ X' when one of `count` trajectories, states and rewards alike, is replaced by any other."""

    kind = "replace-trajectory"
    fields: ClassVar = {"count": count, "largest_reward": positive, "horizon": optional(count)}
    unit = "any one trajectory"
    no_radius = (
        "Trajectories are no function, so they have no radius in any kernel: release a value function of theirs with "
        "`quietq.mechanisms.evaluation`, or declare a ball of rewards."
    )

    count: int
    """Number of trajectories, one for each person; it is public."""
    largest_reward: float
    """Rewards are clipped to this size."""
    horizon: int | None = None
    """Trajectories are cut after this many steps; None if they may have any length."""

    @property
    def people(self) -> int:
        return self.count

    @staticmethod
    def words(record: Record) -> str:
        length = "" if record["horizon"] is None else f", at most {plural(record['horizon'], 'step')} each"
        return (
            f"sets of {plural(record['count'], 'trajectory', 'trajectories')} that differ in one, of which any state "
            f"and reward may differ (rewards within {record['largest_reward']:g} of 0{length})"
        )


@dataclass(frozen=True)
class OnePerson(Relation):
    """Everything that one of so many people gave, all of their rows, replaced by anything, or by nothing.

    >>> print(OnePerson(1000))
    what 1000 people gave, of whom one may have given anything else
    """

    kind = "one-person"
    fields: ClassVar = {"people": count}
    unit = "any one person"
    no_radius = "What people gave is no function, so it has no radius in any kernel: declare a ball of rewards for one."

    people: int
    """Their number, which is public and declared."""

    @staticmethod
    def words(record: Record) -> str:
        return Relation.of_whom(record["people"])

    @staticmethod
    def of_whom(number: int | None) -> str:
        return ""  # the words say it all


def _flag(name: str, value: object) -> object:
    if isinstance(value, bool):
        return value
    raise InvalidInput(f"{name} must be True or False, not {value!r}.")


@dataclass(frozen=True)
class Arrivals(Relation):
    """People who come by, are shown something and answer: all that one of them brings and answers, replaced.

    Promised is that nothing that *others* are shown gives that person away. Without contexts what the person is shown
    does not depend on anything of theirs, so the promise is about everything that anybody is shown. With contexts it
    does, and the promise is joint differential privacy (Kearns, Pai, Roth & Ullman 2014).

    >>> print(Arrivals(arrivals=1000))
    answers of people who come by, 1000 times in all, of whom one may answer anything else
    """

    kind = "arrivals"
    fields: ClassVar = {"arrivals": optional(count), "visits": count, "contexts": _flag}
    unit = "any one person"
    no_radius = "Answers of people who come by are no function, so they have no radius in any kernel."

    arrivals: int | None = None
    """How often somebody comes by at the most, in all; it is public. None if that is not bounded."""
    visits: int = 1
    """How often one person comes by at the most."""
    contexts: bool = False
    """Whether what people are shown depends on what they bring along."""

    @property
    def people(self) -> None:
        return None

    @staticmethod
    def words(record: Record) -> str:
        brought, bring = ("contexts and answers", "bring and answer") if record["contexts"] else ("answers", "answer")
        total = "" if record["arrivals"] is None else f", {plural(record['arrivals'], 'time')} in all"
        visits = "" if record["visits"] == 1 else f" on {record['visits']} visits"
        joint = " and is shown anything else: joint differential privacy" if record["contexts"] else ""
        return f"{brought} of people who come by{total}, of whom one may {bring} anything else{visits}{joint}"
