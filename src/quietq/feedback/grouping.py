"""All rows of one person in one place: in memory while they fit, else through a temporary folder.

The shuffle is by a hash of the name, so that a person's rows end up in one partition wherever they came from; within a
partition people are told apart by their names themselves.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from quietq.feedback.names import NAME, NUMBER
from quietq.feedback.rows_folder import remove_left_folders, rows_folder
from quietq.feedback.statistic import Columns, Starts

ROWS_IN_MEMORY = 12_000_000
MOST_ROWS = 10_000
"""Of one person, where rows are kept: so that nobody's number of rows can exhaust the memory."""
_ROWS_AT_ONCE = 250_000  # few enough for the processor's cache
_PARTITIONS = 64
_MIXER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio; odd, so that multiplying keeps numbers distinct
_PERSON_BITS = np.uint64(40)
_ROOM, _MOST_PLACE_BITS = np.uint64(34), 24  # for x and the place of a row, beside a person
_STEP_BITS = 16


class Grouped(NamedTuple):
    """People whose rows stand together, in an order that depends on the rows alone; who they are is gone."""

    starts: Starts
    columns: Columns


Arrange = Callable[[Starts, Columns], tuple[Starts, Columns]]


def group(batches: Iterable[pl.DataFrame], arrange: Arrange = Grouped) -> list[Grouped]:
    """Everybody's rows; no person is in more than one of the groups."""
    return [arranged(frame, arrange) for frame in whole_people(batches)]


def arranged(frame: pl.DataFrame, arrange: Arrange) -> Grouped:
    """All rows of some people, as they are to be kept."""
    return _thinned(Grouped(*arrange(*grouped(frame))))


def _thinned(people: Grouped) -> Grouped:
    """At most so many rows of each person, evenly spread over the order they stand in; everybody else's stay."""
    counts = np.diff(people.starts, append=len(next(iter(people.columns.values()))))
    if counts.max(initial=0) <= MOST_ROWS:
        return people
    fewer = np.minimum(counts, MOST_ROWS)
    starts = np.cumsum(fewer) - fewer
    place = np.arange(fewer.sum()) - np.repeat(starts, fewer)
    kept = np.repeat(people.starts, fewer) + place * np.repeat(counts, fewer) // np.repeat(fewer, fewer)
    return Grouped(starts, {name: column[kept] for name, column in people.columns.items()})


def grouped(frame: pl.DataFrame) -> Grouped:
    """Each person's rows together, in the order of the columns after those that say who."""
    quick = _grouped_quickly(frame)
    if quick is not None:
        return quick
    order = _order_by_three(frame) if frame.height and frame.to_series(2).dtype.is_integer() else None
    rows = _take(frame, order) if order is not None else frame.sort(*_identity(frame), *frame.columns[2:])
    return Grouped(starts_of(rows), {column.name: column.to_numpy() for column in rows.drop(NUMBER, NAME)})


def whole_people(batches: Iterable[pl.DataFrame], rows_in_memory: int = ROWS_IN_MEMORY) -> Iterator[pl.DataFrame]:
    """Frames in no order; no person is in more than one of them."""
    remove_left_folders()
    held: list[pl.DataFrame] = []
    folder, rows, spills = None, 0, 0
    with ExitStack() as stack:
        for batch in batches:
            held.append(batch)
            rows += batch.height
            if rows > rows_in_memory:
                if folder is None:
                    folder = stack.enter_context(rows_folder())
                _spill(held, folder, spills)
                rows, spills = 0, spills + 1
        if folder is None:
            yield from _dealt(held)
            return
        _spill(held, folder, spills)
        for number in range(_PARTITIONS):
            if files := sorted(folder.glob(f"{number}-*.parquet")):
                yield from _dealt([pl.read_parquet(files, glob=False)])


def starts_of(frame: pl.DataFrame) -> np.ndarray:
    """Where each person's rows begin in a frame that is sorted by person."""
    change = np.zeros(frame.height, dtype=bool)
    change[:1] = True
    for column in _identity(frame):
        if frame[column].null_count():
            change |= frame.select(pl.col(column).ne_missing(pl.col(column).shift()))[column].to_numpy()
        else:
            change[1:] |= (frame[column][1:] != frame[column][:-1]).to_numpy()
    return np.flatnonzero(change)


def partition_of(partitions: int) -> pl.Expr:
    return (pl.col(NUMBER).hash(seed=0) % partitions + pl.col(NAME).hash(seed=0) % partitions) % partitions


def split(frame: pl.DataFrame, count: int) -> Iterator[pl.DataFrame]:
    """A frame per partition; no person is in more than one of them."""
    partition = frame.select(partition_of(count).cast(pl.UInt16)).to_series().to_numpy()
    ordered = _take(frame, np.argsort(partition, kind="stable"))
    begin = 0
    for rows in np.bincount(partition, minlength=count):
        yield ordered.slice(begin, rows)
        begin += int(rows)


def _identity(frame: pl.DataFrame) -> list[str]:
    """The columns that tell people apart; a column of nulls is not worth sorting by."""
    return [column for column in (NUMBER, NAME) if frame[column].null_count() < frame.height]


def _grouped_quickly(frame: pl.DataFrame) -> Grouped | None:
    """Numbered people whose rows differ in their first column, in [0, 1]; None for others.

    Sorts by one integer made of the first bits of both, which is faster than sorting by columns; None, too, in the rare
    case that this is too coarse.
    """
    first = frame.to_series(2)
    in_unit = frame.height and first.dtype.is_float() and first.min() >= 0 and first.max() <= 1  # type: ignore[operator]
    in_unit = in_unit and not first.is_nan().any()  # which minima and maxima pass over
    if not in_unit or _identity(frame) != [NUMBER] or frame[NUMBER].null_count():
        return None
    order, people, x = _order_by_key(frame[NUMBER].to_numpy(), first.to_numpy())
    number, same = frame[NUMBER].to_numpy()[order], people[1:] == people[:-1]
    if np.any(same & ((number[1:] != number[:-1]) | (x[1:] <= x[:-1]))):
        return None
    others = _take(frame.drop(NUMBER, NAME, first.name), order)
    starts = np.flatnonzero(np.concatenate([[True], ~same]))
    return Grouped(starts, {first.name: x, **{column.name: column.to_numpy() for column in others}})


def _order_by_key(number: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows by some bits of the person's mixed number, and then by x in [0, 1]; and both, in that order.

    Numbers that carry their own place are sorted several times as fast as places are. There is room for fewer bits of
    the person in them, and of x: the few people whom this mixes up are sorted again. Arrays are used again, too, since
    new memory costs more than what is done in it.
    """
    place_bits = np.uint64(len(x).bit_length())
    people = number.astype(np.uint64)
    people *= _MIXER
    people >>= np.uint64(64) - _PERSON_BITS
    if place_bits > _MOST_PLACE_BITS:
        order = np.lexsort((x, people))
        return order, people[order], x[order]
    scaled = x * float((1 << int(_ROOM - place_bits)) - 1)
    rough = people >> _PERSON_BITS + _ROOM - np.uint64(64)
    rough <<= _ROOM - place_bits
    rough |= scaled.astype(np.uint64)
    rough <<= place_bits
    rough |= np.arange(len(x), dtype=np.uint64)
    rough = pl.Series(rough).sort(multithreaded=False).to_numpy()
    order = (rough & ((np.uint64(1) << place_bits) - np.uint64(1))).view(np.int64)
    people, x = people[order], x[order]
    late = (people[1:] < people[:-1]) | ((people[1:] == people[:-1]) & (x[1:] < x[:-1]))
    if late.any():
        places = _places_of(np.unique(rough[1:][late] >> _ROOM), rough >> _ROOM)
        again = places[np.lexsort((x[places], people[places]))]
        order[places], people[places], x[places] = order[again], people[again], x[again]
    return order, people, x


def _places_of(wanted: np.ndarray, rising: np.ndarray) -> np.ndarray:
    """Where any of the wanted numbers stand in an array that rises."""
    starts, ends = (np.searchsorted(rising, wanted, side) for side in ("left", "right"))
    counts = ends - starts
    return np.arange(counts.sum()) + np.repeat(starts - (np.cumsum(counts) - counts), counts)


def _order_by_three(frame: pl.DataFrame) -> np.ndarray | None:
    """The order of numbered people whose rows differ in their first two columns, both of numbers; None for others."""
    columns = [frame[NUMBER], *frame.get_columns()[2:4]]
    if _identity(frame) != [NUMBER] or any(one.null_count() or not one.dtype.is_numeric() for one in columns):
        return None
    keys = [column.to_numpy() for column in columns]
    if any(np.isnan(key).any() for key in keys):  # which is in no order
        return None
    order = _order_by_bits(keys)
    return order if order is not None else _if_rises(np.lexsort(keys[::-1]), keys, keys[0])


def _order_by_bits(keys: list[np.ndarray]) -> np.ndarray | None:
    """The same where the first column are hashes and the second small whole numbers; people are in another order then.

    Sorts by one integer made of the first bits of all three; None, too, in the rare case that this is too coarse.
    """
    number, hashed, *rest = keys
    step = rest[0] - rest[0].min() if rest else np.zeros(1)
    if hashed.dtype != np.uint64 or step.max() >= 2.0**_STEP_BITS or (step != np.rint(step)).any():
        return None
    people = number.astype(np.uint64) * _MIXER >> np.uint64(36)
    names = hashed >> np.uint64(64 - 36 + _STEP_BITS) << np.uint64(_STEP_BITS)
    return _if_rises(np.argsort(people << np.uint64(36) | names | step.astype(np.uint64)), keys, people)


def _if_rises(order: np.ndarray, keys: list[np.ndarray], people: np.ndarray) -> np.ndarray | None:
    """The order, if it keeps people apart, and puts each one's rows in the order of all keys, without ties."""
    number, *others = (key[order] for key in keys)
    rises = np.zeros(len(order) - 1, bool)
    for key in reversed(others):
        rises = (key[1:] > key[:-1]) | ((key[1:] == key[:-1]) & rises)
    apart = np.diff(people[order]) != 0
    return order if (apart | ((number[1:] == number[:-1]) & rises)).all() else None


def _take(frame: pl.DataFrame, order: np.ndarray) -> pl.DataFrame:
    """The rows in that order; columns of plain numbers, or of nulls, the fast way."""
    columns = []
    for column in frame:
        if column.null_count() == frame.height:
            columns.append(column)
        elif column.null_count() or not column.dtype.is_numeric():
            columns.append(column.gather(order))
        else:
            columns.append(pl.Series(column.name, column.to_numpy()[order], column.dtype))
    return pl.DataFrame(columns)


def _dealt(frames: list[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The rows of all frames, which are taken away, in pieces of a size that suits the processor."""
    count = -(-sum(frame.height for frame in frames) // _ROWS_AT_ONCE)
    if count == 1:
        yield pl.concat(frames)
        return
    count |= bool(count)  # odd: the rows may already share a partition out of a power of two
    hands: list[list[pl.DataFrame]] = [[] for _ in range(count)]
    while hands and frames:
        for hand, part in zip(hands, split(frames.pop(), count), strict=True):
            hand.append(part)
    while hands:
        frame = pl.concat(hands.pop())
        if frame.height:
            yield frame


def _spill(frames: list[pl.DataFrame], folder: Path, turn: int) -> None:
    """Writes the rows of all frames, which are taken away, to a file per partition."""
    frame = pl.concat(frames) if frames else pl.DataFrame()
    frames.clear()
    for number, part in enumerate(split(frame, _PARTITIONS) if frame.height else ()):
        if part.height:
            part.write_parquet(folder / f"{number}-{turn}.parquet", compression="lz4")
