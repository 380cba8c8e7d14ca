"""What is expected of a release before it is made: the release itself, on people drawn by public laws."""

import importlib

import numpy as np
import pytest

from quietq import Budget, InvalidInput, PrivacyWarning, plan
from quietq.feedback.synthetic import NOISE, SPREAD, Survey, SyntheticRewards
from quietq.mechanisms import expected
from quietq.mechanisms.candidates import MECHANISMS
from quietq.mechanisms.rounds import Rounds

module = importlib.import_module("quietq.mechanisms.plan")
BUDGET = Budget(1, 1e-5)


class Halved(Rounds):
    """As `rounds`, and shrunk to nothing."""

    name = "halved"

    def run(self):
        fitted = yield from super().run()
        return fitted._replace(weights=0 * fitted.weights)


def rows_of(kind, rewards, dimension=1, **asked):
    """The rows of 400 synthetic people, 50 each, which can be read."""
    read, rows = Survey(kind, 50, dimension, **asked).draw(400, 1, rewards)
    assert read(rows).people == 400
    return rows


def test_ratings_follow_their_law():
    rows = rows_of("ratings", lambda points: points[..., 0] - 0.5, 2)
    x, y, rating = (rows[name].to_numpy() for name in ("x0", "x1", "rating"))
    rest = rating - 0.5 - (x - 0.5) / 5
    assert abs(rest.mean()) < 5 * NOISE / 20_000**0.5
    assert rest.std() == pytest.approx(NOISE, rel=5 / 40_000**0.5)
    assert abs(np.corrcoef(x, y)[0, 1]) < 5 / 20_000**0.5


def test_comparisons_follow_their_law():
    rows = rows_of("comparisons", lambda points: (points[..., 0] > 0.5).astype(float), 1)
    better = ((rows["left0"] > 0.5) & (rows["right0"] <= 0.5)).to_numpy()
    share = (rows["choice"].to_numpy() == "left")[better].mean()
    assert abs(share - 1 / (1 + np.exp(-1.5))) < 5 * (0.15 / better.sum()) ** 0.5


def test_choices_among_several_and_ratings_of_actions_and_items_follow_their_law():
    rows = rows_of("comparisons", lambda points: (points[..., 0] == 1) * 1.0, items=2, options=3)
    liked = np.array([rows[f"option{j}_0"].to_numpy() for j in range(3)])
    alone = (liked.sum(axis=0) == 1) & (liked[2] == 1)
    share = (rows["choice"].to_numpy() == "option2_")[alone].mean()
    assert abs(share - 1 / (1 + 2 * np.exp(-1.5))) < 5 * (0.25 / alone.sum()) ** 0.5
    rows = rows_of("ratings", lambda points, taken: points[..., 0] - taken, items=2, actions=2)
    item, action, rating = (rows[name].to_numpy() for name in ("x0", "action", "rating"))
    assert abs((rating - 0.5 - (item - action) / 5).mean()) < 5 * NOISE / 20_000**0.5


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        ("ratings", {"items": 5, "actions": 2}),
        ("comparisons", {"dimension": 2, "options": 4}),
    ],
)
def test_items_actions_and_options(kind, asked):
    found = expected(Survey(kind, 10, **asked), 400, BUDGET, draws=1)
    assert found.correlation > 0.85
    assert found.regret < 0.35


def test_people_differ_from_the_mean_by_what_is_said():
    rewards = SyntheticRewards.draw(Survey("ratings", 20, 3), 7)
    states = np.random.default_rng(0).random((2000, 3))
    points = np.broadcast_to(states[None, :20], (200, 20, 3))
    own = rewards(points) - rewards.mean(states[:20])[:, 0]
    assert np.abs(own.mean(axis=0)).max() < 6 * own.std() / 200**0.5
    assert own.std(axis=0).mean() == pytest.approx(SPREAD, rel=0.5)  # by state, around its mean over the box
    assert np.array_equal(rewards(points), rewards(points))  # so that both states of a pair are seen by the same people


@pytest.mark.slow
def test_more_people_and_more_budget_are_better():
    survey = Survey("ratings", 5, 2)
    few, many = (expected(survey, people, BUDGET, draws=2) for people in (40, 640))
    freer = expected(survey, 40, Budget(16, 1e-5), draws=2)
    assert few.correlation < 0.8 < 0.93 < many.correlation <= 1
    assert few.correlation < freer.correlation
    assert many == expected(survey, 640, BUDGET, draws=2)
    assert many.correlations != expected(survey, 640, BUDGET, draws=2, seed=1).correlations
    assert all(0 <= regret < 2 for regret in (*few.regrets, *many.regrets))


def test_every_estimator_that_applies_is_tried_the_best_first(monkeypatch):
    monkeypatch.setitem(MECHANISMS, "halved", Halved)
    monkeypatch.setattr(module, "MOST_ROWS", 5000)
    seen = []
    found = plan("comparisons", BUDGET, people=400, rows=5, dimension=2, draws=1, useful=0.8,
                 progress=lambda *told: seen.append(told))  # fmt: skip
    correlations = [one.correlation for one in found.expected]
    assert correlations == sorted(correlations, reverse=True)
    assert {"rounds", "halved"} <= {one.noise for one in found.expected}
    needed = {one.noise: one.needed for one in found.expected}
    assert (found.expected[-1].correlation, needed["halved"]) == (0.0, None)
    assert (needed["rounds"] or 10_000) < 800
    assert seen[-1][0] == seen[-1][1]
    assert all(done <= total for done, total in seen)
    assert {one["noise"]: one["needed"] for one in found.to_dict()["estimators"]} == needed
    assert "halved: correlation 0.00 (0.00 to 0.00), regret" in str(found)
    assert "useful from more than 1,000 people" in str(found)


def test_in_one_dimension_there_are_other_estimators_all_of_one_protection():
    found = plan("ratings", Budget(1, 0), people=200, rows=5, draws=1)
    assert [one.noise for one in found.expected] == ["k-norm"]
    assert found.chosen == "k-norm"
    found = plan("ratings", Budget(1, 1e-5), people=200, rows=5, draws=1)
    assert {one.noise for one in found.expected} == {"path", "knots"}
    assert found.chosen in ("path", "knots")


def test_the_number_of_people_is_found_by_doubling_and_halving():
    def correlation(people):
        return 1 - 32 / people

    asked = []

    def ask(people):
        asked.append(people)
        return correlation(people)

    assert module._find(1000, correlation(1000), 0.9, 8000, ask) == pytest.approx(320, rel=0.1)
    assert asked == [500, 250]
    asked.clear()
    assert module._find(100, correlation(100), 0.9, 8000, ask) == pytest.approx(320, rel=0.1)
    assert asked == [200, 400]
    assert module._find(100, correlation(100), 0.999, 8000, ask) is None
    assert module._find(100, 1.0, 0.9, 8000, lambda people: 1.0) == 3


def test_refusals():
    for change, words in (
        ({"kind": "rankings"}, "kind must be one of ratings, comparisons, not 'rankings'."),
        ({"kind": "sessions"}, r"rehearse a release of sessions.*qq.rehearse\(...\).*docs/sessions.md"),
        ({"people": 1}, "people must be a whole number of at least 2, not 1."),
        ({"rows": 0}, "rows must be a whole number of at least 1, not 0."),
        ({"rows": 10**6}, r"people times rows must be at most 1e\+07"),
        ({"items": 1, "dimension": 1}, "items must be a whole number of at least 2, not 1."),
        ({"items": 10}, "Items have no dimension: leave it out, or the items."),
        ({"options": 3}, "options are for comparisons: leave them out, or plan for comparisons."),
        ({"actions": 2, "kind": "comparisons"}, "actions are for ratings: leave them out, or plan for ratings."),
        ({"dimension": 65}, "dimension must be at most 64, not 65."),
        ({"useful": 1.0}, "useful must be a correlation between 0 and 1, not 1.0."),
        ({"draws": 0}, "draws must be a whole number of at least 1, not 0."),
        ({"seed": -1}, "seed must be a whole number of at least 0, not -1."),
        ({"budget": Budget(1, 0)}, "delta must be above 0"),
    ):
        options = {"kind": "ratings", "budget": BUDGET, "people": 1000, "dimension": 2, "draws": 1, **change}
        with pytest.raises(InvalidInput, match=words):
            plan(options.pop("kind"), options.pop("budget"), **options)


def test_a_weak_delta_is_told_once():
    with pytest.warns(PrivacyWarning) as told:
        plan("ratings", Budget(1, 0.01), people=200, rows=3, dimension=2, draws=1, useful=0.5)
    assert len(told) == 1
