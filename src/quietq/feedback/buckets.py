"""All rows of one person in one place: cleaned rows of any source are dealt into buckets by a hash of the person.

1. *Deal.* A piece of the source is cleaned, names become hashes, and rows go where the hash says. They stay in memory
   while they are few; else they are Parquet files, in a folder for each bucket. One that is too large is read in
   several turns, by further digits of the hash.
2. *Arrange.* The rows of a bucket are sorted by person, and each person's by all that they say, or in the order in
   which they came. Of a person's rows so many count as a public number says. Sessions become transitions, and hashes
   are dropped.
3. *Ask.* A statistic is added up in each bucket, in whole numbers, and the sums of buckets are added.

Only a bucket has to fit into memory. What is decided by the number of rows (memory or files, which buckets) changes no
bit of any sum, and nothing is refused by it. Everything that an engine runs is a function of rows or files, and files
are written whole or not at all, so it can be run again.
"""

import secrets
import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from quietq.feedback.engines import Engine
from quietq.feedback.names import NAME, NUMBER, hashed
from quietq.feedback.rows import Piece, batches, frames, pieces
from quietq.feedback.rows_folder import remove_left_folders, rows_folder
from quietq.feedback.schema import Schema
from quietq.feedback.statistic import Columns, Starts, Statistic, Tally
from quietq.privacy.errors import EngineFailed, InvalidInput, QuietqError

BYTES_IN_MEMORY = 2**30
"""Of everybody's cleaned rows; beyond, they are in files."""
BYTES_OF_A_BUCKET = 2**27
"""That are read at a time, and of one person's rows: every worker holds some copies of that."""
ROWS_AT_ONCE = 250_000
"""That are sorted, and asked, together: few enough for the processor's cache."""
MOST_ROWS = 10_000
"""Of one person, where everybody is asked again and again."""
BUCKETS = 64
"""Into which rows are dealt that are put down in files."""
PERSON = "person"


class Bucket(NamedTuple):
    """People whose rows stand together, in an order that depends on the rows alone; who they are is gone."""

    starts: Starts
    columns: Columns


@dataclass(frozen=True, eq=False, repr=False)
class Buckets:
    """Everybody's rows, in memory or in files that are removed together with this, to be asked again and again."""

    buckets: Sequence[Bucket | Path]
    engine: Engine

    def total(self, statistic: Statistic) -> Tally:
        """The sum over everybody."""
        total = statistic.empty()
        try:
            for tally in self.engine.map(partial(_add_up, statistic=statistic), self.buckets):
                total.merge(tally)
            return total
        except QuietqError:
            raise
        except Exception as error:
            failure = type(error).__name__  # and no more: its text may tell of private values
        raise EngineFailed(f"People's rows could not be summed: it failed with {failure}.")

    def __getstate__(self) -> dict[str, object]:
        if any(isinstance(bucket, Path) for bucket in self.buckets):
            raise InvalidInput("People whose rows are kept in files cannot be copied elsewhere: read them again.")
        return self.__dict__


def read_buckets(
    source: object, schema: Schema, engine: Engine, most_rows: int | None = MOST_ROWS
) -> tuple[Buckets, dict[str, int]]:
    """Everybody's rows, and counts for the operator.

    At most `most_rows` of each person are asked: so many if they are asked again and again, any number if once.
    """
    remove_left_folders()
    # Not by `secrets.randbits`, which noise is made of: whoever fixes that gets the same noise however rows are read.
    key = secrets.randbelow(2**64)
    counts = Counter[str](used_rows=0)
    held: list[pl.DataFrame] = []
    with ExitStack() as ends:
        folder = None if engine.in_memory else ends.enter_context(rows_folder())
        items = batches(source, schema) if folder is None else pieces(source, schema)
        clean = partial(_clean, schema=schema, key=key, folder=folder)
        for number, (found, kept) in enumerate(engine.map(clean, enumerate(items))):
            counts.update(found)
            held += kept
            if engine.progress is not None:
                engine.progress(counts["rows"])
            if folder is None and sum(rows.estimated_size() for rows in held) > BYTES_IN_MEMORY:
                folder = ends.enter_context(rows_folder())
            if folder is not None:
                for turn, rows in enumerate(held):
                    _put_down(rows, folder, number, turn)
                held.clear()
        if folder is None:
            arrange = partial(_arrange, schema=schema, most_rows=most_rows)
            arranged: list[Bucket | Path] = list(engine.map(arrange, _deal_in_memory(held)))
        else:
            arranged = _arrange_files(folder, schema, engine, most_rows)
        buckets = Buckets(arranged, engine)
        weakref.finalize(buckets, ends.pop_all().close)
        return buckets, dict(counts)


def _clean(
    numbered: tuple[int, Piece], schema: Schema, key: int, folder: Path | None
) -> tuple[dict[str, int], list[pl.DataFrame]]:
    """Counts of a piece, and its good rows under hashes: put down in the folder, or else handed back."""
    number, piece = numbered
    counts = Counter[str]()
    kept = []
    for turn, batch in enumerate(frames(piece, schema)):
        rows, found = schema.clean(batch)
        counts.update(found)
        rows = rows.insert_column(0, pl.Series(PERSON, hashed(rows, key))).drop(NUMBER, NAME)
        if folder is None:
            kept.append(rows)
        else:
            _put_down(rows, folder, number, turn)
    return dict(counts), kept


def _put_down(rows: pl.DataFrame, folder: Path, number: int, turn: int = 0) -> None:
    """Writes rows to a file in the folder of each one's bucket; files have the order of their numbers."""
    for bucket, part in _partition(rows, pl.col(PERSON) % BUCKETS).items():
        _write(part, folder / f"{bucket}" / f"part-{number:010}-{turn:07}.parquet")


def _deal_in_memory(held: list[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The rows of all frames, which are taken away, in shares of a size that suits the processor."""
    count = -(-sum(rows.height for rows in held) // ROWS_AT_ONCE)
    if count == 1:
        yield pl.concat(held)
        return
    hands: list[list[pl.DataFrame]] = [[] for _ in range(count)]
    while held and hands:
        for number, part in _partition(held.pop(0), pl.col(PERSON) // 2**32 % count).items():
            hands[number].append(part)
    while hands:
        if hand := hands.pop():
            yield pl.concat(hand)


class _Share(NamedTuple):
    """One of so many turns in which a bucket is read that is in files."""

    folder: Path
    turn: int
    turns: int

    @property
    def parts(self) -> list[Path]:
        return sorted(self.folder.glob("part-*.parquet"))

    def rows(self, schema: Schema) -> pl.DataFrame:
        """Somebody whose rows alone are too many is held to the first while they are read."""
        held: list[pl.DataFrame] = []
        for path in self.parts:
            mine = pl.col(PERSON) // BUCKETS % self.turns == self.turn
            held.append(pl.read_parquet(path, glob=False).filter(mine))
            if sum(rows.estimated_size() for rows in held) > 2 * BYTES_OF_A_BUCKET:
                held = [_first_rows(pl.concat(held), schema)]
        return pl.concat(held)


def _arrange_files(folder: Path, schema: Schema, engine: Engine, most_rows: int | None) -> list[Bucket | Path]:
    shares = []
    for bucket in (path for path in folder.iterdir() if path.is_dir()):
        size = sum(path.stat().st_size for path in bucket.iterdir())
        turns = -(-size // BYTES_OF_A_BUCKET)
        shares += [_Share(bucket, turn, turns) for turn in range(turns)]
    arranged: list[Bucket | Path] = []
    arrange = partial(_arrange_share, schema=schema, most_rows=most_rows)
    for share, made in zip(shares, engine.map(arrange, shares), strict=True):
        arranged += made
        if share.turn == share.turns - 1:  # and only now: an engine may have to read them twice
            for path in share.parts:
                path.unlink()
    return arranged


def _arrange_share(share: _Share, schema: Schema, most_rows: int | None) -> list[Path]:
    made = []
    for number, rows in enumerate(_deal_in_memory([share.rows(schema)])):
        starts, columns = _arrange(rows, schema, most_rows)
        begins = np.zeros(len(next(iter(columns.values()))), bool)
        begins[starts] = True
        made.append(share.folder / f"bucket-{share.turn}-{number}.parquet")
        _write(pl.DataFrame({PERSON: begins, **columns}), made[-1])
    return made


def _arrange(rows: pl.DataFrame, schema: Schema, most_rows: int | None) -> Bucket:
    """The rows of some people as statistics see them."""
    rows = _first_rows(rows, schema)
    with np.errstate(all="ignore"):  # or somebody's numbers would be an error where warnings are
        starts, columns = schema.arrange(_starts(rows), _columns(rows))
    counts = np.diff(starts, append=len(next(iter(columns.values()))))
    if most_rows is None or counts.max(initial=0) <= most_rows:
        return Bucket(starts, columns)
    # Evenly spread over the order that a person's rows stand in; everybody else's stay.
    fewer = np.minimum(counts, most_rows)
    begin = np.cumsum(fewer) - fewer
    place = np.arange(fewer.sum()) - np.repeat(begin, fewer)
    kept = np.repeat(starts, fewer) + place * np.repeat(counts, fewer) // np.repeat(fewer, fewer)
    return Bucket(begin, {name: column[kept] for name, column in columns.items()})


def _first_rows(rows: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """Each person's rows together and in order: all of them, or the first if they would fill a bucket."""
    rows = _in_order(rows, schema)
    most = BYTES_OF_A_BUCKET // (8 * rows.width)
    if rows.height <= most:
        return rows
    starts = _starts(rows)
    counts = np.diff(starts, append=rows.height)
    return rows.filter(np.arange(rows.height) - np.repeat(starts, counts) < most)


def _in_order(rows: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """Each person's rows together, in the order of all columns; or as they came, if that is their order.

    Sorting by one number is twice as fast as by columns. So it is made of the first half of the person's hash, and of
    about where the row stands by the columns that order rows as a rule. Where that mixes people up, or leaves a
    person's rows in another order than their columns, these people's rows are sorted again.
    """
    if schema.in_order:
        return rows.sort(PERSON, maintain_order=True)
    person = rows[PERSON].to_numpy()
    key = person >> np.uint64(32) << np.uint64(32)
    bits = 32 // len(schema.ordering)
    with np.errstate(all="ignore"):
        for place, name in enumerate(reversed(schema.ordering)):
            column = rows[name].to_numpy().astype(np.float64, copy=False)
            low, high = column.min(initial=np.inf), column.max(initial=-np.inf)
            part = ((column - low) * ((2**bits - 1) / (high - low))).astype(np.uint64)
            part &= np.uint64(2**bits - 1)  # of what is no number too, so that it stays in its half
            key |= part << np.uint64(bits * place)
    rows = rows.with_columns(pl.Series("key", key)).sort("key", multithreaded=False)
    half, person = rows["key"].to_numpy() >> np.uint64(32), rows[PERSON].to_numpy()
    rises = np.zeros(max(rows.height - 1, 0), bool)
    for name in reversed(schema.ordering):
        column = rows[name].to_numpy()
        rises = (column[1:] > column[:-1]) | ((column[1:] == column[:-1]) & rises)
    other = half[1:] != half[:-1]
    wrong = ~(other | ((person[1:] == person[:-1]) & rises))
    rows = rows.drop("key")
    if not wrong.any():
        return rows
    group = np.append(0, np.cumsum(other))
    again = np.isin(group, group[1:][wrong])
    return pl.concat([rows.filter(~again), rows.filter(again).sort(rows.columns)])


def _add_up(bucket: Bucket | Path, statistic: Statistic) -> Tally:
    """The sum over the people of a bucket."""
    tally = statistic.empty()
    with np.errstate(all="ignore"):
        statistic.add(tally, *opened(bucket))
    return tally


def opened(bucket: Bucket | Path) -> Bucket:
    """A bucket, from its file if it is in one."""
    if isinstance(bucket, Bucket):
        return bucket
    rows = pl.read_parquet(bucket, glob=False)
    return Bucket(np.flatnonzero(rows[PERSON].to_numpy()), _columns(rows))


def _starts(rows: pl.DataFrame) -> Starts:
    """Where each person's rows begin, if they stand together."""
    person = rows[PERSON].to_numpy()
    return np.flatnonzero(np.append(True, person[1:] != person[:-1])[: len(person)])


def _columns(rows: pl.DataFrame) -> Columns:
    return {column.name: column.to_numpy() for column in rows.drop(PERSON)}


def _partition(rows: pl.DataFrame, number: pl.Expr) -> dict[int, pl.DataFrame]:
    """Rows by a number of theirs, in the order in which they came."""
    parts = rows.with_columns(number.alias("part")).partition_by("part", include_key=False, as_dict=True)
    return {int(part): some for (part,), some in parts.items()}


def _write(rows: pl.DataFrame, path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    new = path.with_suffix(".new")
    rows.write_parquet(new, compression="uncompressed", statistics=False)
    new.rename(path)  # at once, so that a file is whole
