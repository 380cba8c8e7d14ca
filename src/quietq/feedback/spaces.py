"""What people speak of, in public: places in a box or items of a list, and what they can do there.

`States` are what a caller declares of columns of states, and `Spaces` what sessions are about: how a row's state and
action become one point of a unit box.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from jaxtyping import Float

from quietq.feedback.statistic import Columns as Rows
from quietq.noise.box import Box, Domain
from quietq.noise.feature_maps import Categorical, Columns, FeatureMap, is_data
from quietq.privacy.assumptions import Assumption, Code
from quietq.privacy.checks import checked_names, count, ends
from quietq.privacy.errors import InvalidInput

if TYPE_CHECKING:
    from quietq.feedback.schema import Category, Number

Items = Sequence[str] | Sequence[int] | str | os.PathLike[str]
"""A public list of names, or a file with one name in each line."""


def is_list(given: object, of: type | UnionType = str) -> TypeGuard[Items]:
    """Whether it is a public list, of names unless said otherwise, or a file of one; and no box."""
    if isinstance(given, str | os.PathLike):
        return True
    return isinstance(given, Sequence) and all(isinstance(one, of) for one in given)


def named(what: str, given: Items) -> tuple[str, ...]:
    """The names of a public list or file."""
    if isinstance(given, str | os.PathLike):
        try:
            lines = Path(given).read_text("utf-8").splitlines()
        except (OSError, ValueError) as error:  # of letters that are none, in the file or in its name
            raise InvalidInput(
                f"{what} could not be read from the file {str(given)!r}: it must be such a file, or a list of names."
            ) from error
        return tuple(line.strip() for line in lines if line.strip())
    if not isinstance(given, Sequence) or not all(isinstance(one, str | int) for one in given):
        raise InvalidInput(f"{what} must be a list of names, or a file with one name in each line.")
    return tuple(str(one) for one in given)


def box_of(name: str, given: object, what: str, columns: int) -> Box:
    """As it was declared: a pair (low, high) for each column, or one for all of them."""
    box = Box.of(given)
    if box.dimension == 1 < columns:
        box = Box(box.low * columns, box.high * columns)
    if box.dimension != columns:
        raise InvalidInput(
            f"{name} has {box.dimension} dimensions, but {what} has {columns} columns: give a pair (low, high) for "
            "each, or one for all of them."
        )
    return box


def numbers_in(
    name: str, what: str, columns: Sequence[str], box: Box, clips: bool = True, optional: bool = True
) -> "dict[str, Number]":
    """Columns of numbers that lie in a box, which becomes the unit box, for a schema."""
    from quietq.feedback.schema import Number

    ends = zip(columns, box.low, box.high, strict=True)
    return {
        f"{name}{i}": Number(column, what, low, high, clips=clips, scales=True, optional=optional)
        for i, (column, low, high) in enumerate(ends)
    }


@dataclass(frozen=True)
class States:
    """Where states lie, and the public map of them that was asked for, if any."""

    box: Box
    features: FeatureMap | None

    @classmethod
    def of(cls, box: Domain | Items, features: FeatureMap | None, dimension: int) -> "States":
        """From what a caller declares; `dimension` is the number of columns of a state."""
        if features is not None and not isinstance(features, FeatureMap):
            raise InvalidInput(f"features must be a public feature map, not {type(features).__name__}.")
        if features is not None and not is_data(features):
            raise InvalidInput(
                f"features must be one of quietq's own public maps, and {type(features).__name__} is code, which could "
                "look at several people at once: take one of them, or leave features out."
            )
        if is_list(box):
            if features is not None or dimension != 1:
                raise InvalidInput("Items are one column of names, and are their own features: leave features out.")
            catalogue = Categorical(named("box", box))
            return cls(Box((0.0,), (catalogue.rank - 1.0,)), catalogue)
        region = box_of("box", box, "a state", dimension)
        return cls(region, None if features is None else features.sized(dimension))

    def fields(self, name: str, columns: Sequence[str], optional: bool = False) -> "Mapping[str, Number | Category]":
        """The columns of a state, for a schema; what is optional and bad becomes NaN, and its row stays."""
        from quietq.feedback.schema import Category

        if isinstance(self.features, Categorical):
            items = self.features.items
            return {f"{name}0": Category(columns[0], "state", items, scales=True, optional=optional)}
        clips = self.features is not None and self.features.clips
        return numbers_in(name, "state", columns, self.box, clips, optional)


def from_lists(features: FeatureMap | None, actions: int = 1) -> tuple[Assumption, ...]:
    """What a certificate says of the public lists that states and actions are of."""
    items = [Code.ITEMS_OF_LIST(features.rank)] if isinstance(features, Categorical) else []
    return (*items, *([Code.ACTIONS_OF_LIST(actions)] if actions > 1 else []))


def columns_of(
    what: str, given: str | Sequence[str] | None, features: FeatureMap | None = None, source: object = None
) -> Sequence[str]:
    """Columns as they are named, or of a state all that start as the features say."""
    if isinstance(features, Columns) and features.prefix:
        from quietq.feedback.rows import header

        found = [name for name in header(source) if name.startswith(features.prefix)]
        if not found:
            raise InvalidInput(f"No column's name starts with {features.prefix!r}: prefix must say which are meant.")
        return found
    if given is None:
        raise InvalidInput(f"{what} must name its columns.")
    return [given] if isinstance(given, str) else list(given)


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
        """Of states and actions together."""
        return self.states + (self.numbers if self.actions is None else self.actions - 1)

    def join(self, states: Any, actions: Any, xp: Any = np) -> Any:
        """Points (..., dimension) of the unit box, of states and of actions: numbers, or the number of one."""
        if self.actions is not None:
            actions = xp.where(actions[..., None] == np.arange(1, self.actions), 1.0, 0.0)
        return xp.concatenate([states, xp.asarray(actions, states.dtype)], axis=-1)

    def in_words(self) -> str:
        """What a state and an action are, by name and range."""
        low, high = self.box.low, self.box.high
        states = _ranges(self.state_names, low, high)
        if self.action_box is None:
            return f"states {states}; actions {', '.join(f'{i} {name}' for i, name in enumerate(self.action_names))}"
        return f"states {states}; actions {_ranges(self.action_names, self.action_box.low, self.action_box.high)}"

    def points(self, columns: Rows) -> Float[np.ndarray, "rows dimension"]:
        actions = columns["action"] if self.actions is not None else stacked(columns, "a", self.numbers)
        return self.join(stacked(columns, "s", self.states), actions)


def stacked(columns: Rows, name: str, number: int) -> Float[np.ndarray, "rows number"]:
    return np.stack([columns[f"{name}{i}"] for i in range(number)], axis=-1).astype(np.float64)


def _ranges(names: Sequence[str], low: Sequence[float], high: Sequence[float]) -> str:
    return ", ".join(f"{name} [{a:g}, {b:g}]" for name, a, b in zip(names, low, high, strict=True))
