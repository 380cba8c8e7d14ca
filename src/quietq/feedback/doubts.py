"""What looks like a mistake in how rows were declared: said to whoever reads them, and never a refusal.

It goes by counts of the raw data (`not_private`), so it is for the operator alone: nothing is refused because of it,
nothing of it is released, and each sentence says so. Arguments stand in backquotes, which commands turn into options.
"""

import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress

FOR_YOU = "This comes from the raw data and is for you alone."
AGAIN = "again"
"""A column of transitions, for these counts alone: whether the row before has the same step."""
_DECLARED = {
    "state": "its columns, and `box`",
    "action": "`action`, and `actions`",
    "choice": "`choice`, and which words it may hold",
}
"""Where it was declared what can be used, if not by the argument of the same name."""
_RANGES = {"state": "`box`", "next state": "`box`", "action": "`actions`"}
_WHY = {"bad": "no such", "blank": "blank", "outside": "outside"}
_NOISE = "noise is made for the declared number, and one that is too large understates the error"


def warn_of_raw_data(sentence: str, stacklevel: int = 2) -> None:
    """Warns as `warnings.warn` does, but goes on whatever filters make of that.

    Whether there is such a warning depends on what people gave. Where warnings are errors (`python -W error`) it would
    end the program for some people's data and not for others', which others may notice. So then it is only printed.
    """
    try:
        warnings.warn(sentence, UserWarning, stacklevel=stacklevel + 1)
        return
    except Exception:
        pass
    with suppress(Exception):
        if sys.stderr is not None:
            print(f"Warning: {sentence}", file=sys.stderr)


def doubts_of_rows(counts: Mapping[str, int], people: int) -> list[str]:
    """Sentences on ratings or comparisons; none if all is as it should be."""
    rows, used = counts.get("rows", 0), counts.get("used_rows", 0)
    found = []
    if used < 0.5 * rows:
        why = _explained(_unusable(counts), rows - used)
        found.append(f"only {used:,} of {rows:,} rows can be used: {why or 'check columns, ranges and lists'}")
    return [*found, *_outside(counts, 0.5 * used), *_missing(counts, people, "a usable row")]


def doubts_of_sessions(counts: Mapping[str, int], people: int, *, ends: bool, episodes: bool, pairs: bool) -> list[str]:
    """Sentences on sessions, whose steps must fit together besides.

    It matters whether ends and episodes have a column, and whether an episode's next row holds the next state, so that
    its last one is blank.
    """
    rows, steps, starts = (counts.get(name, 0) for name in ("rows", "transitions", "starts"))
    again, found = counts.get("steps_again", 0), []
    restarts = again > 0.01 * rows
    if restarts:
        within = "an episode: check `episode` and `step`" if episodes else "a person: name the column of the `episode`"
        found.append(f"{again:,} rows have a step that was there before, as if steps begin anew within {within}")
    if steps < 0.9 * (rows - starts):
        last = starts if pairs else 0
        given = {name: number for name, number in counts.items() if not name.startswith("blank_")}
        why = _explained(_unusable(given), rows - last - steps) or _explained(
            _unusable(counts, last), rows - last - steps
        )
        why = why or ("" if restarts else "check the columns, `step` and `episode`, and where next states are")
        found.append(f"only {steps:,} of {rows:,} rows begin a whole step" + (why and f": {why}"))
    if steps and not starts:
        found.append(
            "no first state was observed, so start states are not learned from people: check `episode` and `step`"
        )
    if ends and not counts.get("ends"):
        found.append(
            "no complete step is terminal: if only the last row of an episode is marked as its end, name `next_state`"
        )
    return [*found, *_outside(counts, 0.1 * rows), *_missing(counts, people, "a whole step")]


def _unusable(counts: Mapping[str, int], last: int = 0) -> dict[str, dict[str, int]]:
    """By column and why, how many cells cannot be used, apart from the `last` ones, which need no action."""
    found: dict[str, dict[str, int]] = {}
    for name, number in counts.items():
        why, _, what = name.replace("without_person", "blank_person").partition("_")
        if why in _WHY:
            needless = last if why == "blank" and what in ("action", "reward", "propensity") else 0
            found.setdefault(what.replace("_", " "), {})[why] = max(number - needless, 0)
    return found


def _explained(unusable: Mapping[str, Mapping[str, int]], lost: int) -> str:
    """The columns that explain by themselves why at least half of these rows are lost, and where to look."""
    sentences = []
    for what, reasons in unusable.items():
        number = sum(reasons.values())
        if number and number >= 0.5 * lost:
            parts = ", ".join(f"{part:,} {_WHY[why]}" for why, part in reasons.items() if part)
            where = _DECLARED.get(what, f"`{what.replace(' ', '_')}`")
            sentences.append(f"{number:,} have no usable {what}: check {where} ({parts})")
    return "; ".join(sentences)


def _outside(counts: Mapping[str, int], most: float) -> Iterator[str]:
    for name, number in counts.items():
        if name.startswith("clipped_") and number > most:
            what = name.removeprefix("clipped_").replace("_", " ")
            where = _RANGES.get(what[:-1], "`low` and `high`")
            yield f"{number:,} {what} lie outside what was declared: check {where}"


def _missing(counts: Mapping[str, int], people: int, what: str) -> Iterator[str]:
    present = counts.get("people_present", 0)
    if present < 0.5 * people:
        yield f"only {present:,} of {people:,} people have {what}: check `people`, because {_NOISE}"
