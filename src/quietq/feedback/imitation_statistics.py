"""Per-person statistics of sessions, for policies that imitate people: where states lie, who did well, and gradients.

Every statistic is one vector per person, of that person's own rows and of earlier noisy answers alone, clipped to a
bound. A person's return is the mean over their episodes of the sum of rewards, clipped to a public range, so that all
of their episodes count as one number.

Theorem. A person's gradient of a network that imitates them, over its own length, or 0 if their return is below a
threshold, is a function of their own rows and of earlier noisy answers, and of length below 1: replacing one of N
people moves the mean by at most 2/N (docs/theory.md#cloning).

The network has hidden layers of tanh, and its gradient is computed by hand, person by person, in float32; only its
length is taken in float64, so no rounding of the gradient makes a vector longer. Of each person equally many rows are
looked at, which public random numbers choose among their own, so every product of matrices has the same size whoever
else is there: no bit of a vector depends on the batch. (`BATCH_ROUNDING` allows for a step of everybody's sum all the
same.)
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax

from quietq.feedback.spaces import Spaces, stacked
from quietq.feedback.statistic import Columns, Starts, Tally, Vector

CLOSE = 0.2
"""The distance of actions, whose range is from -1 to 1, from which on a larger one counts no more."""
SMALLEST_LENGTH = 1e-3
"""Added to the length of a gradient before it is divided by it: who is imitated well enough counts for less."""


OwnNumber = Callable[[Starts, Columns], Float[np.ndarray, " people"]]
"""One number for each person, of that person's own rows alone."""


@dataclass(frozen=True)
class OwnReturns:
    """How a person's rows become one return."""

    rewards: tuple[float, float]
    """The range of rewards, of which the column is the unit interval."""
    returns: tuple[float, float]
    """The range that each person's return is clipped to."""

    def __call__(self, starts: Starts, columns: Columns) -> Float[np.ndarray, " people"]:
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
        """Returns what nobody exceeds whose states lie within one scale of the middle, as all do in the first round."""
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
    in neither number, so that the share among those who are there can be computed.
    """

    right_angles = True
    own: OwnNumber
    threshold: float
    size: int = 2
    bound: float = 1.0

    def of_people(self, starts: Starts, columns: Columns) -> Float[np.ndarray, "people size"]:
        reaches = self.own(starts, columns) >= self.threshold
        return np.stack([reaches, ~reaches], axis=-1).astype(np.float64)


def number_of_weights(widths: Sequence[int]) -> int:
    """The number of weights of a network whose layers are so wide, inputs first and outputs last."""
    return sum((inputs + 1) * outputs for inputs, outputs in itertools.pairwise(widths))


def layers(weights: Float[np.ndarray, " weights"], widths: Sequence[int]) -> list[np.ndarray]:
    """Each layer's matrix, of shape (inputs + 1, outputs) with biases in the last row, from all numbers in a row."""
    ends = np.cumsum([(inputs + 1) * outputs for inputs, outputs in itertools.pairwise(widths)])
    parts = np.split(weights, ends[:-1])
    return [part.reshape(inputs + 1, -1) for inputs, part in zip(widths[:-1], parts, strict=True)]


@dataclass(frozen=True, eq=False)
class ImitationGradient(Vector):
    """A person's gradient of how badly a network imitates them, over its own length.

    The loss is the cross-entropy of the action that was taken, where there is a list of actions. Where actions are
    numbers, the action imitated is the tanh of an output, and the slope of the loss by that output is how far off it
    is, up to `CLOSE`, as in Huber's loss. So about the median of what people do in a state is imitated: those who now
    and then do something else altogether do not draw it to the middle of the range, as they would a mean.
    """

    spaces: Spaces
    widths: tuple[int, ...]
    weights: Float[np.ndarray, " weights"]
    normal: Float[np.ndarray, "2 states"]
    """The middle and the scale of states in the unit box, by earlier answers."""
    clip: float
    """How many scales away from the middle a state counts at the most."""
    places: Float[np.ndarray, " rows"]
    """Public numbers in [0, 1): which of a person's rows are looked at, from the first to the last."""
    own: OwnReturns | None = None
    threshold: float = 0.0
    """The return below which a person's vector is 0; without `own` everybody is imitated."""
    bound: float = 1.0

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.weights)

    @property
    def rows_at_once(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return max(1, 2**18 // max(self.widths))  # so that what a layer gives fits into a cache

    def add(self, tally: Tally, starts: Starts, columns: Columns) -> None:
        """Adds people; of those whose vector is 0 no gradient is computed."""
        if not (people := len(starts)):
            return
        counts = np.diff(starts, append=len(columns["s0"]))
        if self.own is not None:
            chosen = self.own(starts, columns) >= self.threshold
            starts, counts = starts[chosen], counts[chosen]
        counts = counts[:, None]
        rows = starts[:, None] + np.minimum((self.places * counts).astype(np.int64), counts - 1)
        names = [name for name in columns if name == "action" or (name[0] in "sa" and name[1:].isdigit())]
        looked_at = {name: columns[name][rows.ravel()] for name in names}
        super().add(tally, len(self.places) * np.arange(len(starts)), looked_at)
        tally.people += people - len(starts)

    def of_people(self, starts: Starts, columns: Columns) -> Float[np.ndarray, "people size"]:
        """Returns the vectors of people who have exactly as many rows each as there are `places`."""
        gradients = self.gradients(columns)
        return gradients / (np.linalg.norm(gradients, axis=1, keepdims=True) + SMALLEST_LENGTH)

    def gradients(self, columns: Columns) -> Float[np.ndarray, "people weights"]:
        """Each person's mean gradient over their rows, in float32 until its length is taken."""
        states = stacked(columns, "s", self.spaces.states)
        inputs = np.clip((states - self.normal[0]) / self.normal[1], -self.clip, self.clip)
        inputs = inputs.reshape(-1, len(self.places), self.spaces.states).astype(np.float32)
        matrices = layers(self.weights.astype(np.float32), self.widths)
        given, outputs = forward(inputs, matrices)
        if self.spaces.actions is None:
            actions = 2 * stacked(columns, "a", self.spaces.numbers) - 1
            away = np.tanh(outputs) - actions.reshape(outputs.shape).astype(np.float32)
            slope = np.clip(away / np.float32(CLOSE), -1.0, 1.0)
        else:
            taken: Int[np.ndarray, " rows"] = columns["action"].astype(np.int64)
            chosen = np.eye(self.spaces.actions, dtype=np.float32)[taken]
            slope = softmax(outputs, axis=-1) - chosen.reshape(outputs.shape)
        return backward(slope / np.float32(len(self.places)), given, matrices).astype(np.float64)


def forward(
    inputs: Float[np.ndarray, "people rows inputs"], matrices: list[np.ndarray]
) -> tuple[list[np.ndarray], Float[np.ndarray, "people rows outputs"]]:
    """Returns what each layer is given, with a column of ones, and what the last one gives."""
    given = []
    for i, matrix in enumerate(matrices):
        given.append(np.concatenate([inputs, np.ones((*inputs.shape[:-1], 1), inputs.dtype)], axis=-1))
        inputs = np.matmul(given[-1], matrix)
        if i < len(matrices) - 1:
            inputs = np.tanh(inputs)
    return given, inputs


def backward(
    slope: Float[np.ndarray, "people rows outputs"], given: list[np.ndarray], matrices: list[np.ndarray]
) -> Float[np.ndarray, "people weights"]:
    """Each person's gradient of all weights, by the slopes of their outputs."""
    found = []
    for i in reversed(range(len(matrices))):
        found.append(np.matmul(given[i].swapaxes(1, 2), slope).reshape(len(slope), -1))
        if i:
            slope = np.matmul(slope, matrices[i][:-1].T) * (1 - given[i][..., :-1] ** 2)
    return np.concatenate(found[::-1], axis=1)
