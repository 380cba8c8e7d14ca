"""Numbers, lists and any JSON in plain English."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

UNKNOWN = (LookupError, TypeError, ValueError, AttributeError)
"""What a phrase raises for JSON that it was not made for, as a file may hold it."""


def plural(n: int, one: str, many: str | None = None) -> str:
    """A number and its noun."""
    return f"{n} {one if n == 1 else many or one + 's'}"


def listed(values: Sequence[float]) -> str:
    """Numbers, one after the other: 1, 2.5 and 3."""
    *rest, last = (f"{value:g}" for value in values)
    return f"{', '.join(rest)} and {last}" if rest else last


def in_words(phrase: Callable[[], str], record: Any) -> str:
    """A phrase about a record, which may be any JSON that a file holds: else its fields, one by one."""
    try:
        return phrase()
    except UNKNOWN:
        return _spelled_out(record)


def _spelled_out(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_spelled_out(item)}" for key, item in value.items() if item is not None)
    if isinstance(value, list | tuple):
        return "(" + "; ".join(_spelled_out(item) for item in value) + ")"
    return f"{value:g}" if isinstance(value, float) else str(value)
