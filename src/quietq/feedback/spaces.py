"""What sessions are about, in public: how a row's state and action become one point of a unit box."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.feedback.statistic import Columns
from quietq.noise.box import Box
from quietq.privacy.checks import checked_names, count, ends
from quietq.privacy.errors import InvalidInput


@dataclass(frozen=True)
class Spaces:
    """Where states, actions and rewards lie, as it was declared: `actions` of a list, or else numbers in a box.

    The first of a list of actions is the corner 0, and each other one has a coordinate of its own.
    """

    box: Box
    actions: int | None = None
    action_box: Box | None = None
    low: float = 0.0
    high: float = 1.0
    told: tuple[str, ...] = ("next", "reward", "end")
    """What rows tell of a step, besides state and action: the next state, its reward, whether an episode ended."""
    state_names: tuple[str, ...] = field(default=(), compare=False)
    action_names: tuple[str, ...] = field(default=(), compare=False)
    """What coordinates of states are called, and actions of the list, or coordinates of actions that are numbers.
    Public, for people to read: whoever calls them otherwise means the same spaces."""

    def __post_init__(self) -> None:
        if (self.actions is None) == (self.action_box is None):
            raise InvalidInput("There must be a number of actions, or else an action_box: state one of both.")
        if self.actions is not None:
            count("actions", self.actions)
        ends(self.low, self.high)
        for name, number in (("state", self.states), ("action", self.actions or self.numbers)):
            given = getattr(self, f"{name}_names") or [f"{name} {i}" for i in range(number)]
            object.__setattr__(self, f"{name}_names", checked_names(name, given, number))

    @cached_property
    def states(self) -> int:
        """How many coordinates a state has."""
        return self.box.dimension

    @cached_property
    def numbers(self) -> int:
        """How many numbers an action is, if it is none of a list."""
        return 0 if self.action_box is None else self.action_box.dimension

    @cached_property
    def dimension(self) -> int:
        """Returns the dimension of states and actions together."""
        return self.states + (self.numbers if self.actions is None else self.actions - 1)

    def join(self, states: Any, actions: Any, xp: Any = np) -> Any:
        """Points (..., dimension) of the unit box, of states and of actions: numbers, or the number of one."""
        if self.actions is not None:
            actions = xp.where(actions[..., None] == np.arange(1, self.actions), 1.0, 0.0)
        return xp.concatenate([states, xp.asarray(actions, states.dtype)], axis=-1)

    def in_words(self) -> str:
        """Returns what a state and an action are, by name and range."""
        low, high = self.box.low, self.box.high
        states = _ranges(self.state_names, low, high)
        if self.action_box is None:
            return f"states {states}; actions {', '.join(f'{i} {name}' for i, name in enumerate(self.action_names))}"
        return f"states {states}; actions {_ranges(self.action_names, self.action_box.low, self.action_box.high)}"

    def points(self, columns: Columns) -> Float[np.ndarray, "rows dimension"]:
        actions = columns["action"] if self.actions is not None else stacked(columns, "a", self.numbers)
        return self.join(stacked(columns, "s", self.states), actions)


def stacked(columns: Columns, name: str, number: int) -> Float[np.ndarray, "rows number"]:
    return np.stack([columns[f"{name}{i}"] for i in range(number)], axis=-1).astype(np.float64)


def _ranges(names: Sequence[str], low: Sequence[float], high: Sequence[float]) -> str:
    return ", ".join(f"{name} [{a:g}, {b:g}]" for name, a, b in zip(names, low, high, strict=True))
