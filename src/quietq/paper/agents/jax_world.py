"""Any world, compiled: pure functions of a world, a state and a key, for use inside jit, vmap and scan.

The dynamics are the world's own (`quietq.worlds.world`), in single precision. Keys are for simulation: they protect
nobody.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from quietq.worlds.world import World


class WorldState(NamedTuple):
    position: Array
    """The state that an agent observes, shape (dimension,)."""
    steps: Array
    """How many steps it took."""


def reset(world: World, key: Array) -> WorldState:
    """A new episode. `world` is static: it is hashable, so `jit` takes it by `static_argnums`."""
    return reset_with(world, _draws(world, key))


def step(world: World, state: WorldState, action: Array, key: Array) -> tuple[WorldState, Array, Array]:
    """One step: where it led, whether the episode terminated there, and whether it was truncated there.

    The two are kept apart, and both may be true at once: what comes after a termination is worth nothing, what comes
    after a truncation is merely not seen. Nothing is reset here.
    """
    return step_with(world, state, action, _draws(world, key))


def reset_with(world: World, draws: Array) -> WorldState:
    return WorldState(jnp.asarray(world.start(draws, jnp), dtype=jnp.float32), jnp.zeros((), dtype=jnp.int32))


def step_with(world: World, state: WorldState, action: Array, draws: Array) -> tuple[WorldState, Array, Array]:
    position, terminated = world.move(state.position, action, draws, jnp)
    steps = state.steps + 1
    return WorldState(position, steps), terminated, steps >= world.steps


def _draws(world: World, key: Array) -> Array:
    return jax.random.uniform(key, (world.draws,), dtype=jnp.float32)
