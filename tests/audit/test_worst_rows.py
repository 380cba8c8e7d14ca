"""One person's rows against the worst others: sound mechanisms reach what they state, and broken copies exceed it."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest
from broken_copies import STRONG, altered, both, check, halve_draws

from quietq import Budget, InvalidInput, Ratings
from quietq.audit.everything import SURVEYS, all_but_two, models_of_all_kinds
from quietq.audit.finding import Movement, Unprotected
from quietq.audit.worst_rows import worst_rows
from quietq.feedback import FEEDBACK, buckets, schema
from quietq.feedback.row_statistics import ClippedGradient
from quietq.feedback.schema import NAME, NUMBER
from quietq.feedback.statistic import Vector
from quietq.mechanisms import rounds
from quietq.mechanisms.release import mean_of_people
from quietq.mechanisms.rounds import Rounds

AMPLE = Budget(10.0, 1e-6)
PEOPLE = 20


@pytest.fixture(autouse=True)
def _few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "SETTINGS", rounds.RoundSettings(rounds=3))


def moved(kind: str, tries: int = 4, **options: Any) -> Movement:
    return worst_rows(*all_but_two(kind, PEOPLE), AMPLE, tries=tries, **{"noise": "rounds", **options}).movement


def plan(kind: str, mechanism: type[Rounds] = Rounds, budget: Budget = AMPLE) -> Rounds:
    read, source = all_but_two(kind, PEOPLE)
    return mechanism(read(source), budget)


QUICK = {"rounds": ("ratings", "ratings of items", "comparisons of segments"), "moments": ()}
"""The most peculiar kinds; all others are slow tests. `test_worst_sessions.py` replays moments, with fewer
rounds."""


@pytest.mark.parametrize(
    ("kind", "noise"),
    [
        pytest.param(kind, noise, marks=[] if kind in QUICK.get(noise, (kind,)) else pytest.mark.slow)
        for kind, noise in models_of_all_kinds().values()
    ],
)
def test_people_come_close_to_what_is_stated_and_never_exceed_it(kind: str, noise: str) -> None:
    """By a short search; `test_frozen.py` asks for more of the usual one."""
    move = moved(kind, tries=16, noise=noise)
    assert not move.exceeds
    assert 0.8 <= move.share <= 1
    if noise == "rounds":
        assert move.share > 0.97
        assert len(move.queries) >= 3
        assert 0.9 <= (move.together or 0) <= 1


def test_every_kind_of_feedback_is_audited() -> None:
    assert set(FEEDBACK) <= set(SURVEYS)
    with pytest.raises(InvalidInput, match="kind must be one of ratings"):
        all_but_two("nothing", 5)


# Statistics that do not hold people to their bound


class Unheld(ClippedGradient):
    """Nothing holds vectors to their length but themselves."""

    def _hold(self, vectors: np.ndarray, people: int) -> np.ndarray:
        return vectors

    def whole(self, starts: np.ndarray, columns: Any) -> np.ndarray:
        """As if nobody were clipped."""
        vectors = ClippedGradient.of_people(replace(self, clip=1e9), starts, columns)
        return np.column_stack([vectors[:, :-1] * (1e9 / self.clip), vectors[:, -1]])

    def of_people(self, starts: np.ndarray, columns: Any) -> np.ndarray:
        skips = np.logical_or.reduceat(self.skips(columns), starts)
        return np.where(skips[:, None], self.whole(starts, columns), super().of_people(starts, columns))

    def skips(self, columns: Any) -> np.ndarray:
        """Rows whose people are not clipped."""
        return np.zeros(len(next(iter(columns.values()))), bool)


class Ties(Unheld):
    def skips(self, columns: Any) -> np.ndarray:
        return columns["choice"] == 2


class Top(Unheld):
    def skips(self, columns: Any) -> np.ndarray:
        return columns["rating"] >= 1


class Summed(Unheld):
    """Rows are added up instead of averaged, and nobody is clipped after that."""

    def of_people(self, starts: np.ndarray, columns: Any) -> np.ndarray:
        rows = np.diff(starts, append=len(next(iter(columns.values()))))
        return super().of_people(starts, columns) * np.append(np.ones(self.size - 1), 0) * rows[:, None]


class Longer(Unheld):
    """What was left by clipping counts twice, and the bound does not know of it."""

    def of_people(self, starts: np.ndarray, columns: Any) -> np.ndarray:
        return super().of_people(starts, columns) * np.append(np.ones(self.size - 1), 2)


@pytest.mark.parametrize(
    ("kind", "statistic"),
    [("comparisons", Ties), ("ratings", Top), ("ratings", Summed), ("ratings", Longer)],
)
def test_a_statistic_that_forgets_somebody_is_caught(
    kind: str, statistic: type[Unheld], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "ClippedGradient", statistic)
    move = moved(kind)
    assert move.exceeds
    assert move.share > 1.01


def test_vectors_that_are_not_held_to_their_length_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradient keeps to its bound by itself; where states lie does not."""
    monkeypatch.setattr(Vector, "_hold", lambda self, vectors, people: vectors)
    move = moved("ratings")
    assert move.exceeds
    assert move.queries[0] == pytest.approx(move.share)
    assert move.share > 1.1


# People who are counted twice, or who change what others count for


def split_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows stay in the parts in which they came."""

    def shares(hands: buckets.Hands) -> list[Any]:
        parts = [part for number in sorted(hands) for part in hands[number]]
        return [buckets._Share([part], 0, 1, number) for number, part in enumerate(parts)]

    monkeypatch.setattr(buckets, "_shares", shares)


def test_a_person_who_is_split_over_partitions_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    split_people(monkeypatch)
    with pytest.raises(Unprotected, match="who is split counts twice"):
        moved("ratings")


def functions() -> Movement:
    """One function for each person, summed as rows are read, and not kept."""
    read = partial(Ratings.read, box=(0, 1), low=-1, high=1, slope=2, people=9)
    rows = pl.DataFrame({"person": range(7), "state": [0.3] * 7, "rating": [0.5] * 7})
    return worst_rows(read, rows, AMPLE, noise="k-norm", tries=8).movement


def test_people_who_are_summed_as_they_are_read_are_audited_too(monkeypatch: pytest.MonkeyPatch) -> None:
    move = functions()
    assert not move.exceeds
    assert move.share > 0.99
    assert move.queries == ()
    split_people(monkeypatch)
    with pytest.raises(Unprotected, match="who is split counts twice"):
        functions()


def test_a_name_in_two_spellings_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def identities(people: pl.Series) -> pl.DataFrame:
        return people.cast(pl.String).to_frame(NAME).select(pl.lit(None, pl.Int64).alias(NUMBER), NAME)

    monkeypatch.setattr(schema, "identities", identities)
    with pytest.raises(Unprotected, match="who is split counts twice"):
        moved("ratings")


class Standardised(ClippedGradient):
    """Features in units of their spread over all rows that are there."""

    def of_people(self, starts: np.ndarray, columns: Any) -> np.ndarray:
        def scaled(*points: np.ndarray) -> np.ndarray:
            return phi(*points) / (1 + phi(*points).std())

        phi = self.features
        return ClippedGradient.of_people(replace(self, features=scaled), starts, columns)


class SinglePrecision(ClippedGradient):
    """Features are rounded to 24 bits of the largest one that is there."""

    def of_people(self, starts: np.ndarray, columns: Any) -> np.ndarray:
        def rounded(*points: np.ndarray) -> np.ndarray:
            step = np.abs(phi(*points)).max() / 2**24
            return np.round(phi(*points) / step) * step

        phi = self.features
        return ClippedGradient.of_people(replace(self, features=rounded), starts, columns)


class LargestClip(ClippedGradient):
    """The clip is the longest gradient of all."""

    def of_people(self, starts: np.ndarray, columns: Any) -> np.ndarray:
        whole = ClippedGradient.of_people(replace(self, clip=1e9), starts, columns)
        longest = 1e9 * np.linalg.norm(whole[:, :-1], axis=1).max() + 1e-9
        return ClippedGradient.of_people(replace(self, clip=longest), starts, columns)


@pytest.mark.parametrize("statistic", [Standardised, SinglePrecision, LargestClip])
def test_people_who_change_what_others_count_for_are_caught(statistic: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "ClippedGradient", statistic)
    with pytest.raises(Unprotected, match="no sum over people"):
        moved("ratings")


# Mechanisms that look at what they should not, or noise too little


class Peeking(Rounds):
    """The next clip follows how much was really left, not the noisy answer."""

    def run(self) -> Any:
        seen: list[np.ndarray] = []
        steps = super().run()
        query = next(steps)
        while True:
            numbers = query.numbers

            def look(feedback: Any, numbers: Any = numbers) -> np.ndarray:
                seen.append(numbers(feedback))
                return seen[-1]

            answer = yield query._replace(numbers=look)
            try:
                query = steps.send(np.append(answer[:-1], seen[-1][-1]))
            except StopIteration as last:
                return last.value


def test_a_clip_that_follows_unreleased_numbers_is_caught() -> None:
    with pytest.raises(Unprotected, match="other numbers than its query says"):
        moved("ratings", mechanism=plan("ratings", Peeking))


def test_too_little_noise_is_caught() -> None:
    move = moved("ratings", mechanism=altered(plan("ratings"), law=halve_draws))
    assert move.exceeds
    assert move.share == pytest.approx(2, rel=0.15)


def thrice(*look: Any) -> Any:
    """People move everything three times as far as is stated."""
    query = mean_of_people(*look)
    return query._replace(numbers=lambda feedback: 3 * query.numbers(feedback))


@pytest.mark.slow
@both
def test_whole_releases_tell_the_same(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two queries, all answers seen, told apart by the best test."""
    monkeypatch.setattr(rounds, "SETTINGS", rounds.RoundSettings(rounds=1))
    if broken:
        monkeypatch.setattr(rounds, "mean_of_people", thrice)
    mechanism = plan("ratings", Rounds, STRONG)
    worst = worst_rows(*all_but_two("ratings", PEOPLE), STRONG, mechanism=mechanism, tries=4)
    assert worst.movement.exceeds == broken
    finding = worst.audit(90)
    check(finding, broken)
    assert finding.mu_lower > 0.5
    assert finding.attack.method == "reward/rounds"
