"""Ratings from wherever they lie, as clean batches: one format, one policy for bad rows.

What happens to a row (the docs say so, and the counts go to `not_private`, for the operator only):

- no person, or an empty name: left out
- a state that is missing, not a number or outside the box, in any coordinate: left out
- a rating that is missing or not a finite number: left out
- a rating outside [low, high]: moved to the nearer end

Names are compared without case, surrounding white space, invisible characters or Unicode variants (NFKC), and 7, 7.0,
"7" and "007" are one name:
two names for one person would count that person twice, while one name for two people protects them as one.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quietq.privacy.errors import InvalidInput, MissingExtra
from quietq.rewards.declared import Declared

try:
    import polars as pl
except ImportError as error:
    raise MissingExtra("Reading ratings needs Polars: pip install 'quietq[people]'.") from error

BATCH = 1_000_000  # rows
PARQUET = (".parquet", ".pq")
_EXACT = 2.0**53  # below, whole numbers are exact as floating-point numbers
NUMBER, NAME, RATING = "number", "name", "rating"
_FIT_INT64 = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)


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
    for lazy in _sources(source, columns):
        found = True
        check_columns(lazy, columns)
        try:
            yield from lazy.select(columns.all).collect_batches(chunk_size=BATCH, maintain_order=False)
        except pl.exceptions.PolarsError as error:
            raise InvalidInput(f"The ratings could not be read: {_first_line(error)}") from error
    if not found:
        raise InvalidInput("There is no file or data frame to read ratings from.")


def clean(batch: pl.DataFrame, columns: Columns, declared: Declared) -> tuple[pl.DataFrame, dict[str, int]]:
    """Good rows as number, name, x0, x1, ... in [0, 1] and rating in range; and how many rows were bad, and why."""
    numbers = {RATING: columns.rating, **{f"x{i}": name for i, name in enumerate(columns.state)}}
    casts = [pl.col(name).cast(pl.Float64, strict=False).alias(alias) for alias, name in numbers.items()]
    frame = batch.select(*identity(batch, columns.person), *casts)
    rating = pl.col(RATING)
    inside = pl.lit(True)
    scaled = []
    for i, (low, high) in enumerate(zip(declared.box.low, declared.box.high, strict=True)):
        x = pl.col(f"x{i}")
        inside = inside & (x >= low) & (x <= high)
        scaled.append(((x - low) / (high - low)).clip(0.0, 1.0))
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
    rows = frame.filter(good).select(NUMBER, NAME, *scaled, rating.clip(declared.low, declared.high).alias(RATING))
    return rows, counts


def identity(batch: pl.DataFrame, column: str) -> list[pl.Expr]:
    """Who a row belongs to: a whole `number` where the name is one (fast), else the `name` in its one form."""
    raw, dtype = pl.col(column), batch.schema[column]
    if dtype.is_integer():
        number, text = raw.cast(pl.Int64, strict=False), raw.cast(pl.String)
        if dtype in _FIT_INT64:  # no name is needed
            return [number.alias(NUMBER), pl.lit(None, pl.String).alias(NAME)]
    elif dtype.is_float():
        if batch.filter(raw.is_finite() & (raw.abs() >= _EXACT)).height:
            raise InvalidInput(
                f"Column {column!r} holds names of people as floating-point numbers of 2^53 or more, "
                "which blur: read them as whole numbers or as text."
            )
        number, text = _whole(raw), pl.when(raw.is_finite()).then(raw).cast(pl.String)
    else:
        text = raw.cast(pl.String).str.normalize("NFKC").str.replace_all(r"[\p{Cc}\p{Cf}]", "")
        text = text.str.strip_chars().str.to_lowercase()
        text = text.str.replace(r"^[+]?(-?\d+)(\.0*)?$", "$1").str.replace(r"^(-?)0+(\d)", "$1$2")
        # "1e3" is 1000 and "7.50" is 7.5; digits alone stay exact, however many there are
        decimal = pl.when(text.str.contains(r"[.e]")).then(text.cast(pl.Float64, strict=False))
        decimal = pl.when(decimal.is_finite() & (decimal.abs() < _EXACT)).then(decimal)
        number = raw.cast(pl.String).cast(pl.Int64, strict=False).fill_null(text.cast(pl.Int64, strict=False))
        number = number.fill_null(_whole(decimal))
        text = decimal.cast(pl.String).fill_null(text)
    name = pl.when(number.is_null() & (text.str.len_bytes() > 0)).then(text)
    return [number.alias(NUMBER), name.alias(NAME)]


def _whole(decimal: pl.Expr) -> pl.Expr:
    return (
        pl.when(decimal.is_finite() & (decimal == decimal.floor()) & (decimal.abs() < _EXACT))
        .then(decimal)
        .cast(pl.Int64)
    )


def _sources(source: object, columns: Columns) -> Iterator[pl.LazyFrame]:
    if isinstance(source, pl.LazyFrame):
        yield source
    elif isinstance(source, pl.DataFrame):
        yield source.lazy()
    elif isinstance(source, str | os.PathLike):
        yield scan(Path(source), columns)
    elif hasattr(source, "columns") and hasattr(source, "iloc"):
        yield _from_pandas(source, columns)
    elif isinstance(source, Iterable) and not isinstance(source, bytes | dict):
        for part in source:
            yield from _sources(part, columns)
    else:
        raise InvalidInput(f"ratings must be a data frame or a file, not {type(source).__name__}.")


def scan(path: Path, columns: Columns) -> pl.LazyFrame:
    """A file, not read yet, with the types that every engine reads it with."""
    if not path.is_file():
        raise InvalidInput(f"There is no file {str(path)!r}.")
    try:
        if path.suffix.lower() in PARQUET:
            return pl.scan_parquet(path)
        if path.suffix.lower() in (".csv", ".tsv", ".txt"):
            separator = "\t" if path.suffix.lower() == ".tsv" else ","
            header = pl.scan_csv(path, separator=separator, infer_schema=False).collect_schema()
            # names stay text ("007"), numbers are numbers or missing, whatever the first rows look like
            types: dict[str, Any] = {name: pl.Float64 for name in columns.numbers if name in header}
            types |= {columns.person: pl.String} if columns.person in header else {}
            return pl.scan_csv(path, separator=separator, schema_overrides=types, ignore_errors=True)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InvalidInput(f"{str(path)!r} could not be read: {_first_line(error)}") from error
    raise InvalidInput(f"{str(path)!r} must end in .csv, .tsv, .txt, .parquet or .pq.")


def _from_pandas(frame: Any, columns: Columns) -> pl.LazyFrame:
    missing = [name for name in columns.all if name not in frame.columns]
    if missing:
        raise _no_column(missing[0], [str(name) for name in frame.columns])
    try:
        # nullable and object columns go through Python values, so that pyarrow is not needed
        data = {
            name: pl.Series(
                name,
                [
                    None if missing else value
                    for value, missing in zip(frame[name].tolist(), frame[name].isna().tolist(), strict=True)
                ],
                strict=False,
            )
            for name in columns.all
        }
        return pl.DataFrame(data).lazy()
    except (TypeError, ValueError, AttributeError, pl.exceptions.PolarsError) as error:
        raise InvalidInput(f"The data frame could not be read: {_first_line(error)}") from error


def check_columns(lazy: pl.LazyFrame, columns: Columns) -> None:
    """Refuses columns that are missing or cannot be what they are taken for."""
    try:
        schema = lazy.collect_schema()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InvalidInput(f"The ratings could not be read: {_first_line(error)}") from error
    if len(set(columns.all)) < len(columns.all):
        raise InvalidInput(f"person, state and rating must be different columns, not {columns.all}.")
    for name in columns.all:
        if name not in schema:
            raise _no_column(name, list(schema))
    for name in columns.numbers:
        dtype = schema[name]
        if not (dtype.is_numeric() or dtype == pl.Null or dtype == pl.String):
            raise InvalidInput(f"Column {name!r} must hold numbers, not {dtype}.")
    person = schema[columns.person]
    if person.is_nested() or person.is_temporal() or person in (pl.Binary, pl.Object):
        raise InvalidInput(f"Column {columns.person!r} must hold names or numbers of people, not {person}.")


def _no_column(name: str, there: Sequence[str]) -> InvalidInput:
    shown = ", ".join(repr(other) for other in there[:10])
    return InvalidInput(f"There is no column {name!r}; the columns are {shown}.")


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
