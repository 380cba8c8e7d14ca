"""Rows to tallies on a Ray cluster: the same sums as on one machine, from rows that lie anywhere.

Every task cleans the rows that it reads: a CSV file, a range of rows of a Parquet file, or a piece of a data frame. A
shuffle then brings all rows of a person to one partition, as a person who is split over two would count twice; each
partition is tallied where it lies, and only sums and counts come back to the driver. No budget is touched here.

Files must be where every machine sees them, and the rows themselves pass through Ray's object store, which may spill to
its temporary folder: the cluster has to be trusted with them.
"""

import logging
import pickle
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import polars as pl

from quietq.feedback.grouping import by_person, partition_of
from quietq.feedback.local_engine import cleaned, tally
from quietq.feedback.names import NAME, NUMBER
from quietq.feedback.rows import batches, parquet, parts, scan
from quietq.feedback.schema import Schema
from quietq.feedback.statistic import Statistic, Tally
from quietq.privacy.errors import MissingExtra, QuietqError

try:
    import pyarrow as pa
    import ray
    import ray.data
    from ray.data.context import ShuffleStrategy
    from ray.exceptions import RayError
except ImportError as error:
    raise MissingExtra.of("ray", "The Ray engine needs Ray") from error

_ROWS_A_TASK = 4_000_000
_PIECE, _PARTITION = "piece", "partition"
_COUNTS = -1  # the partition of rows that carry counts: `name` says of what, `number` how many
_SAME = "partitioned as "


def add_up(
    source: object, schema: Schema, statistic: Statistic, progress: Callable[[int], None] | None = None
) -> tuple[Tally, dict[str, int]]:
    """The sum over everybody, and counts for the operator. `progress` is told the number of rows at the end.

    Runs on the Ray that is there (already initialised, or at RAY_ADDRESS), else on one of its own on this machine.
    """
    pieces = [pa.table({_PIECE: pa.array([pickle.dumps(one)], pa.large_binary())}) for one in _pieces(source, schema)]
    total, counts = statistic.empty(), Counter[str](used_rows=0)
    with _cluster(), _settings():
        processors = int(ray.cluster_resources().get("CPU", 1))
        partitions = min(2 ** (4 * processors).bit_length(), 512)
        read = partial(_read, schema=schema, rows=_ROWS_A_TASK, partitions=partitions)
        sums = (
            ray.data.from_arrow(pieces)
            .map_batches(read, batch_size=1, batch_format="pyarrow")
            .groupby(_PARTITION, num_partitions=partitions)
            .map_groups(partial(_add_up, statistic=statistic), batch_format="pyarrow")
        )
        for part, found in _sums(sums):
            total.merge(part)
            counts.update(found)
    _check_one_partitioning(counts)
    if progress is not None:
        progress(counts["rows"])
    return total, dict(counts)


def _pieces(source: object, schema: Schema) -> Iterator[Path | tuple[Path, int] | pl.DataFrame]:
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


def _read(pieces: pa.Table, schema: Schema, rows: int, partitions: int) -> Iterator[pa.Table]:
    """Runs in a task: good rows with the partition of their person, and then the counts as rows of their own."""
    counts = Counter({_SAME + _fingerprint(partitions): 0})
    for piece in map(pickle.loads, pieces[_PIECE].to_pylist()):
        source = parquet(piece[0]).slice(piece[1], rows) if isinstance(piece, tuple) else piece
        for good in cleaned(source, schema, counts):
            yield _to_arrow(good.with_columns(partition_of(partitions).cast(pl.Int64).alias(_PARTITION)))
    told = pl.DataFrame({NUMBER: list(counts.values()), NAME: list(counts)})
    nothing = [pl.lit(0, field.dtype).alias(name) for name, field in schema.fields.items()]
    yield _to_arrow(told.with_columns(*nothing, pl.lit(_COUNTS, pl.Int64).alias(_PARTITION)))


def _add_up(rows: pa.Table, statistic: Statistic) -> pa.Table:
    """Runs in a task, on all rows of a partition: the tally of its people, or the sum of the counts."""
    frame = pl.DataFrame(pl.from_arrow(rows))
    total, counts = statistic.empty(), Counter[str]()
    if frame[_PARTITION][0] == _COUNTS:
        for name, number in frame.select(NAME, NUMBER).iter_rows():
            counts[name] += number
    else:
        total = tally(by_person([frame.drop(_PARTITION)]), statistic)
    return pa.table({"sums": [pickle.dumps((total, counts))]})


def _sums(results: ray.data.Dataset) -> Iterator[tuple[Tally, dict[str, int]]]:
    """The results of all partitions. What a task refused is refused here in the same words."""
    try:
        for row in results.iter_rows():
            yield pickle.loads(row["sums"])
    except RayError as error:
        cause: BaseException | None = error
        while isinstance(cause, RayError) or (cause is not None and not isinstance(cause, QuietqError)):
            cause = getattr(cause, "cause", None) or cause.__cause__
        if cause is None:
            raise
        raise type(cause)(str(cause).splitlines()[0]) from error  # Ray adds lines of its own


def _fingerprint(partitions: int) -> str:
    """Tells two ways of partitioning people apart, such as those of two versions of Polars."""
    numbers = pl.DataFrame({NUMBER: range(1000), NAME: None}, schema={NUMBER: pl.Int64, NAME: pl.String})
    names = numbers.select(pl.lit(None, pl.Int64).alias(NUMBER), pl.col(NUMBER).cast(pl.String).alias(NAME))
    sample = pl.concat([numbers, names]).select(partition_of(partitions).cast(pl.Int64)).to_series()
    return f"{pl.__version__} {zlib.crc32(sample.to_numpy().tobytes())}"


def _check_one_partitioning(counts: Counter[str]) -> None:
    found = [name for name in counts if name.startswith(_SAME)]
    for name in found:
        del counts[name]
    if len(found) > 1:
        raise RuntimeError(
            "The machines of the cluster do not agree on which person belongs where, so somebody could count twice: "
            "install the same version of Polars on all of them. Nothing was spent."
        )


def _to_arrow(frame: pl.DataFrame) -> pa.Table:
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())


@contextmanager
def _cluster() -> Iterator[None]:
    """The Ray that is there, or else one that is stopped in the end."""
    if ray.is_initialized():
        yield
        return
    ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _settings() -> Iterator[None]:
    """Ray Data without progress bars and messages, and with the shuffle that needs no actors: they start slowly."""
    context, logger = ray.data.DataContext.get_current(), logging.getLogger("ray.data")
    before = context.enable_progress_bars, context.shuffle_strategy, logger.level
    context.enable_progress_bars = False
    context.shuffle_strategy = ShuffleStrategy.SORT_SHUFFLE_PULL_BASED
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        context.enable_progress_bars, context.shuffle_strategy = before[:2]
        logger.setLevel(before[2])
