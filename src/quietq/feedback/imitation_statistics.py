"""Per-person statistics of sessions, for policies that imitate people: where states lie, and who did well.

Every statistic is one vector per person, of that person's own rows and of earlier noisy answers alone, clipped to a
bound (docs/theory.md#cloning). A person's return is the mean over their episodes of the sum of rewards, clipped to a
public range, so that all of their episodes count as one number.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from quietq.feedback.spaces import stacked
from quietq.feedback.statistic import Columns, Starts, Vector


class OwnNumber(ABC):
    """One number for each person, of that person's own rows alone."""

    @abstractmethod
    def of_people(self, starts: Starts, columns: Columns) -> Float[np.ndarray, " people"]: ...


@dataclass(frozen=True)
class OwnReturns(OwnNumber):
    """How a person's rows become one return."""

    rewards: tuple[float, float]
    """The range of rewards, of which the column is the unit interval."""
    returns: tuple[float, float]
    """The range that each person's return is clipped to."""

    def of_people(self, starts: Starts, columns: Columns) -> Float[np.ndarray, " people"]:
        """Each person's mean return over their episodes. Steps that are missing count as the mean of the others."""
        episode, step = columns["episode"], columns["step"]
        begins = np.append(True, episode[1:] != episode[:-1])[: len(episode)]
        begins[starts] = True
        first = np.flatnonzero(begins)
        last = np.append(first[1:], len(episode)) - 1
        unit_sums = np.add.reduceat(np.asarray(columns["reward"], np.float64), first)
        low, high = self.rewards
        mean_rewards = low + (high - low) * unit_sums / (last - first + 1)
        returns = mean_rewards * (step[last].astype(np.float64) + 1)
        # Where each person begins among episodes, so that every person is one mean of theirs.
        theirs = np.searchsorted(first, starts)
        means = np.add.reduceat(returns, theirs) / np.diff(theirs, append=len(first))
        return np.clip(np.nan_to_num(means, nan=self.returns[0]), *self.returns)

    def reach(self, threshold: float, starts: Starts, columns: Columns) -> Bool[np.ndarray, " people"]:
        """Whether each person's return is at or above the threshold."""
        return self.of_people(starts, columns) >= threshold


@dataclass(frozen=True, eq=False)
class StateMoments(Vector):
    """A person's mean state and mean square, coordinate by coordinate, in units of an earlier guess of both."""

    middle: Float[np.ndarray, " states"]
    scale: Float[np.ndarray, " states"]
    """The guess, in the unit box: an earlier answer, or the whole box."""
    clip: float
    """How many scales away from the middle a state counts at the most."""

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return 2 * len(self.middle)

    @property
    def bound(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.bound_for(len(self.middle))

    @staticmethod
    def bound_for(states: int) -> float:
        """What nobody exceeds whose states lie within one scale of the middle, as all do in the first round."""
        return (2 * states) ** 0.5

    def of_people(self, starts: Starts, columns: Columns) -> Float[np.ndarray, "people size"]:
        states = stacked(columns, "s", len(self.middle))
        centred = np.clip((states - self.middle) / self.scale, -self.clip, self.clip)
        sums = np.add.reduceat(np.hstack([centred, centred**2]), starts, axis=0)
        return sums / np.diff(starts, append=len(states))[:, None]


@dataclass(frozen=True, eq=False)
class ReachCounts(Vector):
    """Whether a person's number reaches a threshold, and whether it does not: one of two numbers is 1.

    Neither is negative, so the vectors of two people are never more than a right angle apart. People without a step are
    in neither number, so that a share of those who are there can be told.
    """

    right_angles = True
    own: OwnNumber
    threshold: float
    size: int = 2
    bound: float = 1.0

    def of_people(self, starts: Starts, columns: Columns) -> Float[np.ndarray, "people size"]:
        reaches = self.own.of_people(starts, columns) >= self.threshold
        return np.stack([reaches, ~reaches], axis=-1).astype(np.float64)
