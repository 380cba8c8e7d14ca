"""Public cells of states, in which people's steps are counted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from quietq.privacy.checks import ask_code, count, numbers
from quietq.privacy.errors import InvalidInput


@dataclass(frozen=True)
class Cells:
    """A public, finite partition of the states, chosen without the data.

    >>> halves = Cells.between([0.0, 0.5, 1.0])
    >>> halves.index(np.array([0.1, 0.5, 7.0]))
    array([0, 1, 1])
    """

    count: int
    """Number of cells."""
    rule: Callable[[np.ndarray], np.ndarray]
    """A function from states, one a row, to the number of each one's cell; any other number is in no cell."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", count("cells", self.count))
        if not callable(self.rule):
            raise InvalidInput(f"rule must be a function of states, not {type(self.rule).__name__}.")

    @property
    def asks_code(self) -> bool:
        """Whether the rule is the caller's: then it gets no person's states before the charge."""
        return type(self) is not Cells or not (self.rule is _whole or type(self.rule) is Bins)

    @classmethod
    def states(cls, n: int) -> "Cells":
        """Each of the states 0 .. n - 1 is a cell of its own."""
        return cls(n, _whole)

    @classmethod
    def between(cls, edges: Sequence[float] | np.ndarray) -> "Cells":
        """Bins of a real state; what lies outside belongs to the nearest."""
        points = numbers("edges", edges)
        if points.ndim != 1 or len(points) < 2 or not np.isfinite(points).all() or not (np.diff(points) > 0).all():
            raise InvalidInput("edges must be at least two finite numbers that rise.")
        return cls(len(points) - 1, Bins(tuple(points.tolist())))

    def index(self, states: np.ndarray) -> Int[np.ndarray, " states"]:
        """The cell of each state; -1 for those that are in none."""
        if len(states) == 0:
            return np.empty(0, dtype=np.int64)
        found = numbers("The cells", ask_code("The rule of the cells", self.rule, states.copy()))
        if found.shape != (len(states),):
            raise InvalidInput("The rule of the cells must return one number for each state; nothing was released.")
        inside = (found >= 0) & (found < self.count)
        return np.where(inside, found, -1).astype(np.int64)


@dataclass(frozen=True)
class Bins:
    edges: tuple[float, ...]

    def __call__(self, states: np.ndarray) -> Int[np.ndarray, " states"]:
        return np.searchsorted(self.edges[1:-1], _column(states), side="right")


def _whole(states: np.ndarray) -> np.ndarray:
    return np.floor(_column(states))


def _column(states: np.ndarray) -> np.ndarray:
    """Real states as an array, also if each came as a row of one number, like Gymnasium's."""
    return states[:, 0] if states.ndim == 2 and states.shape[1] == 1 else states
