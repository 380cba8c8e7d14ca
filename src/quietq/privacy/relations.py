"""Neighbouring relations: which two reward functions, or which two sets of what people gave, must look alike.

All are of the kind "replace": one person's data against any other data in its place. A relation is one class: its
fields with their checks, what neighbours may differ by, and its words. Certificates and ledgers keep it as JSON
(`describe`), so what they ask of it is answered from JSON.

Balls say that r and r' are neighbours when their difference is small, in size, in slope or in a kernel's norm. What
protects is noise scaled to the ball's radius in the noise kernel's own norm (`rkhs_radius`). A kernel is anything that
can bound a Lipschitz ball in its norm; the kernels themselves live in `quietq.noise`. Other relations replace all that
one person gave: their rows, their trajectory, or their answers as they come by.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

from quietq.privacy.checks import Checked, count, flag, instance, optional, positive, real
from quietq.privacy.errors import InvalidInput, NoRkhsRadius
from quietq.privacy.kinds import RELATIONS, Record
from quietq.privacy.norms import NORMS, KernelNorm, kernel_in_words
from quietq.privacy.words import in_words, plural


@runtime_checkable
class NoiseKernel(Protocol):
    """What a relation needs to know of a kernel.

    `lipschitz_radius` is the supremum of its norm over functions on [0, 1] of at most this size and slope.
    """

    @property
    def dimension(self) -> int: ...

    def lipschitz_radius(self, radius: float, lipschitz: float) -> float: ...

    def describe(self) -> dict[str, object]: ...


class Relation(Checked, ABC):
    """Which two inputs must look alike. A subclass with a `kind` of its own is known to certificates."""

    kind: ClassVar[str]
    unit: ClassVar[str | None] = None
    """What neighbours differ by, where that is the same for all relations of the kind."""
    no_radius: ClassVar[str]
    """Why it has no radius in any kernel, if it has none, and what works instead."""
    people: Any
    """Their number, if there is one; it is public."""

    def __init_subclass__(cls) -> None:
        if "kind" in vars(cls):
            RELATIONS[cls.kind] = cls

    def describe(self) -> dict[str, object]:
        return {"kind": self.kind, **{name: getattr(self, name) for name in self.fields}}

    def rkhs_radius(self, kernel: NoiseKernel) -> float:
        """The largest kernel norm of a difference of neighbours; raises NoRkhsRadius where there is none."""
        raise NoRkhsRadius(self.no_radius)

    def best_beta(self) -> float:
        """The beta of the exponential kernel in which the relation is smallest; NoRkhsRadius where there is none."""
        raise NoRkhsRadius(self.no_radius)

    @staticmethod
    @abstractmethod
    def words(record: Record) -> str:
        """What neighbours are, as a phrase."""

    @staticmethod
    def sup_radius(record: Record) -> float:
        """The most that one reward can differ between neighbours; refused where nothing bounds it."""
        raise InvalidInput(
            "This method needs to know how much one reward can change: state a SupBall (for features of length at most "
            "c, its radius is c times that of the weights), or use 'reward'."
        )

    @staticmethod
    def of_whom(number: int | None) -> str:
        """Which people there are and what is hidden of one, which comes before the words; nothing if none count."""
        if number is None:
            return ""
        if number == 1:
            return "what one person gave, which may have been anything else"
        return f"what {number:d} people gave, of whom one may have given anything else"

    def __str__(self) -> str:
        return relation_in_words(self.describe())


@dataclass(frozen=True)
class SupBall(Relation):
    """r ~ r' when |r - r'| <= radius everywhere: the paper's relation, with radius 1."""

    kind = "sup-ball"
    fields: ClassVar = {"radius": positive, "people": optional(count)}
    no_radius = (
        "A SupBall has no radius in any smooth kernel, because the difference of two neighbours may be arbitrarily "
        "rough; declare a slope (LipschitzBall), or add independent noise to every observed reward."
    )

    radius: float
    people: int | None = None

    @staticmethod
    def words(record: Record) -> str:
        return f"rewards that differ by at most {record['radius']:g} anywhere"

    @staticmethod
    def sup_radius(record: Record) -> float:
        return record["radius"]


@dataclass(frozen=True)
class LipschitzBall(Relation):
    """r ~ r' when r - r' is at most `radius` in size and at most `lipschitz` in slope, on [0, 1].

    With one reward function per action, `actions` is the number of them that may change at once: their squared norms
    add.

    >>> ball = people(50, low=0, high=0.5, slope=1)
    >>> (ball.radius, ball.lipschitz, ball.best_beta())
    (0.01, 0.04, 4.0)
    """

    kind = "lipschitz-ball"
    fields: ClassVar = {"radius": positive, "lipschitz": positive, "actions": count, "people": optional(count)}

    radius: float
    lipschitz: float
    actions: int = 1
    people: int | None = None

    def rkhs_radius(self, kernel: NoiseKernel) -> float:
        if kernel.dimension != 1:
            raise NoRkhsRadius(
                f"A LipschitzBall speaks of one dimension, but the kernel has {kernel.dimension}: state an RkhsBall, "
                "whose radius for an Additive kernel is Additive.radius_of([...]), one ball for each coordinate."
            )
        return math.sqrt(self.actions) * kernel.lipschitz_radius(self.radius, self.lipschitz)

    def best_beta(self) -> float:
        return positive("lipschitz/radius", self.lipschitz / self.radius)

    @staticmethod
    def words(record: Record) -> str:
        return (
            f"rewards that differ by at most {record['radius']:g}, with a difference of slope at most "
            f"{record['lipschitz']:g} per width of the box{_each(record['actions'])}"
        )

    @staticmethod
    def sup_radius(record: Record) -> float:
        return record["radius"]


def _kernel(name: str, value: object) -> object:
    if isinstance(value, NoiseKernel) or (isinstance(value, Mapping) and isinstance(value.get("kind"), str)):
        return value
    raise InvalidInput(f"{name} must be what kernel.describe() returns.")


@dataclass(frozen=True)
class RkhsBall(Relation):
    """r ~ r' when the norm of r - r' in `kernel` is at most `radius`: additive and product kernels, and the paper's.

    With one reward function per action, `radius` is that of each, and `actions` is the number of them that may change
    at once: their squared norms add.
    """

    kind = "rkhs-ball"
    fields: ClassVar = {"radius": positive, "kernel": _kernel, "actions": count, "people": optional(count)}
    no_radius = "An RkhsBall names its kernel: there is no beta left to choose; use `relation.kernel`."

    radius: float
    kernel: NoiseKernel = field(repr=False)
    people: int | None = None
    actions: int = 1

    def __post_init__(self) -> None:
        instance("kernel", self.kernel, NoiseKernel, "a kernel, e.g. Exponential(beta=4.0)")
        super().__post_init__()

    @staticmethod
    def of_people(n: int, kernel: NoiseKernel, norm: float, actions: int = 1) -> "RkhsBall":
        """The mean of n people's functions, each of kernel norm at most `norm`: replacing one moves it by 2 norm/n."""
        n = count("people", n)
        return RkhsBall(positive("2 norm/people", 2 * positive("norm", norm) / n), kernel, people=n, actions=actions)

    def describe(self) -> dict[str, object]:
        return {**super().describe(), "kernel": self.kernel.describe()}

    def rkhs_radius(self, kernel: NoiseKernel) -> float:
        """The radius of all actions together, if `kernel` is the one that it was declared in."""
        if kernel == self.kernel:
            return math.sqrt(self.actions) * self.radius
        raise NoRkhsRadius(
            f"This RkhsBall was declared in {kernel_in_words(self.kernel.describe())}, and says nothing "
            f"about the norm in {kernel_in_words(kernel.describe())}: use the same kernel for the noise."
        )

    @staticmethod
    def words(record: Record) -> str:
        kernel, known = kernel_in_words(record["kernel"]), NORMS.get(record["kernel"]["kind"])
        norm = f"norm at most {record['radius']:g}{known.aside if isinstance(known, KernelNorm) else ''}"
        return f"rewards whose difference has {norm} in {kernel}{_each(record['actions'])}"

    @staticmethod
    def sup_radius(record: Record) -> float:
        """|f(x)| <= |f| sqrt(K(x, x))."""
        known = NORMS.get(record["kernel"]["kind"])
        if not isinstance(known, KernelNorm) or known.largest_value is None:
            return Relation.sup_radius(record)
        return record["radius"] * known.largest_value(record["kernel"])


def people(n: int, low: float, high: float, slope: float, actions: int = 1) -> LipschitzBall:
    """The relation "replace one of n people", when the reward is the mean of theirs.

    Each person's reward lies in [low, high] and changes by at most `slope` over the width of the box (it must be
    *enforced*, not hoped for: `quietq.feedback` does). Replacing one moves the mean by at most (high - low)/n, with
    slope at most 2 slope/n.

    >>> people(50, low=0, high=0.5, slope=1).radius
    0.01
    """
    n, low, high, slope = count("people", n), real("low", low), real("high", high), positive("slope", slope)
    if high <= low:
        raise InvalidInput(f"high must be above low, but high is {high!r} and low is {low!r}.")
    positive("high - low", high - low)
    positive("2 slope/(high - low)", 2 * slope / (high - low))  # beta, in the caller's own words
    radius = positive("(high - low)/people", (high - low) / n)
    return LipschitzBall(radius, positive("2 slope/people", 2 * slope / n), actions=actions, people=n)


def _each(actions: int) -> str:
    return "" if actions == 1 else f" for each of {actions:d} actions"


@dataclass(frozen=True)
class Trajectories(Relation):
    """X ~ X' when one of `count` trajectories, states and rewards alike, is replaced by any other."""

    kind = "replace-trajectory"
    fields: ClassVar = {"count": count, "largest_reward": positive, "horizon": optional(count)}
    unit = "any one trajectory"
    no_radius = (
        "Trajectories are no function, so they have no radius in any kernel: release a value function of theirs with "
        "`quietq.paper.baselines.balle`, or declare a ball of rewards."
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
    fields: ClassVar = {"arrivals": optional(count), "visits": count, "contexts": flag}
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


def relation_in_words(record: Record) -> str:
    """A relation's `describe()` as a phrase; whatever JSON there is in a file, spelled out if it is no relation.

    >>> relation_in_words({"kind": "sup-ball", "radius": 1.0, "people": None})
    'rewards that differ by at most 1 anywhere'
    """
    return in_words(lambda: _in_words(RELATIONS[record["kind"]], record), record)


def guessed_in_words(record: Record) -> str:
    """What somebody would have to guess who wants to break the promise.

    >>> guessed_in_words({"kind": "one-person", "people": 9})
    'which of two equally likely versions of one person was there'
    """
    known = {"any one person": "one person", "any one trajectory": "one trajectory"}
    one = known.get(unit_of(record), "the reward, as far apart as is promised,")
    source = "from what all others are shown " if record.get("contexts") else ""
    return f"{source}which of two equally likely versions of {one} was there"


def unit_of(record: Record) -> str:
    """What neighbours differ by. One person is one person, whatever their number was when something was released."""
    kind = record.get("kind")
    known = RELATIONS.get(kind, Relation) if isinstance(kind, str) else Relation
    if known.unit is not None:
        return known.unit
    if record.get("people") is not None:
        return "any one person"
    return "".join(letter if letter.isprintable() else "?" for letter in relation_in_words(record))


def one_of_many(record: Record) -> str | None:
    """The unit, where it is one person or trajectory: then relations of other kinds with the same add up."""
    unit = unit_of(record)  # else its words may leave out digits
    return unit if unit.startswith("any one ") else None


def _in_words(known: type[Relation], record: Record) -> str:
    who, bounds = known.of_whom(record.get("people")), known.words(record)
    return f"{who}; in numbers, {bounds}" if who else bounds
