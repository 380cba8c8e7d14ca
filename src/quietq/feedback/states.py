"""What people speak of: places in a public box, or items of a public list."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, TypeGuard

from quietq.noise.box import Box, Domain
from quietq.noise.feature_maps import Categorical, Columns, FeatureMap, is_data
from quietq.privacy.assumptions import Assumption, Code
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
        from quietq.feedback.schema import Category, Number

        if isinstance(self.features, Categorical):
            items = self.features.items
            return {f"{name}0": Category(columns[0], "state", items, scales=True, optional=optional)}
        clips, low, high = self.features is not None and self.features.clips, self.box.low, self.box.high
        return {
            f"{name}{i}": Number(column, "state", low[i], high[i], clips=clips, scales=True, optional=optional)
            for i, column in enumerate(columns)
        }


def from_lists(features: FeatureMap | None, actions: int = 1) -> tuple[Assumption, ...]:
    """What a certificate says of the public lists that states and actions are of."""
    items = [Code.ITEMS_OF_LIST(features.rank)] if isinstance(features, Categorical) else []
    return (*items, *([Code.ACTIONS_OF_LIST(actions)] if actions > 1 else []))


def columns_of(what: str, given: str | Sequence[str] | None, features: FeatureMap | None, source: object) -> list[str]:
    """The columns of a state: as they are named, or all that start as the features say."""
    if isinstance(features, Columns) and features.prefix:
        from quietq.feedback.rows import header

        found = [name for name in header(source) if name.startswith(features.prefix)]
        if not found:
            raise InvalidInput(f"No column's name starts with {features.prefix!r}: prefix must say which are meant.")
        return found
    if given is None:
        raise InvalidInput(f"{what} must name the columns of a state.")
    return [given] if isinstance(given, str) else list(given)
