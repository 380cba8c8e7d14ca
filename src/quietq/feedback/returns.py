"""What each person's sessions say of policies that did not make them: returns, weighted by how likely they were.

A step that the policy takes with probability p, and that was taken with probability b, counts p/b times. A return is
the per-decision weighted return (Precup, Sutton & Singh 2000)

    V_t = p/b (r_t + discount V_(t+1)),

which is not biased if b is right. The mean over a person's episodes is clipped to a declared range: that is one number
per person and policy, however many steps they took.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from quietq.feedback.cells import Cells
from quietq.feedback.statistic import Columns, Starts, Vector
from quietq.noise.box import Box
from quietq.privacy.checks import STATES_OF_PEOPLE, ask_code
from quietq.privacy.errors import InvalidInput

Policy = Callable[[np.ndarray], np.ndarray]
"""A function from states, shape (states, d), to the probability of each action, shape (states, actions)."""
SQUARES = math.sqrt((11 + 5 * math.sqrt(5)) / 8)
"""How much squares count beside the numbers themselves: the most that costs no sensitivity
(docs/theory.md#policy-values)."""


@dataclass(frozen=True, eq=False)
class Returns(Vector):
    """For each policy, where a person's return lies in the declared range, from -1 to 1; and its square."""

    policies: tuple[Policy, ...]
    behaviour: Policy | None
    """The policy by which actions were chosen; None where each row has its propensity."""
    box: Box
    actions: int
    rewards: tuple[float, float]
    """The range of rewards."""
    returns: tuple[float, float]
    """The range that a person's return is clipped to."""
    discount: float
    per_step: bool
    against: Policy | None = None
    """Whose return is taken off everybody's first, so that the range is that of differences."""
    rows_at_once: int = 2**16

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return 2 * len(self.policies)

    @property
    def bound(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return math.sqrt(len(self.policies) * (1 + SQUARES**2))

    @property
    def diameter(self) -> float:
        """Returns and their squares together are as far apart as returns alone can be: squares cost nothing."""
        return 2 * math.sqrt(len(self.policies))

    def of_people(self, starts: Starts, columns: Columns) -> Float[np.ndarray, "people size"]:
        """People without a usable episode are in the middle of the range."""
        low, high = self.returns
        people = len(starts)
        first, person, length = whole_episodes(starts, columns)
        states = states_of(columns, self.box)
        policies = {id(one): one for one in (*self.policies, self.behaviour, self.against) if one is not None}
        probable = {  # each is asked once, however often it stands there
            key: np.clip(_taken(asked(one, states, self.actions, starts), columns), 0.0, 1.0)
            for key, one in policies.items()
        }
        chosen = columns["propensity"] if self.behaviour is None else probable[id(self.behaviour)]
        weights = np.where(chosen > 0, 1 / np.where(chosen > 0, chosen, 1.0), 0.0)  # 0 where it is impossible
        rewards = self.rewards[0] + (self.rewards[1] - self.rewards[0]) * columns["reward"]
        number = np.bincount(person, minlength=people)

        def mean(policy: Policy) -> Float[np.ndarray, " people"]:
            total = weighted_returns(first, length, probable[id(policy)] * weights, rewards, self.discount)
            total = total / length if self.per_step else total
            return np.bincount(person, total, minlength=people) / np.maximum(number, 1)

        with np.errstate(all="ignore"):  # what is not finite will count as the middle
            means = np.stack([mean(policy) for policy in self.policies], axis=-1)
            means = means if self.against is None else means - mean(self.against)[:, None]
            found = np.where(number[:, None] > 0, np.clip((2 * means - low - high) / (high - low), -1, 1), 0.0)
        return np.hstack([found, SQUARES * found**2])


@dataclass(frozen=True, eq=False)
class ActionShares(Vector):
    """How often a person took each action in each public cell, as shares of their steps. No entry is negative."""

    right_angles = True
    cells: Cells
    box: Box
    actions: int
    bound: float = 1.0

    @property
    def size(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.cells.count * self.actions

    def of_people(self, starts: Starts, columns: Columns) -> Float[np.ndarray, "people size"]:
        each = of_each(states_of(columns, self.box), starts)  # a rule must not see several people at once
        cell = np.concatenate([np.zeros(0, int), *map(self.cells.index, each)])
        counts = np.diff(starts, append=len(cell))
        person = np.repeat(np.arange(len(starts)), counts)
        place = person * self.size + cell * self.actions + columns["action"]
        found = np.bincount(place[cell >= 0], minlength=len(starts) * self.size)
        return found.reshape(len(starts), self.size) / counts[:, None]


def whole_episodes(
    starts: Starts, columns: Columns
) -> tuple[Int[np.ndarray, " episodes"], Int[np.ndarray, " episodes"], Int[np.ndarray, " episodes"]]:
    """The row of each episode's first step, whose it is, and its steps up to the first gap.

    Nobody knows what was done after that one.
    """
    episode, step = columns["episode"], columns["step"]
    begin = np.flatnonzero(np.append(True, episode[1:] != episode[:-1]))
    of = np.repeat(begin, np.diff(begin, append=len(episode)))
    gap = step != np.arange(len(step)) - of
    gaps = np.cumsum(gap)
    whole = (gaps - (gaps - gap)[of] == 0).astype(np.int64)
    length = np.add.reduceat(whole, begin)
    begin, length = begin[length > 0], length[length > 0]
    return begin, np.searchsorted(starts, begin, side="right") - 1, length


def weighted_returns(
    first: Int[np.ndarray, " episodes"],
    length: Int[np.ndarray, " episodes"],
    ratio: np.ndarray,
    rewards: np.ndarray,
    discount: float,
) -> Float[np.ndarray, " episodes"]:
    """The recursion above, from each episode's last step back to its first; only sums within an episode."""
    later = np.zeros(len(first))
    order = np.argsort(-length, kind="stable")
    longest = length[order]
    for place in range(int(longest[0]) - 1 if len(longest) else -1, -1, -1):
        there = order[: np.searchsorted(-longest, -place, side="left")]
        rows = first[there] + place
        later[there] = ratio[rows] * (rewards[rows] + discount * later[there])
    return later


def states_of(columns: Columns, box: Box) -> Float[np.ndarray, "rows d"]:
    """Returns states in the units of the box, to twelve digits: a 3 that was read is a 3 again."""
    sides = []
    for i, (low, high) in enumerate(zip(box.low, box.high, strict=True)):
        digits = 11 - math.floor(math.log10(max(abs(low), abs(high))))
        sides.append(np.clip(np.round(low + columns[f"s{i}"] * (high - low), digits), low, high))
    return np.stack(sides, axis=-1)


def asked(
    function: Policy,
    states: Float[np.ndarray, "rows d"],
    actions: int,
    starts: Starts,
    what: str = "A policy",
    where: str = STATES_OF_PEOPLE,
) -> Float[np.ndarray, "rows actions"]:
    """Returns what a function of states says of each action, asked of one person's states at a time, on a copy.

    In one batch the last bits of what it says of a state may hang on how many others there are. If it fails, what it
    says of that is not passed on.
    """
    parts = of_each(states, starts)
    each = [
        ask_code(what, lambda part: np.asarray(function(part.copy()), np.float64), one, where=where) for one in parts
    ]
    if any(found.shape != (len(part), actions) for found, part in zip(each, parts, strict=True)):
        raise InvalidInput(f"{what} must give {actions} numbers for each state, one for each action.")
    return np.concatenate([np.zeros((0, actions)), *each])


def of_each(states: Float[np.ndarray, "rows d"], starts: Starts) -> list[np.ndarray]:
    """Person by person."""
    return np.split(states, starts[1:]) if len(starts) else []


def _taken(values: Float[np.ndarray, "rows actions"], columns: Columns) -> Float[np.ndarray, " rows"]:
    return values[np.arange(len(values)), columns["action"]]
