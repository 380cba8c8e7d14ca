"""What looks like a mistake in how sessions were declared, besides what rows of any kind have: steps must fit together.

For the operator alone, like all of `row_doubts`.
"""

from collections.abc import Mapping

from quietq.feedback.row_doubts import explained, missing_people, outside, what_of

AGAIN = "again"
"""A column of transitions, for these counts alone: whether the row before has the same step."""
_DECLARED = {
    "person": "`person`",
    "episode": "`episode`",
    "step": "`step`",
    "state": "`state`",
    "next state": "`next_state`",
    "action": "`action`, and `actions` or `action_box`",
    "reward": "`reward`",
    "propensity": "`propensity`",
    "end": "`end`",
    "cut": "`cut`",
}
"""Where it was declared what can be used."""
_RANGES = {"state": "`box`", "next state": "`box`", "action": "`action_box`", "reward": "`low` and `high`"}
_WHOLE = 0.9
"""Of the rows that could begin a step, so many should."""
_OUTSIDE, _AGAIN = 0.1, 0.01
"""Of rows, at most so many should lie outside, or have a step that was there before."""


def doubts_of_sessions(counts: Mapping[str, int], people: int, *, ends: bool, episodes: bool, pairs: bool) -> list[str]:
    """Sentences; none if all is as it should be. It matters whether ends and episodes have a column, and whether an
    episode's next row holds the next state, so that its last one is blank.
    """
    rows, steps, present = (counts.get(name, 0) for name in ("rows", "transitions", "people_present"))
    starts, again, found = counts.get("starts", 0), counts.get("steps_again", 0), []
    restarts = again > _AGAIN * rows
    if restarts:
        within = "an episode: check `episode` and `step`" if episodes else "a person: name the column of the `episode`"
        found.append(f"{again:,} rows have a step that was there before, as if steps begin anew within {within}")
    if steps < _WHOLE * (rows - starts):
        last = starts if pairs else 0
        why = next(
            filter(None, (explained(one, rows - last - steps, _DECLARED) for one in _unusable(counts, last))), ""
        )
        why = why or ("" if restarts else "check the columns, `step`, `every` and `episode`, and where next states are")
        found.append(f"only {steps:,} of {rows:,} rows begin a whole step" + (why and f": {why}"))
    if steps and not starts:
        found.append(
            "no first state was seen, so where episodes begin is not told by people: check `episode` and `step`"
        )
    if ends and not counts.get("ends"):
        found.append("no whole step comes to an end: where the last row of an episode says so, name `next_state`")
    for name, number in counts.items():
        if name.startswith("clipped_") and number > _OUTSIDE * rows:
            found.append(outside(name, number, _RANGES))
    return [*found, *missing_people(present, people, "a whole step")]


def _unusable(counts: Mapping[str, int], last: int) -> tuple[dict[str, int], dict[str, int]]:
    """By column, the rows with a cell that was given and is none; and those that are blank too, apart from the `last`
    ones of episodes, which need no action.
    """
    bad, all_told = dict[str, int](), dict[str, int]()
    for name, number in counts.items():
        if name.startswith(("bad_", "without_")):
            bad[what_of(name)] = number
        if name.startswith(("bad_", "without_", "blank_")):
            what = what_of(name)
            needless = last if name.startswith("blank_") and what in ("action", "reward", "propensity") else 0
            all_told[what] = all_told.get(what, 0) + max(number - needless, 0)
    return bad, all_told
