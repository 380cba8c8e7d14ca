import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from benchmarks.development_systems import DEVELOPMENT
from benchmarks.planners import Imagined, linear_by_cross_entropy, lqr
from benchmarks.session_data import SystemEnv
from benchmarks.systems import REPORTED
from benchmarks.world_peers import noisy_moments, one_shot_world
from benchmarks.world_twin import twin

EVERY = REPORTED | DEVELOPMENT


@pytest.mark.parametrize("name", ["Acrobot-v1", "MountainCarContinuous-v0"])
def test_copies_step_like_gymnasium(name):
    system, env, rng = REPORTED[name], gymnasium.make(name), np.random.default_rng(0)
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
    assert repr(steps.read()).startswith("Sessions(count=20")


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


def test_one_shot_without_noise_is_the_twin():
    """Of one person's rows, so that a normalisation per person changes nothing."""
    system = DEVELOPMENT["random linear 0"]
    steps = system.sessions(1, 0)
    found = one_shot_world(steps, {"ridge": 1e-9, "larger": 1.0}, 0, mu=1e9)
    np.testing.assert_allclose(found.weights, twin(steps).weights, atol=1e-2)


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


def test_planners_balance_a_pole_that_they_know():
    model = _Pole()
    assert model.system.value(lqr(model, model.system, 0), 0, 10) > 150
    found = linear_by_cross_entropy(model, model.system, 0, iterations=4, candidates=32, episodes=2)
    assert model.system.value(found, 0, 10) > 60
