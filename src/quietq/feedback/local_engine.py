"""Rows to tallies on one machine: one streaming pass, people in slices, both cores."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
import polars as pl

from quietq.feedback.grouping import Grouped, arranged, grouped, whole_people
from quietq.feedback.rows import batches
from quietq.feedback.schema import Schema
from quietq.feedback.statistic import Statistic, Tally
from quietq.privacy.errors import EngineFailed, QuietqError

_WORKERS = 2
_Part = TypeVar("_Part")
_Made = TypeVar("_Made")


def add_up(
    source: object, schema: Schema, statistic: Statistic, progress: Callable[[int], None] | None = None
) -> tuple[Tally, dict[str, int]]:
    """The sum over everybody, and counts for the operator."""
    counts: Counter[str] = Counter(used_rows=0)
    return _tally(whole_people(cleaned(source, schema, counts, progress)), statistic, grouped), dict(counts)


def keep(
    source: object, schema: Schema, progress: Callable[[int], None] | None = None
) -> "tuple[Kept, dict[str, int]]":
    """Everybody's rows in memory, each person's together, and counts for the operator."""
    counts: Counter[str] = Counter(used_rows=0)
    parts = whole_people(cleaned(source, schema, counts, progress))
    return Kept(list(_each(parts, partial(_arranged, schema)))), dict(counts)


def _arranged(schema: Schema, part: pl.DataFrame) -> Grouped:
    with np.errstate(all="ignore"):
        return arranged(part, arrange=schema.arrange)


@dataclass(frozen=True, eq=False, repr=False)
class Kept:
    """People whose rows are kept in memory, to be asked as often as a mechanism needs."""

    groups: list[Grouped]

    def total(self, statistic: Statistic) -> Tally:
        try:
            return _tally(self.groups, statistic, lambda people: people)
        except QuietqError:
            raise
        except Exception as error:
            failure = type(error).__name__  # and no more: its text may tell of private values
        raise EngineFailed(f"People's rows could not be summed: it failed with {failure}.")


def cleaned(
    source: object, schema: Schema, counts: Counter[str], progress: Callable[[int], None] | None = None, first: int = 0
) -> Iterator[pl.DataFrame]:
    """Good rows; what was good and bad is counted on the way. `first` is the place of the first row."""
    for batch in batches(source, schema):
        rows, found = schema.clean(batch, first + counts["rows"])
        counts.update(found)
        if progress is not None:
            progress(counts["rows"])
        if rows.height:
            yield rows


def _tally(parts: Iterable[_Part], statistic: Statistic, grouped: Callable[[_Part], Grouped]) -> Tally:
    """The sum over the people of all parts, none of whom is in two of them."""

    def one(part: _Part) -> Tally:
        total = statistic.empty()
        with np.errstate(all="ignore"):  # or somebody's numbers would be an error where warnings are
            statistic.add(total, *grouped(part))
        return total

    total = statistic.empty()
    for tally in _each(parts, one):
        total.merge(tally)
    return total


def _each(parts: Iterable[_Part], work: Callable[[_Part], _Made]) -> Iterator[_Made]:
    """What is made of each part, in turn, some at a time; where there is but one, without the cost of a thread."""
    if isinstance(parts, list) and len(parts) == 1:
        yield work(parts[0])
        return
    with ThreadPoolExecutor(_WORKERS) as pool:
        waiting: list[Future[_Made]] = []
        for part in parts:
            waiting.append(pool.submit(work, part))
            if len(waiting) > _WORKERS:
                yield waiting.pop(0).result()
        yield from (future.result() for future in waiting)
