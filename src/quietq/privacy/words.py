"""Numbers, lists and any JSON in plain English."""

from collections.abc import Mapping, Sequence
from typing import Any

UNKNOWN = (LookupError, TypeError, ValueError, AttributeError)
"""What a phrase raises for JSON that it was not made for, as a file may hold it."""


def plural(n: int, one: str, many: str | None = None) -> str:
    """A number and its noun.

    >>> plural(1, "release"), plural(2, "person", "people")
    ('1 release', '2 people')
    """
    return f"{n} {one if n == 1 else many or one + 's'}"


def listed(values: Sequence[float]) -> str:
    """Numbers, one after the other.

    >>> listed([1.0, 2.5, 3.0])
    '1, 2.5 and 3'
    """
    *rest, last = (f"{value:g}" for value in values)
    return f"{', '.join(rest)} and {last}" if rest else last


def spelled_out(value: Any) -> str:
    """Any JSON, field by field."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {spelled_out(item)}" for key, item in value.items() if item is not None)
    if isinstance(value, list | tuple):
        return "(" + "; ".join(spelled_out(item) for item in value) + ")"
    return f"{value:g}" if isinstance(value, float) else str(value)
