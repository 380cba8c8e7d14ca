"""From each person's rows to transitions: rows of an episode are paired *after* all rows of the person have met.

A row that cannot be used stays until then, as a gap: the rows around it are no transition. Everything here goes by a
person's own rows, so nobody's company changes how they are paired.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from quietq.feedback.schema import Schema
from quietq.feedback.statistic import Columns, Starts

_FINEST = 1e-6
"""By so much of the time between them, consecutive steps may be nearer or farther."""


@dataclass(frozen=True)
class Steps(Schema):
    """Rows of sessions, which become transitions.

    Cleaned rows have NaN where a cell cannot be used. Transitions have `s0..` and, if next states are known, `n0..`;
    `a0..` or `action`; `reward` and `propensity`, if there are such; `end`, `cut` and `first`; and `episode`, which
    tells a person's episodes apart, with the place of the `step` in it, from 0 on.
    """

    pairs: bool = True
    """Whether an episode's next row holds the next state."""
    every: float | None = 1.0
    """From one step to the next, the step's number grows by this; None where any later one is the next."""

    @property
    def columns(self) -> list[str]:
        """A step may be part of the state too."""
        named = {name: field.column for name, field in self.fields.items()}
        if named.get("step") in [column for name, column in named.items() if _is_state(name)]:
            del named["step"]
        return [self.person, *named.values()]

    @property
    def transition(self) -> tuple[str, ...]:
        """The columns of a transition."""
        told = [name for name in self.fields if name not in ("episode", "step", "end", "cut")]
        states = [f"n{name[1:]}" for name in told if self.pairs and _is_state(name)]
        return (*told, *states, "end", "cut", "first", "episode", "step")

    def arrange(self, starts: Starts, columns: Columns) -> tuple[Int[np.ndarray, " left"], Columns]:
        size = len(next(iter(columns.values())))
        person = np.repeat(np.arange(len(starts)), np.diff(starts, append=size))
        if self.in_order and "episode" in columns:  # rows stand as they came, whatever their episode
            order = np.lexsort((columns["episode"], person))
            columns, person = {name: column[order] for name, column in columns.items()}, person[order]
        begins = np.zeros(size, bool)
        begins[starts] = True
        if "episode" in columns:
            begins[1:] |= columns["episode"][1:] != columns["episode"][:-1]
        episode = np.cumsum(begins) - 1
        begin = np.flatnonzero(begins)[episode]
        found = self._rows(columns, begins, begin) | {"episode": episode.astype(np.int32)}
        usable = np.logical_and.reduce([np.isfinite(column) for column in found.values()])
        kept = np.flatnonzero(usable & ~_over(columns, begin))
        found = {name: column[kept] for name, column in found.items()}
        last = np.append(found["episode"][1:] != found["episode"][:-1], True)[: len(kept)]
        end = found.get("end", np.zeros(len(kept))) > 0
        cut = found["cut"] > 0 if "cut" in found else last & ~end
        found |= {"end": end.astype(np.int8), "cut": (cut & ~end).astype(np.int8)}
        found["first"] = (kept == begin[kept]).astype(np.int8)
        if "action" in found:
            found["action"] = found["action"].astype(np.int32)
        person = person[kept]
        return np.flatnonzero(np.append(True, person[1:] != person[:-1])[: len(person)]), found

    def _rows(self, columns: Columns, begins: np.ndarray, begin: np.ndarray) -> dict[str, np.ndarray]:
        """Each row as a transition, with NaN where there is none."""
        found = {name: column for name, column in columns.items() if name not in ("episode", "step", "place")}
        place = np.arange(len(begin)) - begin
        follows = np.append(~begins[1:], False)
        if "step" in columns and self.every is not None:
            number = (columns["step"] - columns["step"][begin]) / self.every
            place = np.rint(np.clip(number, 0, 2**31 - 1)).astype(np.int64)
            follows[:-1] &= np.abs(np.diff(number) - 1) <= _FINEST
        if self.pairs:
            for name in filter(_is_state, list(found)):
                found[f"n{name[1:]}"] = np.where(follows, np.roll(found[name], -1), np.nan)
        return found | {"step": place.astype(np.int32)}


def _is_state(name: str) -> bool:
    return name[0] == "s" and name[1:].isdigit()


def _over(columns: Columns, begin: np.ndarray) -> np.ndarray:
    """Whether the episode was over before this row: what is behind an end holds the final state, and no more steps."""
    ends = np.zeros(len(begin), np.int64)
    for name in {"end", "cut"} & set(columns):
        ends |= columns[name] > 0
    before = np.cumsum(ends) - ends
    return before > before[begin]
