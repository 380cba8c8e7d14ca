"""Per-person statistics of rows, for mechanisms that fit one model to everybody's rows, and the losses they are of.

A person with many rows counts once: everything is a mean over their rows, clipped to a bound. All of it is computed
element by element, row by row or person by person, so that no bit of a vector depends on the batch; the noise
allows for a step of everybody's sum all the same (`BATCH_ROUNDING`). A loss says, for each kind of feedback, what its
rows are as gradients; its numbers are public constants in units of the range of ratings, or of log-odds.

Of sessions, second moments of what is looked at in each step are asked for too, over their own length: all steps and
episodes of a person are one matrix, which is positive semi-definite and of Frobenius norm 1 (0 without steps), so the
matrices of two people are never more than a right angle apart. Products of matrices are taken person by person, of one
person's rows alone, so that their rounding does not depend on the batch.
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from quietq.feedback.spaces import Spaces, stacked
from quietq.feedback.statistic import Columns, Starts, Vector, some_at_once
from quietq.noise.feature_maps import FeatureMap

Phi = Callable[..., np.ndarray]
"""A function from points (rows, d) of the unit box, and actions if there are any, to features (rows, rank)."""
BATCH_ROUNDING = 2.0**-39
"""The batch dependence of a mean of vectors, from rounding: at most this, times its bound and the root of its size.
Whoever queries the mean adds it to the sensitivity."""
INDICATOR_WEIGHT = 0.5
"""The weight of the clipping indicator beside the gradient, as in adaptive clipping (Andrew et al., 2021): it tells the
fraction of a gradient that was not clipped, and costs 3 % more noise."""
ROOT = 2**0.5


class Loss(ABC):
    """A convex loss of theta . features, for each answer that a person gave."""

    constant: ClassVar[bool]
    """Whether the rows identify a constant."""
    curvature: float
    """The mean curvature of the loss along a feature of variance 1."""
    spread: float
    """Variance of an answer's slope times a feature."""
    scale: float
    """What the model is expected to vary by, as a standard deviation over states."""
    rougher: ClassVar[float]
    """Features are chosen for a model with so many times the variance that is expected: its weight may lie in few of
    them, and shrinkage takes back what is not there. The noisier answers are, the less there is to take back from."""
    compared: int
    """How many states a row compares."""
    range: tuple[float, float] | None = None
    """The least and the most a reward can be, if declared: then the model is in units of it, around its middle."""
    actions: int = 1
    """How many rewards there are, one per action."""
    unit: float = 1.0
    """What the reward of a state is, where the fitted model says 1."""

    @abstractmethod
    def points(self, columns: Columns) -> list[Float[np.ndarray, "rows d"]]:
        """Every state that a row speaks of; NaN where it speaks of none."""

    @abstractmethod
    def gradients(
        self, starts: Starts, columns: Columns, features: Phi, weights: Float[np.ndarray, " rank"]
    ) -> Float[np.ndarray, "people rank"]:
        """Each person's mean gradient over their answers, at these weights."""


@dataclass(frozen=True)
class Squared(Loss):
    """Ratings, in units of their range and around its middle: the columns x0, x1, ..., `rating`, and maybe `action`."""

    dimension: int
    range: tuple[float, float]  # pyright: ignore[reportIncompatibleVariableOverride]
    actions: int = 1

    constant = True
    curvature = 1.0
    spread = 1 / 16
    scale = 1 / 5
    rougher = 3.0
    compared = 1

    def points(self, columns: Columns) -> list[Float[np.ndarray, "rows d"]]:
        return [stacked(columns, "x", self.dimension)]

    def gradients(
        self, starts: Starts, columns: Columns, features: Phi, weights: Float[np.ndarray, " rank"]
    ) -> Float[np.ndarray, "people rank"]:
        acted = (columns["action"].astype(np.int64),) if self.actions > 1 else ()
        turned = np.ascontiguousarray(features(self.points(columns)[0], *acted).T)
        turned *= self.residuals(columns, predicted(turned, weights))
        return _means(turned, starts)

    def residuals(self, columns: Columns, values: Float[np.ndarray, " rows"]) -> Float[np.ndarray, " rows"]:
        """Returns how far these values of the model are from what each row says."""
        low, high = self.range
        return values - ((columns["rating"] - low) / (high - low) - 0.5)


@dataclass(frozen=True)
class Chosen(Loss):
    """Choices among states, in log-odds: option j has probability exp(r_j) / sum of exp(r_i) over what was offered.

    `choice` is the number of the chosen option, or as many as there are options for a tie of all. Where options are
    segments, their reward is the sum over their rows, which stand together under one number of their person.
    """

    dimension: int
    options: int
    length: int | None = None
    """The length of a segment, about; None where each row is a choice of its own."""

    constant = False
    scale = 1.5
    rougher = 0.6

    @property
    def compared(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.options

    @property
    def curvature(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return 0.8 * self.spread

    @property
    def spread(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return 1 - 1 / self.options

    @property
    def unit(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Sums over a segment are divided by the root of its length, so that features keep their size."""
        return 1.0 if self.length is None else self.length**-0.5

    def points(self, columns: Columns) -> list[Float[np.ndarray, "rows d"]]:
        return [stacked(columns, f"option{j}_", self.dimension) for j in range(self.options)]

    def gradients(
        self, starts: Starts, columns: Columns, features: Phi, weights: Float[np.ndarray, " rank"]
    ) -> Float[np.ndarray, "people rank"]:
        """Features come first here, so that every step runs along rows: element by element, or within a person."""
        points = self.points(columns)
        offered = ~np.isnan([one.sum(axis=1) for one in points])
        points = [np.where(np.isnan(one).any(axis=1, keepdims=True), 0.5, one) for one in points]
        designs = [np.ascontiguousarray(features(one).T) for one in points]
        choice = columns["choice"]
        if self.length is not None:
            segments, starts = _segments(starts, columns["segment"])
            designs = [self.unit * np.add.reduceat(one, segments, axis=1) for one in designs]
            offered, choice = np.logical_and.reduceat(offered, segments, axis=1), choice[segments]
        # Which option was chosen, and of a tie a share of each: none, if what was chosen was not offered.
        tie = offered / np.maximum(offered.sum(axis=0), 1)
        target = np.where(choice == self.options, tie, choice == np.arange(self.options)[:, None])
        target = target * ((target > 0) <= offered).all(axis=0)
        utility = np.where(offered, [predicted(one, weights) for one in designs], -np.inf)
        return _means(_weighted(designs, _shares(utility) * target.any(axis=0) - target), starts)


@dataclass(frozen=True)
class StepRewards(Squared):
    """Rewards of steps, by state and action; the column is in units of their range."""

    numbers: int = 0
    """How many of the coordinates are the action's."""
    column: tuple[float, float] | None = None
    """The range that the column is the unit interval of, where `range` is that of steps that end no episode: then those
    that end one say nothing here."""

    @classmethod
    def of(cls, spaces: Spaces, steps: tuple[float, float] | None = None) -> "StepRewards":
        whole = spaces.low, spaces.high
        dimension, column = spaces.states + spaces.numbers, None if steps is None else whole
        return cls(dimension, steps or whole, spaces.actions or 1, spaces.numbers, column)

    def points(self, columns: Columns) -> list[Float[np.ndarray, "rows d"]]:
        states = stacked(columns, "s", self.dimension - self.numbers)
        return [np.hstack([states, stacked(columns, "a", self.numbers)]) if self.numbers else states]

    def residuals(self, columns: Columns, values: Float[np.ndarray, " rows"]) -> Float[np.ndarray, " rows"]:
        if self.column is None:
            return values - (columns["reward"] - 0.5)
        (low, high), (least, most) = self.range, self.column
        rewards = np.clip((least + (most - least) * columns["reward"] - low) / (high - low), 0.0, 1.0)
        return np.where(columns["end"] > 0, 0.0, values - (rewards - 0.5))


@dataclass(frozen=True)
class Ends(Loss):
    """Whether an episode came to an end in the state that a step led to, as log-odds.

    A person's ends count half together, and all other steps the other half, so that ends are not rare.
    """

    dimension: int

    constant = True
    curvature = 0.2
    spread = 0.6  # for ten rows a person: an end counts half, so rows do not average out
    scale = 1.5
    rougher = 0.6
    compared = 1

    def points(self, columns: Columns) -> list[Float[np.ndarray, "rows d"]]:
        return [stacked(columns, "n", self.dimension)]

    def gradients(
        self, starts: Starts, columns: Columns, features: Phi, weights: Float[np.ndarray, " rank"]
    ) -> Float[np.ndarray, "people rank"]:
        design = np.ascontiguousarray(features(self.points(columns)[0]).T)
        slope = self._slopes(starts, columns, predicted(design, weights))
        return np.ascontiguousarray(np.add.reduceat(design * slope, starts, axis=1).T)

    def _slopes(
        self, starts: Starts, columns: Columns, values: Float[np.ndarray, " rows"]
    ) -> Float[np.ndarray, " rows"]:
        """Returns how each person's mean loss changes with the model's value at each of their rows."""
        ended = columns["end"] > 0
        rows = np.diff(starts, append=len(ended))
        ends = np.add.reduceat(ended.astype(np.int64), starts)
        share = np.where(ended, np.repeat(ends, rows), np.repeat(rows - ends, rows))
        return (1 / (1 + np.exp(-np.clip(values, -50, 50))) - ended) / (2 * share)


def predicted(design: Float[np.ndarray, "rank rows"], weights: Float[np.ndarray, " rank"]) -> np.ndarray:
    """The sum over features, by halves: NumPy's own sum, or a product of matrices, would round by the batch."""
    terms = design * weights[:, None]
    count = len(terms)
    while count > 1:
        half = count // 2
        terms[:half] += terms[count - half : count]
        count -= half
    return terms[0]


def _weighted(designs: list[np.ndarray], weights: Float[np.ndarray, "options rows"]) -> np.ndarray:
    total = designs[0] * weights[0]
    for design, weight in zip(designs[1:], weights[1:], strict=True):
        total += design * weight
    return total


def _means(rows: Float[np.ndarray, "rank rows"], starts: Starts) -> Float[np.ndarray, "people rank"]:
    sums = np.ascontiguousarray(np.add.reduceat(rows, starts, axis=1).T)  # one person after the other
    return sums / np.diff(starts, append=rows.shape[1])[:, None]


def _segments(starts: Starts, numbers: np.ndarray) -> tuple[np.ndarray, Starts]:
    """Returns where each segment begins among rows, and where each person begins among segments."""
    begins = np.append(True, numbers[1:] != numbers[:-1])
    begins[starts] = True
    segments = np.flatnonzero(begins)
    return segments, np.searchsorted(segments, starts)


def _shares(utility: Float[np.ndarray, "options rows"]) -> Float[np.ndarray, "options rows"]:
    """exp(u) over their sum; nothing where nothing was offered."""
    largest = utility.max(axis=0)
    odds = np.exp(utility - np.where(np.isfinite(largest), largest, 0.0))
    total = functools.reduce(np.add, odds)  # one option after the other: NumPy's own sum would round by the batch
    return odds / np.maximum(total, 1e-300)


@dataclass(frozen=True, eq=False)
class Marginals(Vector):
    """Where states lie, coordinate by coordinate: how often at either end of the box and in each of some bins between.

    No entry is negative, so the vectors of two people are never more than a right angle apart.
    """

    right_angles = True
    loss: Loss
    dimension: int
    bins: int

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.dimension * (self.bins + 2)

    @property
    def bound(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return 0.5 * self.dimension**0.5

    def of_people(self, starts: Starts, columns: Columns) -> Float[np.ndarray, "people size"]:
        options = self.loss.points(columns)
        found = np.zeros((len(starts), self.dimension, self.bins + 2))
        person = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(options[0])))
        for points in options:
            there = ~np.isnan(points.sum(axis=1))
            points = points[there]
            places = 1 + np.clip((points * self.bins).astype(np.int64), 0, self.bins - 1)
            places = np.where(points <= 0, 0, np.where(points >= 1, self.bins + 1, places))
            for i, place in enumerate(places.T):
                np.add.at(found[:, i], (person[there], place), 1.0)
        told = found.sum(axis=(1, 2), keepdims=True) / self.dimension
        return (found / np.maximum(told, 1.0)).reshape(len(starts), -1)


@dataclass(frozen=True, eq=False)
class SecondMoments(Vector):
    """How coordinates go together: second moments of a person's states, over their own length.

    Where a row compares k states, there are two matrices: Sum (x - m)(x - m)^T/(k - 1) for their mean m, and k m m^T;
    else one, x x^T. Only upper triangles are given, with what is beside the diagonal times the root of 2, so that
    lengths are Frobenius norms. The matrices are positive semi-definite, so the vectors of two people are never more
    than a right angle apart.
    """

    right_angles = True
    loss: Loss
    centred: Phi
    """A function from points of the unit box to coordinates around 0."""
    dimension: int
    bound: float = 1.0

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        matrices = 1 if self.loss.compared == 1 else 2
        return matrices * self.dimension * (self.dimension + 1) // 2

    @property
    def rows_at_once(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return max(1, 2**18 // self.dimension)

    def of_people(self, starts: Starts, columns: Columns) -> Float[np.ndarray, "people size"]:
        points = np.stack(self.loss.points(columns))
        there = ~np.isnan(points.sum(axis=2, keepdims=True))
        states = np.stack([self.centred(np.where(*each, 0.5)) for each in zip(there, points, strict=True)])
        mean = functools.reduce(np.add, states * there) / np.maximum(there.sum(axis=0), 1)
        states = np.where(there, states, mean)  # what was not offered says nothing
        sums = len(states) * _triangles(mean, starts)
        if len(states) > 1:
            apart = functools.reduce(np.add, [_triangles(state - mean, starts) for state in states]) / (len(states) - 1)
            sums = np.hstack([apart, sums])
        return sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-300)


def _triangles(x: Float[np.ndarray, "rows d"], starts: Starts) -> Float[np.ndarray, "people triangle"]:
    """Each person's sum of x x^T: the upper triangle, row by row."""
    sums = [np.add.reduceat(x[:, i : i + 1] * x[:, i:], starts, axis=0) for i in range(x.shape[1])]
    return np.hstack([np.hstack([one[:, :1], ROOT * one[:, 1:]]) for one in sums])


@dataclass(frozen=True, eq=False)
class ClippedGradient(Vector):
    """A person's gradient of the loss, over the clip, and beside it how much of it was left by clipping."""

    loss: Loss
    features: Phi
    weights: Float[np.ndarray, " features"]
    clip: float
    basis: Float[np.ndarray, "features rank"] | None = None
    """The gradient is taken along its columns; along features, if there is none."""
    bound: float = (1 + INDICATOR_WEIGHT**2 / 4) ** 0.5

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return 1 + (len(self.weights) if self.basis is None else self.basis.shape[1])

    @property
    def few_rows(self) -> int:
        """Whose features fit into a cache."""
        return max(1, 2**18 // len(self.weights))

    @property
    def rows_at_once(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        # Many small products of matrices, by several threads, would keep these waiting for each other.
        return self.few_rows if self.basis is None else 32 * self.few_rows

    def of_people(self, starts: Starts, columns: Columns) -> Float[np.ndarray, "people size"]:
        some = some_at_once(starts, columns, self.few_rows)
        gradients = np.concatenate([self.loss.gradients(*each, self.features, self.weights) for each in some])
        return clipped(gradients if self.basis is None else exact_product(gradients, self.basis), self.clip)


def clipped(vectors: Float[np.ndarray, "people rank"], clip: float) -> Float[np.ndarray, "people size"]:
    """v = (c G/C, INDICATOR_WEIGHT (c - 1/2)) with c = min(1, C/|G|), so |v|^2 <= 1 + INDICATOR_WEIGHT^2/4."""
    with np.errstate(divide="ignore"):
        left = np.minimum(1.0, clip / np.linalg.norm(vectors, axis=1))
    return np.column_stack([vectors * (left / clip)[:, None], INDICATOR_WEIGHT * (left - 0.5)])


def exact_product(
    vectors: Float[np.ndarray, "people features"], matrix: Float[np.ndarray, "features rank"]
) -> Float[np.ndarray, "people rank"]:
    """vectors @ matrix, the same bits in any batch: in whole numbers, whose sums float64 holds exactly.

    Each vector is rounded to 24 bits of its largest entry, and each column to as many as are left of 53.
    """
    left = 29 - len(matrix).bit_length()
    rows = np.ldexp(1.0, np.frexp(np.abs(vectors).max(axis=1, keepdims=True))[1] - 24)
    columns = np.ldexp(1.0, np.frexp(np.abs(matrix).max(axis=0))[1] - left)
    with np.errstate(all="ignore"):  # what is not finite will count as zero
        return np.rint(vectors / rows) @ np.rint(matrix / columns) * rows * columns


# What a world is fitted to.


@dataclass(frozen=True, eq=False)
class Looked:
    """What is looked at in a step: features that it is explained by, the first of which is 1, and targets."""

    rows: Callable[[Columns], Float[np.ndarray, "rows numbers"]]
    """Features and targets, side by side; a row of zeros says nothing."""
    features: int
    """How many of the numbers are features."""
    scales: Float[np.ndarray, " numbers"]
    """How large each number can be, about: public."""


def moves(spaces: Spaces, feature_map: FeatureMap, moved: tuple[int, ...]) -> Looked:
    """Returns how the state changes in a step, over half the box, by features of state and action.

    Args:
        spaces: Where states and actions lie.
        feature_map: The features.
        moved: The coordinates whose change is looked at.

    """

    def rows(columns: Columns) -> Float[np.ndarray, "rows numbers"]:
        before, after = (stacked(columns, name, spaces.states)[:, moved] for name in "sn")
        features = feature_map(spaces.points(columns))
        return np.hstack([np.ones((len(features), 1)), features, 2 * (after - before)])

    features = feature_map(np.random.default_rng(0).random((2**10, feature_map.dimension)))
    scales = np.concatenate([[1.0], np.abs(features).max(axis=0), np.ones(len(moved))])
    return Looked(rows, 1 + feature_map.rank, scales)


def first_states(middle: Float[np.ndarray, " states"], white: Float[np.ndarray, "states states"]) -> Looked:
    """Returns where episodes begin, in coordinates in which states are about white: white @ (state - middle)."""

    def rows(columns: Columns) -> Float[np.ndarray, "rows numbers"]:
        begins = stacked(columns, "s", len(middle)) - middle
        seen = sum(begins[:, i : i + 1] * one for i, one in enumerate(white.T))  # row by row, in any batch
        return np.where(columns["first"][:, None] > 0, np.hstack([np.ones((len(begins), 1)), seen]), 0.0)

    return Looked(rows, 1, np.ones(1 + len(middle)))


@dataclass(frozen=True, eq=False)
class NormalisedMoments(Vector):
    """Each person's Sum (T z)(T z)^T over its own Frobenius norm.

    Upper triangles, times root 2 beside the diagonal.
    """

    right_angles = True
    looked: Looked
    matrix: Float[np.ndarray, "numbers numbers"]
    """T, by earlier answers."""
    bound: float = 1.0

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.matrix) * (len(self.matrix) + 1) // 2

    @property
    def rows_at_once(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return max(1, 2**20 // len(self.matrix))

    def of_people(self, starts: Starts, columns: Columns) -> Float[np.ndarray, "people size"]:
        with np.errstate(all="ignore"):  # what is not finite will count as zero
            own = [one @ self.matrix.T for one in np.split(self.looked.rows(columns), starts[1:])]
            upper = triangle(np.stack([one.T @ one for one in own]))
            length = np.linalg.norm(upper, axis=1, keepdims=True)
            return np.where(length > 0, upper / length, 0.0)


@dataclass(frozen=True, eq=False)
class EndRates(Vector):
    """How often a person's steps end an episode, by a model and in fact, over a clip. Neither is below 0."""

    right_angles = True
    odds: Phi
    """The model: from states that steps led to, to log-odds."""
    dimension: int
    clip: float
    size: int = 2
    bound: float = 1.0

    def of_people(self, starts: Starts, columns: Columns) -> Float[np.ndarray, "people size"]:
        ended = (columns["end"] > 0).astype(np.float64)
        odds = row_by_row(self.odds, stacked(columns, "n", self.dimension))
        expected = 1 / (1 + np.exp(-np.clip(odds, -50, 50)))
        rates = np.add.reduceat(np.stack([expected, ended], axis=-1), starts, axis=0)
        rates /= np.diff(starts, append=len(ended))[:, None]
        return rates / np.maximum(np.linalg.norm(rates, axis=1, keepdims=True), self.clip)


@dataclass(frozen=True, eq=False)
class EndRewards(Vector):
    """The mean reward of the steps that ended a person's episodes, from -1 to 1 over its range, and beside it a 1.

    A person without such a step gives two zeros, so both means together tell the reward of those who have one. For two
    people <(u, 1), (w, 1)> = u w + 1 is never below 0 (docs/theory.md#end-rewards).
    """

    right_angles = True
    size: int = 2
    bound: float = ROOT

    def of_people(self, starts: Starts, columns: Columns) -> Float[np.ndarray, "people size"]:
        ended = (columns["end"] > 0).astype(np.float64)
        sums = np.add.reduceat(np.stack([(2 * columns["reward"] - 1) * ended, ended], axis=-1), starts, axis=0)
        return sums / np.maximum(sums[:, 1:], 1.0)


def row_by_row(function: Callable[..., np.ndarray], *columns: np.ndarray) -> np.ndarray:
    """Returns what a function of arrays says of each row, to the same bits in any batch.

    Each row is a stack of its own, and the last one stands there twice: a single stack would be multiplied otherwise.
    """
    return function(*(np.concatenate([one, one[-1:]])[:, None] for one in columns))[:-1, 0]


def triangle(matrices: Float[np.ndarray, "*some n n"]) -> Float[np.ndarray, "*some size"]:
    """The upper triangles as vectors whose lengths are Frobenius norms."""
    row, column = np.triu_indices(matrices.shape[-1])
    # One vector after the other in memory, so that each one's length is summed alike in any batch.
    return np.ascontiguousarray(matrices[..., row, column] * np.where(row == column, 1.0, ROOT))
