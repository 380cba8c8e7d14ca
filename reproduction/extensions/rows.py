"""The one form of all rows of this experiment, long and tidy, one number a row; and what claims say of them in words.

`value` is the number. `at` is where along an axis it was found: a place, a number of queries, cells of a grid. Where
something was refused the value is 1, and `sentence` says how.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from quietq.privacy.errors import QuietqError
from reproduction.experiment import Row, where

TABLE = "extensions"
ACTOR_CRITIC = "actor-critic"
REPLAY = "experience replay"
EXPLORATION = "epsilon-greedy"
INTERVAL = "bounded interval"
DIMENSIONS = "several dimensions"
BAND_LIMITED = "band-limited kernel"
QUERIES = "time of queries"


def row(
    extension: str,
    setting: str,
    quantity: str,
    value: float,
    *,
    people: int | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    draw: int | None = None,
    at: float | None = None,
    sentence: str | None = None,
) -> Row:
    return {
        "extension": extension,
        "setting": setting,
        "quantity": quantity,
        "value": float(value),
        "people": people,
        "epsilon": epsilon,
        "delta": delta,
        "draw": draw,
        "at": None if at is None else float(at),
        "sentence": sentence,
    }


def refusal(extension: str, setting: str, attempt: Callable[[], object]) -> Row:
    """1 and the sentence if the attempt is refused, 0 if it is not.

    >>> refusal("interval", "upside down", lambda: None)["value"]
    0.0
    """
    try:
        attempt()
    except QuietqError as refused:
        return row(extension, setting, "refused", 1.0, sentence=str(refused))
    return row(extension, setting, "refused", 0.0)


def values(
    rows: Sequence[Row], extension: str, setting: str | None, quantity: str, people: int | None = None
) -> list[float]:
    """All values of one quantity; without a setting or a number of people, of all of them."""
    mine = where(rows, extension=extension, quantity=quantity)
    return [one["value"] for one in mine if setting in (None, one["setting"]) and people in (None, one["people"])]


def most(rows: Sequence[Row], extension: str, quantity: str) -> float:
    return max(values(rows, extension, None, quantity), default=float("nan"))


def mean(rows: Sequence[Row], extension: str, setting: str, quantity: str, people: int | None = None) -> float:
    found = values(rows, extension, setting, quantity, people)
    return fmean(found) if found else float("nan")


def settings(rows: Sequence[Row], extension: str, quantity: str) -> list[str]:
    return list(dict.fromkeys(one["setting"] for one in where(rows, extension=extension, quantity=quantity)))


def by_setting(rows: Sequence[Row], extension: str, quantity: str, people: int | None = None) -> dict[str, float]:
    return {one: mean(rows, extension, one, quantity, people) for one in settings(rows, extension, quantity)}


def sentences(rows: Sequence[Row], extension: str) -> list[str]:
    """How the attempts of an extension were refused; empty words where one was not."""
    return [one["sentence"] or "" for one in where(rows, extension=extension, quantity="refused")]


def listed(numbers: Mapping[str, float]) -> str:
    """Names and numbers.

    >>> listed({"here": 1.0, "there": 0.25})
    'here 1, there 0.25'
    """
    return ", ".join(f"{name} {number:.3g}" for name, number in numbers.items())


def scores(rows: Sequence[Row], extension: str, people: int | None = None) -> str:
    """Mean scores of all settings, with the most people that each has, or with so many."""
    parts = []
    for setting in settings(rows, extension, "score"):
        numbers = {one["people"] for one in where(rows, extension=extension, setting=setting)} - {None}
        number = people if people in numbers else max(numbers, default=None)
        reached = mean(rows, extension, setting, "score", number)
        parts.append(f"{setting} {reached:.3f}" + (f" ({number} people)" if number is not None else ""))
    return "; ".join(parts)
