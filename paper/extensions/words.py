"""Numbers of rows in words, for claims."""

from collections.abc import Mapping, Sequence

from paper.extensions.row import mean, settings
from paper.task import Row


def scores(rows: Sequence[Row], extension: str, people: int | None = None) -> str:
    """Mean scores of all settings, with the most people that each has, or with so many."""
    parts = []
    for setting in settings(rows, extension, "score"):
        found = [one["people"] for one in rows if (one["extension"], one["setting"]) == (extension, setting)]
        numbers = [int(number) for number in found if number is not None]
        with_people = people if people in numbers else max(numbers, default=None)
        reached = mean(rows, extension, setting, "score", with_people)
        parts.append(f"{setting} {reached:.3f}" + (f" ({with_people} people)" if with_people is not None else ""))
    return "; ".join(parts)


def listed(numbers: Mapping[str, float]) -> str:
    """Names and numbers.

    >>> listed({"here": 1.0, "there": 0.25})
    'here 1, there 0.25'
    """
    return ", ".join(f"{name} {number:.3g}" for name, number in numbers.items())


def by_setting(rows: Sequence[Row], extension: str, quantity: str, people: int | None = None) -> dict[str, float]:
    """The mean of a quantity in each setting."""
    return {one: mean(rows, extension, one, quantity, people) for one in settings(rows, extension, quantity)}
