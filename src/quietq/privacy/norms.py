"""What sensitivity and noise are measured in, and how far apart neighbours of a relation can be in it.

Each norm belongs to a theorem of docs/theory.md, which is named beside it. Its `sensitivity` is that theorem, from
relation and norm alone: it knows nothing of how much noise was drawn, so that a certificate can hold the two against
each other. The union `AnyNorm` is closed: nothing is certified in a norm that is not in it. The norms of the paper's
methods are here too, so that their certificates are read where JAX is not installed.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float
from msgspec import Meta

from quietq.privacy.checks import Count, Natural, Positive, Probability, checked_by, plural, real
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import AnyKernel, Arrivals, LipschitzBall, Norm, OnePerson, Relation, Trajectories
from quietq.privacy.smooth_sensitivity import smooth_epsilon

UNIT_ROUNDING = 2.0**-24  # of float32
FEWEST = 1024
"""Rewards in float32 are clipped to twice the radius times the people, or times this if they are fewer."""
MOST_PIECES = 8
"""Between knots: the vertices of what neighbours can do there grow exponentially with it."""


# Knots: increments of a function between equally spaced points. Differences of at most rho in size, of slope at most l,
# are a convex body at d + 1 knots. Gaussian noise of a shape S measures increments u by sqrt(u' S^-1 u), which is
# largest at a vertex of the body; pure noise measures them by the gauge of a body of increments. `mechanisms.knots`
# draws it.


@functools.lru_cache(maxsize=64)
def vertices(step: float, pieces: int) -> Float[np.ndarray, "vertices knots"]:
    """Points that include every vertex of {|v_j| <= 1, |v_{j+1} - v_j| <= step}, up to sign.

    At a vertex the knots fall into runs whose steps are all full, up or down, and each of which touches 1 or -1. So a
    knot's value is sign (1 - k step) with a whole k of at most `pieces`, and k changes by one within a run.
    """
    if not 1 <= pieces <= MOST_PIECES:
        raise InvalidInput(f"Shaped Gaussian noise has 1 to {MOST_PIECES} pieces between knots, not {pieces}.")
    spots = {
        (sign, k): sign * (1 - k * step) for sign in (1, -1) for k in range(pieces + 1) if 1 - k * step >= -1 - 1e-9
    }
    near = {
        spot: [other for other in spots if abs(spots[other] - value) <= step * (1 + 1e-9)]
        for spot, value in spots.items()
    }
    found: list[list[float]] = []

    def extend(path: list[tuple[int, int]], settled: bool) -> None:
        if len(found) > 200_000:
            raise InvalidInput(f"{pieces} pieces have too many vertices for this range and slope: use fewer knots.")
        left = pieces + 1 - len(path)
        if not left:
            if settled:
                found.append([spots[spot] for spot in path])
            return
        sign, k = path[-1]
        on = [spot for spot in ((sign, k - 1), (sign, k + 1)) if spot in spots and (settled or spot[1] < left)]
        for spot in on:  # the run goes on
            extend([*path, spot], settled or spot[1] == 0)
        for spot in near[path[-1]] if settled else ():  # another run may begin
            if spot[1] < left:
                extend([*path, spot], spot[1] == 0)

    for spot in [spot for spot, value in spots.items() if value >= -1e-9]:
        extend([spot], spot[1] == 0)
    return np.unique(np.array(found), axis=0)


def _covariance(name: str, value: object) -> tuple[tuple[float, ...], ...]:
    """Returns the covariance of noise on increments, in units of its mean variance."""
    rows: Any = value if isinstance(value, list | tuple) else ()
    square = all(isinstance(row, list | tuple) and len(row) == len(rows) for row in rows)
    if not 1 <= len(rows) <= MOST_PIECES or not square:
        raise InvalidInput(f"{name} must be a square of 1 to {MOST_PIECES} rows.")
    shape = np.array([[real(name, number) for number in row] for row in rows])
    if not (np.array_equal(shape, shape.T) and math.isclose(float(np.trace(shape)), len(rows), rel_tol=1e-9)):
        raise InvalidInput(f"{name} must be symmetric, with a mean of 1 on its diagonal.")
    return tuple(tuple(float(number) for number in row) for row in shape)


class ShapedIncrements(Norm, frozen=True, tag="knots"):
    """The shape of Gaussian noise on increments between knots: the longest vertex of a LipschitzBall.

    Its theorem is docs/theory.md#shaped-noise.
    """

    shape: Annotated[tuple[tuple[float, ...], ...], checked_by(_covariance)]

    @property
    def dimension(self) -> int:
        return 1

    def largest_difference(self, relation: Relation) -> float | None:
        """A convex function is largest at a vertex of the body."""
        if not isinstance(relation, LipschitzBall) or relation.actions != 1:
            return None
        pieces = len(self.shape)
        points = np.diff(vertices(relation.lipschitz / pieces / relation.radius, pieces), axis=1)
        try:
            whitened = np.linalg.solve(np.linalg.cholesky(np.array(self.shape)), points.T)
        except np.linalg.LinAlgError:
            return None
        return relation.radius * float(np.linalg.norm(whitened, axis=0).max())

    def __str__(self) -> str:
        return f"the shape of the noise on {plural(len(self.shape), 'increment')} between knots"


class IncrementGauge(Norm, frozen=True, tag="increments"):
    """The gauge of a body of increments between knots, for pure noise: the largest in a LipschitzBall.

    Its theorem is docs/theory.md#k-norm.
    """

    families: ClassVar = ("pure",)
    pieces: Count
    radius: Positive
    lipschitz: Positive

    @property
    def dimension(self) -> int:
        return 1

    def largest_difference(self, relation: Relation) -> float | None:
        """The gauge of one body of increments, at most over another: its steepest step, or its whole range."""
        if not isinstance(relation, LipschitzBall) or relation.actions != 1:
            return None
        steepest = min(relation.lipschitz, 2 * relation.radius * self.pieces) / self.lipschitz
        return max(steepest, min(2 * relation.radius, relation.lipschitz) / (2 * self.radius))

    def __str__(self) -> str:
        return (
            f"the gauge of what differences of at most {self.radius:g}, of slope at most {self.lipschitz:g}, can do "
            f"to {plural(self.pieces, 'increment')} between knots"
        )


# Means over people, of vectors clipped to a length, and of the returns of policies (docs/theory.md#policy-values).
# Replacing one of N people moves a mean of vectors of length at most B by at most 2B/N (docs/theory.md#mean-of-people),
# and by sqrt(2) B/N where no two vectors can be more than a right angle apart (docs/theory.md#moments).


class MeanOfPeople(Norm, frozen=True, tag="mean-of-people"):
    """The length of a mean of people's vectors, no two of which can be further apart than a diameter."""

    diameter: Positive

    def largest_difference(self, relation: Relation) -> float | None:
        return self.diameter / relation.people if isinstance(relation, OnePerson) else None

    def __str__(self) -> str:
        return f"the length of a mean of people's vectors, no two of which are further apart than {self.diameter:g}"


# What noises as it learns: observed rewards, rounds of averages and gradients, values. All that the paper's methods see
# of a relation is how much one reward can change, `sup_radius` (docs/theory.md#rounds-of-rewards).


def rounding(operations: int, people: int | None) -> float:
    """Returns how much farther apart neighbours can be than without rounding, after `operations` in a row in float32.

    Each changes a number of the size that rewards are clipped to by at most 2^-24 of it, for each of two neighbours.
    """
    return 1 + 4 * operations * UNIT_ROUNDING * max(people or 0, FEWEST)


class ObservedRewards(Norm, frozen=True, tag="rewards"):
    """The Euclidean norm of `count` observed rewards together: radius sqrt(count), and what rounding adds.

    Of a mean of n rewards it is taken in units of 1/sqrt(n), so that the mean counts as one reward.
    """

    count: Count
    operations: Natural
    """The number of operations in float32, whose rounding counts; none in float64."""

    def largest_difference(self, relation: Relation) -> float:
        rounded = rounding(self.operations, relation.people) if self.operations else 1.0
        return rounded * relation.sup_radius * math.sqrt(self.count)

    def __str__(self) -> str:
        return f"the Euclidean norm of {plural(self.count, 'observed reward')}, or of means in units of 1/sqrt(n)"


class RewardGradients(Norm, frozen=True, tag="reward-gradients"):
    """Gradients of several rounds, in units of each one's sensitivity to a change of `radius`: sqrt(rounds)."""

    rounds: Count
    radius: Positive

    def largest_difference(self, relation: Relation) -> float:
        return math.sqrt(self.rounds) * max(1.0, relation.sup_radius / self.radius)

    def __str__(self) -> str:
        return (
            f"units of what rewards that differ by {self.radius:g} do to a round's gradient, of "
            f"{plural(self.rounds, 'round')} together"
        )


class KnotValues(Norm, frozen=True, tag="values"):
    """The Euclidean norm of values at knots, fixed points of discounted averages: radius sqrt(count)/(1 - discount)."""

    count: Count
    discount: Probability
    operations: Natural

    def largest_difference(self, relation: Relation) -> float:
        return ObservedRewards(self.count, self.operations).largest_difference(relation) / (1 - self.discount)

    def __str__(self) -> str:
        return f"the Euclidean norm of {plural(self.count, 'value')} at knots, with discount {self.discount:g}"


class SmoothBound(Norm, frozen=True, tag="smooth-bound"):
    """Units of a smooth bound on the local sensitivity, which follows the data and is not released.

    Its theorem is docs/theory.md#two-sizes.
    """

    families: ClassVar = ("smooth",)
    weights: Count
    beta: Positive

    def largest_difference(self, relation: Relation) -> float | None:
        return 1.0 if isinstance(relation, Trajectories) else None  # by definition

    def epsilon(self, scale: float, delta: float) -> float:
        """Returns the least epsilon of Gaussian noise of `scale` smooth bounds."""
        return smooth_epsilon(self.beta, self.weights, scale, delta)

    def __str__(self) -> str:
        return (
            f"units of a smooth bound for {plural(self.weights, 'weight')}, which follows the data and is not released"
        )


# Arrivals. All of a person's visits can come to as much as one, times their number: each answer is used once, unless
# it is in a node on every level of a tree, or in every later sum of an encoded one (docs/theory.md#each-answer-once,
# docs/theory.md#trees and docs/theory.md#running-sums).


class Answers(Norm, frozen=True, tag="answers"):
    """Units of the range of an answer, summed over all sums that a person is in: for Arrivals visits times levels.

    Of an answer that is flipped with some probability, the range is whether it was: the odds are e^(1/size).
    """

    families: ClassVar = ("gaussian", "pure")
    levels: Count = 1
    """The levels of a tree of sums, on each of which an answer is in one node; 1 where it is in one sum."""

    def largest_difference(self, relation: Relation) -> float | None:
        if not isinstance(relation, Arrivals) or relation.contexts:
            return None
        arrivals = relation.arrivals  # of which each must have a leaf, and there are 2^(levels - 1)
        if self.levels > 1 and (arrivals is None or (arrivals - 1).bit_length() > self.levels - 1):
            raise InvalidInput(f"A tree of {self.levels} levels has no place for all arrivals.")
        return relation.visits * float(self.levels)

    def __str__(self) -> str:
        levels = "" if self.levels == 1 else f" on {self.levels} levels of a tree"
        return f"units of the range of an answer, summed over all sums that a person is in{levels}"


def longest_column(scales: Sequence[float], decays: Sequence[float], steps: int) -> float:
    """Returns the Euclidean length of the first numbers of 1, c_1, c_2, ..., with c_k = sum_i scale_i decay_i^(k - 1).

    >>> longest_column([0.5], [0.5], 3) == math.sqrt(1 + 0.25 + 0.0625)
    True
    """
    pairs = [(a * b, p * q) for a, p in zip(scales, decays, strict=True) for b, q in zip(scales, decays, strict=True)]
    return math.sqrt(1 + math.fsum(a * (1 - p ** (steps - 1)) / (1 - p) for a, p in pairs))


Buffers = Annotated[tuple[Annotated[float, Meta(gt=0, lt=1)], ...], Meta(max_length=64)]
"""Numbers above 0, so that the matrix has no negative entry, as the theorem asks."""


class EncodedMoments(Norm, frozen=True, tag="encoded-moments"):
    """The Frobenius norm of sums of zz' that were encoded by a Toeplitz matrix of a few buffers: visits times sqrt(2)
    length^2 times the longest column of that matrix.
    """

    scales: Buffers
    decays: Buffers
    length: Positive

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.scales) != len(self.decays):
            raise InvalidInput("scales and decays must be equally many, one of each for every buffer.")

    def largest_difference(self, relation: Relation) -> float | None:
        if not isinstance(relation, Arrivals) or not relation.contexts:
            return None
        if relation.arrivals is None:
            raise InvalidInput("A running sum needs a number of arrivals.")
        longest = longest_column(self.scales, self.decays, relation.arrivals)
        return relation.visits * (math.sqrt(2) * longest * self.length**2)

    def __str__(self) -> str:
        return (
            f"the Frobenius norm of encoded sums of zz' with |z| at most {self.length:g}, by a Toeplitz matrix of "
            f"{plural(len(self.scales), 'buffer')}"
        )


AnyNorm = (
    AnyKernel
    | ShapedIncrements
    | IncrementGauge
    | MeanOfPeople
    | ObservedRewards
    | RewardGradients
    | KnotValues
    | SmoothBound
    | Answers
    | EncodedMoments
)
"""All norms that something can be certified in."""


@dataclass(frozen=True)
class TrainedMethod:
    """What holds for every release of a method."""

    standing: Literal["none", "claimed", "certified"]
    norm: type[Norm] | None = None
    """The norm that its noise is measured in, if every run is a release of its own."""
    releases: Literal["network", "knots", "noised knots"] = "network"
    """What its agents are made of: any network, or values at knots, which may be the very numbers that were noised."""


TRAINED_METHODS = {
    "none": TrainedMethod("none"),
    "published": TrainedMethod("claimed"),
    "reward": TrainedMethod("certified"),
    "actor-critic": TrainedMethod("certified"),
    "value": TrainedMethod("certified", ObservedRewards, "knots"),
    "value-network": TrainedMethod("certified", RewardGradients),
    "gradient": TrainedMethod("certified", RewardGradients),
    "input": TrainedMethod("certified", ObservedRewards, "knots"),
    "output": TrainedMethod("certified", KnotValues, "noised knots"),
    "evaluation": TrainedMethod("certified", SmoothBound),
}
