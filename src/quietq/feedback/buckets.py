"""All rows of one person in one place: cleaned rows of any source are dealt into buckets by a hash of the person.

1. *Deal.* A piece of the source is cleaned, names become hashes, and rows go where the hash says. They stay in memory
   while they are few; else they are put down in Parquet files.
2. *Arrange.* Buckets that are small are arranged together, and one that is too large in several turns, by further
   digits of the hash. Rows are sorted by person, and each person's by all that they say, or in the order in which they
   came. Of a person with more rows than a public number a sample counts. Sessions become transitions, and hashes
   are dropped.
3. *Ask.* A statistic is added up in each bucket, in whole numbers, and the sums of buckets are added. The first one is
   asked while buckets are arranged; if there are to be more, buckets are kept.

The sample is a bottom-k sketch: a person's rows whose content has the least hashes, by a public hash. Rows that belong
together, as the steps of an episode, stand in the order of their episodes' hashes, and the first ones are taken: whole
episodes, but for the last. It goes by a person's own rows alone, and a sample of samples is the sample of all, so that
it can be taken while rows are read.

Only a bucket has to fit into memory. What is decided by the number of rows (memory or files, which buckets) changes no
bit of any sum, and nothing is refused by it.

What engines run are pure functions of rows, or of files that hold them and are written whole or not at all, so it can
be run again.

Files lie in a temporary folder that only the user can read, and that is removed when it is done with. A process that is
killed removes nothing, so each folder holds a file that its process keeps locked. The operating system frees the lock
however the process ends, and the next read removes every folder of the same user whose lock is free. The file is locked
before it gets its name: one of that name that is not locked belongs to no process any more.
"""

import atexit
import fcntl
import os
import secrets
import shutil
import tempfile
import weakref
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from quietq.feedback.feedback import Engine
from quietq.feedback.rows import Piece, pieces
from quietq.feedback.schema import PERSON, Schema, hashed_rows
from quietq.feedback.statistic import Columns, Starts, Statistic, Tally
from quietq.privacy.errors import EngineFailed, InvalidInput, QuietqError

BYTES_IN_MEMORY = 2**30
"""The size of everybody's cleaned rows from which on they are spilled to files."""
BYTES_OF_A_BUCKET = 2**27
"""That are arranged at a time: every worker holds some copies of that."""
BYTES_AT_ONCE = 2**23
"""The size of small buckets that are processed together: few enough for the processor's cache."""
MOST_ROWS = 10_000
"""The most rows of one person; of whoever has more, a sample counts."""
BUCKETS = 64
"""Into which rows are dealt; at most 256."""
PREFIX = "quietq-rows-"
LOCK = ".quietq-lock"
SHORT_PLACE = "/tmp"
"""Where folders are made whose path must be short."""


class Bucket(NamedTuple):
    """The rows of some people, each one's together."""

    starts: Starts
    columns: Columns


@dataclass(frozen=True, eq=False, repr=False)
class Buckets:
    """Everybody's rows, in memory or in files that are removed together with this: to be asked again and again."""

    buckets: list[Bucket | Path]
    engine: Engine

    def total(self, statistic: Statistic) -> Tally:
        """The sum over everybody."""
        total = statistic.empty()
        for tally in self.engine.map(partial(_ask, statistic=statistic), self.buckets):
            total.merge(tally)
        return total

    def __getstate__(self) -> dict[str, object]:
        if any(isinstance(bucket, Path) for bucket in self.buckets):
            raise InvalidInput("People whose rows are kept in files cannot be copied elsewhere: read them again.")
        return self.__dict__


Part = pl.DataFrame | Path
"""Rows that were dealt into a bucket, or the file that they were put down in."""
Hands = defaultdict[int, list[Part]]
"""What was dealt into each bucket, by its number, in the order in which it came."""


def read_buckets(
    source: object, schema: Schema, engine: Engine, first: Statistic, keep: bool
) -> tuple[Buckets | None, Tally, dict[str, int]]:
    """Everybody's rows, if they are to be kept; a first sum over them; and counts for the operator."""
    remove_left_folders()
    # Not by `secrets.randbits`, which noise is made of: whoever fixes that gets the same noise however rows are read.
    key = secrets.randbelow(2**64)
    counts = Counter[str](used_rows=0)
    hands: Hands = defaultdict(list)
    number, rows_in_files = -1, 0
    with ExitStack() as ends:
        # Deal: every piece into as many parts as there are buckets.
        folder = None if engine.in_memory else ends.enter_context(rows_folder())
        clean = partial(_clean, schema=schema, key=key, folder=folder)
        items = enumerate(pieces(source, schema, engine.in_memory))
        for number, (found, dealt) in enumerate(engine.map(clean, items)):
            counts.update(found)
            if engine.progress is not None:
                engine.progress(counts["rows"])
            for bucket, parts in dealt.items():
                hands[bucket] += parts
            if _bytes(counts["used_rows"] - rows_in_files, 1 + len(schema.fields)) > BYTES_IN_MEMORY:
                folder = folder or ends.enter_context(rows_folder())
                _put_down(hands, folder, number)
                rows_in_files = counts["used_rows"]
        if folder is not None:
            _put_down(hands, folder, number + 1)
        # Arrange, and ask for the first sum.
        shares = _shares(hands)
        hands.clear()
        arrange = partial(_arrange_share, schema=schema, first=first, keep=keep, folder=folder)
        total, kept = first.empty(), list[Bucket | Path]()
        for share, (tally, buckets) in zip(shares, engine.map(arrange, shares), strict=True):
            total.merge(tally)
            kept += buckets
            share.let_go()  # and only now: an engine may have to read files twice
        if not keep:
            return None, total, dict(counts)
        rows = Buckets(kept, engine)
        weakref.finalize(rows, ends.pop_all().close)
        return rows, total, dict(counts)


def _clean(numbered: tuple[int, Piece], schema: Schema, key: int, folder: Path | None) -> tuple[dict[str, int], Hands]:
    """Counts of a piece, and its good rows under hashes: put down in the folder, if there is one."""
    number, piece = numbered
    hands: Hands = defaultdict(list)
    rows, counts = schema.clean(piece().rechunk(), key)
    whose = (rows[PERSON] % BUCKETS).cast(pl.UInt8).to_numpy()
    rows = rows[np.argsort(whose, kind="stable")]  # of numbers of eight bits, in linear time
    sizes = np.bincount(whose, minlength=BUCKETS)
    for bucket, (end, size) in enumerate(zip(np.cumsum(sizes), sizes, strict=True)):
        if size:
            hands[bucket].append(rows[end - size : end])
    if folder is not None:
        _put_down(hands, folder, number)
    return counts, hands


def _put_down(hands: Hands, folder: Path, number: int) -> None:
    """Writes what is in memory to a file for each bucket, which takes its place."""
    for bucket, parts in hands.items():
        if held := [part for part in parts if isinstance(part, pl.DataFrame)]:
            file = folder / f"part-{bucket}-{number}.parquet"
            _write(pl.concat(held), file)
            parts[len(parts) - len(held) :] = [file]


class _Share(NamedTuple):
    """Rows that are arranged at once: those of some buckets, or, of one that is too large, those of one turn."""

    parts: list[Part]
    turn: int
    turns: int
    number: int

    def rows(self, schema: Schema) -> pl.DataFrame:
        """Returns the rows. Of somebody whose rows alone are too many, a sample is kept while they are read."""
        held: list[pl.DataFrame] = []
        for part in self.parts:
            rows = pl.read_parquet(part, glob=False) if isinstance(part, Path) else part
            if self.turns > 1:
                rows = rows.filter(pl.col(PERSON) // BUCKETS % self.turns == self.turn)
                if sum(map(_size, held)) > BYTES_OF_A_BUCKET:
                    held = [_sampled(pl.concat(held, rechunk=True), schema)]
            held.append(rows)
        return pl.concat(held, rechunk=True)

    def let_go(self) -> None:
        """After the last turn, memory is free and files are removed."""
        while self.parts and self.turn == self.turns - 1:
            part = self.parts.pop()
            if isinstance(part, Path):
                part.unlink()


def _shares(hands: Hands) -> list[_Share]:
    """Small buckets together, and large ones in turns."""
    groups: list[list[Part]] = []
    size = BYTES_AT_ONCE
    for bucket in sorted(hands):
        if size >= BYTES_AT_ONCE:
            groups.append([])
            size = 0
        groups[-1] += hands[bucket]
        size += sum(map(_size, hands[bucket]))
    shares: list[_Share] = []
    for parts in groups:
        turns = -(-sum(map(_size, parts)) // BYTES_OF_A_BUCKET)
        shares += [_Share(parts, turn, turns, len(shares) + turn) for turn in range(turns)]
    return shares


def _size(part: Part) -> int:
    return part.stat().st_size if isinstance(part, Path) else _bytes(*part.shape)


def _bytes(rows: int, columns: int) -> int:
    return 8 * rows * columns  # every column of cleaned rows has numbers of eight bytes


def _arrange_share(
    share: _Share, schema: Schema, first: Statistic, keep: bool, folder: Path | None
) -> tuple[Tally, list[Bucket | Path]]:
    """The sum over the people of a share, and the bucket that they become if it is to be kept: none without people."""
    rows = share.rows(schema)
    if not rows.height:
        return first.empty(), []
    rows = _sampled(rows, schema)
    with np.errstate(all="ignore"):  # or somebody's numbers would be an error where warnings are
        bucket = Bucket(*schema.arrange(_starts(rows), _columns(rows)))
    tally = _ask(bucket, first)
    if not keep:
        return tally, []
    if folder is None:
        return tally, [bucket]
    begins = np.zeros(len(next(iter(bucket.columns.values()))), bool)
    begins[bucket.starts] = True
    path = folder / f"bucket-{share.number}.parquet"
    _write(pl.DataFrame({PERSON: begins, **bucket.columns}), path)
    return tally, [path]


def _sampled(rows: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """Each person's rows together and in order, of those who have more than MOST_ROWS a sample."""
    rows = _in_order(rows, schema)
    starts = _starts(rows)
    counts = np.diff(starts, append=rows.height)
    if counts.max(initial=0) <= MOST_ROWS:
        return rows
    place = np.arange(rows.height) - np.repeat(starts, counts)
    if not schema.together:
        # The place of each row among its person's by the hash of what it says.
        by_hash = np.lexsort((hashed_rows(rows.drop(PERSON)), np.repeat(starts, counts)))
        place[by_hash] = place.copy()
    return rows.filter(place < MOST_ROWS)


def _in_order(rows: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """Each person's rows together, in the order of all columns; or as they came, if that is their order.

    NumPy sorts one column of numbers several times as fast as Polars sorts by several columns. So the number is made of
    the first half of the person's hash, and of about where the row stands by the columns that order rows as a rule.
    Where that mixes people up, or leaves a person's rows in another order than their columns, these people's rows are
    sorted again.
    """
    if schema.in_order:
        return rows.sort(PERSON, *schema.ordering, maintain_order=True)
    low_half, bits = np.uint64(2**32 - 1), 32 // len(schema.ordering)
    key = rows[PERSON].to_numpy() & ~low_half
    with np.errstate(all="ignore"):
        for place, name in enumerate(reversed(schema.ordering)):
            column = rows[name].to_numpy().astype(np.float64, copy=False)
            low, high = column.min(initial=np.inf), column.max(initial=-np.inf)
            part = ((column - low) * ((2**bits - 1) / (high - low))).astype(np.uint64)
            part &= np.uint64(2**bits - 1)  # of what is no number too, so that it stays in its half
            key |= part << np.uint64(bits * place)
    rows = rows[np.argsort(key)]
    person = rows[PERSON].to_numpy()
    rises = np.zeros(max(rows.height - 1, 0), bool)
    for name in reversed(schema.ordering):
        column = rows[name].to_numpy()
        rises = (column[1:] > column[:-1]) | ((column[1:] == column[:-1]) & rises)
    other = (person[1:] ^ person[:-1]) > low_half
    wrong = ~(other | ((person[1:] == person[:-1]) & rises))
    if not wrong.any():
        return rows
    group = np.append(0, np.cumsum(other))
    again = np.isin(group, group[1:][wrong])
    return pl.concat([rows.filter(~again), rows.filter(again).sort(rows.columns)], rechunk=True)


def _ask(bucket: Bucket | Path, statistic: Statistic) -> Tally:
    """The sum over the people of a bucket."""
    tally = statistic.empty()
    try:
        with np.errstate(all="ignore"):
            statistic.add(tally, *opened(bucket))
        return tally
    except QuietqError:
        raise
    except Exception as error:
        failure = type(error).__name__  # and no more: its text may tell of private values
    raise EngineFailed(f"People's rows could not be summed: it failed with {failure}.")


def opened(bucket: Bucket | Path) -> Bucket:
    """A bucket, from its file if it is in one."""
    if isinstance(bucket, Bucket):
        return bucket
    rows = pl.read_parquet(bucket, glob=False)
    return Bucket(np.flatnonzero(rows[PERSON].to_numpy()), _columns(rows))


def _starts(rows: pl.DataFrame) -> Starts:
    """Returns where each person's rows begin, if they stand together."""
    person = rows[PERSON].to_numpy()
    return np.flatnonzero(np.append(True, person[1:] != person[:-1])[: len(person)])


def _columns(rows: pl.DataFrame) -> Columns:
    return {column.name: column.to_numpy() for column in rows.drop(PERSON)}


def _write(rows: pl.DataFrame, path: Path) -> None:
    new = path.with_suffix(".new")
    rows.write_parquet(new, compression="uncompressed", statistics=False)
    new.rename(path)  # at once, so that a file is whole


# Where files lie.


@contextmanager
def rows_folder(place: str | None = None) -> Iterator[Path]:
    """A new folder for this process alone, which is removed at the end, or by the next read if there is no end.

    `place` is where it is made: in the usual place for temporary files, unless that is said.
    """
    process, folder = os.getpid(), Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))

    def remove() -> None:
        if os.getpid() == process:  # and not a fork of it
            with suppress(OSError):
                _remove(folder, in_use=True)

    atexit.register(remove)
    try:
        with open(folder / f"{LOCK}.new", "xb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rename(lock.name, folder / LOCK)
            yield folder
    finally:
        remove()
        atexit.unregister(remove)


def remove_left_folders() -> None:
    """Removes the folders of this user whose process has ended; links, and whatever is another's, are left alone."""
    for place in {tempfile.gettempdir(), SHORT_PLACE}:
        with suppress(OSError), os.scandir(place) as entries:
            for entry in entries:
                if entry.name.startswith(PREFIX):
                    with suppress(OSError):  # in use, no folder, or gone meanwhile
                        _remove(Path(entry.path), in_use=False)


def _remove(folder: Path, in_use: bool) -> None:
    """Removes a folder of this process, or one that is not in use any more; the lock last.

    Without it, no later read would remove what is still there.
    """
    with ExitStack() as ends:
        place = ends.enter_context(_opened(folder, os.O_RDONLY | os.O_DIRECTORY))
        if os.fstat(place).st_uid != os.geteuid():
            return
        if not in_use:
            lock = ends.enter_context(_opened(LOCK, os.O_RDWR | os.O_NONBLOCK, within=place))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for name in set(os.listdir(place)) - {LOCK}:
            with suppress(OSError):
                try:
                    os.unlink(name, dir_fd=place)  # a link goes, and what it leads to stays
                except IsADirectoryError:
                    shutil.rmtree(name, ignore_errors=True, dir_fd=place)
        if os.listdir(place) == [LOCK]:
            os.unlink(LOCK, dir_fd=place)
    os.rmdir(folder)


@contextmanager
def _opened(path: Path | str, flags: int, within: int | None = None) -> Iterator[int]:
    """That file or folder itself, and never one that a link leads to."""
    found = os.open(path, flags | os.O_NOFOLLOW, dir_fd=within)
    try:
        yield found
    finally:
        os.close(found)
