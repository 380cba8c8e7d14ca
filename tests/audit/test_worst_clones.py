"""One person's sessions replaced, in policies that imitate people: a search comes close to what is stated, never above.

Broken copies are caught: a threshold from returns without noise, a person who counts by the row, gradients that are
summed and not normalised.
"""

import dataclasses
import sys
from typing import Any

import numpy as np
import polars as pl
import pytest

from quietq import Budget, Sessions
from quietq.audit import worst_rows
from quietq.audit.finding import Movement, Unprotected
from quietq.feedback.imitation_statistics import ImitationGradient, OwnReturns
from quietq.feedback.statistic import Statistic, Tally
from quietq.mechanisms.clone import CloneSettings, Cloning
from quietq.mechanisms.release import mean_of_people

AMPLE, PEOPLE, STEPS = Budget(10.0, 1e-6), 20, 4
SHORT = CloneSettings(state_rounds=2, threshold_rounds=2, steps=3, hidden=4, rows=6)
MODULE: Any = sys.modules["quietq.mechanisms.clone"]


def made_up() -> pl.DataFrame:
    """Two episodes of each of two people fewer than there may be."""
    rng, rows = np.random.default_rng(0), []
    for person in range(PEOPLE - 2):
        for visit in range(2):
            for step in range(STEPS):
                push, x, y = int(rng.integers(2)), *rng.random(2)
                rows.append((person, visit, step, x, y, push, 2.0 * push - 1, rng.random()))
    names = ["who", "visit", "step", "x", "y", "push", "force", "reward"]
    return pl.DataFrame(rows, schema=names, orient="row")


def read(source: object, **other: Any) -> Sessions:
    declared = {"action": "push", "actions": [0, 1], "people": PEOPLE} | other
    return Sessions.read(
        source,
        person="who",
        episode="visit",
        step="step",
        state=["x", "y"],
        next_state=[],
        reward="reward",
        box=(0, 1),
        **declared,
    )


def read_numbers(source: object) -> Sessions:
    return read(source, action=["force"], actions=[(-1, 1)])


def moved(kind: type[Cloning] = Cloning, read: Any = read, tries: int = 4) -> Movement:
    mechanism = kind(read(made_up()), AMPLE, (0.0, 4.0), 0.2, SHORT)
    return worst_rows(read, made_up(), AMPLE, mechanism=mechanism, tries=tries).movement


@pytest.mark.parametrize("read", [read, read_numbers], ids=["a list", "numbers"])
def test_people_come_close_to_what_is_stated_and_never_exceed_it(read: Any) -> None:
    move = moved(read=read)
    assert not move.exceeds
    assert 0.9 <= move.share <= 1
    assert 0.9 <= (move.together or 0) <= 1
    assert len(move.queries or ()) == 2 + 2 + 3
    assert min((move.queries or ())[2:]) > 0.9  # each count and each gradient by itself


# Broken copies


class Unheld(ImitationGradient):
    """Nothing holds vectors to their length but themselves."""

    def _hold(self, vectors: np.ndarray, people: int) -> np.ndarray:
        return vectors


class ByRow(Unheld):
    """Each of a person's rows is normalised, and all of them count."""

    def of_people(self, starts: np.ndarray, columns: Any) -> np.ndarray:
        one_row = dataclasses.replace(self, places=np.zeros(1))
        rows = ImitationGradient.of_people(one_row, np.arange(len(columns["s0"])), columns)
        return np.add.reduceat(rows, starts, axis=0)


class Summed(Unheld):
    """Gradients are summed over rows, and not divided by their length."""

    def of_people(self, starts: np.ndarray, columns: Any) -> np.ndarray:
        return len(self.places) * self.gradients(columns)


@pytest.mark.parametrize("broken", [ByRow, Summed])
def test_who_has_more_rows_or_larger_gradients_must_not_count_for_more(
    broken: type[ImitationGradient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MODULE, "ImitationGradient", broken)
    assert moved().exceeds


EDGES = np.linspace(0.0, 4.0, 401)


class AllReturns(Statistic):
    """How many people's returns lie between any two edges, without noise."""

    def __init__(self, own: OwnReturns) -> None:
        self.own = own

    def empty(self) -> Tally:
        return Tally(0, [np.zeros(len(EDGES) - 1, np.int64)])

    def add(self, tally: Tally, starts: np.ndarray, columns: Any) -> None:
        if len(starts):
            counts = np.histogram(self.own(starts, columns), EDGES)[0]
            tally.merge(Tally(len(starts), [counts]))

    def mean(self, tally: Tally, count: int) -> np.ndarray:
        return tally.sums[0] / max(tally.people, 1)


class Unnoised(Cloning):
    """The threshold is a quantile of people's returns themselves."""

    def run(self) -> Any:
        steps = super().run()
        query = next(steps)
        asked = 0
        while True:
            if asked >= SHORT.state_rounds + SHORT.threshold_rounds:
                query = query._replace(numbers=self._above_the_true_quantile)
            try:
                query = steps.send((yield query))
                asked += 1
            except StopIteration as last:
                return last.value

    def _above_the_true_quantile(self, feedback: Sessions) -> np.ndarray:
        assert self.own is not None
        below = np.cumsum(feedback.mean(AllReturns(self.own)))
        threshold = float(EDGES[min(int(np.searchsorted(below, 0.8)), 400)])
        widths = (2, SHORT.hidden or 0, 2)
        normal = np.full((2, 2), 0.5)
        weights = MODULE.first_weights(widths, np.random.default_rng(0))
        places = (np.arange(6) + 0.5) / 6
        of = ImitationGradient(self.spaces, widths, weights, normal, 4.0, places, self.own, threshold)
        return mean_of_people(of, PEOPLE, 1.0).numbers(feedback)


def test_the_threshold_must_not_look_at_people() -> None:
    with pytest.raises(Unprotected, match="no sum over people"):
        moved(Unnoised)


@pytest.mark.slow
def test_episodes_read_as_people_are_found() -> None:
    """As if the column of episodes told people apart."""

    def by_visit(source: Any) -> Sessions:
        frames = source if isinstance(source, list) else [source]
        named = pl.col("who").cast(pl.String).str.strip_chars() + "/" + pl.col("visit").cast(pl.String)
        return read([one.with_columns(who=named) for one in frames], people=2 * PEOPLE)

    with pytest.raises((Unprotected, AssertionError)):
        assert not moved(read=by_visit).exceeds
