"""Numbers and lists in plain English."""

from collections.abc import Sequence


def plural(n: int, one: str, many: str | None = None) -> str:
    """A number and its noun."""
    return f"{n} {one if n == 1 else many or one + 's'}"


def listed(values: Sequence[float]) -> str:
    """Numbers, one after the other: 1, 2.5 and 3."""
    *rest, last = (f"{value:g}" for value in values)
    return f"{', '.join(rest)} and {last}" if rest else last
