"""Per-person statistics of rows, for mechanisms that fit one model to everybody's rows.

A person with many rows counts once: everything is a mean over their rows, clipped to a bound. All of it is computed
element by element, row by row or person by person, so that no bit of a vector depends on the batch; the noise
allows for a step of everybody's sum all the same (`BATCH_ROUNDING`).
"""

import functools
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from quietq.feedback.loss import Loss, Phi
from quietq.feedback.statistic import Columns, Starts, Vector, some_at_once

BATCH_ROUNDING = 2.0**-39
"""The batch dependence of a mean of vectors, from rounding: at most this, times its bound and the root of its size.
Whoever queries the mean adds it to the sensitivity."""
TOLD = 0.5
"""How much of a unit the fraction of a gradient that was not clipped away counts: it costs noise, by 3 %."""


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
    else one, x x^T. Only upper triangles are told, with what is beside the diagonal times the root of 2, so that
    lengths are Frobenius norms. The matrices are positive semi-definite, so the vectors of two people are never more
    than a right angle apart.
    """

    right_angles = True
    loss: Loss
    centred: Phi
    """From points of the unit box to coordinates around 0."""
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
    return np.hstack([np.hstack([one[:, :1], 2**0.5 * one[:, 1:]]) for one in sums])


@dataclass(frozen=True, eq=False)
class ClippedGradient(Vector):
    """A person's gradient of the loss, over the clip, and beside it how much of it was left by clipping."""

    loss: Loss
    features: Phi
    weights: Float[np.ndarray, " features"]
    clip: float
    basis: Float[np.ndarray, "features rank"] | None = None
    """The gradient is taken along its columns; along features, if there is none."""
    bound: float = (1 + TOLD**2 / 4) ** 0.5

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
    """v = (c G/C, TOLD (c - 1/2)) with c = min(1, C/|G|), so |v|^2 <= 1 + TOLD^2/4."""
    with np.errstate(divide="ignore"):
        left = np.minimum(1.0, clip / np.linalg.norm(vectors, axis=1))
    return np.column_stack([vectors * (left / clip)[:, None], TOLD * (left - 0.5)])


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
