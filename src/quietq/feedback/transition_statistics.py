"""Per-person statistics of sessions: second moments of what is looked at in each step, over their own length.

A person with many steps or many episodes counts once: all of them are one matrix, which is positive semi-definite and
of Frobenius norm 1 (0 without steps), so the matrices of two people are never more than a right angle apart. Products
of matrices are taken person by person, of one person's rows alone, so that their rounding does not depend on the batch.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from quietq.feedback.row_statistics import Phi
from quietq.feedback.spaces import Spaces, stacked
from quietq.feedback.statistic import Columns, Starts, Vector
from quietq.noise.feature_maps import FeatureMap

ROOT = 2**0.5


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
    """How the state changes in a step, over half the box, by features of state and action.

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
    """Where episodes begin, in coordinates in which states are about white: white @ (state - middle)."""

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
    """What a function of arrays says of each row, to the same bits in any batch.

    Each row is a stack of its own, and the last one stands there twice: a single stack would be multiplied otherwise.
    """
    return function(*(np.concatenate([one, one[-1:]])[:, None] for one in columns))[:-1, 0]


def triangle(matrices: Float[np.ndarray, "*some n n"]) -> Float[np.ndarray, "*some size"]:
    """The upper triangles as vectors whose lengths are Frobenius norms."""
    row, column = np.triu_indices(matrices.shape[-1])
    # One vector after the other in memory, so that each one's length is summed alike in any batch.
    return np.ascontiguousarray(matrices[..., row, column] * np.where(row == column, 1.0, ROOT))
