"""One person, however spelt: the form in which people's names are compared.

Two names for one person would count that person twice, while one name for two people protects them as one: so
spellings are merged rather than kept apart. Two texts are one name if they are the same after NFKC, case folding (upper
case, then lower case, with one small sigma: ß is ss, and the dotless ı is i) and leaving out what cannot be seen
(control, format and default-ignorable characters, blank signs, white space but for single spaces), all of it repeated
until nothing changes.

Then "7", "+7", "007", "7.0" and "7e0" are the whole number 7, and "7.50" is 7.5: a name with a point or an exponent is
compared as a floating-point number, one of digits alone exactly.

A column of floating-point numbers holds no names. Readers choose a column's type by its cells: where all others are
long whole numbers, one person's "1.5" or blank makes floating-point numbers of them, which are rounded and may be other
people's. So the type is refused, whatever the numbers are.
"""

from typing import Any

import numpy as np
import polars as pl
from jaxtyping import UInt64

from quietq.privacy.errors import InvalidInput

NUMBER, NAME = "number", "name"
_INVISIBLE = r"[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\x{2800}\x{16FE4}\x{1D159}]"
_IN_FORM = r"^[!-~]+( [!-~]+)*$"  # but for its case
_FIT_INT64 = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)
_ROUNDS = 20  # two or three are enough for any text we know


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


def forms_of(names: list[str]) -> list[str]:
    """Each name in the one form of its spellings, empty where nothing of it can be seen.

    >>> forms_of(["Ann", "ANN ", "007", "7.0", " "])
    ['ann', 'ann', '7', '7', '']
    """
    # Half a surrogate pair is no text: it counts as its own escape.
    text = pl.Series("text", [name.encode(errors="backslashreplace").decode() for name in names], pl.String)
    found = in_words(text)
    return found[NUMBER].cast(pl.String).fill_null(found[NAME]).fill_null("").to_list()


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
