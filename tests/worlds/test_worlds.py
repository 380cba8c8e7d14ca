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
from leaving_world import LeavingWorld

from quietq import Budget, GaussianProcessMechanism, InvalidInput, LipschitzBall, PrivateReward
from quietq.worlds import (
    WORLDS,
    NavigationWorld,
    ThermostatWorld,
    WalkWorld,
    WorldEnv,
    find_world,
    mean_return,
)
from quietq.worlds.environment import gymnasium_id
from quietq.worlds.navigation import along_x, along_y

OWN = [find_world(name) for name in WORLDS]
EVERY = pytest.mark.parametrize("world", OWN, ids=list(WORLDS))
AND_ONE_MORE = pytest.mark.parametrize("world", [*OWN, LeavingWorld()], ids=[*WORLDS, "leaving"])
BUDGET = Budget(0.9, 1e-4)
UNIFORM = st.floats(0, 1, exclude_max=True)


def inside(states, box):
    return ((states >= box.low) & (states <= box.high)).all()


def states_in(world, points=200):
    draws = np.random.default_rng(0).random((points, world.box.dimension))
    return world.box.low + draws * np.subtract(world.box.high, world.box.low)


@EVERY
def test_gymnasium_accepts_it(world):
    env = gymnasium.make(gymnasium_id(world.name))
    check_env(env.unwrapped, skip_render_check=True)
    assert env.unwrapped.world == world  # pyright: ignore[reportAttributeAccessIssue]
    assert env.observation_space.shape == (world.box.dimension,)
    assert env.action_space == gymnasium.spaces.Discrete(world.actions)
    assert len(world.action_names) == world.actions
    assert world.steps <= 50
    assert hash(world) == hash(type(world)())


def test_a_fresh_interpreter_finds_them_without_jax():
    made = (
        f"[gymnasium.make(name).reset(seed=0) for name in {[f'quietq.worlds:{gymnasium_id(one)}' for one in WORLDS]}]"
    )
    code = f"import sys, gymnasium; {made}; print('jax' in sys.modules)"
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
def test_without_noise_the_mean_reward_is_the_worlds_own(world):
    quiet = GaussianProcessMechanism.for_relation(world.relation(10**7), Budget(10.0, 1e-10), domain=world.box)
    states = states_in(world)
    given = states[:, 0] if states.shape[1] == 1 else states
    assert np.abs(quiet.simulate(world.mean_reward(), 1)(given) - world.reward(states, np)).max() < 1e-3


@EVERY
def test_a_private_reward_wraps_it_and_it_pickles(world):
    mechanism = GaussianProcessMechanism.for_relation(world.relation(50), BUDGET, domain=world.box, levels=10)
    private = mechanism.simulate(world.mean_reward(), 3)
    env = PrivateReward(gymnasium.make(gymnasium_id(world.name)), private)
    env.reset(seed=1)
    again = pickle.loads(pickle.dumps(env))
    observation, reward, *_ = env.step(1)
    assert reward == private(observation.astype(float)).item()
    assert (again.step(1)[0] == observation).all()
    plain = pickle.loads(pickle.dumps(WorldEnv(world)))
    assert plain.reset(seed=1)[0] in plain.observation_space


@AND_ONE_MORE
def test_episodes_end_by_the_clock_and_where_people_leave(world):
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
    assert (left > 0) == isinstance(world, LeavingWorld)


@EVERY
def test_what_is_declared_of_each_person_holds_for_the_mean(world):
    relation = world.relation(50)
    assert relation.people == 50
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


@AND_ONE_MORE
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


@AND_ONE_MORE
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
    env, rng = WorldEnv("walk"), np.random.default_rng(3)
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


def test_constants_are_given_by_a_world():
    env = gymnasium.make("quietq.worlds:quietq/Navigation-v0", world=NavigationWorld(steps=3))
    env.reset(seed=1)
    assert [env.step(0)[3] for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: find_world("moon"), "the known ones are walk, thermostat, navigation"),
        (lambda: WorldEnv("moon"), "no world called 'moon'"),
        (lambda: mean_return(NavigationWorld(), lambda s: 0 * s[:, 0], lambda s: s), "one finite number for each"),
        (lambda: stepped(ThermostatWorld(), 3), r"must be 0 \(cool\), 1 \(off\) or 2 \(heat\), not 3"),
        (lambda: WalkWorld(reach=2.0), "reach must be at most 1"),
        (lambda: WalkWorld(steps=0), "steps must be"),
        (lambda: ThermostatWorld(liked=40.0), r"liked must lie within \[14, 30\], not 40"),
        (lambda: ThermostatWorld(tolerance=0.0), "tolerance must be above 0"),
        (lambda: NavigationWorld(reach=0.0), "reach must be above 0"),
        (lambda: NavigationWorld(sway=-0.1), "sway must be at least 0"),
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
