"""Rows from wherever they lie: data frames of Polars and pandas, CSV and Parquet files, Minari data sets.

A source is read in pieces, each of which is a function that gives some rows, so that an engine can read it anywhere.
Whatever a cell holds, it says something about its own row alone: in CSV by `plain_csv`, and in pandas by
`polars_column`. What columns must be, and what becomes of bad rows, is said by the `schema`.

A pandas column of Python objects has no type but what its values have. Made into a typed column as a whole, one list,
date or huge number among them would turn everybody's numbers into gaps, or blur their names; so every value is turned
into text or into nothing on its own. Columns that do have a type keep it; one of categories has the type of these.
Names that were rounded, as floating-point numbers, before they came here are refused even one by one: pandas reads a
long file in pieces and chooses a type for each, so that one blank cell may have rounded thousands of other names.

Of a Minari data set there is a row per step, and one more with the final state at the end of each episode. Whose an
episode is, is said by its metadata, or row by row by its infos. Minari itself is not needed here.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from quietq.feedback import plain_csv
from quietq.feedback.schema import Schema, rounded_names
from quietq.privacy.checks import did_you_mean
from quietq.privacy.errors import InvalidInput

BATCH = 500_000  # rows
PARQUET = (".parquet", ".pq")
_EPISODES_AT_ONCE = 1000
_NO_CELLS = "cmMSUV"  # NumPy's letters for complex numbers, times, dates, bytes and so on
_Made = TypeVar("_Made")
Piece = Callable[[], pl.DataFrame]
"""Gives some rows of a source, with the needed columns alone."""


def pieces(source: object, schema: Schema, in_memory: bool = True) -> Iterator[Piece]:
    """All rows of a data frame, a file, or a sequence of them, in pieces. What cannot be read at all is refused here.

    Args:
        source: Where the rows are.
        schema: Which columns are needed, and of which types.
        in_memory: Whether pieces are read in this process; else a piece of a Parquet file opens the file itself.

    """
    part = None
    for part in _parts(source, schema.kind):
        _check_names(_names(part, schema.kind), schema)
        if isinstance(part, Path) and part.suffix.lower() not in PARQUET:
            yield from plain_csv.pieces(part, schema.columns)
            continue
        rows = _parquet(part) if isinstance(part, Path) else part
        if not isinstance(rows, pl.LazyFrame):
            rows = _from_pandas(rows, schema)
        schema.check_types(_tell_nothing(schema.kind, rows.collect_schema))
        if isinstance(part, Path) and not in_memory:
            number = int(rows.select(pl.len()).collect().item())
            for first in range(0, number, BATCH):
                yield partial(_slice, part.absolute(), first, BATCH, schema)
        else:
            batches = rows.select(schema.columns)
            batches = _tell_nothing(
                schema.kind, partial(batches.collect_batches, chunk_size=BATCH, maintain_order=schema.in_order)
            )
            while (batch := _tell_nothing(schema.kind, partial(next, batches, None))) is not None:
                yield partial(pl.DataFrame, batch)
    if part is None:
        raise InvalidInput(f"There is no file or data frame to read {schema.kind} from.")


def header(source: object) -> list[str]:
    """The names of the columns, as the first file or data frame has them; none of what can be read but once."""
    if isinstance(source, Iterator):
        return []
    return next((_names(part, "rows") for part in _parts(source, "rows")), [])


def _parts(source: object, kind: str) -> Iterator[Any]:
    """All data frames and files of a source, which may be a sequence of them: one of pandas is still one of pandas."""
    if isinstance(source, pl.LazyFrame | pl.DataFrame):
        yield source.lazy()
    elif isinstance(source, str | os.PathLike):
        yield Path(source)
    elif hasattr(source, "columns") and hasattr(source, "iloc"):
        yield source
    elif isinstance(source, Iterable) and not isinstance(source, bytes | dict):
        for part in source:
            yield from _parts(part, kind)
    else:
        raise InvalidInput(f"{kind} must be a data frame or a file, not {type(source).__name__}.")


def _names(part: Any, kind: str) -> list[Any]:
    """Returns what the columns of a data frame or file are called."""
    if isinstance(part, Path):
        if not part.is_file():
            raise InvalidInput(f"There is no file {str(part)!r}.")
        suffix = part.suffix.lower()
        if suffix not in (*PARQUET, *plain_csv.SEPARATORS):
            raise InvalidInput(f"{str(part)!r} must end in .csv, .tsv, .txt, .parquet or .pq.")
        find = _parquet(part).collect_schema if suffix in PARQUET else partial(plain_csv.names, part)
        return list(_tell_nothing(f"file {str(part)!r}", find))
    return list(_tell_nothing(kind, part.collect_schema) if isinstance(part, pl.LazyFrame) else part.columns)


def _parquet(path: Path) -> pl.LazyFrame:
    """That one file, whatever its name looks like: no pattern, no home directory, no columns made of folders' names."""
    return pl.scan_parquet(path.absolute(), glob=False, hive_partitioning=False)


def _slice(path: Path, first: int, number: int, schema: Schema) -> pl.DataFrame:
    return _tell_nothing(schema.kind, _parquet(path).select(schema.columns).slice(first, number).collect)


def _from_pandas(frame: Any, schema: Schema) -> pl.LazyFrame:
    cells = {name: partial(polars_column, frame[name], names=name == schema.person) for name in schema.columns}
    return pl.LazyFrame({name: _tell_nothing(schema.kind, column) for name, column in cells.items()})


def _tell_nothing(kind: str, step: Callable[[], _Made]) -> _Made:
    """Runs a step; a failure is shown by its type alone: its text may quote a cell, its frames hold the rows."""
    try:
        return step()
    except InvalidInput:
        raise
    except (Exception, pl.exceptions.PanicException) as error:  # of the caller's functions too
        failure = type(error).__name__
    raise InvalidInput(f"The {kind} could not be read: it failed with {failure}.")


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


# Of pandas, value by value.


def polars_column(series: Any, names: bool = False) -> pl.Series:
    """A column by its type, or that of its values; of objects each as text or nothing."""
    kind = getattr(_type_of_values(series.dtype), "kind", "O")
    if kind in _NO_CELLS:
        raise InvalidInput(f"Column {series.name!r} must hold text or numbers, not {series.dtype}.")
    if isinstance(series.dtype, np.dtype) and kind in "iufb":
        array = series.to_numpy()
        return pl.Series(array.astype(np.float64 if kind == "f" else array.dtype.newbyteorder("=")))
    values = series.tolist()
    if kind in "fb":
        own = float | np.floating if kind == "f" else bool | np.bool_
        dtype = pl.Float64 if kind == "f" else pl.Boolean
        return pl.Series([value if isinstance(value, own) else None for value in values], dtype=dtype)
    if names and any(map(_was_rounded, values)):
        raise rounded_names(series.name, f"{series.dtype} with large floating-point numbers")
    return texts_of(values)


def texts_of(values: list[Any]) -> pl.Series:
    """Each value as text, or nothing."""
    return pl.Series([_text(value) for value in values], dtype=pl.String)


def _type_of_values(dtype: Any) -> Any:
    """The type itself, or that of its categories; Arrow calls them a dictionary."""
    if (categories := getattr(dtype, "categories", None)) is not None:
        return _type_of_values(categories.dtype)
    arrow = getattr(dtype, "pyarrow_dtype", None)
    if str(arrow).startswith(("dictionary<", "run_end_encoded<")):
        return type(dtype)(arrow.value_type)  # pyright: ignore[reportOptionalMemberAccess]
    return dtype


def _was_rounded(value: object) -> bool:
    """Says whether it is a floating-point number of a size at which its type no longer holds every whole number."""
    if isinstance(value, float):
        return 2.0**53 <= float.__abs__(value) < math.inf
    if isinstance(value, np.floating):
        return 2.0 ** {2: 11, 4: 24}.get(value.dtype.itemsize, 53) <= abs(float(value)) < math.inf
    return False


def _text(value: object) -> str | None:
    try:
        if isinstance(value, str):  # of a subclass too; what UTF-8 cannot hold is replaced
            return str.__str__(value).encode("utf-8", "surrogatepass").decode("utf-8", "replace")
        if isinstance(value, bool | np.bool_):
            return str(bool(value)).lower()
        if isinstance(value, int | np.integer):
            return str(int(value))
        if isinstance(value, float | np.floating | Decimal):  # in as many digits as its own type has
            finite = value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)
            return str(value) if finite else None
    except Exception:  # of the value's own code, or a number with more digits than Python writes out
        pass
    return None


# Of Minari, episode by episode.


def is_minari(source: object) -> bool:
    return hasattr(source, "iterate_episodes") and hasattr(source, "storage")


def minari_columns(dataset: Any, numbers: bool) -> dict[str, Any]:
    """The columns that every such data set has, by the arguments of `Sessions.read`; actions may be numbers."""
    told = {"episode": "episode", "step": "step", "reward": "reward", "end": "terminated", "cut": "truncated"}
    states = [f"observation{i}" for i in range(_size(dataset.observation_space, "observations"))]
    acting = [f"action{i}" for i in range(_size(dataset.action_space, "actions"))] if numbers else "action"
    return {**told, "state": states, "action": acting}


def minari_frames(dataset: Any, person: str) -> Iterator[pl.DataFrame]:
    """All episodes, some at a time."""
    _size(dataset.action_space, "actions")
    metadata = dataset.storage.get_episode_metadata(dataset.episode_indices)
    episodes = zip(dataset.iterate_episodes(), metadata, strict=True)
    while some := list(islice(episodes, _EPISODES_AT_ONCE)):
        yield pl.concat([_minari_rows(episode, more, person) for episode, more in some])


def _minari_rows(episode: Any, metadata: Any, person: str) -> pl.DataFrame:
    steps = len(episode.rewards)
    states = np.asarray(episode.observations, np.float64).reshape(steps + 1, -1)
    actions = np.asarray(episode.actions, np.float64)
    names = {"action": actions} if actions.ndim == 1 else dict(_numbered("action", actions.reshape(steps, -1)))
    told = dict(names, reward=episode.rewards, terminated=episode.terminations, truncated=episode.truncations)
    columns = {name: np.append(np.asarray(column, np.float64), np.nan) for name, column in told.items()}
    columns |= _numbered("observation", states) | {"step": np.arange(steps + 1.0)}
    return pl.DataFrame(columns).with_columns(
        _minari_names(episode, metadata, person, steps + 1).alias(person),
        pl.lit(int(episode.id), pl.Int64).alias("episode"),
    )


def _minari_names(episode: Any, metadata: Any, person: str, rows: int) -> pl.Series:
    infos = episode.infos or {}
    given = np.asarray(infos[person] if person in infos else [metadata.get(person)] * rows)
    if given.dtype.kind == "f":
        raise rounded_names(person, given.dtype)
    if given.size != len(given) or len(given) not in (rows - 1, rows):
        raise InvalidInput(f"infos[{person!r}] of a Minari episode must have one name for each step.")
    values = [one.decode(errors="replace") if isinstance(one, bytes) else one for one in given.reshape(-1).tolist()]
    return texts_of((values + values[-1:] * rows)[:rows])  # infos may have no entry for the final state


def _numbered(name: str, columns: np.ndarray) -> dict[str, np.ndarray]:
    return {f"{name}{i}": column for i, column in enumerate(columns.T)}


def _size(space: Any, what: str) -> int:
    if getattr(space, "shape", None) is None:
        raise InvalidInput(f"The {what} of a Minari data set must be arrays of numbers, not {type(space).__name__}.")
    return int(np.prod(space.shape))
