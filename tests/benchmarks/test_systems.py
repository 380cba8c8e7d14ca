from collections.abc import Mapping

import gymnasium
import numpy as np
import pytest

from benchmarks.planners import LookAhead, linear_by_cross_entropy
from benchmarks.study import Entry, Label, Mean
from benchmarks.systems import DEVELOPMENT, REPORTED
from benchmarks.world_peers import OneShot, cliffs, differences, noisy_moments, some_rows
from benchmarks.world_twin import twin
from quietq.worlds.private_env import Step

EVERY = REPORTED | DEVELOPMENT


@pytest.mark.parametrize("name", [name for name, system in REPORTED.items() if system.in_gymnasium])
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
    steps = DEVELOPMENT["random linear 0"].sessions(1, 0)
    found = OneShot(ridge=1e-9, larger=1.0, steep=10.0).world(steps, 0, mu=1e9)
    np.testing.assert_allclose(found.weights, twin(steps).weights, atol=1e-2)


ONE, OTHER = "one-shot moments", "DP-SGD, networks"


def _entry(method, people, mean, error, draws=5):
    labels = {"system": "some", "method": method, "people": people}
    return Entry(labels, draws, {"return": Mean(mean, error)})


def test_differences_have_stars_only_where_intervals_leave_out_0():
    entries = [_entry("quietq", 10, 5.0, 1.0), _entry(ONE, 10, 1.0, 1.0), _entry(OTHER, 10, 4.0, 1.0)]
    entries += [_entry("quietq", 20, 5.0, 1.0), _entry(ONE, 20, 0.0, None, 1)]
    heading, line, once = differences(entries)
    found = dict(zip(heading, line, strict=True))
    assert found[ONE] == "+4.0 ± 3.3 *"  # by Student's t with 8 degrees of freedom
    assert found[OTHER] == "+1.0 ± 3.3"
    assert once == ["some", "20", "", ""]


def test_a_cliff_is_where_everything_above_it_is_enough():
    entries = [_entry("people's own behaviour", 40, 0.0, 0.1), _entry("no privacy", 40, 10.0, 0.1)]
    entries += [_entry("quietq", people, mean, 0.1) for people, mean in ((10, 9.5), (20, 8.0), (40, 9.5))]
    entries += [_entry(ONE, people, mean, 0.1) for people, mean in ((10, 1.0), (20, 8.0), (40, 8.5))]
    heading, line = cliffs(entries)
    found = dict(zip(heading, line, strict=True))
    assert (found["quietq"], found[ONE], found[OTHER]) == ("40", "> 40", "not measured")


@pytest.mark.parametrize("name", ["Balance", "SwingUp"])
def test_copies_of_dm_controls_cart_pole_move_as_mujoco_has_it(name):
    pytest.importorskip("mujoco")
    import mujoco
    from mujoco import rollout

    from benchmarks import dm_cartpole

    system, rng = getattr(dm_cartpole, name)(), np.random.default_rng(0)
    people = np.full((50, 1), 0.5)
    seen = system.start(rng, people)
    physical = np.column_stack([seen[:, 0], np.arctan2(seen[:, 2], seen[:, 1]), seen[:, 3:]])
    physical[:, 3] += rng.uniform(-8, 8, 50)
    control = rng.uniform(-1, 1, 50)
    held = np.repeat(control[:, None, None], dm_cartpole.REPEAT, axis=1)
    timed = np.insert(physical, 0, 0.0, axis=1)
    data = mujoco.MjData(system.compiled)  # pyright: ignore[reportAttributeAccessIssue]
    there = np.asarray(rollout.rollout(system.compiled, data, timed, held)[0])[..., 1:]
    np.testing.assert_allclose(dm_cartpole.held(physical, control), there, atol=1e-12)
    at_the_end = np.array([[1.79, 1.0, 0.0, 2.0, 0.0]])
    stopped = system.step(rng, people[:1], at_the_end, np.ones((1, 1))).states[0]
    assert 1.79 < stopped[0] < 1.87
    assert 0 < system.sessions(20, 0).rewards.min() <= system.high


def test_shares_are_of_the_way_from_behaviour_to_no_noise():
    pytest.importorskip("mujoco")
    from benchmarks.sessions import BEHAVIOUR, OURS, TWIN, more_tables, with_shares

    labels: list[Mapping[str, Label]] = [
        {"task": "some", "method": method, "epsilon": epsilon, "people": people}
        for method, epsilon, people in ((BEHAVIOUR, "none", 20), (TWIN, "none", 20), (OURS, 1.0, 10), (OURS, 1.0, 20))
    ]
    returns = [{0: {"return": value}} for value in (-10.0, 10.0, 5.0, 9.0)]
    found = with_shares(labels, [*returns])
    assert [draws[0]["share"] for draws in found] == [0.0, 1.0, 0.75, 0.95]
    entries = [
        Entry(dict(one), 3, {name: Mean(value, 0.1) for name, value in draws[0].items()})
        for one, draws in zip(labels, found, strict=True)
    ]
    (table,) = more_tables(entries).values()
    assert table[1:] == [["some", OURS, "1.0", "20"]]


def test_some_rows_are_those_that_were_made():
    steps = REPORTED["CartPole-v1"].sessions(50, 0)
    some = some_rows(steps, 16, np.random.default_rng(0))
    np.testing.assert_array_equal(some.there.sum(axis=1), np.minimum(steps.there.sum(axis=1), 16))
    assert some.states.shape == (50, 16, 4)


class _Itself:
    """The law itself as a model."""

    def __init__(self, name):
        self.system = REPORTED[name]
        self.spaces = self.system.spaces

    def typical(self):
        return np.full(4, 0.5), np.array([0.03, 0.06, 0.15, 0.12])

    def start(self, number, rng):
        return self._unit(self.system.start(rng, np.zeros((number, 1))))

    def plausible(self, number, rng):
        return None

    def step(self, states, actions, draws, worlds=None):
        box, acting = self.spaces.box, self.spaces.action_box
        raw = (np.array(box.low) + states * np.array(box.width)).reshape(-1, box.dimension)
        acted = actions if acting is None else (acting.low + actions * np.array(acting.width)).reshape(len(raw), -1)
        found = self.system.step(np.random.default_rng(0), raw, raw, acted)
        shape = states.shape[:-1]
        ends, halted = found.ended.astype(float).reshape(shape), np.zeros(shape, bool)
        return Step(self._unit(found.states).reshape(states.shape), found.rewards.reshape(shape), ends, halted)

    def _unit(self, states):
        return (states - self.spaces.box.low) / np.array(self.spaces.box.width)


def test_a_planner_balances_a_pole_that_it_knows():
    model = _Itself("CartPole-v1")
    acts = linear_by_cross_entropy(model, model.system, 0, iterations=4, candidates=32, episodes=2)
    assert model.system.value(lambda states: acts(np.clip(model._unit(states), 0, 1)), 0, 10) > 60


def test_looking_ahead_pushes_a_pendulum_up_that_leans_a_little():
    model = _Itself("Pendulum-v1")
    states = model._unit(np.array([[np.cos(0.3), np.sin(0.3), 0.0], [np.cos(0.3), -np.sin(0.3), 0.0]]))
    torque = LookAhead(model, 15, np.random.default_rng(0)).acts(states)
    assert torque[0, 0] < 0.4
    assert torque[1, 0] > 0.6
