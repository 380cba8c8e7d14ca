"""All rows of one person in one place: cleaned rows of any source are dealt into buckets by a hash of the person.

1. *Deal.* A piece of the source is cleaned, names become hashes, and rows go where the hash says. They stay in memory
   while they are few; else they are Parquet files, in a folder for each bucket. A bucket that is too large is split by
   further digits of the hash.
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
from collections.abc import Iterable, Iterator, Sequence
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

BYTES_IN_MEMORY = 2**29
"""Of everybody's cleaned rows; beyond, they are in files."""
BYTES_OF_A_BUCKET = 2**27
"""Of one that is in files, and of one person's rows: every worker holds some copies of that."""
ROWS_AT_ONCE = 250_000
"""That are sorted, and asked, together: few enough for the processor's cache."""
MOST_ROWS = 10_000
"""Of one person, where everybody is asked again and again."""
FAN, DIGITS = 64, 3
"""Rows are dealt into so many buckets; one that is too large is split into as many, up to so many digits of a hash."""
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
    with ExitStack() as ends:
        shares, counts = _deal(source, schema, engine, ends)
        arranged: list[Bucket | Path] = []
        for some in engine.map(partial(_arrange, schema=schema, most_rows=most_rows), shares):
            arranged += some
            for folder in {bucket.parent for bucket in some if isinstance(bucket, Path)}:
                _remove(_parts(folder))  # only now: the engine may have had to arrange them twice
        buckets = Buckets(arranged, engine)
        weakref.finalize(buckets, ends.pop_all().close)
        return buckets, counts


def _deal(
    source: object, schema: Schema, engine: Engine, ends: ExitStack
) -> tuple[Iterable[pl.DataFrame | Path], dict[str, int]]:
    """Shares of everybody's rows, no person in two of them: frames, or folders of files that go when it `ends`."""
    # Not by `secrets.randbits`, which noise is made of: whoever fixes that gets the same noise however rows are read.
    key = secrets.randbelow(2**64)
    folder = None if engine.in_memory else ends.enter_context(rows_folder())
    items = batches(source, schema) if folder is None else pieces(source, schema)
    counts = Counter[str](used_rows=0)
    held: list[pl.DataFrame] = []
    size = 0
    clean = partial(_clean, schema=schema, key=key, folder=folder)
    for number, (found, kept) in enumerate(engine.map(clean, enumerate(items))):
        counts.update(found)
        held += kept
        size += sum(int(rows.estimated_size()) for rows in kept)
        if engine.progress is not None:
            engine.progress(counts["rows"])
        if size > BYTES_IN_MEMORY:
            folder = folder or ends.enter_context(rows_folder())
            _put_down(pl.concat(held), folder, number)
            held, size = [], 0
    if folder is None:
        return _deal_in_memory(held), dict(counts)
    if held:
        _put_down(pl.concat(held), folder, number=10**9)
    buckets = sorted(path for path in folder.iterdir() if path.is_dir())
    shares = [share for some in engine.map(partial(_split, schema=schema), buckets) for share in some]
    _remove(path for path in folder.rglob("part-*.parquet") if path.parent not in shares)
    return shares, dict(counts)


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
        person = pl.Series(PERSON, hashed(rows, key))
        rows = rows.drop(NUMBER, NAME).insert_column(0, person)
        if folder is None:
            kept.append(rows)
        else:
            _put_down(rows, folder, number, turn)
    return dict(counts), kept


def _put_down(rows: pl.DataFrame, folder: Path, number: int, turn: int = 0, digit: int = 0) -> None:
    """Writes rows to a file in the folder of each one's bucket; files have the order of their numbers."""
    for bucket, part in _partition(rows, pl.col(PERSON) // FAN**digit % FAN).items():
        _write(part, folder / f"{bucket:02}" / f"part-{number:010}-{turn:07}.parquet")


def _deal_in_memory(held: list[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The rows of all frames, which are taken away, in shares of a size that suits the processor."""
    count = -(-sum(rows.height for rows in held) // ROWS_AT_ONCE)
    if count == 1:
        yield pl.concat(held)
        return
    hands: list[list[pl.DataFrame]] = [[] for _ in range(count)]
    for _ in range(len(held)):
        for number, part in _partition(held.pop(0), pl.col(PERSON) // FAN**DIGITS % count).items():
            hands[number].append(part)
    while hands:
        if hand := hands.pop():
            yield pl.concat(hand)


def _split(folder: Path, schema: Schema, digit: int = 1) -> list[Path]:
    """The folder, or others that its rows are dealt into if they are too many to be held."""
    parts = _parts(folder)
    if sum(path.stat().st_size for path in parts) <= BYTES_OF_A_BUCKET:
        return [folder]
    if digit == DIGITS:  # hardly anybody's rows but one person's, of whom only the first count
        first = pl.read_parquet(parts[0], glob=False)
        for path in parts[1:]:
            first = _first_rows(pl.concat([first, pl.read_parquet(path, glob=False)]), schema)
        _write(first, folder / "first" / "part-0.parquet")
        return [folder / "first"]
    for number, path in enumerate(parts):
        _put_down(pl.read_parquet(path, glob=False), folder, number, digit=digit)
    buckets = sorted(path for path in folder.iterdir() if path.is_dir())
    return [share for bucket in buckets for share in _split(bucket, schema, digit + 1)]


def _arrange(share: pl.DataFrame | Path, schema: Schema, most_rows: int | None) -> Sequence[Bucket | Path]:
    """The rows of a share as statistics see them: in memory, or in files if that is where they were."""
    if isinstance(share, pl.DataFrame):
        return [_bucket_of(share, schema, most_rows)]
    made = []
    for number, rows in enumerate(_deal_in_memory([pl.read_parquet(_parts(share), glob=False)])):
        starts, columns = _bucket_of(rows, schema, most_rows)
        begins = np.zeros(len(next(iter(columns.values()))), bool)
        begins[starts] = True
        made.append(share / f"bucket-{number}.parquet")
        _write(pl.DataFrame({PERSON: begins, **columns}), made[-1])
    return made


def _bucket_of(rows: pl.DataFrame, schema: Schema, most_rows: int | None) -> Bucket:
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
    starts = _starts(rows)
    counts = np.diff(starts, append=rows.height)
    most = BYTES_OF_A_BUCKET // (8 * rows.width)
    if counts.max(initial=0) <= most:
        return rows
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
    room = 32
    with np.errstate(all="ignore"):
        for column in (rows[name].to_numpy().astype(np.float64) for name in schema.ordering):
            room -= 32 // len(schema.ordering)
            low, high = column.min(initial=np.inf), column.max(initial=-np.inf)
            place = (column - low) * ((2.0 ** (32 // len(schema.ordering)) - 1) / (high - low))
            key |= np.nan_to_num(place).astype(np.uint64) << np.uint64(room)
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


def _parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("part-*.parquet"))


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink()
