"""Which columns a kind of feedback has, and what becomes of bad rows: stated once per kind, the same for every reader.

- no person, or a name in which nothing can be seen: the row is left out
- a number that is missing, not finite or outside its range: the row is left out, or the number clipped
- a category that is none of those declared, however spelt: the row is left out

The counts of such rows go to `not_private`, for the operator only. Whose row it is, is said by `names`. Whatever a cell
holds, it says something about its own row alone. A refusal goes by the type of a column, which is public, or by the
number of a line.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from quietq.privacy.errors import InvalidInput, MissingExtra

try:
    import polars as pl
except ImportError as error:
    raise MissingExtra.of("people", "Reading people's data needs Polars") from error

from quietq.feedback.doubts import doubts_of_rows
from quietq.feedback.names import NAME, NUMBER, hashed, identities, is_name, rounded_names
from quietq.feedback.statistic import Columns, Starts

PERSON = "person"
"""The column of cleaned rows that says whose each is."""


@dataclass(frozen=True)
class Field(ABC):
    """A column: which cells of it can be used, and what they become."""

    column: str
    what: str
    """What it says, as counts and refusals name it."""

    clips = False
    """Whether a number outside is clipped; else its row is left out."""
    optional = False
    """Whether a cell that cannot be used becomes NaN, and its row stays."""

    @abstractmethod
    def check(self, dtype: Any) -> None:
        """Refuses a column by its type, which is public."""

    @abstractmethod
    def read(self, cells: pl.Series) -> pl.Series:
        """Each cell by itself, or null."""

    def good(self, cell: pl.Expr) -> pl.Expr:
        """Whether a cell that was read can be used."""
        return cell.is_not_null()

    def value(self, cell: pl.Expr) -> pl.Expr:
        """What becomes of a good cell."""
        return cell

    @property
    @abstractmethod
    def extremes(self) -> tuple[float | str, ...]:
        """The cells that an adversary tries first."""

    @abstractmethod
    def anything(self, rng: np.random.Generator) -> float | str | None:
        """And those that come next: any in the range, or far outside, or none."""


@dataclass(frozen=True)
class Number(Field):
    """A column of numbers, and the range in which they lie."""

    low: float = -math.inf
    high: float = math.inf
    clips: bool = False
    scales: bool = False
    """Whether [low, high] becomes [0, 1]."""
    optional: bool = False

    def check(self, dtype: Any) -> None:
        if not (dtype.is_numeric() or dtype == pl.Null or dtype == pl.String):
            raise InvalidInput(f"Column {self.column!r} must hold numbers, not {dtype}.")

    def read(self, cells: pl.Series) -> pl.Series:
        text = cells.dtype == pl.String
        return (cells.str.strip_chars() if text else cells).cast(pl.Float64, strict=False)

    def outside(self, cell: pl.Expr) -> pl.Expr:
        return cell.is_finite() & ((cell < self.low) | (cell > self.high))

    def good(self, cell: pl.Expr) -> pl.Expr:
        return cell.is_finite() if self.clips else cell.is_finite() & ~self.outside(cell)

    def value(self, cell: pl.Expr) -> pl.Expr:
        """From good cells; zero has no sign."""
        held = cell.clip(self.low, self.high)
        value = (((held - self.low) / (self.high - self.low)).clip(0.0, 1.0) if self.scales else held) + 0.0
        return pl.when(self.good(cell)).then(value).otherwise(math.nan) if self.optional else value

    @property
    def extremes(self) -> tuple[float, ...]:
        return max(self.low, -1e9), min(self.high, 1e9)

    def anything(self, rng: np.random.Generator) -> float | None:
        if self.optional and rng.random() < 0.3:
            return None
        low, high = self.extremes
        cells = [rng.uniform(low, high), (low + high) / 2, low - 1e12, high + 1e12, np.inf]
        return float(rng.choice(cells, p=[0.75, 0.1, 0.05, 0.05, 0.05]))


@dataclass(frozen=True)
class Category(Field):
    """A column of categories, which become 0, 1, ... in the order of `values`; spellings are merged like names."""

    values: tuple[str, ...]
    scales: bool = False
    """Whether they lie evenly in [0, 1], the first at 0 and the last at 1."""
    optional: bool = False
    blanks: bool = False
    """Whether cells may be blank, as may be actions behind an end: that makes floating-point numbers of whole ones."""

    def __post_init__(self) -> None:
        if not all(isinstance(value, str) and value.isprintable() for value in self.values):
            raise InvalidInput(
                f"The values of {self.what} must be names that can be printed, without tabs, line breaks or half "
                "characters."
            )
        if self._forms(pl.Series(self.values, dtype=pl.String)).drop_nulls().n_unique() < len(self.values):
            raise InvalidInput(f"The values of {self.what} must differ by more than their spelling.")

    def check(self, dtype: Any) -> None:
        # One blank cell makes floating-point numbers of everybody's whole ones.
        if not (is_name(dtype) or (self.blanks and dtype.is_float())):
            raise InvalidInput(f"Column {self.column!r} must hold categories, as text or whole numbers, not {dtype}.")

    def read(self, cells: pl.Series) -> pl.Series:
        forms = self._forms(pl.Series(self.values, dtype=pl.String))
        if cells.dtype.is_integer() and (whole := forms.cast(pl.Int64, strict=False)).null_count() == 0:
            return cells.cast(pl.Int64, strict=False).replace_strict(
                whole, range(len(whole)), default=None, return_dtype=pl.Int64
            )
        return self._forms(cells).replace_strict(forms, range(len(forms)), default=None, return_dtype=pl.Int64)

    def value(self, cell: pl.Expr) -> pl.Expr:
        return (cell / (len(self.values) - 1)).fill_null(math.nan) if self.scales else cell

    @property
    def extremes(self) -> tuple[str, ...]:
        return self.values

    def anything(self, rng: np.random.Generator) -> str | None:
        if self.optional and rng.random() < 0.3:
            return None
        return str(rng.choice([*self.values, "anything"]))

    @staticmethod
    def _forms(cells: pl.Series) -> pl.Series:
        return identities(cells).select(pl.col(NUMBER).cast(pl.String).fill_null(pl.col(NAME))).to_series()


@dataclass(frozen=True)
class Flag(Field):
    """A column of 0 and 1, false and true, or no and yes; a cell that is neither becomes NaN, and its row stays."""

    optional = True

    def check(self, dtype: Any) -> None:
        if not (is_name(dtype) or dtype.is_float()):
            raise InvalidInput(f"Column {self.column!r} must hold 0 and 1, or false and true, not {dtype}.")

    def read(self, cells: pl.Series) -> pl.Series:
        if not (cells.dtype.is_numeric() or cells.dtype == pl.Boolean):
            codes = Category(self.column, self.what, ("0", "1", "false", "true", "no", "yes")).read(cells)
            return codes.cast(pl.Float64) % 2
        numbers = cells.cast(pl.Float64, strict=False).to_frame("cell")
        return numbers.select(pl.when(pl.col("cell").is_in([0.0, 1.0])).then(pl.col("cell"))).to_series()

    def value(self, cell: pl.Expr) -> pl.Expr:
        return cell.fill_null(math.nan)

    @property
    def extremes(self) -> tuple[str, ...]:
        return ("0", "1")

    def anything(self, rng: np.random.Generator) -> str:
        return str(rng.choice(["0", "1", "maybe"]))


@dataclass(frozen=True)
class Group(Field):
    """A column of names: rows of one person with the same name belong together. Spellings are merged."""

    def check(self, dtype: Any) -> None:
        if not is_name(dtype):
            raise InvalidInput(f"Column {self.column!r} must hold names or whole numbers, not {dtype}.")

    def read(self, cells: pl.Series) -> pl.Series:
        return hashed(cells, key=0)

    @property
    def extremes(self) -> tuple[str, ...]:
        return ("one", "another")

    def anything(self, rng: np.random.Generator) -> str:
        return str(rng.choice(["one", "another", "a third", ""]))


def is_blank(cells: pl.Series) -> pl.Series:
    """Where nothing was given."""
    if cells.dtype == pl.String:
        return cells.str.strip_chars().str.to_lowercase().fill_null("").is_in(["", "nan"])  # as some write a blank
    return cells.is_null() | cells.is_nan().fill_null(False) if cells.dtype.is_float() else cells.is_null()


def why_not(field: Field, given: pl.Series, read: pl.Series, usable: pl.Series) -> dict[str, pl.Series | bool]:
    """By the name of a count, the cells that were blank, outside the range or neither, and those that were clipped."""
    found: dict[str, pl.Series | bool] = {}
    all_usable = bool(usable.all())  # as a rule, and then there is nothing to look for
    outside: pl.Series | bool = False
    if isinstance(field, Number) and math.isfinite(field.high):
        if field.clips or not all_usable:
            outside = read.to_frame("cell").select(field.outside(pl.col("cell")).fill_null(False)).to_series()
        found["clipped_" + field.what + "s" if field.clips else "outside_" + field.what] = outside
    blank = False if all_usable and not field.optional else is_blank(given)
    bad = False if all_usable else ~(usable | blank | outside)
    return found | {f"blank_{field.what}": blank, f"bad_{field.what}": bad}


@dataclass(frozen=True)
class Schema:
    """The person's column, and all others by the names that cleaned rows have them under.

    Each person's rows are put in the order of the first of them, or else they stay in the order in which they came.
    """

    kind: str
    """What the rows are, in refusals: "ratings"."""
    person: str
    fields: Mapping[str, Field]
    in_order: bool = False
    """Whether a person's rows stay in the order in which they came."""
    states: tuple[str, ...] = ("state",)
    """By which arguments the columns of states are named."""

    @property
    def columns(self) -> list[str]:
        return [self.person, *(field.column for field in self.fields.values())]

    @property
    def together(self) -> bool:
        """Whether rows belong together, under the name that comes first, so that a sample of them is of whole ones."""
        return isinstance(next(iter(self.fields.values())), Group)

    @property
    def ordering(self) -> tuple[str, ...]:
        """The fields by which a person's rows are in order as a rule; where they are the same, all others decide."""
        return tuple(self.fields)[:1]

    def named_by(self, column: str) -> str:
        """Which argument of Python, or option of a command, names a column."""
        what = next((field.what for field in self.fields.values() if field.column == column), "person")
        names = self.states if what == "state" else ("person",) if column == self.person else (what,)
        options = " or ".join("--" + name.replace("_", "-").replace("options", "option") for name in names)
        return f"{' or '.join(f'{name}=' for name in names)} ({options} of a command)"

    @property
    def meanings(self) -> str:
        """What the columns say, in words: "person, state and rating"."""
        *words, last = dict.fromkeys(["person", *(field.what for field in self.fields.values())])
        return f"{', '.join(words)} and {last}"

    def check_types(self, types: Mapping[str, Any]) -> None:
        for field in self.fields.values():
            field.check(types[field.column])
        dtype = types[self.person]
        if dtype.is_float():
            raise rounded_names(self.person, dtype)
        if not is_name(dtype):
            raise InvalidInput(f"Column {self.person!r} must hold names or numbers of people, not {dtype}.")

    def arrange(self, starts: Starts, columns: Columns) -> tuple[Starts, Columns]:
        """What becomes of cleaned rows when all of each person's have met; by default they stay as they are."""
        return starts, columns

    def doubts(self, counts: Mapping[str, int], people: int) -> list[str]:
        """What looks like a mistake in how rows were declared, by counts of them: for the operator."""
        return doubts_of_rows(counts, people)

    def clean(self, batch: pl.DataFrame, key: int) -> tuple[pl.DataFrame, dict[str, int]]:
        """Good rows, as a hash of the person by that key and the fields; and how many rows were bad, and why."""
        read = {name: field.read(batch[field.column]) for name, field in self.fields.items()}
        frame = pl.DataFrame({PERSON: hashed(batch[self.person], key), **read})
        usable = frame.select(
            pl.col(PERSON).is_not_null(),
            **{name: field.good(pl.col(name)).fill_null(False) for name, field in self.fields.items()},
        )
        needed = [PERSON, *(name for name, field in self.fields.items() if not field.optional)]
        good = usable.select(pl.all_horizontal(needed)).to_series()
        told: dict[str, pl.Series | bool] = {"without_person": ~usable[PERSON]}
        for name, field in self.fields.items():
            for reason, cells in why_not(field, batch[field.column], read[name], usable[name]).items():
                told[reason] = told.get(reason, False) | (cells & good if reason.startswith("clipped") else cells)
        counts = {"rows": batch.height, "used_rows": int(good.sum())}
        counts |= {reason: 0 if isinstance(cells, bool) else int(cells.sum()) for reason, cells in told.items()}
        values = [field.value(pl.col(name)).alias(name) for name, field in self.fields.items()]
        return frame.filter(good).select(PERSON, *values), counts
