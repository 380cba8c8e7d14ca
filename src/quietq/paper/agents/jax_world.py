"""Any world and any reward, compiled: pure functions and pytrees, for use inside jit, vmap and scan.

The dynamics are the world's own (`quietq.worlds.world`), in single precision. Keys are for simulation: they protect
nobody.

Rewards are called as reward(state_before, action, state_after) and give one number. Everything that may differ between
two rewards of one kind is a leaf, so that many of them can be stacked (`stack`) and mapped over with `vmap`. Reading a
released function in another precision is post-processing.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import singledispatch
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import PyTree

from quietq.noise.box import Box
from quietq.privacy.errors import InvalidInput
from quietq.released.private_function import PrivateKnots, PrivateTable
from quietq.released.private_model import PrivateModel
from quietq.worlds.world import World, flat


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


class JaxReward(eqx.Module):
    """A reward of one step, as a pytree. States have shape (dimension,).

    Rewards of one kind have the same rule, which is given the state, what is fixed, and the numbers that may differ.
    """

    rule: Callable[..., Array] = eqx.field(static=True)
    fixed: Hashable = eqx.field(static=True)
    numbers: tuple[PyTree, ...]
    by_action: bool = eqx.field(static=True, default=False)
    """Whether it has one output per action, as a function of the state before; else of the state after."""

    def __call__(self, before: Array | None, action: Array | int | None, after: Array | None) -> Array:
        state = before if self.by_action else after
        assert state is not None  # the other one is not looked at
        return self.at(state)[action] if self.by_action else self.at(state)

    def at(self, state: Array) -> Array:
        """Returns the value at a state, a scalar, or one value per action."""
        return self.rule(state, self.fixed, *self.numbers)


def world_reward(world: World, scale: ArrayLike = 1.0, shift: ArrayLike = 0.0) -> JaxReward:
    """scale * r + shift, with r the world's own reward, not private; neighbours for an audit differ in the numbers."""
    return JaxReward(_scaled, world, tuple(jnp.asarray(one, jnp.float32) for one in (scale, shift)))


def _scaled(state: Array, world: World, scale: Array, shift: Array) -> Array:
    return scale * as_single(world.reward(state, jnp)) + shift


def _released(read: Callable[..., Array], values: Sequence[np.ndarray], box: Box) -> JaxReward:
    """Released numbers, and how they are read at a place in the unit coordinates of their box.

    A table is read at the same grid point as in double precision, wherever the state's unit coordinates are exact in
    single precision: on unit boxes always. Elsewhere a state within rounding of the middle between two points may go to
    the other one.
    """
    numbers = tuple(jnp.asarray(one, jnp.float32) for one in (box.low, box.width, *values))
    by_action = values[0].ndim > (box.dimension if read is nearest_point else 1)
    reward = JaxReward(_in_unit_box, read, numbers, by_action)
    jax.eval_shape(reward.at, jnp.zeros(box.dimension))
    return reward


def _in_unit_box(state: Array, read: Callable[..., Array], low: Array, width: Array, *values: Array) -> Array:
    return read(jnp.clip((state - low) / width, 0.0, 1.0), *values)


def nearest_point(unit: Array, table: Array) -> Array:
    """The nearest grid point."""
    return table[tuple(jnp.rint(unit * np.float32(table.shape[0] - 1)).astype(jnp.int32))]


def between_knots(unit: Array, knots: Array) -> Array:
    """A straight line between two knots."""
    place = unit[0] * np.float32(len(knots) - 1)
    left = jnp.clip(place.astype(jnp.int32), 0, len(knots) - 2)
    share = place - left
    return (1 - share) * knots[left] + share * knots[left + 1]


def sum_of_tables(unit: Array, *tables: Array) -> Array:
    """One table per coordinate."""
    return jnp.sum(jnp.stack([nearest_point(unit[i : i + 1], table) for i, table in enumerate(tables)]), axis=0)


def _table(table: PrivateTable) -> JaxReward:
    """A PrivateTable, of which one that is summed has a row of values for each coordinate."""
    if table.summed:
        return _released(sum_of_tables, list(table.values), table.box)
    return _released(nearest_point, [table.values], table.box)


def _model(model: PrivateModel) -> JaxReward:
    """A PrivateModel, whose features are data."""
    numbers = tuple(jnp.asarray(getattr(model, name), jnp.float32) for name in model.arrays)
    return JaxReward(_read_model, model, numbers, model.weights.ndim > 1)


def _read_model(state: Array, model: PrivateModel, *numbers: Array) -> Array:
    low, width = (jnp.asarray(one, jnp.float32) for one in (model.box.low, model.box.width))
    return model.read(jnp.clip((state - low) / width, 0.0, 1.0), *numbers, xp=jnp)


@singledispatch
def as_jax(reward: object) -> JaxReward:
    """A private function, or a function of many states at once that JAX can trace, as a pytree."""
    if callable(reward):
        return JaxReward(_traced, reward, ())
    raise InvalidInput(f"reward must be a private function or a function of states, not {type(reward).__name__}.")


as_jax.register(JaxReward, lambda reward: reward)
as_jax.register(World, world_reward)
as_jax.register(PrivateTable, _table)
as_jax.register(PrivateKnots, lambda knots: _released(between_knots, [knots.values], knots.box))
as_jax.register(PrivateModel, _model)


def stack(rewards: Sequence[JaxReward]) -> JaxReward:
    """Rewards of one kind and size as one pytree with an axis in front, for `vmap`."""
    kinds = {(jax.tree.structure(reward), tuple(jnp.shape(x) for x in jax.tree.leaves(reward))) for reward in rewards}
    if len(kinds) != 1:
        raise InvalidInput("rewards must be at least one, and all of one kind and size, to be stacked.")
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *rewards)


def as_single(reward: ArrayLike) -> Array:
    """A reward in float32; refused if it was computed in a type that rounds more, which no noise would cover."""
    kind = jnp.result_type(reward)
    coarse = jnp.issubdtype(kind, jnp.floating) and jnp.finfo(kind).bits < jnp.finfo(jnp.float32).bits
    if coarse or jnp.issubdtype(kind, jnp.complexfloating):
        raise InvalidInput(
            f"The reward must be computed in float32, float64 or integers, not {kind}, whose rounding the noise would "
            "not hide; nothing was drawn or spent."
        )
    return jnp.asarray(reward, jnp.float32)


def _traced(state: Array, function: Callable[..., Any]) -> Array:
    """A function of many points at one point; its own error is not shown, for it may hold private values."""
    try:
        value = function(flat(state[None]))[0]
    except Exception as problem:
        raise InvalidInput(
            f"The reward cannot be traced by JAX ({type(problem).__name__}): write it with operators or jax.numpy."
        ) from None
    return as_single(jnp.asarray(value))
