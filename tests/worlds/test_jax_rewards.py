"""Rewards as pytrees against what they were made of; and that they stack, compile and map."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from quietq import (
    Box,
    Budget,
    GaussianProcessMechanism,
    InvalidInput,
    people as people_relation,
)
from quietq.paper import BandLimited, FiniteRankMechanism
from quietq.paper.agents.jax_world import (
    JaxReward,
    as_jax,
    between_knots,
    nearest_point,
    stack,
    sum_of_tables,
    world_reward,
)
from quietq.released import PrivateKnots, PrivateTable
from quietq.worlds import WORLDS, NavigationWorld, ThermostatWorld, WalkWorld, find_world, walk_reward

BUDGET = Budget(0.9, 1e-4)
EVERY = pytest.mark.parametrize("world", [find_world(name) for name in WORLDS], ids=list(WORLDS))
READ_BY = {"walk": nearest_point, "thermostat": nearest_point, "navigation": sum_of_tables}


def private(world, seed=1):
    mechanism = GaussianProcessMechanism.for_relation(world.relation(50), BUDGET, domain=world.box)
    return mechanism.simulate(world.mean_reward(), seed)


def states_in(box, points=5000):
    rng = np.random.default_rng(0)
    states = (box.low + rng.random((points, box.dimension)) * np.subtract(box.high, box.low)).astype(np.float32)
    states[0], states[1] = box.low, box.high
    return states


def given(states):
    return (states[:, 0] if states.shape[1] == 1 else states).astype(float)


def called(reward, states, actions=None):
    actions = np.zeros(len(states), dtype=int) if actions is None else actions
    nowhere = jnp.full_like(states, jnp.nan)
    before, after = (states, nowhere) if reward.by_action else (nowhere, states)
    return np.asarray(jax.jit(jax.vmap(reward))(before, jnp.asarray(actions), after))


@EVERY
def test_every_worlds_private_reward(world):
    function, states = private(world), states_in(world.box)
    reward = as_jax(function)
    assert reward.fixed is READ_BY[world.name]
    found, expected = called(reward, states), function(given(states))
    assert found.shape == expected.shape
    assert found.dtype == np.float32
    # The boxes of the tables are such that single precision finds the same point: only the value is rounded.
    assert np.abs(found - expected).max() <= 1e-6


@EVERY
def test_many_rewards_of_one_kind_are_one_pytree(world):
    functions = [private(world, seed) for seed in (1, 2, 3)]
    stacked, states = stack([as_jax(function) for function in functions]), states_in(world.box, 50)

    @jax.jit
    def total(rewards, states):
        one = jax.vmap(lambda reward, state: reward(state, 0, state), in_axes=(None, 0))
        return jax.vmap(one, in_axes=(0, None))(rewards, states)

    expected = np.stack([function(given(states)) for function in functions])
    assert np.abs(total(stacked, states) - expected).max() <= 1e-6


def test_ties_between_grid_points_go_the_same_way():
    function = private(WalkWorld())
    middles = ((np.arange(2**16) + 0.5) / 2**16).astype(np.float32)[:, None]
    assert (called(as_jax(function), middles) == function(given(middles)).astype(np.float32)).all()


def test_one_output_an_action():
    relation = people_relation(50, low=0, high=0.5, slope=1, actions=2)
    mechanism = GaussianProcessMechanism.for_relation(relation, BUDGET, levels=10)
    function = mechanism.simulate(lambda s: np.stack([walk_reward(s), s], axis=-1), 1)
    states, actions = states_in(Box.of((0, 1))), np.random.default_rng(1).integers(2, size=5000)
    expected = function(given(states))[np.arange(5000), actions]
    assert np.abs(called(as_jax(function), states, actions) - expected).max() <= 1e-6


def test_knots():
    box = Box.of((-3, 5))
    states = states_in(box)
    table = private(WalkWorld())
    knots = PrivateKnots(np.array([0.1, 0.9, -0.3, 0.4]), box, table.certificate)
    assert as_jax(knots).fixed is between_knots
    assert np.abs(called(as_jax(knots), states) - knots(given(states))).max() <= 1e-6


def test_tables_in_two_dimensions():
    values = np.random.default_rng(0).normal(size=(17, 17))
    function = PrivateTable(values, 4, Box.of([(0, 1), (0, 1)]), private(WalkWorld()).certificate)
    states = states_in(function.box)
    assert np.abs(called(as_jax(function), states) - function(given(states))).max() <= 1e-6


@EVERY
def test_the_true_reward_with_a_scale_and_a_shift(world):
    states = jnp.asarray(states_in(world.box, 100))
    pair = stack([world_reward(world), world_reward(world, scale=-2.0, shift=0.5)])
    found = jax.vmap(lambda reward: jax.vmap(lambda s: reward(s, 0, s))(states))(pair)
    true = world.reward(np.asarray(states, dtype=float), np)
    assert np.abs(found - np.stack([true, 0.5 - 2 * true])).max() <= 3e-6
    shifts = jax.vmap(lambda c: world_reward(world, shift=c)(states[0], 0, states[0]))(jnp.arange(3.0))
    assert np.allclose(np.diff(shifts), 1, atol=1e-6)
    assert as_jax(world).fixed == world


def test_functions_that_jax_can_trace():
    square = as_jax(lambda s: s**2)
    assert called(square, np.array([[0.5]], dtype=np.float32)) == [0.25]
    assert called(as_jax(lambda s: s.sum(axis=-1)), np.ones((2, 3), dtype=np.float32)).tolist() == [3, 3]
    assert as_jax(square) is square


def weights():
    """The paper's, which no compiled trainer reads."""
    return FiniteRankMechanism(BandLimited(3.0), 0.1, BUDGET).simulate(walk_reward, 1)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (
            lambda: called(as_jax(weights()), np.ones((1, 1), dtype=np.float32)),
            r"The reward cannot be traced by JAX \(",
        ),
        (lambda: called(as_jax(walk_reward), np.ones((1, 1), dtype=np.float32)), "The reward cannot be traced"),
        (lambda: as_jax(0.5), "reward must be a private function or a function of states, not float"),
        (lambda: stack([]), "at least one"),
        (lambda: stack([as_jax(ThermostatWorld()), as_jax(NavigationWorld())]), "all of one kind and size"),
        (lambda: stack([as_jax(private(WalkWorld())), world_reward(NavigationWorld())]), "all of one kind and size"),
    ],
)
def test_wrong_arguments_get_one_clear_sentence(wrong, sentence):
    with pytest.raises(InvalidInput, match=sentence) as caught:
        wrong()
    assert "\n" not in str(caught.value)


def test_rewards_are_pytrees_of_their_numbers():
    for world in (WalkWorld(), NavigationWorld()):
        reward = as_jax(private(world))
        assert isinstance(reward, JaxReward)
        assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(reward))
