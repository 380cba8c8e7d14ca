"""A pandas data frame, value by value: what one cell holds never changes how another is read.

A column of Python objects has no type but what its values have. Made into a typed column as a whole, one list, date or
huge number among them would turn everybody's numbers into gaps, or blur their names; so every value is turned into a
number, into text or into nothing on its own. Columns that do have a type are taken by it: a type is public.
"""

import math
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

from quietq.privacy.errors import InvalidInput

_NOT_NUMBERS = "cmMSUV"  # NumPy's letters for complex numbers, times, dates, bytes and so on


def names_in(series: Any) -> pl.Series:
    """A column of people's names: numbers as they are, or else text or nothing."""
    dtype = series.dtype
    _check_type(series, "names or numbers of people", _NOT_NUMBERS)
    if isinstance(dtype, np.dtype) and (dtype.kind in "iu" or (dtype.kind == "f" and dtype.itemsize in (4, 8))):
        return pl.Series(_native(series))
    exact = _exact(dtype) if getattr(dtype, "kind", "O") == "f" else math.inf
    return pl.Series([_name(value, exact) for value in series.tolist()], dtype=pl.String)


def numbers_in(series: Any) -> pl.Series:
    """A column of numbers, or of text that may be numbers."""
    dtype = series.dtype
    _check_type(series, "numbers", _NOT_NUMBERS + "b")
    if isinstance(dtype, np.dtype) and dtype.kind in "iuf":
        return pl.Series(_native(series).astype(np.float64))
    values = [_number_or_text(value) for value in series.tolist()]
    numbers = pl.Series([value if isinstance(value, float) else None for value in values], dtype=pl.Float64)
    text = pl.Series([value if isinstance(value, str) else None for value in values], dtype=pl.String)
    return numbers.fill_null(numbers_in_text(text))


def numbers_in_text(text: pl.Series) -> pl.Series:
    """Each text as the number that it is, or nothing."""
    return text.str.strip_chars().cast(pl.Float64, strict=False)


def _check_type(series: Any, what: str, refused: str) -> None:
    if getattr(series.dtype, "kind", "O") in refused:
        raise InvalidInput(f"Column {series.name!r} must hold {what}, not {series.dtype}.")


def _native(series: Any) -> np.ndarray:
    array = series.to_numpy()
    return array.astype(array.dtype.newbyteorder("="))


def _exact(dtype: Any) -> float:
    """Below this, whole numbers of a floating-point type are exact."""
    return 2.0 ** {2: 11, 4: 24}.get(getattr(dtype, "itemsize", 8), 53)


def _name(value: object, exact: float) -> str | None:
    try:
        if isinstance(value, str):
            return _text(value)
        if isinstance(value, bool | np.bool_):
            return "true" if value else "false"
        if isinstance(value, int | np.integer):
            return str(int(value))
        if isinstance(value, float | np.floating):
            number, exact = float(value), min(exact, _exact(value.dtype) if isinstance(value, np.floating) else 2.0**53)
            return repr(number) if abs(number) < exact else None  # nothing for NaN, too
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
