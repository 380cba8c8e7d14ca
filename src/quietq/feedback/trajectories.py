"""What of people's trajectories policy evaluation looks at: in each public cell, how many came by, and their returns.

Each trajectory counts at most once in a cell, with the discounted sum of its rewards from its first visit on, to its
end. Rewards are clipped to [-R, R], trajectories cut at the horizon H, and returns clipped to [-V, V] *here*, for
V = R (1 - gamma^H)/(1 - gamma) as floating point has it. So replacing one trajectory changes each count by at most 1,
whatever the data hold. Cells are asked about one trajectory at a time: none can move another's.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from quietq.privacy.checks import ask_code, count, numbers
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import Trajectories

Trajectory = tuple[ArrayLike, ArrayLike]
"""States s_0 .. s_(T-1), and the rewards that followed each of them."""


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
    """From an array of states, one a row, to the number of each one's cell; any other number is in no cell."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", count("cells", self.count))
        if not callable(self.rule):
            raise InvalidInput(f"rule must be a function of states, not {type(self.rule).__name__}.")

    @property
    def asks_code(self) -> bool:
        """Whether the rule is the caller's: then it sees nobody's states before they are paid for."""
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


@dataclass(frozen=True, eq=False, repr=False)
class Visits:
    """First-visit Monte Carlo: private, and never part of a release."""

    counts: Int[np.ndarray, " cells"]
    """In each cell, how many trajectories came by."""
    sums: Float[np.ndarray, " cells"]
    """In each cell, the sum of their returns from the first visit on."""

    @classmethod
    def of(cls, data: Sequence[Trajectory], cells: Cells, gamma: float, relation: Trajectories) -> "Visits":
        """Counts and sums of all trajectories; refuses what is not finite before the cells are asked."""
        returns: list[list[float]] = [[] for _ in range(cells.count)]
        most = largest_return(relation, gamma)
        for states, rewards in checked(data, relation):
            for cell, later in first_visits(states, rewards, cells, gamma, most):
                returns[cell].append(later)
        # fsum is exact up to its last place: the order and the number of people leave no trace in the rounding
        return cls(np.array([len(r) for r in returns]), np.array([math.fsum(r) for r in returns]))


def first_visits(
    states: np.ndarray, rewards: np.ndarray, cells: Cells, gamma: float, largest: float
) -> Iterator[tuple[int, float]]:
    """Each cell that one trajectory comes by, with the return from its first visit on, clipped to the largest."""
    later = np.clip(_returns(rewards, gamma), -largest, largest).tolist()
    visited, first = np.unique(cells.index(states), return_index=True)
    return ((cell, later[step]) for cell, step in zip(visited.tolist(), first.tolist(), strict=True) if cell >= 0)


def largest_return(relation: Trajectories, gamma: float) -> float:
    """The most that a return can be: R (1 - gamma^H)/(1 - gamma), or R/(1 - gamma) without a horizon.

    >>> largest_return(Trajectories(count=9, largest_reward=1.0, horizon=2), gamma=0.5)
    1.5
    """
    if not 0 <= gamma <= 1:
        raise InvalidInput(f"gamma must lie between 0 and 1, not {gamma!r}.")
    if gamma == 1:
        if relation.horizon is None:
            raise InvalidInput("gamma must be below 1, not 1.0, unless a horizon is declared.")
        return relation.largest_reward * relation.horizon
    left = 0.0 if relation.horizon is None else gamma**relation.horizon
    return relation.largest_reward * (1 - left) / (1 - gamma)


def checked(data: Sequence[Trajectory], relation: Trajectories) -> list[tuple[np.ndarray, np.ndarray]]:
    """As many as were declared, as arrays of finite numbers, clipped and cut; no code of the caller's sees them."""
    if len(data) != relation.count:
        raise InvalidInput(f"{relation.count} trajectories were declared, but {len(data)} given.")
    return [_checked(trajectory, relation) for trajectory in data]


def _checked(trajectory: object, relation: Trajectories) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(trajectory, tuple | list) or len(trajectory) != 2:
        raise InvalidInput("Each trajectory must be a pair (states, rewards).")
    states, rewards = numbers("States", trajectory[0]), numbers("Rewards", trajectory[1])
    if rewards.ndim != 1 or states.ndim < 1 or len(states) != len(rewards):
        raise InvalidInput("Each trajectory must have one reward for each of its states.")
    if not (np.isfinite(states).all() and np.isfinite(rewards).all()):
        raise InvalidInput("States and rewards must be finite numbers; nothing was drawn.")
    largest, end = relation.largest_reward, relation.horizon
    return states[:end], np.clip(rewards[:end], -largest, largest)


def _returns(rewards: np.ndarray, gamma: float) -> list[float]:
    later, total = [], 0.0
    for reward in rewards[::-1].tolist():
        total = reward + gamma * total
        later.append(total)
    return later[::-1]
