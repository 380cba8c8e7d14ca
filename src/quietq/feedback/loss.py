"""What a model of everybody's rows is judged by: for each kind of feedback, its rows as features and residuals.

All numbers here are public constants in units of the range of ratings, or of log-odds.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from quietq.feedback.statistic import Columns

Features = Callable[[np.ndarray], np.ndarray]
"""From points (d, rows) to features (rank, rows)."""


class Loss(ABC):
    """A convex loss of theta . design per row."""

    constant: ClassVar[bool]
    """Whether a constant can be told from the rows."""
    curvature: ClassVar[float]
    """Of the loss along a feature of variance 1, on average."""
    spread: ClassVar[float]
    """Variance of a row's slope times a feature."""
    scale: ClassVar[float]
    """What the model is expected to vary by, as a standard deviation over states."""

    @abstractmethod
    def points(self, columns: Columns) -> list[Float[np.ndarray, "d rows"]]:
        """Every state that a row speaks of."""

    @abstractmethod
    def design(self, columns: Columns, features: Features) -> Float[np.ndarray, "rank rows"]:
        """What the weights are multiplied with."""

    @abstractmethod
    def slope(self, predicted: Float[np.ndarray, " rows"], columns: Columns) -> Float[np.ndarray, " rows"]:
        """The derivative of the loss at what is predicted."""


@dataclass(frozen=True)
class Squared(Loss):
    """Ratings, in units of their range and around its middle."""

    dimension: int
    low: float
    high: float

    constant = True
    curvature = 1.0
    spread = 1 / 16
    scale = 1 / 5

    def points(self, columns: Columns) -> list[Float[np.ndarray, "d rows"]]:
        return [np.stack([columns[f"x{i}"] for i in range(self.dimension)])]

    def design(self, columns: Columns, features: Features) -> Float[np.ndarray, "rank rows"]:
        return features(self.points(columns)[0])

    def slope(self, predicted: Float[np.ndarray, " rows"], columns: Columns) -> Float[np.ndarray, " rows"]:
        return predicted - ((columns["rating"] - self.low) / (self.high - self.low) - 0.5)
