"""What a model of everybody's rows is judged by: for each kind of feedback, its rows as features and residuals.

All numbers here are public constants in units of the range of ratings, or of log-odds.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from scipy.special import expit

from quietq.feedback.statistic import Columns

Phi = Callable[[np.ndarray], np.ndarray]
"""From points (rows, d) of the unit box to features (rows, rank)."""


CHOICES = ("left", "right", "tie")
CHOSEN = np.array([1.0, 0.0, 0.5])
"""What each of them says of the left one."""


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
    compared: ClassVar[int]
    """How many states a row compares."""
    range: tuple[float, float] | None = None
    """The least and the most a reward can be, if declared: then the model is in units of it, around its middle."""

    @abstractmethod
    def points(self, columns: Columns) -> list[Float[np.ndarray, "rows d"]]:
        """Every state that a row speaks of."""

    @abstractmethod
    def design(self, columns: Columns, features: Phi) -> Float[np.ndarray, "rows rank"]:
        """What the weights are multiplied with."""

    @abstractmethod
    def slope(self, predicted: Float[np.ndarray, " rows"], columns: Columns) -> Float[np.ndarray, " rows"]:
        """The derivative of the loss at what is predicted."""


@dataclass(frozen=True)
class Squared(Loss):
    """Ratings, in units of their range and around its middle."""

    dimension: int
    range: tuple[float, float]  # pyright: ignore[reportIncompatibleVariableOverride]

    constant = True
    curvature = 1.0
    spread = 1 / 16
    scale = 1 / 5
    compared = 1

    def points(self, columns: Columns) -> list[Float[np.ndarray, "rows d"]]:
        return [np.stack([columns[f"x{i}"] for i in range(self.dimension)], axis=-1)]

    def design(self, columns: Columns, features: Phi) -> Float[np.ndarray, "rows rank"]:
        return features(self.points(columns)[0])

    def slope(self, predicted: Float[np.ndarray, " rows"], columns: Columns) -> Float[np.ndarray, " rows"]:
        low, high = self.range
        return predicted - ((columns["rating"] - low) / (high - low) - 0.5)


@dataclass(frozen=True)
class Logistic(Loss):
    """Choices between two states, in log-odds: the left one has probability 1/(1 + exp(-(r(left) - r(right))))."""

    dimension: int

    constant = False
    curvature = 0.4
    spread = 1 / 2
    scale = 1.5
    compared = 2

    def points(self, columns: Columns) -> list[Float[np.ndarray, "rows d"]]:
        return [np.stack([columns[f"{side}{i}"] for i in range(self.dimension)], axis=-1) for side in ("left", "right")]

    def design(self, columns: Columns, features: Phi) -> Float[np.ndarray, "rows rank"]:
        left, right = self.points(columns)
        return features(left) - features(right)

    def slope(self, predicted: Float[np.ndarray, " rows"], columns: Columns) -> Float[np.ndarray, " rows"]:
        return expit(predicted) - CHOSEN[columns["choice"]]
