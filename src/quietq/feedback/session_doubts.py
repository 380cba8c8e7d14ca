"""What looks like a mistake in how sessions were declared: said to whoever reads them, in Python and by commands alike.

It goes by counts of the raw data (`not_private`), so it is for the operator alone: nothing is refused because of it,
nothing of it is released, and each sentence says so.
"""

from collections.abc import Mapping

from quietq.feedback.raw_warning import warn_of_raw_data

_CLIPPED = {"state": "box", "next_state": "box", "action": "action_box", "reward": "low and high"}
"""What can lie outside, and where that was declared."""
_WHOLE = 0.9
"""Of the rows that could begin a step, so many should."""
_OUTSIDE, _PRESENT = 0.1, 0.5
"""Of rows, at most so many should lie outside; of declared people, so many should be there."""


def doubts_of(counts: Mapping[str, int], people: int, tells_ends: bool) -> list[str]:
    """Sentences; none if all is as it should be."""
    rows, steps, present = (counts.get(name, 0) for name in ("rows", "transitions", "people_present"))
    found = []
    if steps < _WHOLE * (rows - counts.get("starts", 0)):
        where = "check the columns, step and every, the list of actions, and where next states are"
        found.append(f"only {steps:,} of {rows:,} rows begin a whole step: {where}")
    if tells_ends and not counts.get("ends"):
        found.append(
            "no whole step comes to an end: where the last row of an episode says so, name the columns of next states"
        )
    for what, declared in _CLIPPED.items():
        number = counts.get(f"clipped_{what}s", 0)
        if number > _OUTSIDE * rows:
            found.append(f"{number:,} {what.replace('_', ' ')}s lie outside what was declared: check {declared}")
    if present < _PRESENT * people:
        found.append(f"only {present:,} of {people:,} people have a whole step: check how many people were declared")
    return [f"{one}. This comes from the raw data and is for you alone." for one in found]


def warn_of_doubts(counts: Mapping[str, int], people: int, tells_ends: bool) -> None:
    for sentence in doubts_of(counts, people, tells_ends):
        warn_of_raw_data(sentence[0].upper() + sentence[1:], stacklevel=3)
