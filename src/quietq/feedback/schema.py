"""Which columns a kind of feedback has, and what becomes of bad rows: stated once per kind, the same for every reader.

- no person, or a name in which nothing can be seen: the row is left out
- a number that is missing, not finite or outside its range: the row is left out, or the number clipped
- a category that is none of those declared, however spelt: the row is left out

The counts of such rows go to `not_private`, for the operator only. Whatever a cell holds, it says something about its
own row alone. A refusal goes by the type of a column, which is public, or by the number of a line.

One person, however spelt: two names for one person would count that person twice, while one name for two people
protects them as one. So spellings are merged rather than kept apart. Two texts are one name if they are the same after
NFKC, case folding (upper case, then lower case, with one small sigma: ß is ss, and the dotless ı is i) and leaving out
what cannot be seen (control, format and default-ignorable characters, blank signs, white space but for single spaces),
all of it repeated until nothing changes. Then "7", "+7", "007", "7.0" and "7e0" are the whole number 7, and "7.50" is
7.5: a name with a point or an exponent is compared as a floating-point number, one of digits alone exactly.

A column of floating-point numbers holds no names. Readers choose a column's type by its cells: where all others are
long whole numbers, one person's "1.5" or blank makes floating-point numbers of them, which are rounded and may be other
people's. So the type is refused, whatever the numbers are.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import UInt64

from quietq.privacy.errors import InvalidInput, MissingExtra

try:
    import polars as pl
except ImportError as error:
    raise MissingExtra.of("people", "Reading people's data needs Polars") from error

from quietq.feedback.feedback import doubts_of_rows
from quietq.feedback.statistic import Columns, Starts

PERSON = "person"
"""The column of cleaned rows that says whose each is."""
NUMBER, NAME = "number", "name"
_INVISIBLE = r"[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\x{2800}\x{16FE4}\x{1D159}]"
_IN_FORM = r"^[!-~]+( [!-~]+)*$"  # but for its case
_FIT_INT64 = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)
_ROUNDS = 20  # two or three are enough for any text we know


@dataclass(frozen=True)
class Field(ABC):
    """A column: which cells of it can be used, and what they become."""

    column: str
    what: str
    """What it says, as counts and refusals name it."""

    clips = False
    """Whether a number outside is clipped; else its row is left out."""
    optional = False
    """Whether the row of a cell that cannot be used stays."""

    @abstractmethod
    def check(self, dtype: Any) -> None:
        """Refuses a column by its type, which is public."""

    @abstractmethod
    def read(self, cells: pl.Series) -> tuple[pl.Series, pl.Series | None]:
        """Cleans each cell by itself, null if of no use; tells which are outside the range, if there is one."""

    @property
    @abstractmethod
    def extremes(self) -> tuple[float | str, ...]:
        """The cells that an adversary tries first."""

    def anything(self, rng: np.random.Generator) -> float | str | None:
        """And those that come next: any in the range, or far outside, or none."""
        if self.optional and rng.random() < 0.3:
            return None
        return self.any_given(rng)

    def any_given(self, rng: np.random.Generator) -> float | str:
        """Any cell that is not blank."""
        return str(rng.choice([*map(str, self.extremes), "anything"]))


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

    def read(self, cells: pl.Series) -> tuple[pl.Series, pl.Series | None]:
        cells = (cells.str.strip_chars() if cells.dtype == pl.String else cells).cast(pl.Float64, strict=False)
        cell = pl.col("cell")
        inside = cell.is_between(self.low, self.high)
        value = cell.clip(self.low, self.high)
        if self.scales:  # by a product: Polars divides a single row in another way than many
            value = (value - self.low) * (1 / (self.high - self.low))
        value = pl.when(value == 0).then(0.0).otherwise(value)  # zero has no sign, which a sum leaves to many rows
        usable = cell.is_finite() if self.clips else cell.is_finite() & inside
        read = cells.to_frame("cell").select(
            pl.when(usable).then(value).alias("value"), outside=(cell.is_finite() & ~inside).fill_null(False)
        )
        return read["value"], read["outside"] if math.isfinite(self.high) else None

    @property
    def extremes(self) -> tuple[float, ...]:
        return max(self.low, -1e9), min(self.high, 1e9)

    def any_given(self, rng: np.random.Generator) -> float:
        low, high = self.extremes
        cells = [rng.uniform(low, high), (low + high) / 2, low - 1e12, high + 1e12, np.inf]
        return float(rng.choice(cells, p=[0.75, 0.1, 0.05, 0.05, 0.05]))


@dataclass(frozen=True)
class Category(Field):
    """A column of categories, which become 0, 1, ... in the order of `values`; spellings are merged like names."""

    values: tuple[str, ...]
    numbers: tuple[float, ...] | None = None
    """What the values become instead."""
    optional: bool = False
    """Whether cells may be blank, as may be actions behind an end: that makes floating-point numbers of whole ones."""

    def __post_init__(self) -> None:
        if not all(isinstance(value, str) and value.isprintable() for value in self.values):
            raise InvalidInput(
                f"The values of {self.what} must be names that can be printed, without tabs, line breaks or half "
                "characters."
            )
        if forms_of(pl.Series(self.values, dtype=pl.String)).drop_nulls().n_unique() < len(self.values):
            raise InvalidInput(f"The values of {self.what} must differ by more than their spelling.")

    def check(self, dtype: Any) -> None:
        # One blank cell makes floating-point numbers of everybody's whole ones.
        if not (is_name(dtype) or (self.optional and dtype.is_float())):
            some = " and ".join(map(repr, self.values[:2]))
            raise InvalidInput(
                f"Column {self.column!r} must hold categories such as {some}, as text or whole numbers, not {dtype}."
            )

    def read(self, cells: pl.Series) -> tuple[pl.Series, None]:
        forms = forms_of(pl.Series(self.values, dtype=pl.String))
        codes = pl.Series(range(len(forms)) if self.numbers is None else self.numbers)
        if cells.dtype.is_integer():
            whole = forms.cast(pl.Int64, strict=False)
            codes, whole = codes.filter(whole.is_not_null()), whole.drop_nulls()
            return cells.cast(pl.Int64, strict=False).replace_strict(whole, codes, default=None), None
        truth = cells.dtype == pl.Boolean
        cells = cells.cast(pl.UInt32 if truth else pl.String)
        spellings = pl.Series(["false", "true"]) if truth else cells.unique()
        meant = forms_of(spellings).replace_strict(forms, codes, default=None)
        return meant.gather(cells) if truth else cells.replace_strict(spellings, meant, default=None), None

    @property
    def extremes(self) -> tuple[str, ...]:
        """One spelling of each."""
        return tuple(dict(zip(self.numbers or range(len(self.values)), self.values, strict=True)).values())


def flag(column: str, what: str) -> Category:
    """A column of 0 and 1, false and true, or no and yes; a cell that is neither becomes NaN, and its row stays."""
    values, numbers = ("0", "1", "false", "true", "no", "yes"), (0.0, 1.0) * 3
    return Category(column, what, values, numbers, optional=True)


@dataclass(frozen=True)
class Group(Field):
    """A column of names: rows of one person with the same name belong together. Spellings are merged."""

    def check(self, dtype: Any) -> None:
        if not is_name(dtype):
            raise InvalidInput(f"Column {self.column!r} must hold names or whole numbers, not {dtype}.")

    def read(self, cells: pl.Series) -> tuple[pl.Series, None]:
        return hashed(cells, key=0), None

    @property
    def extremes(self) -> tuple[str, ...]:
        return ("one", "another")


def is_blank(cells: pl.Series) -> pl.Series:
    """Returns where nothing was given."""
    if cells.dtype == pl.String:
        return cells.str.strip_chars().str.to_lowercase().fill_null("").is_in(["", "nan"])  # as some write a blank
    return cells.is_null() | cells.is_nan().fill_null(False) if cells.dtype.is_float() else cells.is_null()


def read_cells(field: Field, cells: pl.Series) -> tuple[pl.Series, dict[str, pl.Series]]:
    """Cleans cells; tells, by the name of a count, which were blank, outside the range, or else of no use."""
    read, outside = field.read(cells)
    unusable = read.is_null()
    none = unusable & False
    blank = is_blank(cells) if unusable.any() else none
    told = {
        f"blank_{field.what}": blank,
        f"bad_{field.what}": unusable & ~(blank | (none if outside is None else outside)),
    }
    if outside is not None:
        told[f"clipped_{field.what}s" if field.clips else f"outside_{field.what}"] = outside
    return read, told


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
    """The arguments that name the columns of states."""

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
        """Returns which argument of Python, or option of a command, names a column."""
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
        """Returns what becomes of cleaned rows when all of each person's have met; by default they stay as they are."""
        return starts, columns

    def doubts(self, counts: Mapping[str, int], people: int) -> list[str]:
        """Returns what looks like a mistake in how rows were declared, by counts of them: for the operator."""
        return doubts_of_rows(counts, people)

    def clean(self, batch: pl.DataFrame, key: int) -> tuple[pl.DataFrame, dict[str, int]]:
        """Good rows, as a hash of the person by that key and the fields; and how many rows were bad, and why.

        A number that cannot be used is NaN in a row that stays.
        """
        columns = {PERSON: hashed(batch[self.person], key)}
        told = {"without_person": columns[PERSON].is_null()}
        for name, field in self.fields.items():
            columns[name], found = read_cells(field, batch[field.column])
            told |= {reason: told.get(reason, False) | cells for reason, cells in found.items()}
        frame = pl.DataFrame(columns)
        needed = [PERSON, *(name for name, field in self.fields.items() if not field.optional)]
        good = frame.select(pl.all_horizontal(pl.col(needed).is_not_null())).to_series()
        counts = {"rows": batch.height, "used_rows": int(good.sum())}
        for reason, cells in told.items():
            counts[reason] = int((cells & good if reason.startswith("clipped") else cells).sum())
        return frame.filter(good).with_columns(pl.col(pl.Float64).fill_null(math.nan)), counts


# People's names.


def is_name(dtype: Any) -> bool:
    text = isinstance(dtype, pl.String | pl.Categorical | pl.Enum)
    number = dtype.is_numeric() and not dtype.is_float()
    return text or number or isinstance(dtype, pl.Boolean | pl.Null)


def rounded_names(column: object, dtype: object) -> InvalidInput:
    return InvalidInput(
        f"Column {column!r} must hold people's names as text or whole numbers, not as {dtype}, which rounds long ones: "
        f"hand over the file itself, or read names as what they are in the first place, for example with "
        f"dtype={{{column!r}: 'string'}} in pandas.read_csv, dtype_backend='numpy_nullable' in pandas.read_sql or "
        f"schema_overrides={{{column!r}: polars.String}} in polars.read_csv."
    )


def identities(names: pl.Series) -> pl.DataFrame:
    """Whose each row is: a whole `number` where the name is one (fast), else the `name` in its form, or neither."""
    if names.dtype in _FIT_INT64:
        return names.cast(pl.Int64).to_frame(NUMBER).with_columns(pl.lit(None, pl.String).alias(NAME))
    raw = names.cast(pl.String).alias("raw")
    frame = pl.DataFrame([raw, raw.cast(pl.Int64, strict=False).alias(NUMBER)])
    other = frame.filter(pl.col(NUMBER).is_null(), pl.col("raw").is_not_null())["raw"].unique()
    found = in_words(other).select(pl.col(NUMBER).alias("found"), NAME).with_columns(other)
    joined = frame.join(found, on="raw", how="left", maintain_order="left")
    return joined.select(pl.col(NUMBER).fill_null(pl.col("found")), NAME)


def in_words(text: pl.Series) -> pl.DataFrame:
    """The `number` that each text is, or its `name`; neither for one in which nothing can be seen."""
    text = in_form(text).str.replace(r"^\+?(-?[0-9]+)(\.0*)?$", "$1").str.replace(r"^(-?)0+([0-9]+)$", "$1$2")
    decimal = pl.when(pl.col("text").str.contains(r"[.e]")).then(pl.col("text").cast(pl.Float64, strict=False))
    frame = pl.DataFrame({"text": text}).with_columns(decimal.alias("decimal"))
    decimal = pl.when(pl.col("decimal").is_finite()).then(pl.col("decimal"))
    whole = pl.when(decimal == decimal.floor()).then(decimal).cast(pl.Int128, strict=False).cast(pl.String)
    frame = frame.select(whole.fill_null(decimal.cast(pl.String)).fill_null(pl.col("text")).alias(NAME))
    number = pl.col(NAME).cast(pl.Int64, strict=False)
    name = pl.when(number.is_null(), pl.col(NAME).str.len_bytes() > 0).then(pl.col(NAME))
    return frame.select(number.alias(NUMBER), name.alias(NAME))


def forms_of(names: pl.Series) -> pl.Series:
    """Each name in the one form of its spellings, null where nothing of it can be seen.

    >>> forms_of(pl.Series(["Ann", "ANN ", "007", "7.0", " "])).to_list()
    ['ann', 'ann', '7', '7', None]
    """
    return identities(names).select(pl.col(NUMBER).cast(pl.String).fill_null(pl.col(NAME))).to_series()


def in_form(text: pl.Series) -> pl.Series:
    """Each text in the one form of its spellings; the form of a form is itself."""
    lower = text.str.to_lowercase()
    odd = ~text.str.contains(_IN_FORM)
    if not odd.any():
        return lower
    before = text.filter(odd)
    for _ in range(_ROUNDS):
        after = before.str.replace_all(r"\s+", " ").str.strip_chars().str.replace_all(_INVISIBLE, "")
        after = after.str.normalize("NFKC").str.replace_all(_INVISIBLE, "")
        after = after.str.to_uppercase().str.to_lowercase().str.replace_all("ς", "σ", literal=True)
        if after.equals(before):
            break
        before = after
    return lower.scatter(odd.arg_true(), before)


def hashed(names: pl.Series, key: int) -> pl.Series:
    """A number of 64 bits for each name, or nothing where there is none: the same on every machine, by that key.

    No two numbers have the same one. Two names may, by chance: they would count as one person, which protects both.
    """
    key_of_numbers, key_of_names = np.random.SeedSequence(key).generate_state(2, np.uint64)
    if names.dtype in _FIT_INT64:
        known, numbers, text = names.is_not_null(), names.cast(pl.Int64), names.clear().cast(pl.String)
    else:
        people = identities(names)
        known, numbers, text = people.select(pl.any_horizontal(pl.all().is_not_null())).to_series(), *people
    found = _mixed(numbers.fill_null(0).to_numpy().view(np.uint64) + key_of_numbers)
    if text.count():
        named = text.is_not_null()
        found[named.to_numpy()] = _hashed_text(text.filter(named), key_of_names)
    hashes = pl.Series(names.name, found)
    return hashes if known.all() else hashes.set(~known, None)


def hashed_rows(rows: pl.DataFrame) -> UInt64[np.ndarray, " rows"]:
    """A number of 64 bits for all that each row says, in columns of eight bytes: the same on every machine."""
    found = np.ones(rows.height, np.uint64)
    for column in rows:
        found = _mixed(found ^ column.to_numpy().view(np.uint64))
    return found


def _hashed_text(text: pl.Series, key: np.uint64) -> UInt64[np.ndarray, " rows"]:
    """Eight bytes at a time, each time mixed with all before."""
    length = text.str.len_bytes().to_numpy().astype(np.int64)
    data = str(text.str.join("").item()).encode() + bytes(8)
    eight_from = np.ndarray(len(data) - 7, "<u8", data, strides=(1,))  # the number at every byte
    begin = np.cumsum(length) - length
    found = _mixed(length.astype(np.uint64) + key)
    for done in range(0, int(length.max()), 8):
        longer = np.flatnonzero(length > done)
        beyond = 8 * np.maximum(8 + done - length[longer], 0).astype(np.uint64)  # bits of the next name
        word = eight_from[begin[longer] + done] << beyond
        found[longer] = _mixed(found[longer] ^ word)
    return found


def _mixed(words: UInt64[np.ndarray, " words"]) -> UInt64[np.ndarray, " words"]:
    """One to one, each bit of what comes out by all that goes in (the end of SplitMix64, Steele et al. 2014).

    In place, for new memory costs more than what is done in it.
    """
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        words ^= words >> np.uint64(shift)
        words *= np.uint64(factor)
    words ^= words >> np.uint64(31)
    return words
