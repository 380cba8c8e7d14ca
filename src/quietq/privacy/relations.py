"""Neighbouring relations: which two reward functions, or which two sets of trajectories, must look alike.

All are of the kind "replace". For the balls, r and r' are neighbours when their difference lies in a ball, so what
protects is noise scaled to the ball's radius in the noise kernel's own norm (`rkhs_radius`). A kernel is anything that
can bound a Lipschitz ball in its norm; the kernels themselves live in `quietq.noise`.
"""

import math
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from quietq.privacy.checks import count, instance, positive, real
from quietq.privacy.errors import InvalidInput, NoRkhsRadius
from quietq.privacy.words import kernel_in_words, relation_in_words


@runtime_checkable
class NoiseKernel(Protocol):
    """What a relation needs to know of a kernel."""

    @property
    def dimension(self) -> int:
        """Number of coordinates of a state."""
        ...

    def lipschitz_radius(self, radius: float, lipschitz: float) -> float:
        """Sup of the kernel norm over functions on [0, 1] with |f| <= radius and slope at most lipschitz."""
        ...

    def describe(self) -> dict[str, object]:
        """The kernel in JSON."""
        ...


_ROUGH = (
    "A SupBall has no radius in any smooth kernel, because the difference of two neighbours may be arbitrarily "
    "rough; declare a slope (LipschitzBall), or add independent noise to every observed reward."
)
_NO_FUNCTION = (
    "Trajectories are no function, so they have no radius in any kernel: release a value function of theirs with "
    "`quietq.mechanisms.evaluation`, or declare a ball of rewards."
)


@dataclass(frozen=True)
class SupBall:
    """r ~ r' when |r - r'| <= radius everywhere: the paper's relation, with radius 1.

    >>> SupBall(radius=1.0).best_beta()
    Traceback (most recent call last):
    ...
    quietq.privacy.errors.NoRkhsRadius: A SupBall has no radius in any smooth kernel ...
    """

    radius: float
    people: int | None = None

    def __post_init__(self) -> None:
        _store(self, radius=positive("radius", self.radius), people=_people(self.people))

    def rkhs_radius(self, kernel: NoiseKernel) -> float:
        """None exists: raises NoRkhsRadius and says what works instead."""
        raise NoRkhsRadius(_ROUGH)

    def best_beta(self) -> float:
        """None exists: raises NoRkhsRadius."""
        raise NoRkhsRadius(_ROUGH)

    def describe(self) -> dict[str, object]:
        """The relation in JSON."""
        return {"kind": "sup-ball", "radius": self.radius, "people": self.people}

    def __str__(self) -> str:
        return relation_in_words(self.describe())


@dataclass(frozen=True)
class LipschitzBall:
    """r ~ r' when r - r' is at most `radius` in size and at most `lipschitz` in slope, on [0, 1].

    With one reward function per action, `actions` is the number of them that may change at once: their squared norms
    add.

    >>> ball = people(50, low=0, high=0.5, slope=1)
    >>> (ball.radius, ball.lipschitz, ball.best_beta())
    (0.01, 0.04, 4.0)
    """

    radius: float
    lipschitz: float
    actions: int = 1
    people: int | None = None

    def __post_init__(self) -> None:
        _store(
            self,
            radius=positive("radius", self.radius),
            lipschitz=positive("lipschitz", self.lipschitz),
            actions=count("actions", self.actions),
            people=_people(self.people),
        )

    def rkhs_radius(self, kernel: NoiseKernel) -> float:
        """The largest kernel norm of a difference of neighbours; raises NoRkhsRadius where there is none."""
        if kernel.dimension != 1:
            raise NoRkhsRadius(
                f"A LipschitzBall speaks of one dimension, but the kernel has {kernel.dimension}: state an RkhsBall, "
                "whose radius for an Additive kernel is Additive.radius_of([...]), one ball a coordinate."
            )
        return math.sqrt(self.actions) * kernel.lipschitz_radius(self.radius, self.lipschitz)

    def best_beta(self) -> float:
        """The beta of the exponential kernel in which this ball is smallest, lipschitz/radius."""
        return positive("lipschitz/radius", self.lipschitz / self.radius)

    def describe(self) -> dict[str, object]:
        """The relation in JSON."""
        return {
            "kind": "lipschitz-ball",
            "radius": self.radius,
            "lipschitz": self.lipschitz,
            "actions": self.actions,
            "people": self.people,
        }

    def __str__(self) -> str:
        return relation_in_words(self.describe())


@dataclass(frozen=True)
class RkhsBall:
    """r ~ r' when the norm of r - r' in `kernel` is at most `radius`: features, additive and product kernels.

    With one reward function per action, `radius` is that of each, and `actions` is the number of them that may change
    at once: their squared norms add.
    """

    radius: float
    kernel: NoiseKernel = field(repr=False)
    people: int | None = None
    actions: int = 1

    def __post_init__(self) -> None:
        instance("kernel", self.kernel, NoiseKernel, "a kernel, e.g. Exponential(beta=4.0)")
        _store(
            self,
            radius=positive("radius", self.radius),
            people=_people(self.people),
            actions=count("actions", self.actions),
        )

    @classmethod
    def of_people(cls, n: int, kernel: NoiseKernel, norm: float, actions: int = 1) -> "RkhsBall":
        """The mean of n people's functions, each of kernel norm at most `norm`: replacing one moves it by 2 norm/n."""
        n = count("people", n)
        return cls(positive("2 norm/people", 2 * positive("norm", norm) / n), kernel, people=n, actions=actions)

    def rkhs_radius(self, kernel: NoiseKernel) -> float:
        """The radius of all actions together, if `kernel` is the one that it was declared in."""
        if kernel == self.kernel:
            return math.sqrt(self.actions) * self.radius
        raise NoRkhsRadius(
            f"This RkhsBall was declared in {kernel_in_words(self.kernel.describe())}, and says nothing "
            f"about the norm in {kernel_in_words(kernel.describe())}: use the same kernel for the noise."
        )

    def best_beta(self) -> float:
        """The kernel is part of the relation, so there is nothing to choose: raises NoRkhsRadius."""
        raise NoRkhsRadius("An RkhsBall names its kernel: there is no beta left to choose; use `relation.kernel`.")

    def describe(self) -> dict[str, object]:
        """The relation in JSON."""
        return {
            "kind": "rkhs-ball",
            "radius": self.radius,
            "kernel": self.kernel.describe(),
            "actions": self.actions,
            "people": self.people,
        }

    def __str__(self) -> str:
        return relation_in_words(self.describe())


@dataclass(frozen=True)
class Trajectories:
    """X ~ X' when one of `count` trajectories, states and rewards alike, is replaced by any other.

    >>> print(Trajectories(count=20_000, largest_reward=1.0, horizon=50))
    sets of 20000 trajectories that differ in one, of which any state and reward may differ (rewards within ...)
    """

    count: int
    """Number of trajectories, one a person; it is public."""
    largest_reward: float
    """Rewards are clipped to this size."""
    horizon: int | None = None
    """Trajectories are cut after this many steps; None if they may have any length."""

    def __post_init__(self) -> None:
        _store(
            self,
            count=count("count", self.count),
            largest_reward=positive("largest_reward", self.largest_reward),
            horizon=None if self.horizon is None else count("horizon", self.horizon),
        )

    @property
    def people(self) -> int:
        """One trajectory a person, so the count."""
        return self.count

    def rkhs_radius(self, kernel: NoiseKernel) -> float:
        """None exists: raises NoRkhsRadius and says what works instead."""
        raise NoRkhsRadius(_NO_FUNCTION)

    def best_beta(self) -> float:
        """None exists: raises NoRkhsRadius."""
        raise NoRkhsRadius(_NO_FUNCTION)

    def describe(self) -> dict[str, object]:
        """The relation in JSON."""
        return {
            "kind": "replace-trajectory",
            "count": self.count,
            "largest_reward": self.largest_reward,
            "horizon": self.horizon,
        }

    def __str__(self) -> str:
        return relation_in_words(self.describe())


Relation = SupBall | LipschitzBall | RkhsBall | Trajectories


def people(n: int, low: float, high: float, slope: float, actions: int = 1) -> LipschitzBall:
    """The relation "replace one of n people", when the reward is the mean of theirs.

    Each person's reward lies in [low, high] and changes by at most `slope` over the width of the box (it must be
    *enforced*, not hoped for: `quietq.rewards` does). Replacing one moves the mean by at most (high - low)/n, with
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


def _store(ball: object, **fields: object) -> None:
    for name, value in fields.items():
        object.__setattr__(ball, name, value)


def _people(value: int | None) -> int | None:
    return None if value is None else count("people", value)
