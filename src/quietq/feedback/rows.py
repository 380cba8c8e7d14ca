"""Rows from wherever they lie: data frames, CSV and Parquet files, some rows at a time.

Whatever a cell holds, it says something about its own row alone: see `plain_csv` and `pandas_frame`. What columns must
be, and what becomes of bad rows, is said by the `schema`.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from quietq.feedback.pandas_frame import polars_column
from quietq.feedback.plain_csv import SEPARATORS, PlainCsv
from quietq.feedback.schema import Schema
from quietq.privacy.checks import did_you_mean
from quietq.privacy.errors import InvalidInput

BATCH = 500_000  # rows
PARQUET = (".parquet", ".pq")
_Made = TypeVar("_Made")
Piece = Path | tuple[Path, int, int] | pl.DataFrame
"""Of a source, what is read at a time: rows, a CSV file, or so many rows of a Parquet file, from some row on."""


def batches(source: object, schema: Schema) -> Iterator[pl.DataFrame]:
    """The needed columns of a data frame, a file, or a sequence of them, some rows at a time."""
    for part in _parts(source, schema):
        yield from frames(part, schema)


def pieces(source: object, schema: Schema) -> Iterator[Piece]:
    """What can be read apart. What cannot be read at all is refused here."""
    for part in _parts(source, schema):
        if isinstance(part, pl.LazyFrame):
            yield from frames(part, schema)
            continue
        file = scan(path := part.absolute(), schema)
        if isinstance(file, pl.LazyFrame):
            rows = int(file.select(pl.len()).collect().item())
            yield from ((path, first, BATCH) for first in range(0, max(rows, 1), BATCH))
        else:
            yield path


def frames(piece: Piece | pl.LazyFrame, schema: Schema) -> Iterator[pl.DataFrame]:
    """The needed columns of a piece, some rows at a time."""
    if isinstance(piece, pl.DataFrame):
        yield piece
        return
    if isinstance(piece, tuple):
        path, first, number = piece
        rows = parquet(path).slice(first, number)
    else:
        rows = scan(piece, schema) if isinstance(piece, Path) else _checked(piece, schema)
    if isinstance(rows, PlainCsv):
        yield from rows.frames(schema.columns)
        return
    rows = rows.select(schema.columns)
    found = _tell_nothing(schema.kind, lambda: rows.collect_batches(chunk_size=BATCH, maintain_order=schema.in_order))
    while (batch := _tell_nothing(schema.kind, lambda: next(found, None))) is not None:
        yield batch


def _parts(source: object, schema: Schema) -> Iterator[Path | pl.LazyFrame]:
    """All files and data frames of a source, which may be a sequence of them; nothing is read yet."""
    found = False
    for part in _flatten(source, schema):
        found = True
        yield part
    if not found:
        raise InvalidInput(f"There is no file or data frame to read {schema.kind} from.")


def _flatten(source: object, schema: Schema) -> Iterator[Path | pl.LazyFrame]:
    if isinstance(source, pl.LazyFrame | pl.DataFrame):
        yield source.lazy()
    elif isinstance(source, str | os.PathLike):
        yield Path(source)
    elif hasattr(source, "columns") and hasattr(source, "iloc"):
        yield _from_pandas(source, schema)
    elif isinstance(source, Iterable) and not isinstance(source, bytes | dict):
        for part in source:
            yield from _flatten(part, schema)
    else:
        raise InvalidInput(f"{schema.kind} must be a data frame or a file, not {type(source).__name__}.")


def header(source: object) -> list[str]:
    """The names of the columns, as the first file or data frame has them."""
    while isinstance(source, Sequence) and not isinstance(source, str | bytes) and source:
        source = source[0]
    if isinstance(source, pl.LazyFrame | pl.DataFrame):
        return list(_tell_nothing("data frame", source.lazy().collect_schema))
    if isinstance(source, str | os.PathLike):
        file = _opened(Path(source))
        return file.names() if isinstance(file, PlainCsv) else list(_tell_nothing("file", file.collect_schema))
    return [name for name in getattr(source, "columns", ()) if isinstance(name, str)]


def scan(path: Path, schema: Schema) -> pl.LazyFrame | PlainCsv:
    """A file with its columns checked, not read yet."""
    file = _opened(path)
    try:
        if isinstance(file, pl.LazyFrame):
            return _checked(file, schema)
        _check_names(file.names(), schema)
        return file
    except OSError as error:
        raise InvalidInput(f"{str(path)!r} could not be read: {_first_line(error)}") from error


def _opened(path: Path) -> pl.LazyFrame | PlainCsv:
    if not path.is_file():
        raise InvalidInput(f"There is no file {str(path)!r}.")
    if path.suffix.lower() in PARQUET:
        return parquet(path)
    if path.suffix.lower() in SEPARATORS:
        return PlainCsv(path)
    raise InvalidInput(f"{str(path)!r} must end in .csv, .tsv, .txt, .parquet or .pq.")


def parquet(path: Path) -> pl.LazyFrame:
    """That one file, whatever its name looks like: no pattern, no home directory, no columns made of folders' names."""
    return pl.scan_parquet(path.absolute(), glob=False, hive_partitioning=False)


def _from_pandas(frame: Any, schema: Schema) -> pl.LazyFrame:
    _check_names(list(frame.columns), schema)
    cells = {name: partial(polars_column, frame[name], names=name == schema.person) for name in schema.columns}
    return pl.LazyFrame({name: _tell_nothing("data frame", column) for name, column in cells.items()})


def _checked(lazy: pl.LazyFrame, schema: Schema) -> pl.LazyFrame:
    types = _tell_nothing(schema.kind, lazy.collect_schema)
    _check_names(list(types), schema)
    schema.check_types(types)
    return lazy


def _tell_nothing(kind: str, step: Callable[[], _Made]) -> _Made:
    """What a step gives; a failure is shown by its type alone: its text may quote a cell, its frames hold the rows."""
    try:
        return step()
    except InvalidInput:
        raise
    except (Exception, pl.exceptions.PanicException) as error:  # of the caller's functions too
        failure = type(error).__name__
    raise InvalidInput(f"The {kind} could not be read: Polars failed with {failure}.")


def _check_names(there: Sequence[object], schema: Schema) -> None:
    if len(set(schema.columns)) < len(schema.columns):
        raise InvalidInput(f"{schema.meanings} must be different columns, not {schema.columns}.")
    for name in schema.columns:
        if name not in there:
            raise _no_column(name, schema, [str(other) for other in there])
        if there.count(name) > 1:
            raise InvalidInput(f"There are {there.count(name)} columns called {name!r}, where one is needed.")


def _no_column(name: str, schema: Schema, there: Sequence[str]) -> InvalidInput:
    """Shows what the columns are called only if they are names of columns for sure, and not somebody's row."""
    if any(wanted in there for wanted in schema.columns) and not any(map(_is_number, there)):
        shown = ", ".join(repr(other) for other in there[:10])
        which = f"{schema.named_by(name)} says which one is meant"
        return InvalidInput(
            f"There is no column {name!r}; the columns are {shown}: {which}.{did_you_mean(name, there)}"
        )
    if len(there) == 1 and (separator := next((c for c in ";\t|," if c in there[0]), None)):
        return InvalidInput(
            f"There is no column {name!r}: cells seem to be separated by {separator!r}, where a comma is needed in "
            ".csv and .txt, and a tab in .tsv."
        )
    return InvalidInput(
        f"There is no column {name!r} among the {len(there)}: the first line must name the columns, and "
        f"{schema.meanings} must say which of them are meant."
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
