"""All rows of one person in one place: in memory while they fit, else through a temporary folder.

The shuffle is by a hash of the name, so that a person's rows end up in one partition wherever they came from; within a
partition people are told apart by their names themselves.
"""

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import polars as pl

from quietq.rewards.ratings import NAME, NUMBER

ROWS_IN_MEMORY = 12_000_000
_ROWS_AT_ONCE = 500_000
_PARTITIONS = 64


def by_person(batches: Iterable[pl.DataFrame], rows_in_memory: int = ROWS_IN_MEMORY) -> Iterator[pl.DataFrame]:
    """Frames sorted by person and state; no person is in more than one of them."""
    held: list[pl.DataFrame] = []
    rows, spill = 0, _Spill()
    try:
        for batch in batches:
            held.append(batch)
            rows += batch.height
            if rows > rows_in_memory:
                spill.write(pl.concat(held))
                held, rows = [], 0
        if spill.used:
            if held:
                spill.write(pl.concat(held))
            held = []
            for partition in spill.partitions():
                yield from _sorted_slices(partition)
        elif held:
            frame = pl.concat(held)
            held = []
            yield from _sorted_slices(frame)
    finally:
        spill.remove()


def starts_of(frame: pl.DataFrame) -> np.ndarray:
    """Where each person's rows begin in a frame that is sorted by person."""
    change = np.zeros(frame.height, dtype=bool)
    change[:1] = True
    for column in _identity(frame):
        change |= frame.select(pl.col(column).ne_missing(pl.col(column).shift()))[column].to_numpy()
    return np.flatnonzero(change)


def sort_by_person(frame: pl.DataFrame, coordinate: str = "x0") -> pl.DataFrame:
    """Each person's rows together, in the order of one coordinate."""
    return frame.sort(*_identity(frame), coordinate)


def partition_of(partitions: int) -> pl.Expr:
    """The partition that a row's person belongs to."""
    return (pl.col(NUMBER).hash(seed=0) % partitions + pl.col(NAME).hash(seed=0) % partitions) % partitions


def _identity(frame: pl.DataFrame) -> list[str]:
    """The columns that tell people apart; a column of nulls is not worth sorting by."""
    return [column for column in (NUMBER, NAME) if frame[column].null_count() < frame.height]


def _sorted_slices(frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The frame in pieces that end where a person ends."""
    frame = sort_by_person(frame)
    starts = starts_of(frame)
    begin = 0
    while begin < frame.height:
        after = np.searchsorted(starts, begin + _ROWS_AT_ONCE)
        end = int(starts[after]) if after < len(starts) else frame.height
        yield frame.slice(begin, end - begin)
        begin = end


class _Spill:
    """Raw rows on disk, in a folder that only the user can read, removed whatever happens."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._written = 0

    @property
    def used(self) -> bool:
        return self._folder is not None

    def write(self, frame: pl.DataFrame) -> None:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="quietq-"))
        split = frame.with_columns(partition_of(_PARTITIONS).alias("partition"))
        for (number,), part in split.partition_by("partition", as_dict=True, include_key=False).items():
            part.write_parquet(self._folder / f"{number}-{self._written}.parquet", compression="lz4")
        self._written += 1

    def partitions(self) -> Iterator[pl.DataFrame]:
        assert self._folder is not None
        for number in range(_PARTITIONS):
            files = sorted(self._folder.glob(f"{number}-*.parquet"))
            if files:
                yield pl.read_parquet(files)

    def remove(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
