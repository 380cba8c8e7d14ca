"""Seen that are learned are nearly the best, and what is judged has no say in them or in their thresholds."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from quietq import Budget, InvalidInput, SupBall
from quietq.audit import distinguisher, draws
from quietq.audit.distinguisher import Expected, Seen, Thresholds, learn
from quietq.audit.draws import audit_draws
from quietq.audit.finding import Attack, Finding, Promise, count_errors
from quietq.paper import InputNoise
from quietq.paper.attacks import on_trainings as training
from quietq.paper.attacks.on_trainings import Trainings, audit_training
from quietq.privacy.budget import epsilon_from_mu
from quietq.worlds import WALK

ATTACK = Attack("none", "none", "none", "none", "none", "none")
NOTHING = Promise("certified", 0.0, 0.0, 0.0)
"""Any bound above 0 refutes it."""


def gaussian(runs: int, apart: np.ndarray, root: np.ndarray, seed: int) -> Seen:
    noise = np.random.default_rng(seed).normal(size=(2, runs, len(root))) @ root.T
    return Seen(noise[0], noise[1] + apart)


def separation(weights: np.ndarray, apart: np.ndarray, root: np.ndarray) -> float:
    """How many deviations the scores' means lie apart, exactly."""
    return float(weights @ apart / np.linalg.norm(root.T @ weights))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("numbers", "runs", "least"), [(3, 500, 0.99), (10, 1000, 0.97), (40, 300, 0.85)])
def test_a_learned_score_is_nearly_the_best(numbers: int, runs: int, least: float, seed: int) -> None:
    """Numbers of very different sizes, some nearly the same as others: the best direction is none of the axes."""
    rng = np.random.default_rng(100 + seed)
    root = np.diag(10.0 ** rng.uniform(-3, 3, numbers)) @ (np.eye(numbers) + 0.5 * rng.normal(size=(numbers, numbers)))
    apart = root @ rng.normal(size=numbers)
    apart *= 2 / np.linalg.norm(np.linalg.solve(root, apart))  # the best score is 2 deviations apart
    weights, expected = learn(gaussian(runs, apart, root, seed))
    found = separation(weights, apart, root)
    assert least * 2 < found <= 2 * (1 + 1e-9)
    fresh = gaussian(20_000, apart, root, seed + 50).scored(weights).normal()
    for name in ("mean_first", "mean_second"):
        error = getattr(expected, name) - getattr(fresh, name)
        assert abs(error) < 0.3 * fresh.deviation_first  # promised on fresh runs: not what the taught ones showed


def test_many_numbers_and_few_runs_teach_something() -> None:
    numbers = 300
    root, apart = np.eye(numbers), np.full(numbers, 4 / np.sqrt(numbers))
    weights, _ = learn(gaussian(40, apart, root, seed=1))
    assert separation(weights, apart, root) > 1.5  # of 4; the difference of means has 4 sqrt(0.44) = 2.6


def test_a_number_that_only_the_world_changes_is_what_is_learned() -> None:
    noise = np.random.default_rng(2).normal(size=(2, 60, 5))
    noise[:, :, 3] = [[7.0], [7.5]]  # a leak without any noise
    noise[:, :, 4] = 1.0
    weights, expected = learn(Seen(noise[0], noise[1]))
    scores = Seen(noise[0], noise[1]).scored(weights)
    assert scores.first.max() < scores.second.min()
    threshold = expected.thresholds(60, 0.0, 0.95).mu
    assert scores.first.max() < threshold < scores.second.min()
    assert weights[4] == 0


def test_what_never_varies_teaches_nothing() -> None:
    still = np.ones((20, 3))
    weights, expected = learn(Seen(still, still))
    assert not weights.any()
    found = count_errors(Seen(still, still).scored(weights), expected.thresholds(20, 0.0, 0.95), ATTACK, NOTHING)
    assert (found.epsilon_lower, found.mu_lower, found.verdict) == (0.0, 0.0, "consistent")


def test_too_few_runs_are_refused_in_a_sentence() -> None:
    few = np.zeros((9, 2))
    with pytest.raises(InvalidInput, match="runs must leave at least 10 a world"):
        learn(Seen(few, few))


# The whole way


def audit(seen: Seen, promise: Promise, learned: bool) -> Finding:
    taught, judged = seen.split(len(seen.first) // 4)
    runs = len(judged.first)
    if learned:
        weights, expected = learn(taught)
        thresholds = expected.thresholds(runs, promise.delta, 0.95)
    else:
        weights = np.ones(seen.first.shape[1])
        thresholds = taught.scored(weights).thresholds(runs, promise.delta, 0.95)
    return count_errors(judged.scored(weights), thresholds, ATTACK, promise)


def refuted(audits: int, law: Any, promise: Promise, learned: bool) -> int:
    rng = np.random.default_rng(11)
    verdicts = [audit(Seen(*law(rng)), promise, learned).verdict for _ in range(audits)]
    return verdicts.count("refuted")


LAWS = {
    "normal": lambda rng: rng.normal(size=(2, 80, 4)),
    "heavy tails": lambda rng: rng.standard_cauchy(size=(2, 80, 4)),
    "few values": lambda rng: rng.integers(0, 2, size=(2, 80, 4)).astype(np.float64),
}


@pytest.mark.parametrize("learned", [True, False], ids=["learned", "mean"])
@pytest.mark.parametrize("law", LAWS)
def test_the_same_law_is_told_apart_no_more_often_than_stated(
    law: str, learned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both worlds are one: whatever is found is false, and may be found in one audit of twenty."""
    monkeypatch.setattr(distinguisher, "_TRIED", 15)
    audits = 150
    wrong = refuted(audits, LAWS[law], NOTHING, learned)
    assert binom.sf(wrong - 1, audits, 0.05) > 1e-6


def test_nor_is_a_promise_that_is_just_kept_refuted_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worlds exactly mu = 1 apart, and a promise of just that; the sum of all numbers is the best score."""
    monkeypatch.setattr(distinguisher, "_TRIED", 15)
    promise, audits = Promise("certified", epsilon_from_mu(1.0, 1e-2), 1e-2, 1.0), 200

    def law(rng: np.random.Generator) -> np.ndarray:
        return rng.normal(size=(2, 80, 4)) + np.array([0.0, 0.5])[:, None, None]

    for learned in (True, False):
        assert binom.sf(refuted(audits, law, promise, learned) - 1, audits, 0.05) > 1e-6
    twice = Promise("certified", epsilon_from_mu(0.1, 1e-2), 1e-2, 0.1)
    assert refuted(40, law, twice, learned=False) > 20  # so there was something to be found


# Thresholds


def test_thresholds_lie_where_they_tell_the_most() -> None:
    found = Expected(0.0, 1.0, 3.0, 1.0).thresholds(1000, 1e-4, 0.95)
    assert found.mu == pytest.approx(1.5, abs=0.1)
    assert abs(found.epsilon - 1.5) > 0.5  # a bound on epsilon is found in a tail
    alike = Expected(2.0, 1.0, 2.0, 1.0).thresholds(1000, 0.0, 0.95)
    assert (alike.epsilon, alike.mu) == (2.0, 2.0)
    rng = np.random.default_rng(0)
    empirical = Seen(rng.normal(size=2000), rng.normal(size=2000) + 3).thresholds(1000, 1e-4, 0.95)
    assert empirical.mu == pytest.approx(1.5, abs=0.4)


def judged_by(monkeypatch: pytest.MonkeyPatch, module: Any) -> list[tuple[Seen, Thresholds]]:
    """What `count_errors` is given, from here on."""
    given: list[tuple[Seen, Thresholds]] = []

    def noting(scores: Seen, thresholds: Thresholds, *rest: Any) -> Finding:
        given.append((scores, thresholds))
        return count_errors(scores, thresholds, *rest)

    monkeypatch.setattr(module, "count_errors", noting)
    return given


def test_thresholds_of_draws_do_not_look_at_what_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    given = judged_by(monkeypatch, draws)
    for change in (0.0, 5.0):  # judged are the last 30 of 40 draws a world

        def draw(side: int, stream: int, change: float = change) -> float:
            value = float(np.random.default_rng(stream).normal()) + side
            return value + (change * side if stream // 2 >= 10 else 0.0)

        audit_draws(draw, 40, ATTACK, NOTHING)
    assert given[0][1] == given[1][1]
    assert given[1][0].second.mean() > given[0][0].second.mean() + 4


@pytest.mark.parametrize("score", ["learned", "mean"])
def test_nor_do_those_of_trainings(score: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given = judged_by(monkeypatch, training)
    method = InputNoise(relation=SupBall(0.5), budget=Budget(0.9, 1e-4))
    for change in (0.0, 5.0):
        seen = np.random.default_rng(3).normal(size=(2, 80, 6))
        seen[:, 21:] += change  # a quarter teaches; the first that is judged stays as it was
        monkeypatch.setattr(Trainings, "run", lambda *_, seen=seen: Seen(seen[0], seen[1]))
        finding = audit_training(method, WALK, 80, score=score, steps=50)
        assert (finding.runs, finding.by_mu.runs_with) == (80, 60)
    assert given[0][1] == given[1][1]
    for world in ("first", "second"):
        before, after = (getattr(scores, world) for scores, _ in given)
        assert before[0] == after[0]  # by the same weights
        assert (before[1:] != after[1:]).all()
