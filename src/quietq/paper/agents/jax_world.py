"""Any world and any reward, compiled: pure functions and pytrees, for use inside jit, vmap and scan.

The dynamics are the world's own (`quietq.worlds.world`), in single precision. Keys are for simulation: they protect
nobody.

Rewards are called as reward(state_before, action, state_after) and give one number. Everything that may differ between
two rewards of one kind is a leaf, so that many of them can be stacked (`stack`) and mapped over with `vmap`. Reading a
released function in another precision is post-processing.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from quietq.noise.box import Box
from quietq.privacy.errors import InvalidInput
from quietq.released.private_function import PrivateKnots, PrivateSum, PrivateTable
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
    """A reward of one step, as a pytree. States have shape (dimension,)."""

    by_action: eqx.AbstractVar[bool]
    """With one output per action, it is a function of the state before and of the action; else of the state after."""

    def __call__(self, before: Array | None, action: Array | int | None, after: Array | None) -> Array:
        state = before if self.by_action else after
        assert state is not None  # the other one is not looked at
        return self.at(state)[action] if self.by_action else self.at(state)

    @abstractmethod
    def at(self, state: Array) -> Array:
        """The value at a state, a scalar, or one value per action."""


class ReleasedReward(JaxReward):
    """Released numbers, and by which of the `RULES` they are read at a place in the unit coordinates of their box.

    A table is read at the same grid point as in double precision, wherever the state's unit coordinates are exact in
    single precision: on unit boxes always. Elsewhere a state within rounding of the middle between two points may go to
    the other one.
    """

    values: tuple[Array, ...]
    low: Array
    width: Array
    rule: str = eqx.field(static=True)
    by_action: bool = eqx.field(static=True)

    def __init__(self, rule: str, values: Sequence[np.ndarray], box: Box) -> None:
        self.values = tuple(jnp.asarray(one, jnp.float32) for one in values)
        self.low, self.width = (jnp.asarray(one, jnp.float32) for one in (box.low, box.width))
        self.rule = rule
        self.by_action = self.values[0].ndim > (box.dimension if rule == "table" else 1)
        jax.eval_shape(self.at, jnp.zeros(box.dimension))

    def at(self, state: Array) -> Array:
        return RULES[self.rule](jnp.clip((state - self.low) / self.width, 0.0, 1.0), *self.values)


def _nearest(unit: Array, table: Array) -> Array:
    return table[tuple(jnp.rint(unit * np.float32(table.shape[0] - 1)).astype(jnp.int32))]


def _between(unit: Array, knots: Array) -> Array:
    place = unit[0] * np.float32(len(knots) - 1)
    left = jnp.clip(place.astype(jnp.int32), 0, len(knots) - 2)
    share = place - left
    return (1 - share) * knots[left] + share * knots[left + 1]


def _summed(unit: Array, *tables: Array) -> Array:
    return jnp.sum(jnp.stack([_nearest(unit[i : i + 1], table) for i, table in enumerate(tables)]), axis=0)


RULES = {"table": _nearest, "knots": _between, "sum": _summed}
"""The nearest grid point, straight lines between knots, and one table per coordinate."""


class JaxModel(JaxReward):
    """A PrivateModel, whose features are data."""

    numbers: tuple[Array, ...]
    model: PrivateModel = eqx.field(static=True)
    by_action: bool = eqx.field(static=True)

    def __init__(self, model: PrivateModel) -> None:
        self.numbers = tuple(jnp.asarray(getattr(model, name), jnp.float32) for name in model.arrays)
        self.model, self.by_action = model, model.weights.ndim > 1

    def at(self, state: Array) -> Array:
        low, width = (jnp.asarray(one, jnp.float32) for one in (self.model.box.low, self.model.box.width))
        return self.model.read(jnp.clip((state - low) / width, 0.0, 1.0), *self.numbers, xp=jnp)


class WorldReward(JaxReward):
    """scale * r + shift, with r the world's own reward, not private; neighbours for an audit differ in the leaves."""

    scale: Array
    shift: Array
    world: World = eqx.field(static=True)
    by_action: bool = eqx.field(static=True)

    def __init__(self, world: World, scale: ArrayLike = 1.0, shift: ArrayLike = 0.0) -> None:
        self.world, self.by_action = world, False
        self.scale, self.shift = (jnp.asarray(one, jnp.float32) for one in (scale, shift))

    def at(self, state: Array) -> Array:
        return self.scale * as_single(self.world.reward(state, jnp)) + self.shift


class JaxFunction(JaxReward):
    """A function of many states at once that JAX can trace; not private, unless the function is."""

    function: Callable[..., Any] = eqx.field(static=True)
    by_action: bool = eqx.field(static=True, default=False)

    def at(self, state: Array) -> Array:
        return as_single(_traced(self.function, state))


@singledispatch
def as_jax(reward: object) -> JaxReward:
    """A private function, or a function that JAX can trace, as a pytree."""
    if callable(reward):
        return JaxFunction(function=reward)
    raise InvalidInput(f"reward must be a private function or a function of states, not {type(reward).__name__}.")


as_jax.register(JaxReward, lambda reward: reward)
as_jax.register(World, WorldReward)
as_jax.register(PrivateTable, lambda table: ReleasedReward("table", [table.values], table.box))
as_jax.register(PrivateKnots, lambda knots: ReleasedReward("knots", [knots.values], knots.box))
as_jax.register(PrivateModel, JaxModel)
as_jax.register(PrivateSum, lambda total: ReleasedReward("sum", [part.values for part in total.parts], total.box))


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


def _traced(function: Callable[..., Any], state: Array) -> Array:
    """A function of many points at one point; its own error is not shown, for it may hold private values."""
    try:
        value = function(flat(state[None]))[0]
    except Exception as problem:
        raise InvalidInput(
            f"The reward cannot be traced by JAX ({type(problem).__name__}): write it with operators or jax.numpy."
        ) from None
    return jnp.asarray(value)
