"""What looks like a mistake in how rows were declared: said to whoever reads them, in Python and by commands alike.

It goes by counts of the raw data (`not_private`), so it is for the operator alone: nothing is refused because of it,
nothing of it is released, and each sentence says so. Arguments stand in backquotes, which commands turn into options.
"""

from collections.abc import Mapping, Sequence

FOR_YOU = "This comes from the raw data and is for you alone."
_USED, _OUTSIDE, _PRESENT = 0.5, 0.5, 0.5
"""Of rows, so many should be used; of used ones, at most so many lie outside; of people, so many should be there."""
_EXPLAINS = 0.5
"""Of the rows that are not used, so many are a column's doing if it is named."""
_DECLARED = {
    "person": "`person`",
    "state": "its columns, and `box` or `items`",
    "action": "`action` and the list `actions`",
    "choice": "`choice`, and which words it may hold",
    "rating": "`rating`",
}
"""Where it was declared what can be used."""
_RANGES = {"rating": "`low` and `high`", "state": "`box`"}


def doubts_of_rows(counts: Mapping[str, int], people: int) -> list[str]:
    """Sentences; none if all is as it should be."""
    rows, used, present = (counts.get(name, 0) for name in ("rows", "used_rows", "people_present"))
    found = []
    if used < _USED * rows:
        bad = {what_of(name): number for name, number in counts.items() if name.startswith(("bad_", "without_"))}
        why = explained(bad, rows - used, _DECLARED)
        found.append(f"only {used:,} of {rows:,} rows can be used: {why or 'check columns, ranges and lists'}")
    for name, number in counts.items():
        if name.startswith("clipped_") and number > _OUTSIDE * used:
            found.append(outside(name, number, _RANGES))
    return [*found, *missing_people(present, people, "a usable row")]


def what_of(name: str) -> str:
    """Of a count, "bad_next_state", what it is about: "next state"."""
    return name.partition("_")[2].replace("_", " ")


def explained(bad: Mapping[str, int], lost: int, declared: Mapping[str, str]) -> str:
    """The columns whose cells explain by themselves why so many rows are lost, and where to look."""
    guilty = [(what, number) for what, number in bad.items() if number and number >= _EXPLAINS * lost]
    return "; ".join(f"{number:,} have no usable {what}: check {declared.get(what, what)}" for what, number in guilty)


def outside(name: str, number: int, declared: Mapping[str, str]) -> str:
    what = what_of(name)
    return f"{number:,} {what} lie outside what was declared: check {declared.get(what[:-1], 'their range')}"


def missing_people(present: int, people: int, what: str) -> Sequence[str]:
    if present >= _PRESENT * people:
        return ()
    noise = "noise is made for the declared number, and one that is too large promises less error than there is"
    return (f"only {present:,} of {people:,} people have {what}: check `people`, because {noise}",)
