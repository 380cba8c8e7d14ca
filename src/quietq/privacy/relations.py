"""Neighbouring relations: which reward functions, or which data sets, are neighbours; and kernels.

All relations are of the kind "replace": one person's data against any other data in its place. Balls say that r and r'
are neighbours when their difference is small, in size, in slope or in a kernel's norm. What protects is noise scaled to
the ball's radius in the noise kernel's own norm (`rkhs_radius`). Other relations replace all that one person gave:
their rows, their trajectory, or their answers as they arrive.

Theorem. exp(-beta |x - y|) on [0, 1] reproduces in <f, g> = (f(0) g(0) + f(1) g(1))/2 + (1/2 beta) int f' g' +
(beta/2) int f g. Hence |f| <= rho and |f'| <= l give |f|^2 <= rho^2 + beta rho^2/2 + l^2/(2 beta), approached by a
zigzag, and least at beta = l/rho, where it is rho^2 + rho l. Its paths are Ornstein-Uhlenbeck processes.

Theorem. For f(x) = f_1(x_1) + ... + f_d(x_d), releasing every f_i with independent noise of the i-th kernel is a
Gaussian process mechanism in the direct sum, whose squared norm is the sum of the squared norms of the parts; the
released sum has the kernel sum_i K_i. That is the norm of the parts as they are given: a sum has many splits into parts
(a constant may go to any of them), and two of these can be distinguished.

Proof: docs/theory.md#people, docs/theory.md#gaussian-process, docs/theory.md#exponential-kernel and
docs/theory.md#sums-of-kernels.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Float

from quietq.privacy.checks import Count, Flag, Line, Positive, Record, checked_by, count, ends, plural, positive
from quietq.privacy.errors import InvalidInput, NoRkhsRadius

Family = Literal["gaussian", "pure", "smooth"]
"""Kinds of noise: Gaussian of one standard deviation; of density exp(-|z|/scale); and Gaussian whose size follows the
data by a smooth bound."""
Itself = TypeVar("Itself", bound="Kernel")
MOST_COORDINATES = 256
"""The most coordinates of a kernel: no file can ask for thousands."""
RIDGE = 1e-8
"""The ridge of the projection on a band-limited kernel's terms."""


class Norm(Record, frozen=True):
    """What sensitivity and noise are measured in; its words are `str(norm)`."""

    families: ClassVar[tuple[Family, ...]] = ("gaussian",)
    """Which noise may be drawn in it."""

    @property
    def dimension(self) -> int | None:
        """Returns how many coordinates the states have on which it is defined; None if it does not look at states."""
        return None

    def largest_difference(self, relation: "Relation") -> float | None:
        """Returns the most that neighbours differ by, by the norm's theorem; None where nothing bounds it."""
        raise NotImplementedError

    def sensitivity(self, relation: "Relation") -> float:
        """Returns the most that neighbours differ by in it; refused where nothing bounds it."""
        try:
            found = self.largest_difference(relation)
        except NoRkhsRadius:
            found = None
        if found is None or not math.isfinite(found):
            raise InvalidInput(f"Nothing bounds {self} of neighbours, which are {relation}.")
        return positive("What neighbours differ by in this norm", found)


class Kernel(Norm, frozen=True):
    """The norm of a kernel's functions on [0, 1]^d: all that a relation or a certificate has to know of a kernel.

    An exponential kernel is its own record. Features are code, so their kernels (`quietq.paper.kernels`) have one.
    """

    @property
    def norm(self: Itself) -> Itself:
        """Returns the record of the kernel, which is this one."""
        return self

    @property
    def dimension(self) -> int:
        return 1

    def largest_difference(self, relation: "Relation") -> float:
        return self.stretch * relation.rkhs_radius(self)

    @property
    def largest_value(self) -> float | None:
        """Returns the most that a function of norm 1 can be anywhere, sup sqrt K(x, x); None if nobody computed it."""
        return None

    @property
    def stretch(self) -> float:
        """Returns how much longer a function can become by being represented by finitely many weights."""
        return 1.0

    def of_lipschitz(self, radius: float, lipschitz: float) -> float:
        """Returns the largest norm of a function with |f| <= radius and slope <= lipschitz, where there is one."""
        raise NoRkhsRadius(
            f"A ball of Lipschitz functions is not bounded in the norm of {self.in_words()}; use Exponential for such "
            "a relation, or state an RkhsBall in this kernel."
        )

    def in_words(self) -> str:
        """Returns the kernel in words."""
        raise NotImplementedError

    def __str__(self) -> str:
        return f"the norm of {self.in_words()}"


def _betas(name: str, value: object) -> tuple[float, ...]:
    """Returns one number for each coordinate; where there is one coordinate, the number itself will do."""
    given = value if isinstance(value, list | tuple) else (value,)
    count(f"The number of {name}", len(given), most=MOST_COORDINATES)
    return tuple(positive(name, beta) for beta in given)


class Exponential(Kernel, frozen=True, tag="exponential"):
    """The exponential kernel exp(-beta |x - y|), or several, one for each coordinate: their product, or their sum.

    On one coordinate Lipschitz functions are bounded in its norm. The space of a product, of up to three coordinates,
    holds functions with a bounded *mixed* derivative: Lipschitz is not enough, and a plain ReLU network is not in it.
    Where kernels are summed, functions are given by one part for each coordinate, and the parts' squared norms add.

    >>> print(Exponential(4.0), Exponential((1.0, 2.0)), Exponential((1.0, 2.0), summed=True), sep="; ")
    the norm of the exponential kernel with beta 4; the norm of the product kernel with beta 1 and 2; the norm of the
    additive kernel with beta 1 and 2 (the norms of the parts as given, squared and summed)
    """

    betas: Annotated[tuple[float, ...], checked_by(_betas)]
    summed: Flag = False

    if TYPE_CHECKING:

        def __init__(self, betas: float | Sequence[float], summed: bool = False) -> None: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dimension > 3 and not self.summed:
            raise InvalidInput(
                f"betas of a product must be 1 to 3, not {self.dimension}, because its table has 2^(levels d) values: "
                "give summed=True beyond that."
            )

    @property
    def dimension(self) -> int:
        return len(self.betas)

    @property
    def beta(self) -> float:
        """Returns the beta of a kernel of one coordinate; refused where there are several."""
        if self.dimension > 1:
            raise InvalidInput(f"The exponential kernel here must be of one coordinate, not {self.dimension}.")
        return self.betas[0]

    @property
    def tables(self) -> tuple[tuple[float, ...], ...]:
        """The tables that an exact path on a grid consists of, each a product of exponential kernels: their betas."""
        return tuple((beta,) for beta in self.betas) if self.summed else (self.betas,)

    def covariance(self, x: np.ndarray, y: np.ndarray) -> Float[np.ndarray, "rows columns"]:
        """Returns K(x_i, y_j).

        Args:
            x: Points in unit coordinates, one in a row.
            y: Likewise.

        """
        x, y = (np.asarray(points, float).reshape(-1, self.dimension) for points in (x, y))
        sides = [np.exp(-beta * np.abs(np.subtract.outer(x[:, i], y[:, i]))) for i, beta in enumerate(self.betas)]
        return np.sum(sides, axis=0) if self.summed else np.prod(sides, axis=0)

    def norm_on(self, points: np.ndarray, values: np.ndarray) -> float:
        """Returns the norm of the least-norm interpolant of a function that is known at `points` only.

        This is what separates two releases that are seen at these points: the best test between f and f' has
        d' = norm_on(points, f - f')/sigma. Of one coordinate, by the Markov property, it is O(points).

        Args:
            points: Where it is known, in unit coordinates; increasing where there is one coordinate.
            values: What it is there.

        """
        if self.dimension == 1:
            return float(np.linalg.norm(whiten(self.beta, points, values)))
        return norm_by(self.covariance(points, points), values)

    def radius_of(self, balls: "Sequence[LipschitzBall]") -> float:
        """Returns the radius, in a sum of kernels, of one Lipschitz ball per coordinate, all of which may move at once.

        Args:
            balls: A `LipschitzBall` for each coordinate.

        """
        if len(balls) != self.dimension:
            raise InvalidInput(f"One ball per coordinate is needed, {self.dimension} in all, not {len(balls)}.")
        radii = [ball.rkhs_radius(Exponential(beta)) for ball, beta in zip(balls, self.betas, strict=True)]
        return math.sqrt(math.fsum(radius**2 for radius in radii))

    @property
    def largest_value(self) -> float:
        return math.sqrt(len(self.betas)) if self.summed else 1.0

    def of_lipschitz(self, radius: float, lipschitz: float) -> float:
        """|f|^2 = (f(0)^2 + f(1)^2)/2 + |f'|^2/(2 beta) + beta |f|^2/2 over [0, 1], approached by a zigzag."""
        if self.dimension > 1:  # the ball is of one coordinate
            return super().of_lipschitz(radius, lipschitz)
        return math.sqrt(radius**2 * (1 + self.beta / 2) + lipschitz**2 / (2 * self.beta))

    def in_words(self) -> str:
        *others, last = (f"{beta:g}" for beta in self.betas)
        listed = f"{', '.join(others)} and {last}" if others else last
        if self.summed:
            return f"the additive kernel with beta {listed} (the norms of the parts as given, squared and summed)"
        return f"the {'product' if others else 'exponential'} kernel with beta {listed}"


class FeatureNorm(Kernel, frozen=True, tag="features"):
    """The norm of the weights of finitely many features, which are code and go by their name."""

    phi: Line
    rank: Count
    dimension: Count  # pyright: ignore[reportIncompatibleMethodOverride]

    def in_words(self) -> str:
        return f"the kernel of {plural(self.rank, 'feature')} ({self.phi}; the norm of the weights as given)"


class BandLimitedNorm(Kernel, frozen=True, tag="band-limited"):
    """The norm of the band-limited kernel of the paper, truncated to finitely many terms."""

    half_width: Positive
    tolerance: Positive
    rank: Count

    @property
    def stretch(self) -> float:
        """Returns 1 + what aliases in from beyond the terms, where a function is projected by 2 rank samples.

        With E the kept terms at the samples, |E'(EE' + ridge)^-1 E| <= 1 and |E'(EE' + ridge)^-1| <= 1/(2 sqrt ridge),
        while the terms left out have size at most sqrt(samples tolerance) there.
        """
        return 1 + math.sqrt(2 * self.rank * self.tolerance) / (2 * math.sqrt(RIDGE))

    def in_words(self) -> str:
        return f"the band-limited kernel with half-width {self.half_width:g} ({plural(self.rank, 'term')})"


AnyKernel = Exponential | FeatureNorm | BandLimitedNorm


def norm_by(covariance: np.ndarray, values: np.ndarray) -> float:
    """Returns sqrt(v' K^-1 v), by Cholesky's factors: O(points^3)."""
    from scipy.linalg import cho_factor, cho_solve  # slow to import

    return math.sqrt(float(values @ cho_solve(cho_factor(covariance), values)))


def whiten(beta: float, points: np.ndarray, values: np.ndarray) -> Float[np.ndarray, "..."]:
    """Values at increasing points (last axis) as independent N(0, 1) increments, if they are a path of this kernel."""
    decay = -beta * np.diff(points)
    steps = (values[..., 1:] - np.exp(decay) * values[..., :-1]) / np.sqrt(-np.expm1(2 * decay))
    return np.concatenate([values[..., :1], steps], axis=-1)


@runtime_checkable
class HasNorm(Protocol):
    """A kernel, of which a relation needs to know the norm only."""

    @property
    def dimension(self) -> int: ...

    @property
    def norm(self) -> Kernel: ...


def _kernel(name: str, value: object) -> Kernel:
    """Returns a kernel's record; the kernel itself, which has one, will do."""
    found = getattr(value, "norm", None)
    if isinstance(found, Kernel):
        return found
    raise InvalidInput(f"{name} must be a kernel, e.g. Exponential(4.0), not {type(value).__name__}.")


class Relation(Record, frozen=True):
    """Which inputs are neighbouring."""

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

    def rkhs_radius(self, kernel: HasNorm) -> float:
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
    """r ~ r' when their difference is small. With `people`, the reward is the mean of their rewards."""

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

    def rkhs_radius(self, kernel: HasNorm) -> float:
        kernel = _kernel("kernel", kernel)
        if kernel.dimension != 1:
            raise NoRkhsRadius(
                f"A LipschitzBall speaks of one dimension, but the kernel has {kernel.dimension}: state an RkhsBall, "
                "whose radius for a sum of kernels is kernel.radius_of([...]), one ball for each coordinate."
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
    kernel: Annotated[AnyKernel, checked_by(_kernel)]
    people: Count | None = None  # pyright: ignore[reportIncompatibleMethodOverride]
    actions: Count = 1
    no_radius: ClassVar[str] = "An RkhsBall names its kernel: there is no beta left to choose; use `relation.kernel`."

    @property
    def sup_radius(self) -> float:
        """|f(x)| <= |f| sqrt(K(x, x))."""
        if self.kernel.largest_value is None:
            return super().sup_radius
        return self.radius * self.kernel.largest_value

    def rkhs_radius(self, kernel: HasNorm) -> float:
        kernel = _kernel("kernel", kernel)
        if kernel == self.kernel:
            return math.sqrt(self.actions) * self.radius
        raise NoRkhsRadius(
            f"This RkhsBall was declared in {self.kernel.in_words()}, and says nothing about the norm in "
            f"{kernel.in_words()}: use the same kernel for the noise."
        )

    def bounds(self) -> str:
        difference = f"rewards whose difference has norm at most {self.radius:g} in {self.kernel.in_words()}"
        return f"{difference}{_each(self.actions)}"


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
    """Everything that one of the declared people gave, all of their rows, is replaced by anything, or by nothing.

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
