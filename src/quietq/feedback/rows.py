"""Ratings from wherever they lie, as clean batches: one format, one policy for bad rows.

What happens to a row (the docs say so, and the counts go to `not_private`, for the operator only):

- no person, or a name in which nothing can be seen: left out
- a state that is missing, not a number or outside the box, in any coordinate: left out
- a rating that is missing or not a finite number: left out
- a rating outside [low, high]: moved to the nearer end

Whose row it is, is said by `names`. Whatever a cell holds, it says something about its own row alone: see `plain_csv`
and `pandas_frame`. A refusal goes by the type of a column, which is public, or by the number of a line.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quietq.feedback.declared import Declared
from quietq.privacy.errors import InvalidInput, MissingExtra

try:
    import polars as pl
except ImportError as error:
    raise MissingExtra.of("people", "Reading ratings needs Polars") from error

from quietq.feedback.names import NAME, NUMBER, identities, is_name, rounded_names
from quietq.feedback.pandas_frame import names_in, numbers_in, numbers_in_text
from quietq.feedback.plain_csv import SEPARATORS, PlainCsv

BATCH = 1_000_000  # rows
PARQUET = (".parquet", ".pq")
RATING = "rating"


@dataclass(frozen=True)
class Columns:
    """What the columns are called."""

    person: str = "person"
    state: tuple[str, ...] = ("state",)
    rating: str = "rating"

    @property
    def all(self) -> list[str]:
        """Every column that is needed."""
        return [self.person, *self.state, self.rating]

    @property
    def numbers(self) -> list[str]:
        """Those that hold numbers."""
        return [*self.state, self.rating]


def batches(source: object, columns: Columns) -> Iterator[pl.DataFrame]:
    """The needed columns of a data frame, a file, or a sequence of them, some rows at a time."""
    found = False
    for part in _sources(source, columns):
        found = True
        if isinstance(part, PlainCsv):
            yield from part.frames(columns.all)
            continue
        failure = ""
        try:
            yield from part.select(columns.all).collect_batches(chunk_size=BATCH, maintain_order=False)
        except pl.exceptions.PolarsError as error:
            failure = type(error).__name__  # and no more: its text may quote a cell
        if failure:
            raise InvalidInput(f"The ratings could not be read: Polars failed with {failure}.")
    if not found:
        raise InvalidInput("There is no file or data frame to read ratings from.")


def clean(batch: pl.DataFrame, columns: Columns, declared: Declared) -> tuple[pl.DataFrame, dict[str, int]]:
    """Good rows as number, name, x0, x1, ... in [0, 1] and rating in range; and how many rows were bad, and why."""
    numbers = {RATING: columns.rating, **{f"x{i}": name for i, name in enumerate(columns.state)}}
    frame = identities(batch[columns.person]).with_columns(
        as_numbers(batch[name]).alias(alias) for alias, name in numbers.items()
    )
    rating = pl.col(RATING)
    inside = pl.lit(True)
    scaled = []
    for i, (low, high) in enumerate(zip(declared.box.low, declared.box.high, strict=True)):
        x = pl.col(f"x{i}")
        inside = inside & (x >= low) & (x <= high)
        scaled.append(((x - low) / (high - low)).clip(0.0, 1.0) + 0.0)  # zero has no sign
    checks = frame.select(
        (pl.col(NUMBER).is_not_null() | pl.col(NAME).is_not_null()).alias("person"),
        inside.fill_null(False).alias("state"),
        rating.is_finite().fill_null(False).alias("rating"),
        ((rating < declared.low) | (rating > declared.high)).fill_null(False).alias("outside"),
    )
    good = checks["person"] & checks["state"] & checks["rating"]
    counts = {
        "rows": batch.height,
        "without_person": batch.height - int(checks["person"].sum()),
        "bad_state": batch.height - int(checks["state"].sum()),
        "bad_rating": batch.height - int(checks["rating"].sum()),
        "clipped_ratings": int((checks["outside"] & good).sum()),
        "used_rows": int(good.sum()),
    }
    rows = frame.filter(good).select(
        NUMBER, NAME, *scaled, (rating.clip(declared.low, declared.high) + 0.0).alias(RATING)
    )
    return rows, counts


def as_numbers(cells: pl.Series) -> pl.Series:
    """Each cell as a number, or nothing."""
    return numbers_in_text(cells) if cells.dtype == pl.String else cells.cast(pl.Float64, strict=False)


def _sources(source: object, columns: Columns) -> Iterator[pl.LazyFrame | PlainCsv]:
    """Each part with its columns checked; nothing is read yet."""
    if isinstance(source, pl.LazyFrame | pl.DataFrame):
        yield _checked(source.lazy(), columns)
    elif isinstance(source, str | os.PathLike):
        yield scan(Path(source), columns)
    elif hasattr(source, "columns") and hasattr(source, "iloc"):
        yield _from_pandas(source, columns)
    elif isinstance(source, Iterable) and not isinstance(source, bytes | dict):
        for part in source:
            yield from _sources(part, columns)
    else:
        raise InvalidInput(f"ratings must be a data frame or a file, not {type(source).__name__}.")


def scan(path: Path, columns: Columns) -> pl.LazyFrame | PlainCsv:
    """A file with its columns checked, not read yet."""
    if not path.is_file():
        raise InvalidInput(f"There is no file {str(path)!r}.")
    try:
        if path.suffix.lower() in PARQUET:
            return _checked(parquet(path), columns)
        if path.suffix.lower() in SEPARATORS:
            file = PlainCsv(path)
            _check_names(file.names(), columns)
            return file
    except OSError as error:
        raise InvalidInput(f"{str(path)!r} could not be read: {_first_line(error)}") from error
    raise InvalidInput(f"{str(path)!r} must end in .csv, .tsv, .txt, .parquet or .pq.")


def parquet(path: Path) -> pl.LazyFrame:
    """That one file, whatever its name looks like: no pattern, no home directory, no columns made of folders' names."""
    return pl.scan_parquet(path.absolute(), glob=False, hive_partitioning=False)


def _from_pandas(frame: Any, columns: Columns) -> pl.LazyFrame:
    _check_names(list(frame.columns), columns)
    failure = ""
    try:
        data = {columns.person: names_in(frame[columns.person])}
        data |= {name: numbers_in(frame[name]) for name in columns.numbers}
        return pl.DataFrame(data).lazy()
    except InvalidInput:
        raise
    except Exception as error:
        failure = type(error).__name__  # and no more: its text may quote a cell
    raise InvalidInput(f"The data frame could not be read: it failed with {failure}.")


def _checked(lazy: pl.LazyFrame, columns: Columns) -> pl.LazyFrame:
    """Refuses columns that are missing or cannot be what they are taken for."""
    try:
        schema = lazy.collect_schema()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InvalidInput(f"The ratings could not be read: {_first_line(error)}") from error
    _check_names(list(schema), columns)
    for name in columns.numbers:
        dtype = schema[name]
        if not (dtype.is_numeric() or dtype == pl.Null or dtype == pl.String):
            raise InvalidInput(f"Column {name!r} must hold numbers, not {dtype}.")
    dtype = schema[columns.person]
    if dtype.is_float():
        raise rounded_names(columns.person, dtype)
    if not is_name(dtype):
        raise InvalidInput(f"Column {columns.person!r} must hold names or numbers of people, not {dtype}.")
    return lazy


def _check_names(there: Sequence[object], columns: Columns) -> None:
    if len(set(columns.all)) < len(columns.all):
        raise InvalidInput(f"person, state and rating must be different columns, not {columns.all}.")
    for name in columns.all:
        if name not in there:
            raise _no_column(name, columns, [str(other) for other in there])
        if there.count(name) > 1:
            raise InvalidInput(f"There are {there.count(name)} columns called {name!r}, where one is needed.")


def _no_column(name: str, columns: Columns, there: Sequence[str]) -> InvalidInput:
    """Shows what the columns are called only if they are names of columns for sure, and not somebody's row."""
    if any(wanted in there for wanted in columns.all) and not any(map(_is_number, there)):
        shown = ", ".join(repr(other) for other in there[:10])
        return InvalidInput(f"There is no column {name!r}; the columns are {shown}.")
    if len(there) == 1 and (separator := next((c for c in ";\t|," if c in there[0]), None)):
        return InvalidInput(
            f"There is no column {name!r}: cells seem to be separated by {separator!r}, where a comma is needed in "
            ".csv and .txt, and a tab in .tsv."
        )
    return InvalidInput(
        f"There is no column {name!r} among the {len(there)}: the first line must name the columns, and person, state "
        "and rating must say which of them are meant."
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
