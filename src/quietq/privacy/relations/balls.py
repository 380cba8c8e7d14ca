"""Balls: r and r' are neighbours when their difference is small, in size, in slope or in a kernel's norm.

What protects is noise scaled to the ball's radius in the noise kernel's own norm (`rkhs_radius`). A kernel is anything
that can bound a Lipschitz ball in its norm; the kernels themselves live in `quietq.noise`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from quietq.privacy.checks import count, instance, optional, positive, real
from quietq.privacy.errors import InvalidInput, NoRkhsRadius
from quietq.privacy.kinds import Record
from quietq.privacy.norms import NORMS, KernelNorm, kernel_in_words
from quietq.privacy.relations.relation import NoiseKernel, Presence, Relation


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


@dataclass(frozen=True)
class LipschitzPresence(Presence, LipschitzBall):
    """A LipschitzBall of what one person does who is there or not.

    >>> here = people(50, low=0, high=0.5, slope=1, presence=True)
    >>> (here.radius, here.lipschitz)
    (0.005, 0.02)
    """

    kind = "lipschitz-presence"
    fields: ClassVar = {**LipschitzBall.fields, "people": count}


def _kernel(name: str, value: object) -> object:
    if isinstance(value, NoiseKernel) or (isinstance(value, Mapping) and isinstance(value.get("kind"), str)):
        return value
    raise InvalidInput(f"{name} must be what kernel.describe() returns.")


@dataclass(frozen=True)
class RkhsBall(Relation):
    """r ~ r' when the norm of r - r' in `kernel` is at most `radius`: features, additive and product kernels.

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

    @classmethod
    def of_people(
        cls, n: int, kernel: NoiseKernel, norm: float, actions: int = 1, *, presence: bool = False
    ) -> "RkhsBall":
        """The mean of n people's functions, each of kernel norm at most `norm`: replacing one moves it by 2 norm/n.

        Of `presence`, the weaker promise, it is norm/n.
        """
        n, kind, reach = count("people", n), RkhsPresence if presence else RkhsBall, 1 if presence else 2
        return kind(positive("2 norm/people", reach * positive("norm", norm) / n), kernel, people=n, actions=actions)

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


@dataclass(frozen=True)
class RkhsPresence(Presence, RkhsBall):
    """An RkhsBall of what one person does who is there or not: functions around 0, the neutral middle."""

    kind = "rkhs-presence"
    fields: ClassVar = {**RkhsBall.fields, "people": count}


def people(n: int, low: float, high: float, slope: float, actions: int = 1, *, presence: bool = False) -> LipschitzBall:
    """The relation "replace one of n people", when the reward is the mean of theirs.

    Each person's reward lies in [low, high] and changes by at most `slope` over the width of the box (it must be
    *enforced*, not hoped for: `quietq.feedback` does). Replacing one moves the mean by at most (high - low)/n, with
    slope at most 2 slope/n. With `presence`, a weaker promise, a person is there or is the middle of the range instead:
    half of both.

    >>> people(50, low=0, high=0.5, slope=1).radius
    0.01
    """
    n, low, high, slope = count("people", n), real("low", low), real("high", high), positive("slope", slope)
    if high <= low:
        raise InvalidInput(f"high must be above low, but high is {high!r} and low is {low!r}.")
    positive("high - low", high - low)
    positive("2 slope/(high - low)", 2 * slope / (high - low))  # beta, in the caller's own words
    kind, reach = (LipschitzPresence, 1) if presence else (LipschitzBall, 2)
    radius = positive("(high - low)/people", (high - low) / n) * reach / 2
    return kind(radius, positive("2 slope/people", reach * slope / n), actions=actions, people=n)


def _each(actions: int) -> str:
    return "" if actions == 1 else f" for each of {actions:d} actions"
