"""One person's sessions against the worst others: private worlds reach what they state, and broken copies exceed it."""

from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest

from quietq import Budget, Sessions, privatise
from quietq.audit.finding import Movement, Unprotected
from quietq.audit.worst_rows import worst_rows
from quietq.feedback.imitation_statistics import ReachCounts
from quietq.feedback.row_statistics import EndRewards, NormalisedMoments, triangle
from quietq.mechanisms import moments, rounds
from quietq.mechanisms.clone import noisy_quantile
from quietq.mechanisms.moments import Moments, square
from quietq.mechanisms.release import Mechanism, mean_of_people
from quietq.released import world_model
from quietq.released.world_model import WorldModel
from quietq.worlds import policy_check
from quietq.worlds.planning import linear_policy
from quietq.worlds.policy_check import Opinions, PolicyCheck, PolicyOnRows

AMPLE, PEOPLE, STEPS = Budget(10.0, 1e-6), 20, 4


def made_up() -> pl.DataFrame:
    """Two episodes of each of two people fewer than there may be: a point that is pushed back and forth."""
    rng, rows = np.random.default_rng(0), []
    for person in range(PEOPLE - 2):
        for visit in range(2):
            x = rng.random()
            for step in range(STEPS):
                push = int(rng.integers(2))
                after = np.clip(0.9 * x + 0.1 * push, 0, 1)
                rows.append((person, visit, step, x, after, push, x, int(step == STEPS - 1 and push)))
                x = after
    names = ["who", "visit", "step", "x", "after", "push", "reward", "end"]
    return pl.DataFrame(rows, schema=names, orient="row")


read = partial(
    Sessions.read, person="who", episode="visit", step="step", state="x", next_state="after", action="push",
    actions=[0, 1], reward="reward", end="end", box=(0, 1), people=PEOPLE,
)  # fmt: skip
DYNAMICS = WorldModel(reward=np.zeros_like, end=np.zeros_like, start=np.zeros_like)
"""The rest is known, so that there are fewer queries."""


@pytest.fixture(autouse=True)
def _few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "SETTINGS", rounds.RoundSettings(rounds=3))
    fewer = moments.MomentSettings(rounds=3, first_rounds=2, rate_rounds=2)
    monkeypatch.setattr(moments, "SETTINGS", fewer)
    monkeypatch.setattr(world_model, "ENOUGH_PER_NUMBER", 0.0)  # degrees as they were asked for, of few people


def mechanism(kind: type[Moments] = Moments, model: WorldModel | None = DYNAMICS) -> Mechanism:
    return kind(read(made_up()), AMPLE, model)


def moved(mechanism: Mechanism, tries: int = 4, read: Any = read) -> Movement:
    return worst_rows(read, made_up(), AMPLE, mechanism=mechanism, tries=tries).movement


def test_people_come_close_to_what_is_stated_and_never_exceed_it():
    move = moved(mechanism())
    assert not move.exceeds
    assert 0.9 <= move.share <= 1
    assert 0.9 <= (move.together or 0) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("degree", [1, 2])
def test_so_do_all_parts_of_a_world(degree):
    move = moved(mechanism(model=WorldModel(degree=degree)), tries=16)
    assert not move.exceeds
    assert 0.9 <= move.share <= 1
    assert len(move.queries or ()) > 8


APART = WorldModel(end=np.zeros_like, start=np.zeros_like, step_rewards=(0.0, 0.9))
"""With a mean of its own for the rewards of steps that end an episode."""


@pytest.mark.slow
def test_so_do_rewards_at_ends():
    move = moved(mechanism(model=APART), tries=16)
    assert not move.exceeds
    assert 0.9 <= max(move.queries or ()) <= 1


def test_the_mean_reward_at_ends_comes_close_to_what_is_stated():
    """Everybody ends, and one person's ends are worth the least instead of the most."""
    query = mean_of_people(EndRewards(), PEOPLE, 1.0)
    rows = made_up().with_columns(reward=pl.lit(1.0), end=pl.lit(1))
    other = rows.with_columns(reward=pl.when(pl.col("who") == 0).then(0.0).otherwise(1.0))
    moved = np.linalg.norm(query.numbers(read(rows)) - query.numbers(read(other)))
    assert 0.99 <= moved / query.sensitivity <= 1


RICH = Budget.from_mu(4.0, 1e-6)
"""Of which signs are asked for too."""


def check(kind: type[PolicyCheck] = PolicyCheck, voted: bool = True, budget: Budget = RICH) -> PolicyCheck:
    """Of pushing on the right, in a world that is released of these people; or by signs alone."""
    people = read(made_up())
    world = privatise(people, AMPLE, simulate=0)
    plan = linear_policy(world, np.array([[0.1], [1.0]]))
    # At 0.4 single steps may vote for the plan or against it: at 0.6 of this world they are all against it.
    worlds: Any = {"world": world, "wanted": 0.4 * STEPS} if voted else {}
    return kind(plan, people, budget, steps=STEPS, returns=(0, STEPS), **worlds)


def checked(kind: type[PolicyCheck] = PolicyCheck, voted: bool = False) -> Movement:
    return worst_rows(read, made_up(), RICH, mechanism=check(kind, voted), tries=4).movement


@pytest.mark.slow
def test_nobody_has_more_than_one_vote_in_a_check():
    move = moved(check(budget=AMPLE))
    assert not move.exceeds
    assert 0.99 <= move.share <= 1


@pytest.mark.slow
def test_nobody_has_more_than_one_vote_and_one_sign_in_a_check():
    move = checked(voted=True)
    assert not move.exceeds
    assert move.queries is not None
    assert move.queries[-1] > 0.99


def test_nobody_has_more_than_one_sign_in_a_check_without_a_world():
    move = checked()
    assert not move.exceeds
    assert 0.9 <= move.share <= 1
    assert move.queries is not None
    assert len(move.queries) == 2 * policy_check.MEDIAN_ROUNDS + 1
    assert move.queries[-1] > 0.99


# Broken copies


class Unheld(NormalisedMoments):
    """Nothing holds vectors to their length but themselves."""

    def _hold(self, vectors: np.ndarray, people: int) -> np.ndarray:
        return vectors

    def normalised(self, rows: np.ndarray) -> np.ndarray:
        z = rows @ self.matrix.T
        upper = triangle(z.T @ z)
        return upper / np.linalg.norm(upper)


class ByRow(Unheld):
    """Each step is normalised, instead of each person."""

    def of_people(self, starts: np.ndarray, columns: Any) -> np.ndarray:
        people = np.split(self.looked.rows(columns), starts[1:])
        return np.stack([sum(self.normalised(row[None]) for row in own) for own in people])  # type: ignore[misc]


class ByEpisode(Unheld):
    """Each episode counts as a person."""

    def of_people(self, starts: np.ndarray, columns: Any) -> np.ndarray:
        people = np.split(np.column_stack([columns["episode"], self.looked.rows(columns)]), starts[1:])
        return np.stack(
            [sum(self.normalised(own[own[:, 0] == one, 1:]) for one in np.unique(own[:, 0])) for own in people]
        )  # type: ignore[arg-type]


class ByEnd(EndRewards):
    """Each end counts, instead of each person."""

    def _hold(self, vectors: np.ndarray, people: int) -> np.ndarray:
        return vectors

    def of_people(self, starts: np.ndarray, columns: Any) -> np.ndarray:
        ended = columns["end"] > 0
        return np.add.reduceat(np.stack([(2 * columns["reward"] - 1) * ended, ended], axis=-1), starts, axis=0)


@pytest.mark.slow
def test_who_has_more_ends_must_not_count_for_more(monkeypatch):
    monkeypatch.setattr(moments, "EndRewards", ByEnd)
    assert moved(mechanism(model=APART)).exceeds


@pytest.mark.slow
@pytest.mark.parametrize("broken", [ByRow, ByEpisode])
def test_who_has_more_steps_or_episodes_must_not_count_for_more(broken, monkeypatch):
    monkeypatch.setattr(moments, "NormalisedMoments", broken)
    assert moved(mechanism()).exceeds


class Unnoised(Moments):
    """Whitens by moments that were not noised."""

    def run(self) -> Any:
        steps = super().run()
        query = next(steps)
        while True:
            first = query

            def looks(feedback: Any, first: Any = first) -> np.ndarray:
                looked = moments.moves(self.spaces, self.feature_map, self.moved)
                scales = np.diag(1 / looked.scales)
                raw = square(feedback.mean(NormalisedMoments(looked, scales)))
                values, vectors = np.linalg.eigh(raw)
                white = (vectors / np.sqrt(np.maximum(values, 1e-6))).T @ scales
                return mean_of_people(NormalisedMoments(looked, white), PEOPLE, 1.0).numbers(feedback)

            try:
                query = steps.send((yield first._replace(numbers=looks)))
            except StopIteration as last:
                return last.value


def test_whitening_must_not_look_at_people():
    with pytest.raises(Unprotected, match="no sum over people"):
        moved(mechanism(Unnoised))


@pytest.mark.slow
def test_episodes_read_as_people_are_found():
    """As if the column of episodes told people apart."""

    def by_visit(source: Any) -> Sessions:
        frames = source if isinstance(source, list) else [source]
        named = pl.col("who").cast(pl.String).str.strip_chars() + "/" + pl.col("visit").cast(pl.String)
        return read([one.with_columns(who=named) for one in frames], people=2 * PEOPLE)

    broken = Moments(by_visit(made_up()), AMPLE, DYNAMICS)
    with pytest.raises((Unprotected, AssertionError)):
        assert not moved(broken, read=by_visit).exceeds


# Broken copies of checks


class TrueMedians(PolicyCheck):
    """Signs are taken against medians of people's numbers themselves."""

    def run(self) -> Any:
        assert self.returns is not None
        asked = (self.returns, (0.0, float(STEPS))), (self.distances, (0.0, 1.0))
        for own, within in asked:
            yield next(noisy_quantile(own, within, 0.5, self.people, 0.5, 1))

        def looks(feedback: Any) -> np.ndarray:
            medians = []
            for own, ends in asked:
                low, high = ends
                for _ in range(20):
                    middle = (low + high) / 2
                    reach, short = feedback.mean(ReachCounts(own, middle))
                    low, high = (middle, high) if reach >= short else (low, middle)
                medians.append(low)
            opinions = Opinions(None, 0.0, self.returns, self.distances, (medians[0], medians[1]))
            return mean_of_people(opinions, self.people, 1.0).numbers(feedback)

        opinions = Opinions(None, 0.0, self.returns, self.distances, (0.0, 0.0))
        query = mean_of_people(opinions, self.people, 1.0)._replace(numbers=looks)
        answer = yield query
        return (0.0, 0.0), answer, query.law.sigma


def test_medians_must_not_look_at_people():
    with pytest.raises(Unprotected, match="no sum over people"):
        checked(TrueMedians)


class AskedInCompany(PolicyOnRows):
    """The policy is asked about everybody's states at once, and normalises them by what it is shown."""

    def __call__(self, starts: np.ndarray, columns: Any) -> np.ndarray:
        return super().__call__(starts, {**columns, "s0": columns["s0"] - columns["s0"].mean()})


def test_a_policy_must_not_be_asked_in_company(monkeypatch):
    monkeypatch.setattr(policy_check, "PolicyOnRows", AskedInCompany)
    with pytest.raises(Unprotected):
        checked()


class ByStep(Opinions):
    """Each step has a vote and a sign, and all of them count; nothing holds a person to one."""

    def of_people(self, starts: np.ndarray, columns: Any) -> np.ndarray:
        rows = np.arange(len(columns["reward"]))
        return np.add.reduceat(super().of_people(rows, columns), starts, axis=0)

    def _hold(self, vectors: np.ndarray, people: int) -> np.ndarray:
        return vectors


@pytest.mark.slow
def test_who_has_more_steps_must_not_have_more_votes_and_signs(monkeypatch):
    monkeypatch.setattr(policy_check, "Opinions", ByStep)
    assert checked(voted=True).exceeds
