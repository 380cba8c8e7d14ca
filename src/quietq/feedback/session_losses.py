"""What models of sessions are judged by: rewards by their squares, early ends by log-odds."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from quietq.feedback.loss import Loss, Phi, Squared, predicted
from quietq.feedback.spaces import Spaces, stacked
from quietq.feedback.statistic import Columns, Starts


@dataclass(frozen=True)
class StepRewards(Squared):
    """Rewards of steps, by state and action; the column is in units of their range."""

    numbers: int = 0
    """How many of the coordinates are the action's."""

    @classmethod
    def of(cls, spaces: Spaces) -> "StepRewards":
        range_ = spaces.low, spaces.high
        return cls(spaces.states + spaces.numbers, range_, spaces.actions or 1, spaces.numbers)

    def points(self, columns: Columns) -> list[Float[np.ndarray, "rows d"]]:
        states = stacked(columns, "s", self.dimension - self.numbers)
        return [np.hstack([states, stacked(columns, "a", self.numbers)]) if self.numbers else states]

    def _rated(self, columns: Columns) -> Float[np.ndarray, " rows"]:
        return columns["reward"] - 0.5


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
        slope = self.slopes(starts, columns, [predicted(design, weights)])[0]
        return np.ascontiguousarray(np.add.reduceat(design * slope, starts, axis=1).T)

    def slopes(self, starts: Starts, columns: Columns, values: list[np.ndarray]) -> list[Float[np.ndarray, " rows"]]:
        ended = columns["end"] > 0
        rows = np.diff(starts, append=len(ended))
        ends = np.add.reduceat(ended.astype(np.int64), starts)
        share = np.where(ended, np.repeat(ends, rows), np.repeat(rows - ends, rows))
        return [(1 / (1 + np.exp(-np.clip(values[0], -50, 50))) - ended) / (2 * share)]
