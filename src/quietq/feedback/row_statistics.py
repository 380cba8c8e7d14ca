"""Per-person statistics of rows, for mechanisms that fit one model to everybody's rows.

A person with many rows counts once: everything is a mean over their rows, held to a bound. All of it is computed
element by element, row by row or person by person, so that nobody's company changes a bit of their vector; the noise
allows for a step of everybody's sum all the same (`COMPANY`).
"""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from quietq.feedback.loss import Loss, Phi
from quietq.feedback.statistic import Columns, Starts, Vector

COMPANY = 2.0**-39
"""By so much of its bound, times the root of its size, a mean of vectors may move with the company that people are in,
a step of `statistic` for each neighbour. Whoever looks at it adds that to the sensitivity."""
TOLD = 0.5
"""How much of a unit the fraction of a gradient that was not clipped away counts: it costs noise, by 3 %."""


@dataclass(frozen=True, eq=False)
class Marginals(Vector):
    """Where states lie, coordinate by coordinate: how often in each of some bins, beyond an even share."""

    loss: Loss
    dimension: int
    bins: int
    size: int = field(init=False)
    bound: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", self.dimension * self.bins)
        object.__setattr__(self, "bound", 0.5 * self.dimension**0.5)

    def of_people(self, starts: Starts, columns: Columns) -> Float[np.ndarray, "people size"]:
        options = self.loss.points(columns)
        found = np.zeros((len(starts), self.dimension, self.bins))
        person = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(options[0])))
        for points in options:
            there = ~np.isnan(points.sum(axis=1))
            places = np.clip((points[there] * self.bins).astype(np.int64), 0, self.bins - 1)
            for i, place in enumerate(places.T):
                np.add.at(found[:, i], (person[there], place), 1.0)
        told = found.sum(axis=(1, 2), keepdims=True) / self.dimension
        return np.where(told > 0, found / np.maximum(told, 1.0) - 1 / self.bins, 0.0).reshape(len(starts), -1)


@dataclass(frozen=True, eq=False)
class ClippedGradient(Vector):
    """A person's gradient of the loss, over the clip, and beside it how much of it was left by clipping."""

    loss: Loss
    features: Phi
    weights: Float[np.ndarray, " rank"]
    clip: float
    size: int = field(init=False)
    bound: float = field(init=False)
    rows_at_once: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", len(self.weights) + 1)
        object.__setattr__(self, "bound", (1 + TOLD**2 / 4) ** 0.5)
        object.__setattr__(self, "rows_at_once", max(1, 2**18 // len(self.weights)))  # so that they fit into a cache

    def of_people(self, starts: Starts, columns: Columns) -> Float[np.ndarray, "people size"]:
        return clipped(self.loss.gradients(starts, columns, self.features, self.weights), self.clip)


@dataclass(frozen=True, eq=False)
class ClippedFit(Vector):
    """The weights that a person's own answers come to, each expected around 0 with its prior variance, over the clip.

    They are solved for among a person's answers, which are few, and not among features, which are many. Of more than
    `most` answers, the first are taken, in the order that the person's rows have.
    """

    loss: Loss
    features: Phi
    variances: Float[np.ndarray, " rank"]
    clip: float
    most: int = 200
    size: int = field(init=False)
    bound: float = field(init=False)
    rows_at_once: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", len(self.variances) + 1)
        object.__setattr__(self, "bound", (1 + TOLD**2 / 4) ** 0.5)
        object.__setattr__(self, "rows_at_once", max(1, 2**18 // len(self.variances)))

    def of_people(self, starts: Starts, columns: Columns) -> Float[np.ndarray, "people size"]:
        return clipped(self.fits(starts, columns), self.clip)

    def fits(self, starts: Starts, columns: Columns) -> Float[np.ndarray, "people rank"]:
        """Each person's posterior mean."""
        starts, design, response = self.loss.answers(starts, columns, self.features)
        found = np.zeros((len(starts), len(self.variances)))
        for i, first in enumerate(starts):
            last = starts[i + 1] if i + 1 < len(starts) else len(design)
            own = slice(first, min(last, first + self.most))
            found[i] = response[own] @ self._solve(design[own])
        return found

    def kept(self, design: Float[np.ndarray, "answers rank"]) -> Float[np.ndarray, " rank"]:
        """How much of each weight such answers let a person's own model show."""
        return (design * self._solve(design)).sum(axis=0)

    def _solve(self, design: Float[np.ndarray, "answers rank"]) -> Float[np.ndarray, "answers rank"]:
        """From responses to posterior means."""
        spread = design * self.variances
        return np.linalg.solve(spread @ design.T + self.loss.noise * np.eye(len(spread)), spread)


def clipped(vectors: Float[np.ndarray, "people rank"], clip: float) -> Float[np.ndarray, "people size"]:
    """v = (c G/C, TOLD (c - 1/2)) with c = min(1, C/|G|), so |v|^2 <= 1 + TOLD^2/4."""
    with np.errstate(divide="ignore"):
        left = np.minimum(1.0, clip / np.linalg.norm(vectors, axis=1))
    return np.column_stack([vectors * (left / clip)[:, None], TOLD * (left - 0.5)])
