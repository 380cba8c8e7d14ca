"""Ratings to tallies on one machine: one streaming pass, people in slices, both cores."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import polars as pl

from quietq.feedback.clipped_fit import ClippedFit, WeightTally
from quietq.feedback.declared import Declared
from quietq.feedback.extension import Tally
from quietq.feedback.grouping import sort_by_person, starts_of, whole_people
from quietq.feedback.rows import RATING, Columns, batches, clean

Tallies = Sequence[Tally | WeightTally]
_WORKERS = 2


def aggregate(
    source: object,
    columns: Columns,
    declared: Declared,
    preferences: ClippedFit | None,
    progress: Callable[[int], None] | None = None,
) -> tuple[Tallies, dict[str, int]]:
    """The sum of everybody's function, and counts for the operator."""
    counts: Counter[str] = Counter(used_rows=0)

    def cleaned() -> Iterator[pl.DataFrame]:
        for batch in batches(source, columns):
            rows, found = clean(batch, columns, declared)
            counts.update(found)
            if progress is not None:
                progress(counts["rows"])
            if rows.height:
                yield rows

    total = empty(declared, preferences)
    with ThreadPoolExecutor(_WORKERS) as pool:
        waiting: list[Future[Tallies]] = []
        for frame in whole_people(cleaned()):
            waiting.append(pool.submit(_sorted_tally, frame, declared, preferences))
            if len(waiting) > _WORKERS:
                merge(total, waiting.pop(0).result())
        for future in waiting:
            merge(total, future.result())
    return total, dict(counts)


def empty(declared: Declared, preferences: ClippedFit | None) -> Tallies:
    """Nobody yet: one tally a coordinate, or one of weights."""
    if preferences is not None:
        return [WeightTally.empty(preferences)]
    return [Tally.empty(declared.levels) for _ in range(declared.box.dimension)]


def tally(frame: pl.DataFrame, declared: Declared, preferences: ClippedFit | None) -> Tallies:
    """The people of a frame that is sorted by person and first coordinate."""
    result = empty(declared, preferences)
    dimension = declared.box.dimension
    for i, sums in enumerate(result):
        if isinstance(sums, WeightTally):
            assert preferences is not None
            states = frame.select(f"x{k}" for k in range(dimension)).to_numpy()
            sums.add(
                preferences, starts_of(frame), states[:, 0] if dimension == 1 else states, frame[RATING].to_numpy()
            )
            continue
        ordered = frame if i == 0 else sort_by_person(frame, f"x{i}")
        share = 1 / dimension
        sums.add(
            starts_of(ordered),
            ordered[f"x{i}"].to_numpy(),
            ordered[RATING].to_numpy() * share,
            declared.low * share,
            declared.high * share,
            declared.slope,
        )
    return result


def _sorted_tally(frame: pl.DataFrame, declared: Declared, preferences: ClippedFit | None) -> Tallies:
    return tally(sort_by_person(frame), declared, preferences)


def merge(total: Tallies, part: Tallies) -> None:
    """Adds the sums of other people."""
    for mine, theirs in zip(total, part, strict=True):
        mine.merge(theirs)  # type: ignore[arg-type]
