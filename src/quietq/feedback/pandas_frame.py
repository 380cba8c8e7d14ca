"""A pandas data frame as Polars has it, value by value: what one cell holds never changes how another is read.

A column of Python objects has no type but what its values have. Made into a typed column as a whole, one list, date or
huge number among them would turn everybody's numbers into gaps, or blur their names; so every value is turned into text
or into nothing on its own. Columns that do have a type keep it; one of categories has the type of these.

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

_NO_CELLS = "cmMSUV"  # NumPy's letters for complex numbers, times, dates, bytes and so on


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
        own, dtype = (float | np.floating, pl.Float64) if kind == "f" else (bool | np.bool_, pl.Boolean)
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
    """Whether it is a floating-point number of a size at which its type no longer holds every whole number."""
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
