"""The compiled worlds against the NumPy ones, step by step for the same draws; and that they compile and map."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from leaving_world import LeavingWorld

from quietq.paper.agents.jax_world import WorldState, reset, reset_with, step, step_with
from quietq.worlds import WORLDS, find_world

EVERY = pytest.mark.parametrize(
    "world", [*(find_world(name) for name in WORLDS), LeavingWorld()], ids=[*WORLDS, "leaving"]
)


@functools.partial(jax.jit, static_argnums=0)
def run(world, key):
    """Episodes of random actions: positions, terminated, truncated."""

    def one(key):
        first, *keys = jax.random.split(key, 3)
        actions = jax.random.randint(keys[0], (world.steps,), 0, world.actions)

        def forward(state, given):
            state, terminated, truncated = step(world, state, *given)
            return state, (state.position, terminated, truncated)

        start = reset(world, first)
        _, rows = jax.lax.scan(forward, start, (actions, jax.random.split(keys[1], world.steps)))
        return start.position, *rows

    return jax.vmap(one)(jax.random.split(key, 64))


@EVERY
def test_both_forms_agree_step_by_step(world):
    rng = np.random.default_rng(1)
    width = np.subtract(world.box.high, world.box.low)
    draws = rng.random((300, world.draws), dtype=np.float32)
    starts = jax.vmap(functools.partial(reset_with, world))(jnp.asarray(draws))
    assert starts.position.dtype == jnp.float32
    assert np.abs((starts.position - world.start(draws.astype(float), np)) / width).max() <= 1e-6
    states = (world.box.low + rng.random((300, world.box.dimension)) * width).astype(np.float32)
    advance = jax.jit(jax.vmap(functools.partial(step_with, world)))
    reward_of = jax.jit(jax.vmap(lambda state: world.reward(state, jnp)))
    for _ in range(10):  # from the same state each time: errors of single precision add up otherwise
        draws, actions = rng.random((300, world.draws), dtype=np.float32), rng.integers(world.actions, size=300)
        before = WorldState(jnp.asarray(states), jnp.zeros(300, dtype=jnp.int32))
        after, terminated, truncated = advance(before, jnp.asarray(actions), jnp.asarray(draws))
        moved, ended = world.move(states.astype(float), actions, draws.astype(float), np)
        assert np.abs((after.position - moved) / width).max() <= 1e-6
        assert (terminated == ended).all()
        assert not truncated.any()
        rewards = reward_of(after.position)
        assert np.abs(rewards - world.reward(np.asarray(after.position, dtype=float), np)).max() <= 1e-6
        states = np.asarray(after.position)


@EVERY
def test_whole_runs_compile_and_stay_in_the_box(world):
    starts, positions, terminated, truncated = run(world, jax.random.key(0))
    assert positions.shape == (64, world.steps, world.box.dimension)
    assert positions.dtype == jnp.float32
    for states in (starts, positions):
        assert (states >= np.array(world.box.low)).all()
        assert (states <= np.array(world.box.high)).all()
    assert (truncated == (np.arange(world.steps) == world.steps - 1)).all()
    assert terminated.any() == isinstance(world, LeavingWorld)


@EVERY
@settings(max_examples=20)
@given(seed=st.integers(0, 2**31 - 1))
def test_states_never_leave_the_box(world, seed):
    _, positions, *_ = run(world, jax.random.key(seed))
    assert (positions >= np.array(world.box.low)).all()
    assert (positions <= np.array(world.box.high)).all()
