"""Each person's rows become transitions: rows of an episode are paired *after* all rows of the person have met.

A row with a cell that cannot be used stays until then, as a gap: the rows around it are no transition. A row without a
person, an episode or a step has no place, and is left out; the numbers of the other steps show that there is a gap,
unless any later step is the next (`every=None`). Everything here goes by a person's own rows, so nobody else's
changes how they are paired.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Int

from quietq.feedback.feedback import explained, missing, outside
from quietq.feedback.schema import Schema
from quietq.feedback.statistic import Columns, Starts, Statistic, Tally

AGAIN = "again"
"""A column of transitions, for counts alone: whether the row before has the same step."""
_FINEST = 1e-6
"""The share of the time between consecutive steps by which it may vary."""


@dataclass(frozen=True)
class Steps(Schema):
    """Rows of sessions, which become transitions.

    Cleaned rows have NaN where a cell cannot be used. Transitions have `s0..` and, if next states are known, `n0..`;
    `a0..` or `action`; `reward` and `propensity`, if there are such; `end`, `cut` and `first`; and `episode`, which
    distinguishes a person's episodes, with the place of the `step` in it, from 0 on.
    """

    pairs: bool = True
    """Whether an episode's next row holds the next state."""
    every: float | None = 1.0
    """The difference between the numbers of consecutive steps; None where any later one is the next."""

    @property
    def columns(self) -> list[str]:
        """A step may be part of the state too."""
        named = {name: field.column for name, field in self.fields.items()}
        if named.get("step") in [column for name, column in named.items() if _is_state(name)]:
            del named["step"]
        return [self.person, *named.values()]

    @property
    def together(self) -> bool:
        return True

    @property
    def ordering(self) -> tuple[str, ...]:
        return tuple(name for name in ("episode", "step") if name in self.fields)

    @property
    def transition(self) -> tuple[str, ...]:
        """The columns of a transition."""
        told = [name for name in self.fields if name not in ("episode", "step", "end", "cut")]
        states = [f"n{name[1:]}" for name in told if self.pairs and _is_state(name)]
        again = (AGAIN,) if "step" in self.fields else ()
        return (*told, *states, "end", "cut", "first", "episode", "step", *again)

    def doubts(self, counts: Mapping[str, int], people: int) -> list[str]:
        rows, steps, starts = (counts.get(name, 0) for name in ("rows", "transitions", "starts"))
        again, found = counts.get("steps_again", 0), []
        restarts = again > 0.01 * rows
        if restarts:
            episodes = "episode" in self.fields
            within = (
                "an episode: check `episode` and `step`" if episodes else "a person: name the column of the `episode`"
            )
            found.append(f"{again:,} rows have a step that was there before, as if steps begin anew within {within}")
        if steps < 0.9 * (rows - starts):
            last = starts if self.pairs else 0
            given = {name: number for name, number in counts.items() if not name.startswith("blank_")}
            why = explained(given, rows - last - steps) or explained(counts, rows - last - steps, last)
            why = why or ("" if restarts else "check the columns, `step` and `episode`, and where next states are")
            found.append(f"only {steps:,} of {rows:,} rows begin a whole step" + (why and f": {why}"))
        if steps and not starts:
            found.append(
                "no first state was observed, so start states are not learned from people: check `episode` and `step`"
            )
        if "end" in self.fields and not counts.get("ends"):
            found.append(
                "no complete step is terminal: if only the last row of an episode is marked as its end, name "
                "`next_state`"
            )
        return [*found, *outside(counts, 0.1 * rows), *missing(counts, people, "a whole step")]

    def arrange(self, starts: Starts, columns: Columns) -> tuple[Int[np.ndarray, " left"], Columns]:
        size = len(next(iter(columns.values())))
        person = np.repeat(np.arange(len(starts)), np.diff(starts, append=size))
        begins = np.zeros(size, bool)
        begins[starts] = True
        if "episode" in columns:
            begins[1:] |= columns["episode"][1:] != columns["episode"][:-1]
        episode = np.cumsum(begins, dtype=np.int32) - 1
        begin = np.flatnonzero(begins)[episode]
        place, follows = self._places(columns, begins, begin)
        states = [name for name in columns if _is_state(name)]
        whole = _whole([columns[name] for name in states])
        told = [name for name in columns if name not in ("episode", "step", *states)]
        usable = whole & _whole([columns[name] for name in told]) & ~_over(columns, begin)
        if self.pairs:
            usable[:-1] &= whole[1:]
            usable &= follows
        kept = np.flatnonzero(usable)
        found = {name: columns[name][kept] for name in (*states, *told)}
        if self.pairs:
            found |= {f"n{name[1:]}": columns[name][kept + 1] for name in states}
        found |= {"episode": episode[kept], "step": place[kept].astype(np.int32)}
        last = np.append(np.diff(found["episode"]) != 0, True)[: len(kept)]
        end = found.get("end", np.zeros(len(kept))) > 0
        cut = found["cut"] > 0 if "cut" in found else last & ~end
        found |= {"end": end.astype(np.int8), "cut": (cut & ~end).astype(np.int8)}
        found["first"] = begins[kept].astype(np.int8)
        if "step" in columns:
            again = np.append(False, ~begins[1:] & (np.diff(columns["step"]) == 0))[:size]
            found[AGAIN] = again[kept].astype(np.int8)
        if "action" in found:
            found["action"] = found["action"].astype(np.int32)
        person = person[kept]
        return np.flatnonzero(np.append(True, np.diff(person) != 0)[: len(person)]), found

    def _places(self, columns: Columns, begins: np.ndarray, begin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Each row's place in its episode, and whether the next row is the next step."""
        place, follows = np.arange(len(begin)) - begin, np.append(~begins[1:], False)
        if "step" in columns and self.every is not None:
            with np.errstate(over="ignore", invalid="ignore"):  # the farthest steps do not follow each other
                number = (columns["step"] - columns["step"][begin]) / self.every
                place = np.rint(np.clip(number, 0, 2**31 - 1))
                follows[:-1] &= np.abs(np.diff(number) - 1) <= _FINEST
        return place, follows


@dataclass(frozen=True)
class Counts(Statistic):
    """How many transitions, episodes and ends there are, and rows that they are made of: for the operator."""

    pairs: bool
    """Whether a transition takes the next row too."""
    names: ClassVar[tuple[str, ...]] = ("transitions", "starts", "ends", "cuts", "steps_again", "used_rows")

    def empty(self) -> Tally:
        return Tally(0, [np.zeros(len(self.names), np.int64)])

    def add(self, tally: Tally, starts: Starts, columns: Columns) -> None:
        number = len(columns["first"])
        again = columns.get(AGAIN, np.zeros(number, np.int8))
        counted = [int(column.sum()) for column in (*(columns[name] for name in ("first", "end", "cut")), again)]
        shares = (np.diff(columns["step"]) == 1) & (np.diff(columns["episode"]) == 0) & (again[1:] == 0)
        counted = [number, *counted, 2 * number - int(shares.sum()) if self.pairs else number]
        tally.merge(Tally(len(starts), [np.array(counted)]))

    def mean(self, tally: Tally, count: int) -> np.ndarray:
        return tally.sums[0] / count

    def told(self, tally: Tally) -> dict[str, int]:
        return dict(zip(self.names, tally.sums[0].tolist(), strict=True))


def _whole(columns: list[np.ndarray]) -> np.ndarray:
    """Returns where none of them is NaN."""
    return np.logical_and.reduce([~np.isnan(column) for column in columns])


def _is_state(name: str) -> bool:
    return name[0] == "s" and name[1:].isdigit()


def _over(columns: Columns, begin: np.ndarray) -> np.ndarray:
    """Says whether the episode was over before this row: behind an end are the final state and no more steps."""
    ends = np.zeros(len(begin), np.int64)
    for name in {"end", "cut"} & set(columns):
        ends |= columns[name] > 0
    before = np.cumsum(ends) - ends
    return before > before[begin]
