"""People's preferences in a feature space: a ridge fit a person, its length clipped.

Theorem. If each person's weights are clipped to |w_u| <= C, replacing all of one person's rows, by anything, moves the
mean weights of n people by at most 2C/n. The ridge fit is a function of that person's rows alone; what bounds it is the
clip.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from quietq.noise.kernels import Features
from quietq.privacy.checks import positive
from quietq.privacy.errors import InvalidInput

_FINE = 2**30


@dataclass(frozen=True)
class Preferences:
    """Linear preferences w . phi(state): the features, the longest w, and the ridge of each person's fit."""

    features: Features
    norm: float
    """C, the length that every person's weights are clipped to"""
    ridge: float = 0.1
    """pulls the weights of people with few ratings towards 0"""

    def __post_init__(self) -> None:
        positive("norm", self.norm)
        if positive("ridge", self.ridge) < 1e-9:
            raise InvalidInput(f"ridge must be at least 1e-9, not {self.ridge!r}.")


@dataclass
class WeightTally:
    """The sum of people's clipped weights. Tallies of disjoint people add up.

    In whole numbers, 2^-30 of the longest weights, so that no order of people changes a bit and no sum rounds.
    """

    weights: Int[np.ndarray, " features"]
    people: int

    @classmethod
    def empty(cls, preferences: Preferences) -> "WeightTally":
        """Nobody yet."""
        return cls(np.zeros(preferences.features.rank, np.int64), 0)

    def add(self, preferences: Preferences, starts: np.ndarray, states: np.ndarray, ratings: np.ndarray) -> None:
        """Adds people whose rows stand together; person i's rows begin at starts[i]."""
        if len(starts):
            fitted = clipped_fits(preferences, starts, states, ratings)
            self.weights += np.rint(fitted * (_FINE / preferences.norm)).astype(np.int64).sum(axis=0)
            self.people += len(starts)

    def merge(self, other: "WeightTally") -> None:
        """Adds another tally, of other people."""
        self.weights += other.weights
        self.people += other.people

    def mean(self, preferences: Preferences, people: int) -> Float[np.ndarray, " features"]:
        """The mean over all declared people, those without a row having no preference."""
        return self.weights / people * (preferences.norm / _FINE)


def clipped_fits(
    preferences: Preferences, starts: np.ndarray, states: np.ndarray, ratings: np.ndarray
) -> Float[np.ndarray, "people features"]:
    """Each person's ridge fit, clipped."""
    phi = preferences.features.features(states)
    rank = phi.shape[1]
    gram = np.add.reduceat((phi[:, :, None] * phi[:, None, :]).reshape(len(phi), -1), starts, axis=0)
    moment = np.add.reduceat(phi * ratings[:, None], starts, axis=0)
    matrix = gram.reshape(-1, rank, rank) + preferences.ridge * np.eye(rank)
    weights = np.linalg.solve(matrix, moment[:, :, None])[:, :, 0]
    weights = np.where(np.isfinite(weights), weights, 0.0)
    length = np.linalg.norm(weights, axis=1, keepdims=True)
    return weights * np.minimum(1.0, preferences.norm / np.maximum(length, 1e-300))
