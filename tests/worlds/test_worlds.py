"""Every world: its contract with Gymnasium, its box, what it declares of people, and its constants."""

import pickle
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from quietq import Budget, GaussianProcessMechanism, InvalidInput, LipschitzBall, PrivateReward
from quietq.registry import WORLDS
from quietq.worlds import (
    NavigationWorld,
    RecommenderWorld,
    ThermostatWorld,
    WalkWorld,
    WorldEnv,
    find_world,
    world_env,
)
from quietq.worlds.navigation import along_x, along_y
from quietq.worlds.recommender import GENRES, item

EVERY = pytest.mark.parametrize("world", [find_world(name) for name in WORLDS], ids=list(WORLDS))
BUDGET = Budget(0.9, 1e-4)
UNIFORM = st.floats(0, 1, exclude_max=True)


def inside(states, box):
    return ((states >= box.low) & (states <= box.high)).all()


def states_in(world, points=200):
    draws = np.random.default_rng(0).random((points, world.box.dimension))
    return world.box.low + draws * np.subtract(world.box.high, world.box.low)


@EVERY
def test_gymnasium_accepts_it(world):
    env = gymnasium.make(WORLDS[world.name].gymnasium_id)
    check_env(env.unwrapped, skip_render_check=True)
    assert env.unwrapped.world == world  # pyright: ignore[reportAttributeAccessIssue]
    assert env.observation_space.shape == (world.box.dimension,)
    assert env.action_space == gymnasium.spaces.Discrete(world.actions)
    assert len(world.action_names) == world.actions
    assert world.steps <= 50
    assert hash(world) == hash(type(world)())


def test_a_fresh_interpreter_finds_them_without_jax():
    made = f"[gymnasium.make(name).reset(seed=0) for name in {[entry.gymnasium_id for entry in WORLDS.values()]}]"
    code = f"import sys, gymnasium, quietq; {made}; print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@EVERY
def test_the_reward_is_a_function_of_the_observation_returned(world):
    env = WorldEnv(world)
    env.reset(seed=2)
    env.action_space.seed(2)
    for _ in range(20):
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert reward == world.reward(observation.astype(float), np)
        assert info == {}
        if terminated or truncated:
            env.reset()


@EVERY
def test_a_private_function_replaces_the_reward(world):
    mechanism = GaussianProcessMechanism.for_relation(world.relation(50), BUDGET, domain=world.box, levels=10)
    private = mechanism.simulate(world.mean_reward(), 3)
    env = WorldEnv(world, reward=private)
    env.reset(seed=2)
    observation, reward, *_ = env.step(0)
    assert reward == private(observation.astype(float)).item()
    # and without noise the mean reward is the world's own reward
    quiet = GaussianProcessMechanism.for_relation(world.relation(10**7), Budget(10.0, 1e-10), domain=world.box)
    states = states_in(world)
    given = states[:, 0] if states.shape[1] == 1 else states
    assert np.abs(quiet.simulate(world.mean_reward(), 1)(given) - world.reward(states, np)).max() < 1e-3


@EVERY
def test_a_private_reward_wraps_it_and_it_pickles(world):
    mechanism = GaussianProcessMechanism.for_relation(world.relation(50), BUDGET, domain=world.box, levels=10)
    private = mechanism.simulate(world.mean_reward(), 3)
    env = PrivateReward(gymnasium.make(WORLDS[world.name].gymnasium_id), private)
    env.reset(seed=1)
    again = pickle.loads(pickle.dumps(env))
    observation, reward, *_ = env.step(1)
    assert reward == private(observation.astype(float)).item()
    assert (again.step(1)[0] == observation).all()
    plain = pickle.loads(pickle.dumps(WorldEnv(world)))
    assert plain.reset(seed=1)[0] in plain.observation_space


@EVERY
def test_episodes_end_by_the_clock_and_only_the_recommender_terminates(world):
    env = WorldEnv(world)
    env.reset(seed=1)
    lengths, left = [], 0
    for _ in range(15):
        env.reset()
        steps, terminated, truncated = 0, False, False
        while not (terminated or truncated):
            *_, terminated, truncated, _ = env.step(0)
            steps += 1
        assert truncated == (steps == world.steps)
        with pytest.raises(ResetNeeded, match="is over"):
            env.step(0)
        lengths.append(steps)
        left += terminated
    assert max(lengths) == world.steps
    assert (left > 0) == isinstance(world, RecommenderWorld)


@EVERY
def test_what_is_declared_of_each_person_holds_for_the_mean(world):
    relation = world.relation(50)
    assert relation.people == 50
    if isinstance(world, RecommenderWorld):
        assert np.linalg.norm(world.weights) == pytest.approx(world.strength)
        assert relation.radius == pytest.approx(2 / 50)
        return
    grid = np.linspace(0, 1, 4001)
    if isinstance(world, NavigationWorld):
        parts = [(along_x(grid, np), 0.5, 1.5), (along_y(grid, np), 0.3, 0.4)]
    else:
        assert isinstance(relation, LipschitzBall)
        values = world.reward(world.box.from_unit(grid)[:, None], np)
        parts = [(values, relation.radius * 50, relation.lipschitz * 25)]
    for values, high, slope in parts:
        assert values.min() >= -1e-12
        assert values.max() <= high + 1e-12
        assert np.abs(np.diff(values)).max() * 4000 <= slope * (1 + 1e-9)


@EVERY
@settings(max_examples=25)
@given(data=st.data())
def test_states_never_leave_the_box(world, data):
    draws = data.draw(arrays(float, (world.steps + 1, world.draws), elements=UNIFORM))
    actions = data.draw(arrays(int, world.steps, elements=st.integers(0, world.actions - 1)))
    state = world.start(draws[0], np)
    assert state.shape == (world.box.dimension,)
    for action, draw in zip(actions, draws[1:], strict=True):
        assert inside(state, world.box)
        assert inside(state.astype(np.float32), world.box)
        state, terminated = world.move(state, action, draw, np)
        assert terminated.shape == ()
    assert inside(state, world.box)


@EVERY
def test_many_episodes_move_as_each_does(world):
    rng = np.random.default_rng(4)
    states, actions = states_in(world, 30).reshape(5, 6, -1), rng.integers(world.actions, size=(5, 6))
    draws = rng.random((5, 6, world.draws))
    moved, terminated = world.move(states, actions, draws, np)
    assert moved.shape == states.shape
    assert terminated.shape == world.reward(moved, np).shape == (5, 6)
    one, _ = world.move(states[2, 3], actions[2, 3], draws[2, 3], np)
    assert (one == moved[2, 3]).all()


def test_the_walk_draws_as_it_always_did():
    env, rng = world_env("walk"), np.random.default_rng(3)
    (seen,), _ = env.reset(seed=3)
    state = rng.uniform(0, 1)
    assert seen == np.float32(state)
    for action in (1, 1, 0, 0, 0, 1):
        move = rng.uniform(0, 0.25)
        state = min(max(state + (move if action else -move), 0.0), 1.0)
        (seen,), *_ = env.step(action)
        assert seen == np.float32(state)


def test_the_thermostat_is_the_mean_over_people():
    world = ThermostatWorld()
    likings = world.liked + world.spread * (2 * (np.arange(20000) + 0.5) / 20000 - 1)
    temperatures = np.linspace(14, 30, 33)
    comfort = np.maximum(0, 1 - np.abs(temperatures[:, None] - likings) / world.tolerance).mean(axis=1)
    assert np.abs(world.reward(temperatures[:, None], np) - comfort).max() < 1e-8


def test_the_thermostat_drifts_to_the_outside():
    world, state = ThermostatWorld(noise=0.0), np.array([30.0])
    for _ in range(200):
        state, _ = world.move(state, np.asarray(1), np.array([0.5]), np)
    assert state[0] == pytest.approx(world.outside, abs=0.01)


def test_genres_are_alike_in_nothing():
    assert np.allclose(GENRES @ GENRES.T, 4 / 3 * np.eye(4) - 1 / 3)
    assert np.allclose(item(RecommenderWorld().box.to_unit(GENRES)), GENRES)


def test_the_recommender_keeps_to_the_ball_and_people_leave_at_its_rate():
    world, rng = RecommenderWorld(), np.random.default_rng(0)
    states, left = world.start(rng.random((20000, 4)), np), []
    for _ in range(10):
        states, ended = world.move(states, rng.integers(4, size=20000), rng.random((20000, 4)), np)
        left.append(ended.mean())
        assert np.linalg.norm(states, axis=1).max() <= 1 + 1e-12
    assert np.mean(left) == pytest.approx(1 / 64, abs=6 * np.sqrt(1 / 64 / 200_000))


def test_no_consensus():
    assert np.linalg.norm(RecommenderWorld(strength=0.02).weights) == pytest.approx(0.02)
    env = gymnasium.make("quietq/Recommender-v0", world=RecommenderWorld(strength=0.0))
    env.reset(seed=1)
    assert env.step(0)[1] == 0


def test_a_start_may_be_given():
    assert WorldEnv(NavigationWorld()).reset(options={"state": [0.25, 0.5]})[0].tolist() == [0.25, 0.5]
    assert WorldEnv(ThermostatWorld()).reset(options={"state": 20})[0].tolist() == [20]
    assert WorldEnv(ThermostatWorld()).reset(options={"state": [20.5]})[0].tolist() == [20.5]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: find_world("moon"), "the known ones are walk, thermostat, navigation, recommender"),
        (lambda: world_env("moon"), "no world called 'moon'"),
        (lambda: WorldEnv(NavigationWorld(), reward=lambda s: s), "one finite number for each"),
        (lambda: WorldEnv(NavigationWorld(), render_mode="human"), "The navigation cannot be rendered"),
        (lambda: stepped(ThermostatWorld(), 3), r"must be 0 \(cool\), 1 \(off\) or 2 \(heat\), not 3"),
        (lambda: WorldEnv(NavigationWorld()).reset(options={"state": [0.5]}), "state must be 2 numbers"),
        (lambda: WorldEnv(NavigationWorld()).reset(options={"state": [0.5, 1.5]}), r"within \[0, 1\] x \[0, 1\]"),
        (lambda: WorldEnv(NavigationWorld()).reset(options={"state": [0.5, np.nan]}), r"within \[0, 1\] x \[0, 1\]"),
        (lambda: WorldEnv(ThermostatWorld()).reset(options={"state": 31}), r"within \[14, 30\], not 31"),
        (lambda: WalkWorld(reach=2.0), "reach must be at most 1"),
        (lambda: WalkWorld(steps=0), "steps must be"),
        (lambda: ThermostatWorld(liked=40.0), r"liked must lie within \[14, 30\], not 40"),
        (lambda: ThermostatWorld(tolerance=0.0), "tolerance must be above 0"),
        (lambda: NavigationWorld(reach=0.0), "reach must be above 0"),
        (lambda: NavigationWorld(sway=-0.1), "sway must be at least 0"),
        (lambda: RecommenderWorld(strength=1.5), "strength must be at most 1"),
        (lambda: RecommenderWorld(taste=(0.0, 0.0, 0.0)), "not all 0"),
        (lambda: RecommenderWorld(taste=(1.0, 2.0)), "taste must be 3 numbers"),
        (lambda: RecommenderWorld(leave=1.0), "leave must be"),
    ],
)
def test_wrong_arguments_get_one_clear_sentence(wrong, sentence):
    with pytest.raises(InvalidInput, match=sentence) as caught:
        wrong()
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def stepped(world, action):
    env = WorldEnv(world)
    env.reset(seed=0)
    return env.step(action)
