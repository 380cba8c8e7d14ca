"""Rows to tallies on one machine: one streaming pass, people in slices, both cores."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import polars as pl

from quietq.feedback.grouping import by_person, sort_by_person, starts_of, whole_people
from quietq.feedback.names import NAME, NUMBER
from quietq.feedback.rows import batches
from quietq.feedback.schema import Schema
from quietq.feedback.statistic import Statistic, Tally

_WORKERS = 2


def add_up(
    source: object, schema: Schema, statistic: Statistic, progress: Callable[[int], None] | None = None
) -> tuple[Tally, dict[str, int]]:
    """The sum over everybody, and counts for the operator."""
    counts: Counter[str] = Counter(used_rows=0)
    total = tally(whole_people(cleaned(source, schema, counts, progress)), statistic, sort_by_person)
    return total, dict(counts)


def keep_rows(
    source: object, schema: Schema, progress: Callable[[int], None] | None = None
) -> tuple[list[pl.DataFrame], dict[str, int]]:
    """Everybody's rows in memory, each person's together, and counts for the operator."""
    counts: Counter[str] = Counter(used_rows=0)
    return list(by_person(cleaned(source, schema, counts, progress))), dict(counts)


def cleaned(
    source: object, schema: Schema, counts: Counter[str], progress: Callable[[int], None] | None = None
) -> Iterator[pl.DataFrame]:
    """Good rows; what was good and bad is counted on the way."""
    for batch in batches(source, schema):
        rows, found = schema.clean(batch)
        counts.update(found)
        if progress is not None:
            progress(counts["rows"])
        if rows.height:
            yield rows


def tally(
    frames: Iterable[pl.DataFrame],
    statistic: Statistic,
    sort: Callable[[pl.DataFrame], pl.DataFrame] = lambda frame: frame,
) -> Tally:
    """The sum over the people of all frames, none of whom is in two of them."""

    def one(frame: pl.DataFrame) -> Tally:
        part, rows = statistic.empty(), sort(frame)
        columns = {column.name: column.to_numpy() for column in rows.drop(NUMBER, NAME)}
        statistic.add(part, starts_of(rows), columns)
        return part

    total = statistic.empty()
    with ThreadPoolExecutor(_WORKERS) as pool:
        waiting: list[Future[Tally]] = []
        for frame in frames:
            waiting.append(pool.submit(one, frame))
            if len(waiting) > _WORKERS:
                total.merge(waiting.pop(0).result())
        for future in waiting:
            total.merge(future.result())
    return total
