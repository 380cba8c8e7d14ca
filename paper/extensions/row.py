"""The one form of all rows of this experiment: long and tidy, one number a row.

`value` is the number. `at` is where along an axis it was found: a place, a number of queries, cells of a grid. Where
something was refused the value is 1, and `sentence` says how.
"""

from collections.abc import Callable, Sequence
from statistics import fmean

from paper.task import Row
from quietq.privacy.errors import QuietqError

TABLE = "extensions"

ACTOR_CRITIC = "actor-critic"
REPLAY = "experience replay"
EXPLORATION = "epsilon-greedy"
INTERVAL = "bounded interval"
DIMENSIONS = "several dimensions"
BAND_LIMITED = "band-limited kernel"
QUERIES = "time of queries"


def row(
    extension: str, setting: str, quantity: str, value: float, *, people: int | None = None,
    epsilon: float | None = None, delta: float | None = None, draw: int | None = None, at: float | None = None,
    sentence: str | None = None,
) -> Row:  # fmt: skip
    """One number, with all that it belongs to."""
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
    return [
        float(one["value"] or 0.0)
        for one in rows
        if (one["extension"], one["quantity"]) == (extension, quantity)
        and setting in (None, one["setting"])
        and people in (None, one["people"])
    ]


def mean(rows: Sequence[Row], extension: str, setting: str, quantity: str, people: int | None = None) -> float:
    """Their mean; not a number if there are none."""
    found = values(rows, extension, setting, quantity, people)
    return fmean(found) if found else float("nan")


def settings(rows: Sequence[Row], extension: str, quantity: str) -> list[str]:
    """The settings in which a quantity was measured, in the order of the rows."""
    wanted = [one for one in rows if (one["extension"], one["quantity"]) == (extension, quantity)]
    return list(dict.fromkeys(str(one["setting"]) for one in wanted))


def sentences(rows: Sequence[Row], extension: str) -> list[str]:
    """How the attempts of an extension were refused; empty words where one was not."""
    return [str(one["sentence"] or "") for one in rows if (one["extension"], one["quantity"]) == (extension, "refused")]
