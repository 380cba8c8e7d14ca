"""A pandas data frame, value by value: what one cell holds never changes how another is read.

A column of Python objects has no type but what its values have. Made into a typed column as a whole, one list, date or
huge number among them would turn everybody's numbers into gaps, or blur their names; so every value is turned into a
number, into text or into nothing on its own. Columns that do have a type are taken or refused by it; one of categories,
by the type of these.

Names that were rounded, as floating-point numbers, before they came here are refused even one by one: pandas reads a
long file in pieces and chooses a type for each, so that one blank cell may have rounded thousands of other names.
"""

import math
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

from quietq.feedback.names import rounded_names
from quietq.privacy.errors import InvalidInput

_NOT_NUMBERS = "cmMSUV"  # NumPy's letters for complex numbers, times, dates, bytes and so on


def names_in(series: Any) -> pl.Series:
    """A column of people's names: whole numbers as they are, or else text or nothing."""
    dtype = _check_type(series, "names or numbers of people", _NOT_NUMBERS)
    if getattr(dtype, "kind", "O") == "f":
        raise rounded_names(series.name, series.dtype)
    if isinstance(series.dtype, np.dtype) and dtype.kind in "iu":
        return pl.Series(_native(series))
    values = series.tolist()
    if any(map(_was_rounded, values)):
        raise rounded_names(series.name, f"{series.dtype} with large floating-point numbers")
    return texts_of(values)


def categories_in(series: Any) -> pl.Series:
    """A column of categories, as text or nothing."""
    if getattr(_type_of_values(series.dtype), "kind", "O") == "f":
        raise InvalidInput(
            f"Column {series.name!r} must hold categories, as text or whole numbers, not {series.dtype}."
        )
    return codes_in(series)


def codes_in(series: Any) -> pl.Series:
    """Likewise, also where a gap made floating-point numbers of whole ones."""
    _check_type(series, "categories", _NOT_NUMBERS)
    return texts_of([None if _was_rounded(value) else value for value in series.tolist()])


def numbers_in(series: Any) -> pl.Series:
    dtype = _check_type(series, "numbers", _NOT_NUMBERS + "b")
    if isinstance(series.dtype, np.dtype) and dtype.kind in "iuf":
        return pl.Series(_native(series).astype(np.float64))
    values = [_number_or_text(value) for value in series.tolist()]
    numbers = pl.Series([value if isinstance(value, float) else None for value in values], dtype=pl.Float64)
    text = pl.Series([value if isinstance(value, str) else None for value in values], dtype=pl.String)
    return numbers.fill_null(numbers_in_text(text))


def numbers_in_text(text: pl.Series) -> pl.Series:
    return text.str.strip_chars().cast(pl.Float64, strict=False)


def _check_type(series: Any, what: str, refused: str) -> Any:
    dtype = _type_of_values(series.dtype)
    if getattr(dtype, "kind", "O") in refused:
        raise InvalidInput(f"Column {series.name!r} must hold {what}, not {series.dtype}.")
    return dtype


def _type_of_values(dtype: Any) -> Any:
    """The type itself, or that of its categories; Arrow calls them a dictionary."""
    if (categories := getattr(dtype, "categories", None)) is not None:
        return _type_of_values(categories.dtype)
    arrow = getattr(dtype, "pyarrow_dtype", None)
    if str(arrow).startswith(("dictionary<", "run_end_encoded<")):
        return type(dtype)(arrow.value_type)  # pyright: ignore[reportOptionalMemberAccess]
    return dtype


def texts_of(values: list[Any]) -> pl.Series:
    """Each value as text, or nothing."""
    return pl.Series([_name(value) for value in values], dtype=pl.String)


def _native(series: Any) -> np.ndarray:
    array = series.to_numpy()
    return array.astype(array.dtype.newbyteorder("="))


def _was_rounded(value: object) -> bool:
    """Whether it is a floating-point number of a size at which its type no longer holds every whole number."""
    if isinstance(value, float):
        return 2.0**53 <= float.__abs__(value) < math.inf
    if isinstance(value, np.floating):
        return 2.0 ** {2: 11, 4: 24}.get(value.dtype.itemsize, 53) <= abs(float(value)) < math.inf
    return False


def _name(value: object) -> str | None:
    try:
        if isinstance(value, str):
            return _text(value)
        if isinstance(value, bool | np.bool_):
            return "true" if value else "false"
        if isinstance(value, int | np.integer):
            return str(int(value))
        if isinstance(value, float | np.floating):  # in as many digits as its own type has
            own = str(value) if isinstance(value, np.floating) else float.__repr__(value)
            return own if math.isfinite(value) else None
        if isinstance(value, Decimal):
            return str(value) if value.is_finite() else None
    except Exception:  # of the value's own code, or a number with more digits than Python writes out
        return None
    return None


def _number_or_text(value: object) -> float | str | None:
    try:
        if isinstance(value, str):
            return _text(value)
        if isinstance(value, int | float | np.integer | np.floating | Decimal) and not isinstance(value, bool):
            return float(value)
    except Exception:  # of the value's own code, or a number that is too large
        return None
    return None


def _text(value: str) -> str:
    """The text itself, of a subclass too; what UTF-8 cannot hold is replaced."""
    return str.__str__(value).encode("utf-8", "surrogatepass").decode("utf-8", "replace")
