"""The comparison at equal promises: its tasks, the caps' condition and the table."""

import pickle

import numpy as np
import pytest

pytest.importorskip("jax")

from comparison_tables import table

from quietq.privacy import people_needed
from quietq.privacy.budget import guess_right, weak_delta
from quietq.worlds import WALK, find_world, mean_return, uniform_policy
from reproduction.comparison import COMPARISON, MOST, measure, scores
from reproduction.comparison.needed import curves, needed
from reproduction.comparison.scores import (
    DELTA,
    bounded,
    budget,
    ends,
    fewest_people,
    measure_caps,
    random_score,
)

WORLDS = ("walk", "thermostat", "navigation")


@pytest.mark.parametrize("name", WORLDS)
def test_what_scores_for_a_preference_is_lost_for_its_opposite(name):
    world = find_world(name)
    liked = world.reward_at
    for policy in (uniform_policy(world), lambda states: (states[:, 0] > states[:, 0].mean()).astype(int)):
        constant, own, other = (
            mean_return(world, policy, reward=reward, episodes=50)
            for reward in (lambda s: 0 * liked(s) + 1, liked, lambda s: 1 - liked(s))
        )
        assert own + other == pytest.approx(constant, rel=1e-12)  # which no policy changes


@pytest.mark.parametrize("name", WORLDS)
def test_random_actions_lie_between_the_ends(name):
    world = find_world(name)
    worst, best = ends(world)
    assert worst < best
    assert 0.2 < random_score(world) < 0.8


def test_caps_are_those_of_the_limits_and_one_person_fewer_does_not_do():
    for gaussian in (True, False):
        expected = people_needed(0.9, budget(), distance=0.5, width=0.5, gaussian=gaussian)
        assert fewest_people(0.9, gaussian) == expected
        name = "gaussian" if gaussian else "any"
        short, enough = (row[name] for row in measure_caps("walk", (expected - 1, expected)))
        assert short < 0.9 <= enough


def test_the_relation_without_slopes_covers_what_one_person_can_do():
    assert bounded(WALK, 100) == WALK.relation(100)
    world = find_world("navigation")
    states = np.random.default_rng(0).random((1000, 2))
    assert 100 * bounded(world, 100).radius == pytest.approx(0.5 + 0.3)  # one function's range each
    assert np.ptp(world.reward(states, np)) <= 100 * bounded(world, 100).radius


def test_every_promise_is_worth_its_name():
    tasks = [task for quick in (True, False) for task in COMPARISON.tasks(quick) if task.table == "comparison_scores"]
    numbers = {dict(task.settings)["people"] for task in tasks}
    assert MOST in numbers
    assert not any(weak_delta(DELTA, number) for number in numbers)


def test_tasks_are_all_different_and_can_be_sent_elsewhere():
    for quick in (True, False):
        tasks = COMPARISON.tasks(quick)
        assert len(set(tasks)) == len(tasks)
        assert pickle.loads(pickle.dumps(tasks)) == tasks


@pytest.mark.slow
def test_scores_are_repeatable_tidy_and_better_with_more_people():
    few, again, many = (measure("walk", "input", None, people, 6, 500) for people in (2, 2, 2000))
    assert few == again
    assert [row["draw"] for row in few] == list(range(6))
    assert {type(value) for row in few for value in row.values()} <= {str, int, float, type(None)}
    assert np.mean([row["score"] for row in many]) > np.mean([row["score"] for row in few]) + 0.1


def test_pure_noise_has_the_epsilon_at_which_a_guesser_is_right_as_often(monkeypatch):
    monkeypatch.setattr(scores, "scores_of", lambda *settings: [0.5])
    pure, gaussian = (measure("walk", "reward", noise, 50, 1)[0] for noise in ("k-norm", "path"))
    assert (gaussian["epsilon"], gaussian["delta"], pure["delta"]) == (0.9, 1e-4, 0.0)
    right = guess_right(pure["epsilon"], 0.0)
    assert right == pytest.approx(guess_right(0.9, 1e-4, budget().mu), abs=1e-12)
    assert right < guess_right(0.9, 0.0) - 0.15
    for noise in ("k-norm", "path"):  # what is drawn is what is stated
        private = scores.private_reward(WALK, noise, 50, 0, 100)
        assert f"Simulates ({budget(noise).epsilon:g}, {budget(noise).delta:g})-DP" in private.certificate.remarks[0]
    assert measure("walk", "none", None, None, 1)[0]["epsilon"] is None


def test_the_table_of_needs_has_the_fewest_possible_beside_it():
    other = {"world": "walk", "method": "reward", "noise": "knots", "people": 10, "draw": 0, "score": 0.5}
    scores = [*table(input={10: [0.8, 0.8], 1000: [1.0, 1.0]}), other]
    rows = needed({"comparison_scores": scores})
    assert [row["name"] for row in rows] == ["input", "reward, knots"]
    assert rows[0]["people"] == pytest.approx(100)
    assert (
        (rows[0]["fewest_gaussian"], rows[0]["fewest_any"])
        == (9, 3)
        == (
            fewest_people(0.9, gaussian=True),
            fewest_people(0.9, gaussian=False),
        )
    )
    assert rows[1]["people"] is None


def test_curves_leave_out_what_has_no_people():
    rows = table(input={10: [0.5, 0.7]}) + table(none={None: [1.0]})
    assert [one.name for one in curves(rows)] == ["input"]
