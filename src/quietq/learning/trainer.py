"""The compiled trainer: world and learner in one program, many runs side by side.

A run is a key, a reward and its noise; `jit(vmap(train))` takes any number of them, over seeds, noise levels and reward
worlds. A long training is cut into pieces of equal length, so that it can be watched, stopped, and taken up again where
it was: each step's randomness comes from the run's key and the step's number, and nothing else is carried over than the
`Carry`.
"""

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from quietq.learning.cache import disk_cache, is_public
from quietq.learning.method import Method, Noise, Released, Spaces, State, Transition
from quietq.worlds.jax_rewards import as_single
from quietq.worlds.jax_world import WorldState, reset, step
from quietq.worlds.world import World

FEWEST_RUNS = 8
"""A core is worth using for at least so many runs."""
_one_core: ContextVar[bool] = ContextVar("one_core", default=False)


class Carry(NamedTuple):
    """A run between two steps."""

    world: WorldState
    learner: State


class Seen(NamedTuple):
    """What a run saw, step by step: rewards as the learner got them, and where episodes ended."""

    reward: Float[Array, "runs steps"]
    over: Bool[Array, "runs steps"]


class Runs(NamedTuple):
    """The runs of a program; every leaf has a leading axis, one entry a run."""

    keys: PRNGKeyArray
    reward: Any
    noise: Noise


@contextmanager
def on_one_core() -> Iterator[None]:
    """In here runs are not spread over cores, so that a run's bits are the same on machines of any size."""
    token = _one_core.set(True)
    try:
        yield
    finally:
        _one_core.reset(token)


def spaces_of(world: World) -> Spaces:
    """What is public about a world."""
    return Spaces(world.box, world.actions, world.steps)


def begin(method: Method, world: World, runs: Runs) -> Carry:
    """All runs before their first step."""
    return _spread(partial(_begin, method, world), runs, None, _is_public(method, world, runs))


def advance(
    method: Method, world: World, runs: Runs, carry: Carry, first: int, length: int, tell_every: int | None = None
) -> tuple[Carry, Seen]:
    """All runs, `length` steps on from step `first`; `tell_every` so many steps, `LISTENERS` hear of it."""
    program = partial(_advance, method, world, length, tell_every, jnp.asarray(first))
    return _spread(program, runs, carry, _is_public(method, world, runs))


def rehearse(method: Method, world: World, runs: Runs, length: int, tell_every: int | None) -> None:
    """Traces the whole program without running any of it: raises what it would raise."""
    carry = jax.eval_shape(partial(_begin, method, world), runs, None)
    program = partial(_advance, method, world, length, tell_every, jnp.asarray(0))
    after, _ = jax.eval_shape(program, runs, carry)
    for last in (_finish, _current):
        jax.eval_shape(partial(last, method), after.learner, runs.noise)


def finish(method: Method, runs: Runs, carry: Carry) -> Released:
    """What each run releases at its end."""
    with disk_cache(is_public(method)):
        return _finish(method, carry.learner, runs.noise)


def current(method: Method, runs: Runs, carry: Carry) -> Released | None:
    """What each run has released so far, if anything; it uses no noise up."""
    with disk_cache(is_public(method)):
        return _current(method, carry.learner, runs.noise)


LISTENERS: list[Callable[[int], None]] = []
"""Called with the step's number from inside the compiled program, if it was told to tell."""


def _tell(now: Any) -> None:
    for listener in LISTENERS:
        listener(int(now))


@partial(jax.jit, static_argnums=(0, 1))
def _begin(method: Method, world: World, runs: Runs, carry: None) -> Carry:
    def one(key: PRNGKeyArray) -> Carry:
        key_world, key_learner = jax.random.split(key)
        return Carry(reset(world, key_world), method.init(spaces_of(world), key_learner))

    return jax.vmap(one)(runs.keys)


@partial(jax.jit, static_argnums=(0, 1, 2, 3), donate_argnums=6)
def _advance(
    method: Method, world: World, length: int, tell_every: int | None, first: Array, runs: Runs, carry: Carry
) -> tuple[Carry, Seen]:
    def one(key: PRNGKeyArray, reward: Any, noise: Noise, carry: Carry) -> tuple[Carry, Seen]:
        def body(carry: Carry, now: Array) -> tuple[Carry, Seen]:
            if tell_every is not None:
                lax.cond(now % tell_every == 0, lambda: jax.debug.callback(_tell, now), lambda: None)
            return _one_step(method, world, reward, noise, jax.random.fold_in(key, now), carry, now)

        return lax.scan(body, carry, first + jnp.arange(length))

    return jax.vmap(one)(*runs, carry)


def _one_step(
    method: Method, world: World, reward: Any, noise: Noise, key: PRNGKeyArray, carry: Carry, now: Array
) -> tuple[Carry, Seen]:
    key_act, key_world, key_learn, key_reset = jax.random.split(key, 4)
    here = carry.world.position
    action = method.act(carry.learner, here[None], now, key_act, noise)[0]
    after, terminated, truncated = step(world, carry.world, action, key_world)
    gained = reward(here, action, after.position)
    if method.spends:  # no value raises anything: what is no number counts as 0, what is infinite is clipped
        gained = as_single(gained)
        gained = jnp.where(jnp.isnan(gained), 0.0, gained)
    seen = Transition(*(x[None] for x in (here, action, gained, after.position, terminated, truncated)))
    learner = method.update(carry.learner, seen, now, key_learn, noise)
    over = terminated | truncated
    following = jax.tree.map(lambda new, old: jnp.where(over, new, old), reset(world, key_reset), after)
    return Carry(following, learner), Seen(gained, over)


@partial(jax.jit, static_argnums=0)
def _finish(method: Method, learner: State, noise: Noise) -> Released:
    return jax.vmap(method.finish)(learner, noise)


@partial(jax.jit, static_argnums=0)
def _current(method: Method, learner: State, noise: Noise) -> Released | None:
    return jax.vmap(method.current)(learner, noise)


def _is_public(method: Method, world: World, runs: Runs) -> bool:
    return is_public(method) and is_public(world) and is_public(runs.reward)


def _spread(program: Callable[..., Any], runs: Runs, carry: Carry | None, public: bool) -> Any:
    """Runs the program on equal parts of the runs, a core each, and puts the parts together.

    Threads, because XLA leaves Python's lock while it works; the parts are equal, because each size is compiled.
    """
    number = len(runs.keys)
    parts = 1 if _one_core.get() else min(os.cpu_count() or 1, max(number // FEWEST_RUNS, 1))
    if parts == 1:
        with disk_cache(public):
            return program(runs, carry)
    size = math.ceil(number / parts)
    indices = [np.minimum(np.arange(i * size, (i + 1) * size), number - 1) for i in range(parts)]

    def part(index: np.ndarray) -> Any:
        pick = partial(jax.tree.map, lambda leaf: leaf[index])
        with disk_cache(public):
            return jax.block_until_ready(program(pick(runs), None if carry is None else pick(carry)))

    with ThreadPoolExecutor(parts) as pool:
        results = list(pool.map(part, indices))
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves)[:number], *results)
