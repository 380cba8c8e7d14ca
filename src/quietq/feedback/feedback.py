"""What people gave, as mechanisms see it: how one person can move it, and means of per-person statistics.

A kind of feedback is a file with a subclass of `Feedback` and a line in `quietq.feedback.FEEDBACK`. It states its
columns (a `Schema`), what is asked of each person (a `Statistic`, which holds everybody to a bound), and how far one
person can move the mean of that (a relation). How columns and states are declared, reading, grouping all rows of a
person in one place, and summing, on one machine or on Ray, are the same for all; so is what is said to whoever reads
rows that look like a mistake. That goes by counts of the raw data (`not_private`), so it is for the operator alone:
nothing is refused because of it, nothing of it is released, and each sentence says so. Arguments stand there in
backquotes, which commands turn into options.
"""

import os
import re
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeGuard, TypeVar

import numpy as np

from quietq.feedback.row_statistics import Loss
from quietq.feedback.statistic import Statistic, Tally
from quietq.noise.box import Box, Domain
from quietq.noise.feature_maps import Categorical, Columns, FeatureMap, is_data
from quietq.privacy.account import Once
from quietq.privacy.assumptions import Assumption, Code
from quietq.privacy.checks import count
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import OnePerson, Relation

if TYPE_CHECKING:
    from quietq.feedback.buckets import Buckets
    from quietq.feedback.schema import Category, Number, Schema
    from quietq.feedback.spaces import Spaces

Items = Sequence[str] | Sequence[int] | str | os.PathLike[str]
"""A public list of names, or a file with one name in each line."""
EngineName = Literal["local", "ray"]
_Item = TypeVar("_Item")
_Made = TypeVar("_Made")
_Begun = TypeVar("_Begun")
FOR_YOU = "This comes from the raw data and is for you alone."


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Feedback:
    """What people gave. It is the secret itself: make it private with `privatise`.

    Without an account, `privatise` releases the same people once: releases add up.
    """

    accuracy: ClassVar[float | None] = None
    """The largest error of a value, where values are less exact than float64: sums of people are not."""
    loss: Loss | None = None
    """What a model of everybody's rows is judged by, if it gives rows."""
    features: FeatureMap | None = None
    """A public map that the model is to be made of, if one was asked for."""
    spaces: "Spaces | None" = None
    """Where states, actions and rewards lie, if it gives sessions."""
    box: Box
    """Where states lie; public."""
    people: int
    """How many people there are; public and declared, never counted. Those without a usable row are neutral."""
    first: Statistic
    """What was asked of everybody while rows were read."""
    first_sum: Tally
    rows: "Buckets | None"
    """Everybody's rows, to be asked again; None where they were not kept."""
    not_private: dict[str, int]
    """counts for the operator; publishing them is not covered by any certificate"""
    slope: float | None = None
    """The slope of the mean over the width of the box, if it is declared."""
    schema: "Schema | None" = None
    """Which columns their rows had, if there were any; public. Audits make up rows by it."""
    once: Once = field(default_factory=lambda: Once("These people's reward"))
    """The mark by which `privatise` knows that they were released; copies and pickles carry it along."""

    @cached_property
    def relation(self) -> Relation:
        """Which inputs are neighbouring: any one person's rows are replaced by any others, or by none."""
        return OnePerson(self.people)

    @cached_property
    def clipped(self) -> tuple[Assumption, ...]:
        """Returns the assumptions that state to what each person is clipped."""
        return (Code.PERSON_CLIPPED(),)

    @cached_property
    def assumptions(self) -> tuple[Assumption, ...]:
        """How the relation is made sure of, and what no code can see."""
        stated = [*self.clipped, Code.NAMES()]
        if isinstance(self.features, Categorical):
            stated.append(Code.ITEMS_OF_LIST(self.features.rank))
        if self.loss is not None and self.loss.actions > 1:
            stated.append(Code.ACTIONS_OF_LIST(self.loss.actions))
        return Code.ONE_OF_DECLARED(self.people), *stated

    @cached_property
    def largest(self) -> float:
        """A public bound on the size of the reward, where it is a function: noise on a function is made for it."""
        return 1.0

    @cached_property
    def kind(self) -> str:
        """What it is to mechanisms: a "function" of states, "rows" that a model is fitted to, or its class's name."""
        return type(self).__name__.lower() if self.loss is None else "rows"

    @cached_property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What the coordinates of states and the actions were called when they were declared; public.

        Columns that were found by a prefix have no such names: nobody declared them.
        """
        if self.spaces is not None:
            return self.spaces.state_names, self.spaces.action_names
        fields = {} if self.schema is None or getattr(self.features, "prefix", "") else self.schema.fields
        states = [one.column for name, one in fields.items() if re.fullmatch(r"(x|option0_)\d+", name)]
        actions = getattr(fields.get("action"), "values", ())
        return tuple(states), actions

    def functions(self) -> list[Callable[[np.ndarray], np.ndarray]]:
        """The mean reward, one function per coordinate, if it is one. THE SECRET: it must not be published."""
        raise InvalidInput("Only ratings in one dimension are functions.")

    def mean(self, statistic: Statistic) -> np.ndarray:
        """The mean of a statistic over all people, each clipped to its bound. THE SECRET: it must not be published."""
        if statistic == self.first:
            return statistic.mean(self.first_sum, self.people)
        if self.rows is None:
            raise InvalidInput("These people's rows were not kept when they were read, so nothing else can be asked.")
        return statistic.mean(self.rows.total(statistic), self.people)


class Engine:
    """A `map` over pieces of a source and over buckets, and nothing else: here by this machine's cores, as threads.

    What is mapped are pure functions: an engine may run them anywhere, in any order and again, and neither sums nor
    counts change by a bit. NumPy and Polars let threads run side by side.
    """

    in_memory: ClassVar[bool] = True
    """Whether what is mapped sees this process's memory; else rows are in files that it can open."""

    def __init__(self, progress: Callable[[int], None] | None = None) -> None:
        self.progress = progress
        """Is called with the number of rows read so far."""

    def map(self, function: Callable[[_Item], _Made], items: Iterable[_Item]) -> Iterator[_Made]:
        """What the function makes of each item, in turn; items are taken as they are needed."""
        if isinstance(items, list) and len(items) == 1:  # not worth a thread
            yield function(items[0])
            return
        workers = min(len(os.sched_getaffinity(0)), 8)
        with ThreadPoolExecutor(workers) as pool:
            yield from in_turn(partial(pool.submit, function), Future[Any].result, items, ahead=workers)


def engine_called(name: EngineName | Engine, progress: Callable[[int], None] | None = None) -> Engine:
    """One of both engines, by the name that `read` takes; `progress` is called with the number of rows read so far."""
    if isinstance(name, Engine):
        return name
    if name == "local":
        return Engine(progress)
    if name == "ray":
        from quietq.feedback.ray_engine import RayEngine

        return RayEngine(progress)
    raise InvalidInput(f"engine must be 'local' or 'ray', not {name!r}.")


def in_turn(
    begin: Callable[[_Item], _Begun], end: Callable[[_Begun], _Made], items: Iterable[_Item], ahead: int
) -> Iterator[_Made]:
    """Yields the result for each item, with this many of them at work at a time."""
    begun: deque[_Begun] = deque()
    for item in items:
        begun.append(begin(item))
        if len(begun) > ahead:
            yield end(begun.popleft())
    yield from map(end, begun)


def read_people(
    source: object,
    schema: "Schema",
    statistic: Statistic,
    people: int,
    *,
    engine: EngineName | Engine = "local",
    keep: bool = False,
) -> dict[str, Any]:
    """Reads a source, and adds up its rows: `people`, `first`, `first_sum` and more, as `Feedback` takes them.

    The rows are gone then, unless they are to be kept for statistics besides this one.
    """
    from quietq.feedback.buckets import read_buckets

    people = count("people", people)
    rows, tally, counts = read_buckets(source, schema, engine_called(engine), statistic, keep)
    if tally.people > people:
        declared = f"the {people} that were declared"
        raise InvalidInput(f"There are more people in the data than {declared}; nothing was spent.")
    present = {**counts, "people_present": tally.people, **statistic.told(tally)}
    doubts = [f"{sentence[0].upper()}{sentence[1:]}." for sentence in schema.doubts(present, people)]
    if not tally.people:
        # No refusal, which would tell whether the one person with a usable row is there.
        nobody = f"No row of the {schema.kind} can be used, so all {people} people count as neutral."
        doubts = [" ".join([nobody, *doubts, "Numbers must have a decimal point, not a comma."])]
    for sentence in doubts:
        warn_of_raw_data(f"{sentence} {FOR_YOU}", stacklevel=3)
    told = {"not_private": present, "schema": schema}
    return {"people": people, "first": statistic, "first_sum": tally, "rows": rows, **told}


# What is declared of columns and states.


def is_list(given: object, of: type | UnionType = str) -> TypeGuard[Items]:
    """Says whether it is a public list, of names unless said otherwise, or a file of one; and no box."""
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
    """Returns the box as it was declared: a pair (low, high) for each column, or one for all of them."""
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


def domain_of(box: Domain | Items, features: FeatureMap | None, dimension: int) -> tuple[Box, FeatureMap | None]:
    """Returns where states lie, and the public map of them, if any; `dimension` is the number of a state's columns."""
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
        return Box((0.0,), (catalogue.rank - 1.0,)), catalogue
    return box_of("box", box, "a state", dimension), None if features is None else features.sized(dimension)


def state_fields(
    name: str, columns: Sequence[str], box: Box, features: FeatureMap | None, optional: bool = False
) -> "Mapping[str, Number | Category]":
    """The columns of a state, for a schema, as `name` and a number: losses and labels look for x0, x1, and so on.

    What is optional and bad becomes NaN, and its row stays.
    """
    from quietq.feedback.schema import Category

    if isinstance(features, Categorical):
        places = tuple((np.arange(features.rank) / max(features.rank - 1, 1)).tolist())
        return {f"{name}0": Category(columns[0], "state", features.items, places, optional=optional)}
    return numbers_in(name, "state", columns, box, features is not None and features.clips, optional)


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


# What is said to the operator.

_DECLARED = {
    "state": "its columns, and `box`",
    "action": "`action`, and `actions`",
    "choice": "`choice`, and which words it may hold",
}
"""Where it was declared what can be used, if not by the argument of the same name."""
_RANGES = {"state": "`box`", "next state": "`box`", "action": "`actions`"}
_WHY = {"bad": "no such", "blank": "blank", "outside": "outside"}
_NOISE = "noise is made for the declared number, and one that is too large understates the error"


def warn_of_raw_data(sentence: str, stacklevel: int = 2) -> None:
    """Warns as `warnings.warn` does, but goes on whatever filters make of that.

    Whether there is such a warning depends on what people gave. Where warnings are errors (`python -W error`) it would
    end the program for some people's data and not for others', which others may notice. So then it is only printed.
    """
    try:
        warnings.warn(sentence, UserWarning, stacklevel=stacklevel + 1)
        return
    except Exception:
        pass
    with suppress(Exception):
        if sys.stderr is not None:
            print(f"Warning: {sentence}", file=sys.stderr)


def doubts_of_rows(counts: Mapping[str, int], people: int) -> list[str]:
    """Sentences on ratings or comparisons; none if all is as it should be."""
    rows, used = counts.get("rows", 0), counts.get("used_rows", 0)
    found = []
    if used < 0.5 * rows:
        why = explained(counts, rows - used)
        found.append(f"only {used:,} of {rows:,} rows can be used: {why or 'check columns, ranges and lists'}")
    return [*found, *outside(counts, 0.5 * used), *missing(counts, people, "a usable row")]


def explained(counts: Mapping[str, int], lost: int, last: int = 0) -> str:
    """The columns that explain by themselves why at least half of these rows are lost, and where to look.

    The `last` rows of episodes need no action and no reward.
    """
    unusable: dict[str, dict[str, int]] = {}
    for name, number in counts.items():
        why, _, what = name.replace("without_person", "blank_person").partition("_")
        if why in _WHY:
            needless = last if why == "blank" and what in ("action", "reward", "propensity") else 0
            unusable.setdefault(what, {})[_WHY[why]] = max(number - needless, 0)
    sentences = []
    for what, reasons in unusable.items():
        if lost and sum(reasons.values()) >= 0.5 * lost:
            parts = ", ".join(f"{part:,} {why}" for why, part in reasons.items() if part)
            named = f"have no usable {what.replace('_', ' ')}: check {_DECLARED.get(what, f'`{what}`')}"
            sentences.append(f"{sum(reasons.values()):,} {named} ({parts})")
    return "; ".join(sentences)


def outside(counts: Mapping[str, int], most: float) -> Iterator[str]:
    """Sentences on columns of which more numbers than that were clipped."""
    for name, number in counts.items():
        if name.startswith("clipped_") and number > most:
            what = name.removeprefix("clipped_").replace("_", " ")
            where = _RANGES.get(what[:-1], "`low` and `high`")
            yield f"{number:,} {what} lie outside what was declared: check {where}"


def missing(counts: Mapping[str, int], people: int, what: str) -> Iterator[str]:
    """A sentence if far fewer people are there than were declared."""
    present = counts.get("people_present", 0)
    if present < 0.5 * people:
        yield f"only {present:,} of {people:,} people have {what}: check `people`, because {_NOISE}"
