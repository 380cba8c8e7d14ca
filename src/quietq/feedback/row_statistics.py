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
        groups = self.loss.points(columns)
        found = np.zeros((len(starts), self.dimension, self.bins))
        rows = np.diff(starts, append=len(groups[0]))
        person = np.repeat(np.arange(len(starts)), rows)
        for points in groups:
            places = np.clip((points * self.bins).astype(np.int64), 0, self.bins - 1)
            for i, place in enumerate(places.T):
                np.add.at(found[:, i], (person, place), 1.0)
        return (found / (len(groups) * rows)[:, None, None] - 1 / self.bins).reshape(len(starts), -1)


@dataclass(frozen=True, eq=False)
class ClippedGradient(Vector):
    """A person's gradient of the loss, over the clip, and beside it how much of it was left by clipping.

    v = (c G/C, TOLD (c - 1/2)) with c = min(1, C/|G|), so |v|^2 <= 1 + TOLD^2/4.
    """

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
        # Features come first, so that every step below runs along rows: element by element, or within a person.
        design = np.ascontiguousarray(self.loss.design(columns, self.features).T)
        design *= self.loss.slope(_sum(design * self.weights[:, None]), columns)
        sums = np.ascontiguousarray(np.add.reduceat(design, starts, axis=1).T)  # one person after the other
        gradients = sums / np.diff(starts, append=design.shape[1])[:, None]
        with np.errstate(divide="ignore"):
            left = np.minimum(1.0, self.clip / np.linalg.norm(gradients, axis=1))
        return np.column_stack([gradients * (left / self.clip)[:, None], TOLD * (left - 0.5)])


def _sum(terms: Float[np.ndarray, "terms rows"]) -> Float[np.ndarray, " rows"]:
    """The sum of each column, by halves; the terms are used up. NumPy's own sum of a row would round by company."""
    count = len(terms)
    while count > 1:
        half = count // 2
        terms[:half] += terms[count - half : count]
        count -= half
    return terms[0]
