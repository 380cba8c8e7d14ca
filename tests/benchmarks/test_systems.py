import math

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from benchmarks import search
from benchmarks.planners import Imagined, linear_by_cross_entropy
from benchmarks.session_data import SystemEnv
from benchmarks.systems import DEVELOPMENT, REPORTED
from benchmarks.world_peer_study import METHODS
from benchmarks.world_peers import noisy_moments, one_shot_world, some_rows, white_in_box
from benchmarks.world_picture import cliffs, differences
from benchmarks.world_twin import twin

EVERY = REPORTED | DEVELOPMENT


@pytest.mark.parametrize("name", [name for name, system in REPORTED.items() if system.gymnasium])
def test_copies_step_like_gymnasium(name):
    system, env, rng = EVERY[name], gymnasium.make(name), np.random.default_rng(0)
    seen, _ = env.reset(seed=3)
    states, person = np.array([seen], float), np.full((1, 1), 0.7)
    for _ in range(60):
        action = system.behave(rng, person, states)
        found = system.step(rng, person, states, action)
        there, reward, ended, _, _ = env.step(system.action_there(action[0]))
        np.testing.assert_allclose(found.states[0], there, atol=2e-4)
        assert found.ended[0] == ended
        assert found.rewards[0] == pytest.approx(float(reward), abs=1e-4)
        states = np.array([there], float)
        if ended:
            break


@pytest.mark.parametrize("name", EVERY)
def test_sessions_are_whole_and_within_what_is_declared(name):
    system = EVERY[name]
    steps = system.sessions(20, 1)
    rows = steps.frame()
    assert rows["person"].n_unique() == 20
    assert not steps.there[:, 1:][(steps.ended & steps.there).cumsum(axis=1)[:, :-1] > 0].any()
    rewards = rows["reward"].to_numpy()
    assert rewards.min() >= system.low - 1e-9
    assert rewards.max() <= system.high + 1e-9
    low, high = np.array(system.box, float).T
    assert ((low <= steps.states[:, 0]) & (steps.states[:, 0] <= high)).all()
    assert repr(steps.read()).startswith("Sessions(people=20")


def test_a_system_is_an_environment():
    check_env(SystemEnv(DEVELOPMENT["tanks"]), skip_render_check=True)


def test_no_insulin_raises_glucose_and_too_much_ends_the_day():
    system = REPORTED["glucose"]
    assert system.value(lambda states: np.zeros((len(states), 1)), 0) < 5
    rng = np.random.default_rng(0)
    people = system.people(rng, 50)
    states, ended = system.start(rng, people), np.zeros(50, bool)
    for _ in range(12):
        found = system.step(rng, people, states, np.full((50, 1), 3.0))
        states, ended = found.states, ended | found.ended
    assert ended.mean() > 0.9


def test_replacing_one_person_moves_one_shot_moments_by_no_more_than_is_noised():
    rng = np.random.default_rng(0)
    rows, there = rng.standard_normal((30, 8, 4)), np.ones((30, 8))
    before, noise = noisy_moments(rows, there, 1e12, np.random.default_rng(1))
    rows[7] = 1e3 * rng.standard_normal((8, 1)) * np.eye(4)[2]
    after, _ = noisy_moments(rows, there, 1e12, np.random.default_rng(1))
    assert np.linalg.norm(after - before) <= 2**0.5 / 30
    assert noise == pytest.approx(2**0.5 / 30 / 1e12)


@pytest.mark.parametrize("white", [False, True])
def test_one_shot_without_noise_is_the_twin(white):
    """Of one person's rows, so that a normalisation per person changes nothing."""
    system = DEVELOPMENT["random linear 0"]
    steps = system.sessions(1, 0)
    settings = {"ridge": 1e-9, "larger": 1.0, "dynamics": 0.7, "white": white, "steep": 10.0}
    found = one_shot_world(steps, settings, 0, mu=1e9)
    np.testing.assert_allclose(found.weights, twin(steps).weights, atol=1e-2)
    assert np.abs(found.plausible(1, np.random.default_rng(0)) - found.weights).max() < 1e-3


def test_features_that_are_white_in_the_box_keep_their_constant():
    spaces = DEVELOPMENT["tanks"].spaces
    white = white_in_box(lambda states, actions: np.concatenate([np.ones((len(states), 1)), states], axis=1), spaces)
    np.testing.assert_allclose(white[:, 0], [1, 0, 0], atol=1e-6)
    np.testing.assert_allclose(np.diag(white), [1, 12**0.5, 12**0.5], rtol=0.05)


def test_settings_around_the_best_go_beyond_their_grid_and_shares_stay_below_1():
    grids = METHODS["one-shot moments"].settings
    best = {"white": True, "ensemble": True, "halt": None, "ridge": 10.0, "larger": 300.0, "steep": 30.0}
    best |= {"dynamics": 0.95}
    near = grids.around([best], [best], 30)
    assert max(one["larger"] for one in near) == 900
    assert 0.95 < max(one["dynamics"] for one in near) < 1
    assert {one["halt"] for one in near} <= {None, 40.0}
    assert grids.at_an_end(best, near) == []
    assert "steep" in grids.at_an_end(best, [best])


def test_a_search_keeps_the_best_measures_nothing_twice_and_ends_in_time(tmp_path, monkeypatch):
    monkeypatch.setattr(search, "ROOT", tmp_path)
    monkeypatch.setattr(search, "RESULTS", tmp_path)
    measured = []

    def score(settings, task):
        measured.append((settings["x"], task))
        return -abs(settings["x"] - 3) + task

    points = search.Grids(({"x": (1, 2, 3, 4, 5)},)).points(5)
    found = search.Search(score, [(0,), (1,), (2,)], search.Kept("some", math.inf), ["some"])
    assert found.best(points, (1, 3), (3, 1)) == [{"x": 3}]
    assert len(measured) == 5 + 2 * 3
    again = search.Search(score, found.tasks, search.Kept("some", -math.inf), ["some"])
    assert again.best(points, (1, 3), (3, 1), least=2)[0] == {"x": 3}
    assert len(measured) == 5 + 2 * 3
    with pytest.raises(search.OutOfTime):
        again.mean({"x": 6}, 1)
    chosen = search.Chosen("tune-some", ("method",))
    chosen.write([("some",)], lambda name: {"method": name, "settings": {"x": [3]}})
    assert (chosen.settings("some"), chosen.settings("other")) == ({"x": (3,)}, None)


def _row(method, people, mean, error, draws=5):
    numbers = {"return": {"mean": mean, "standard error": error}}
    return {"system": "some", "method": method, "people": people, "draws": draws, "numbers": numbers}


def test_differences_have_stars_only_where_intervals_leave_out_0():
    rows = [_row("quietq", 10, 5.0, 1.0), _row("one", 10, 1.0, 1.0), _row("other", 10, 4.0, 1.0)]
    rows.append(_row("once", 10, 0.0, None, 1))
    heading, line = differences(rows, ("one", "other", "once"))
    found = dict(zip(heading, line, strict=True))
    assert found["one"] == "+4.0 ± 3.3 *"  # by Student's t with 8 degrees of freedom
    assert found["other"] == "+1.0 ± 3.3"
    assert found["once"] == ""


def test_a_cliff_is_where_everything_above_it_is_enough():
    rows = [_row("people's own behaviour", 40, 0.0, 0.1), _row("no privacy", 40, 10.0, 0.1)]
    rows += [_row("quietq", people, mean, 0.1) for people, mean in ((10, 9.5), (20, 8.0), (40, 9.5))]
    rows += [_row("one", people, mean, 0.1) for people, mean in ((10, 1.0), (20, 8.0), (40, 8.5))]
    heading, line = cliffs(rows, ("one", "other"))
    found = dict(zip(heading, line, strict=True))
    assert (found["quietq"], found["one"], found["other"]) == ("40", "> 40", "not measured")


def test_some_rows_are_those_that_were_made():
    steps = DEVELOPMENT["heavy pole"].sessions(50, 0)
    some = some_rows(steps, 16, np.random.default_rng(0))
    np.testing.assert_array_equal(some.there.sum(axis=1), np.minimum(steps.there.sum(axis=1), 16))
    assert some.states.shape == (50, 16, 4)


class _Pole:
    """The law itself as a model."""

    system = DEVELOPMENT["heavy pole"]
    spaces = system.spaces

    def typical(self):
        return np.full(4, 0.5), np.array([0.03, 0.06, 0.15, 0.12])

    def start(self, number, rng):
        return self._unit(self.system.start(rng, np.zeros((number, 1))))

    def plausible(self, number, rng):
        return None

    def step(self, states, actions, draws, worlds=None):
        box = self.spaces.box
        raw = np.array(box.low) + states * np.array(box.width)
        found = self.system.step(np.random.default_rng(0), raw, raw, actions)
        return Imagined(self._unit(found.states), found.rewards, found.ended.astype(float), np.zeros(len(states), bool))

    def _unit(self, states):
        return (states - self.spaces.box.low) / np.array(self.spaces.box.width)


def test_a_planner_balances_a_pole_that_it_knows():
    model = _Pole()
    found = linear_by_cross_entropy(model, model.system, 0, iterations=4, candidates=32, episodes=2)
    assert model.system.value(found, 0, 10) > 60
