"""Neighbouring relations: which two reward functions, or which two data sets, must look alike.

All are of the kind "replace": one person's data against any other data in its place. Balls say that r and r' are
neighbours when their difference is small, in size, in slope or in a kernel's norm. What protects is noise scaled to the
ball's radius in the noise kernel's own norm (`rkhs_radius`). Other relations replace all that one person gave: their
rows, their trajectory, or their answers as they arrive.

See docs/theory.md#people.
"""

import math
from typing import Annotated, ClassVar, Protocol, runtime_checkable

from quietq.privacy.checks import count, ends, plural, positive
from quietq.privacy.errors import InvalidInput, NoRkhsRadius
from quietq.privacy.kernel_norms import AnyKernelNorm, KernelNorm
from quietq.privacy.records import Count, Flag, Positive, Record, checked_by


@runtime_checkable
class HasNorm(Protocol):
    """A kernel, of which a relation needs to know the norm only."""

    @property
    def norm(self) -> KernelNorm: ...


def _kernel(name: str, value: object) -> KernelNorm:
    """Returns a kernel's record; the kernel itself, which has one, will do."""
    found = getattr(value, "norm", value)
    if isinstance(found, KernelNorm):
        return found
    raise InvalidInput(f"{name} must be a kernel, e.g. Exponential(beta=4.0), not {type(value).__name__}.")


class Relation(Record, frozen=True):
    """Which two inputs must look alike."""

    no_radius: ClassVar[str]
    """Why it has no radius in any kernel, if it has none, and what works instead."""

    @property
    def people(self) -> int | None:
        """Returns the public number of people, if there is one."""
        return None

    @property
    def unit(self) -> str:
        """Returns what neighbours differ by. Releases about the same data add up if their units are equal."""
        return "any one person"

    @property
    def sup_radius(self) -> float:
        """Returns the most that one reward can differ between neighbours; refused where nothing bounds it."""
        raise InvalidInput(
            "This method needs to know how much one reward can change: state a SupBall (for features of length at most "
            "c, its radius is c times that of the weights), or use 'reward'."
        )

    def rkhs_radius(self, kernel: KernelNorm | HasNorm) -> float:
        """Returns the largest kernel norm of a difference of neighbours; NoRkhsRadius where there is none."""
        raise NoRkhsRadius(self.no_radius)

    def best_beta(self) -> float:
        """Returns the exponential kernel's beta in which the relation is smallest; NoRkhsRadius if there is none."""
        raise NoRkhsRadius(self.no_radius)

    def adds_up_with(self, other: "Relation") -> bool:
        """Returns whether releases for the two protect the same, so that a sum of their costs means something.

        One person is one person, whatever their number was when something was released.
        """
        return self == other or (self.unit.startswith("any one ") and self.unit == other.unit)

    def guessed(self) -> str:
        """Returns what somebody would have to guess who wants to break the promise."""
        return "which of two equally likely versions of one person was there"


class RewardBall(Relation, frozen=True):
    """r ~ r' when their difference is small. With `people`, the reward is the mean of so many people's rewards."""

    @property
    def unit(self) -> str:
        return str(self) if self.people is None else "any one person"

    def guessed(self) -> str:
        if self.people is not None:
            return super().guessed()
        return "which of two equally likely versions of the reward, as far apart as is promised, was there"

    def bounds(self) -> str:
        """Returns by how much neighbours differ, as a phrase."""
        raise NotImplementedError

    def __str__(self) -> str:
        if self.people is None:
            return self.bounds()
        if self.people == 1:
            return f"what one person gave, which may have been anything else; in numbers, {self.bounds()}"
        return f"what {self.people} people gave, of whom one may have given anything else; in numbers, {self.bounds()}"


class SupBall(RewardBall, frozen=True, tag="sup-ball"):
    """r ~ r' when |r - r'| <= radius everywhere: the paper's relation, with radius 1."""

    radius: Positive
    people: Count | None = None  # pyright: ignore[reportIncompatibleMethodOverride]
    no_radius: ClassVar[str] = (
        "A SupBall has no radius in any smooth kernel, because the difference of two neighbours may be arbitrarily "
        "rough; declare a slope (LipschitzBall), or add independent noise to every observed reward."
    )

    @property
    def sup_radius(self) -> float:
        return self.radius

    def bounds(self) -> str:
        return f"rewards that differ by at most {self.radius:g} anywhere"


class LipschitzBall(RewardBall, frozen=True, tag="lipschitz-ball"):
    """r ~ r' when r - r' is at most `radius` in size and at most `lipschitz` in slope, on [0, 1].

    With one reward function per action, `actions` is the number of them that may change at once: their squared norms
    add.

    >>> ball = people(50, low=0, high=0.5, slope=1)
    >>> (ball.radius, ball.lipschitz, ball.best_beta())
    (0.01, 0.04, 4.0)
    """

    radius: Positive
    lipschitz: Positive
    actions: Count = 1
    people: Count | None = None  # pyright: ignore[reportIncompatibleMethodOverride]

    @property
    def sup_radius(self) -> float:
        return self.radius

    def rkhs_radius(self, kernel: KernelNorm | HasNorm) -> float:
        kernel = _kernel("kernel", kernel)
        if kernel.dimension != 1:
            raise NoRkhsRadius(
                f"A LipschitzBall speaks of one dimension, but the kernel has {kernel.dimension}: state an RkhsBall, "
                "whose radius for an Additive kernel is Additive.radius_of([...]), one ball for each coordinate."
            )
        return math.sqrt(self.actions) * kernel.of_lipschitz(self.radius, self.lipschitz)

    def best_beta(self) -> float:
        return positive("lipschitz/radius", self.lipschitz / self.radius)

    def bounds(self) -> str:
        return (
            f"rewards that differ by at most {self.radius:g}, with a difference of slope at most {self.lipschitz:g} "
            f"per width of the box{_each(self.actions)}"
        )


class RkhsBall(RewardBall, frozen=True, tag="rkhs-ball"):
    """r ~ r' when the norm of r - r' in `kernel` is at most `radius`: additive and product kernels, and the paper's.

    With one reward function per action, `radius` is that of each, and `actions` is the number of them that may change
    at once: their squared norms add.
    """

    radius: Positive
    kernel: Annotated[AnyKernelNorm, checked_by(_kernel)]
    people: Count | None = None  # pyright: ignore[reportIncompatibleMethodOverride]
    actions: Count = 1
    no_radius: ClassVar[str] = "An RkhsBall names its kernel: there is no beta left to choose; use `relation.kernel`."

    @staticmethod
    def from_people(n: int, kernel: object, norm: float, actions: int = 1) -> "RkhsBall":
        """Returns the relation for the mean of n people's functions; replacing one of them moves the mean by 2 norm/n.

        Args:
            n: The number of people.
            kernel: The kernel in which norms are measured.
            norm: The largest norm of one person's function.
            actions: The number of functions, one for each action.

        """
        n = count("people", n)
        radius = positive("2 norm/people", 2 * positive("norm", norm) / n)
        return RkhsBall(radius, _kernel("kernel", kernel), people=n, actions=actions)  # pyright: ignore[reportArgumentType]

    @property
    def sup_radius(self) -> float:
        """|f(x)| <= |f| sqrt(K(x, x))."""
        if self.kernel.largest_value is None:
            return super().sup_radius
        return self.radius * self.kernel.largest_value

    def rkhs_radius(self, kernel: KernelNorm | HasNorm) -> float:
        kernel = _kernel("kernel", kernel)
        if kernel == self.kernel:
            return math.sqrt(self.actions) * self.radius
        raise NoRkhsRadius(
            f"This RkhsBall was declared in {self.kernel.in_words()}, and says nothing about the norm in "
            f"{kernel.in_words()}: use the same kernel for the noise."
        )

    def bounds(self) -> str:
        norm = f"norm at most {self.radius:g}{self.kernel.aside()}"
        return f"rewards whose difference has {norm} in {self.kernel.in_words()}{_each(self.actions)}"


def people(n: int, low: float, high: float, slope: float, actions: int = 1) -> LipschitzBall:
    """Returns the relation "replace one of n people", when the reward is the mean of theirs.

    Each person's reward lies in [low, high] and changes by at most `slope` over the width of the box (it must be
    *enforced*, not hoped for: `quietq.feedback` does). Replacing one moves the mean by at most (high - low)/n, with
    slope at most 2 slope/n.

    Args:
        n: The number of people.
        low: The least value of one person's reward.
        high: The largest value of one person's reward.
        slope: The largest change of one person's reward over the width of the box.
        actions: The number of rewards, one for each action.

    >>> people(50, low=0, high=0.5, slope=1).radius
    0.01

    """
    n, (low, high), slope = count("people", n), ends(low, high), positive("slope", slope)
    positive("high - low", high - low)
    positive("2 slope/(high - low)", 2 * slope / (high - low))  # beta, in the caller's own words
    radius = positive("(high - low)/people", (high - low) / n)
    return LipschitzBall(radius, positive("2 slope/people", 2 * slope / n), actions=actions, people=n)


def _each(actions: int) -> str:
    return "" if actions == 1 else f" for each of {actions:d} actions"


class Trajectories(Relation, frozen=True, tag="replace-trajectory"):
    """X ~ X' when one of `count` trajectories, states and rewards alike, is replaced by any other."""

    count: Count
    """Number of trajectories, one for each person; it is public."""
    largest_reward: Positive
    """Rewards are clipped to this size."""
    horizon: Count | None = None
    """Trajectories are cut after this many steps; None if they may have any length."""
    no_radius: ClassVar[str] = (
        "Trajectories are no function, so they have no radius in any kernel: release a value function of theirs with "
        "`quietq.paper.baselines.balle`, or declare a ball of rewards."
    )

    @property
    def people(self) -> int:
        return self.count

    @property
    def unit(self) -> str:
        return "any one trajectory"

    def guessed(self) -> str:
        return "which of two equally likely versions of one trajectory was there"

    def __str__(self) -> str:
        length = "" if self.horizon is None else f", at most {plural(self.horizon, 'step')} each"
        return (
            f"sets of {plural(self.count, 'trajectory', 'trajectories')} that differ in one, of which any state and "
            f"reward may differ (rewards within {self.largest_reward:g} of 0{length})"
        )


class OnePerson(Relation, frozen=True, tag="one-person"):
    """Everything that one of so many people gave, all of their rows, replaced by anything, or by nothing.

    >>> print(OnePerson(1000))
    what 1000 people gave, of whom one may have given anything else
    """

    people: Count  # pyright: ignore[reportIncompatibleMethodOverride]
    """Their number, which is public and declared."""
    no_radius: ClassVar[str] = (
        "What people gave is no function, so it has no radius in any kernel: declare a ball of rewards for one."
    )

    def __str__(self) -> str:
        if self.people == 1:
            return "what one person gave, which may have been anything else"
        return f"what {self.people} people gave, of whom one may have given anything else"


class Arrivals(Relation, frozen=True, tag="arrivals"):
    """People who arrive, are shown something and answer: all that one of them brings and answers, replaced.

    Promised is that nothing that *others* are shown gives that person away. Without contexts what the person is shown
    does not depend on anything of theirs, so the promise is about everything that anybody is shown. With contexts it
    does, and the promise is joint differential privacy (Kearns, Pai, Roth & Ullman 2014).

    >>> print(Arrivals(arrivals=1000))
    answers of people who arrive, 1000 times in all, of whom one may answer anything else
    """

    arrivals: Count | None = None
    """How often somebody arrives at the most, in all; it is public. None if that is not bounded."""
    visits: Count = 1
    """How often one person arrives at the most."""
    contexts: Flag = False
    """Whether what people are shown depends on what they bring along."""
    no_radius: ClassVar[str] = "Answers of people who arrive are no function, so they have no radius in any kernel."

    def guessed(self) -> str:
        source = "from what all others are shown " if self.contexts else ""
        return f"{source}{super().guessed()}"

    def __str__(self) -> str:
        brought, bring = ("contexts and answers", "bring and answer") if self.contexts else ("answers", "answer")
        total = "" if self.arrivals is None else f", {plural(self.arrivals, 'time')} in all"
        visits = "" if self.visits == 1 else f" on {self.visits} visits"
        joint = " and is shown anything else: joint differential privacy" if self.contexts else ""
        return f"{brought} of people who arrive{total}, of whom one may {bring} anything else{visits}{joint}"


AnyRelation = SupBall | LipschitzBall | RkhsBall | Trajectories | OnePerson | Arrivals
