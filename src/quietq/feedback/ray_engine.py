"""Rows to tallies on a Ray cluster: the same sums as on one machine, from rows that lie anywhere.

Every task cleans the rows that it reads: a CSV file, a range of rows of a Parquet file, or a piece of a data frame. A
shuffle then brings all rows of a person to one partition, as a person who is split over two would count twice. Rows
that are kept stay there, and each statistic is sent to where they lie: only tallies and counts come back to the driver.
No budget is touched here.

Files must be where every machine sees them, and the rows themselves pass through Ray's object store, which may spill to
its temporary folder: the cluster has to be trusted with them.
"""

import atexit
import weakref
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar, NoReturn, ParamSpec, TypeVar

import numpy as np
import polars as pl

from quietq.feedback.grouping import Arrange, Grouped, group, partition_of, split
from quietq.feedback.local_engine import cleaned
from quietq.feedback.names import NAME, NUMBER
from quietq.feedback.own_ray import ray_session, session_name
from quietq.feedback.rows import batches, parquet, parts, scan
from quietq.feedback.schema import Schema
from quietq.feedback.statistic import Statistic, Tally
from quietq.privacy.errors import EngineFailed, InvalidInput, MissingExtra, QuietqError

try:
    import pyarrow as pa
    import ray
    from ray.exceptions import RayError, RayTaskError
except ImportError as error:
    raise MissingExtra.of("ray", "The Ray engine needs Ray") from error

_ROWS_A_TASK = 2_000_000
_MOST_PARTITIONS = 512
_PLACE_BITS = 40  # for the place of a row in its piece
Progress = Callable[[int], None]
_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")
Piece = Path | tuple[Path, int] | pl.DataFrame


def _in_words(asks: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
    """What a task refused is refused here in the same words; of other failures no more is said than their kind."""

    @wraps(asks)
    def told(*args: _Given.args, **kwargs: _Given.kwargs) -> _Answer:
        try:
            return asks(*args, **kwargs)
        except RayError as error:
            failure = _refusal(error)
        raise failure  # here, so that nothing of the worker's is carried along

    return told


def _refusal(error: RayError) -> QuietqError:
    cause: BaseException | None = error
    while isinstance(cause, RayError) or (cause is not None and not isinstance(cause, QuietqError)):
        cause = getattr(cause, "cause", None) or cause.__cause__
    if cause is not None:
        return type(cause)(str(cause).splitlines()[0])  # Ray adds lines of its own
    kind = type(error.cause if isinstance(error, RayTaskError) else error).__name__
    return EngineFailed(f"A task on the Ray cluster failed with {kind}; its logs there say more.")


@_in_words
def add_up(
    source: object, schema: Schema, statistic: Statistic, progress: Progress | None = None
) -> tuple[Tally, dict[str, int]]:
    """The sum over everybody, and counts for the operator. `progress` is told the number of rows read so far.

    Runs on the Ray that is there (already initialised, or at RAY_ADDRESS), else on one of its own on this machine.
    """
    tallies, session, counts = _shuffle(source, schema, progress, statistic)
    total = _merged(statistic, tallies)
    del session  # not needed any more
    return total, counts


@_in_words
def keep(source: object, schema: Schema, progress: Progress | None = None) -> "tuple[Spread, dict[str, int]]":
    """Everybody's rows on the cluster, each person's together, and counts for the operator."""
    partitions, session, counts = _shuffle(source, schema, progress, None)
    return Spread(partitions, session), counts


class Spread:
    """People whose rows are kept on a Ray cluster, to be asked as often as a mechanism needs."""

    def __init__(self, partitions: "Sequence[ray.ObjectRef[list[Grouped]]]", session: "_Session") -> None:
        self._partitions, self._session = partitions, session

    @_in_words
    def total(self, statistic: Statistic) -> Tally:
        if not self._session.goes_on():  # or else Ray would start anew, without the rows
            raise EngineFailed("The Ray that kept these people's rows was stopped: read them again.")
        asked = ray.put(statistic)
        ask = ray.remote(_add_up)
        return _merged(statistic, [ask.remote(part, asked) for part in self._partitions])

    def __reduce__(self) -> NoReturn:
        raise InvalidInput("People whose rows are kept on a Ray cluster cannot be copied elsewhere: read them again.")


def _shuffle(
    source: object, schema: Schema, progress: Progress | None, statistic: Statistic | None
) -> "tuple[list[ray.ObjectRef[Any]], _Session, dict[str, int]]":
    """The partitions of everybody's rows, or with a statistic their tallies; for as long as the session is held."""
    pieces = list(_pieces(source, schema))
    session, counts = _Session.now(), Counter[str](used_rows=0)
    processors = int(ray.cluster_resources().get("CPU", 1))
    partitions = min(2 ** (max(4 * processors, len(pieces)) - 1).bit_length(), _MOST_PARTITIONS)
    read: Any = ray.remote(_read).options(num_returns=partitions + 1)
    common = ray.put((schema, _ROWS_A_TASK, partitions, _fingerprint(partitions)))
    dealt = [read.remote(piece, common, number << _PLACE_BITS) for number, piece in enumerate(pieces)]
    gather, hands = ray.remote(_gather), zip(*(hands for _, *hands in dealt), strict=True)
    gathered = [gather.remote(schema.arrange, statistic, *hand) for hand in hands]
    dealt = [found for found, *_ in dealt]  # what was dealt is gone as soon as it is gathered
    for found in dealt:
        counts.update(ray.get(found))
        if progress is not None:
            progress(counts["rows"])
    return gathered, session, dict(counts)


def _merged(statistic: Statistic, tallies: "Sequence[ray.ObjectRef[Tally]]") -> Tally:
    total = statistic.empty()
    for tally in tallies:
        total.merge(ray.get(tally))
    return total


def _pieces(source: object, schema: Schema) -> Iterator[Piece]:
    """What each task reads: a file, rows of it from the first one on, or rows. What cannot be read is refused here."""
    for part in parts(source, schema):
        if isinstance(part, pl.LazyFrame):
            yield from batches(part, schema)
            continue
        path = part.absolute()
        file = scan(path, schema)
        if isinstance(file, pl.LazyFrame):
            rows = int(file.select(pl.len()).collect().item())
            yield from ((path, first) for first in range(0, max(rows, 1), _ROWS_A_TASK))
        else:
            yield path


def _read(piece: Piece, common: tuple[Schema, int, int, str], first: int = 0) -> list[Any]:
    """Runs in a task: the counts, and the good rows of each partition; `first` is the place of the first row."""
    schema, rows, partitions, agreed = common
    if _fingerprint(partitions) != agreed:
        raise EngineFailed(
            "The machines of the cluster do not agree on which person belongs where, so somebody could count twice: "
            "install the same version of Polars on all of them. Nothing was spent."
        )
    counts, hands = Counter[str](), [list[pl.DataFrame]() for _ in range(partitions)]
    source = parquet(piece[0]).slice(piece[1], rows) if isinstance(piece, tuple) else piece
    for good in cleaned(source, schema, counts, first=first):
        for hand, part in zip(hands, split(good, partitions), strict=True):
            hand.append(part)
    return [dict(counts), *(_to_arrow(pl.concat(hand)) if hand else None for hand in hands)]


def _gather(arrange: Arrange, statistic: Statistic | None, *hands: pa.Table | None) -> list[Grouped] | Tally:
    """Runs in a task, on all rows of a partition, each person's together then."""
    with np.errstate(all="ignore"):
        groups = group((pl.DataFrame(pl.from_arrow(hand)) for hand in hands if hand is not None), arrange)
    return groups if statistic is None else _add_up(groups, statistic)


def _add_up(groups: list[Grouped], statistic: Statistic) -> Tally:
    """Runs in a task, where the rows lie."""
    total = statistic.empty()
    with np.errstate(all="ignore"):  # or somebody's numbers would be an error where warnings are
        for people in groups:
            statistic.add(total, *people)
    return total


def _fingerprint(partitions: int) -> str:
    """Tells two ways of partitioning people apart, such as those of two versions of Polars."""
    numbers = pl.DataFrame({NUMBER: range(1000), NAME: None}, schema={NUMBER: pl.Int64, NAME: pl.String})
    names = numbers.select(pl.lit(None, pl.Int64).alias(NUMBER), pl.col(NUMBER).cast(pl.String).alias(NAME))
    sample = pl.concat([numbers, names]).select(partition_of(partitions).cast(pl.Int64)).to_series()
    return f"{pl.__version__} {zlib.crc32(sample.to_numpy().tobytes())}"


def _to_arrow(frame: pl.DataFrame) -> pa.Table:
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())


class _Session:
    """A connection to Ray. One that was made here ends with the last people whose rows it keeps, or with Python."""

    _own: "ClassVar[weakref.ref[_Session] | None]" = None

    def __init__(self) -> None:
        self.name = session_name()

    @classmethod
    def now(cls) -> "_Session":
        """The Ray that is initialised, or the one at RAY_ADDRESS, or else one of our own."""
        if ray.is_initialized():
            own = cls._own() if cls._own is not None else None
            return own if own is not None and own.goes_on() else cls()
        ends = ExitStack()
        ends.enter_context(ray_session())
        own = cls()
        cls._own = weakref.ref(own)
        ended = weakref.finalize(own, ends.close)
        ended.atexit = False
        atexit.register(ended)  # which comes before the folder of our own Ray is removed
        return own

    def goes_on(self) -> bool:
        return ray.is_initialized() and session_name() == self.name
