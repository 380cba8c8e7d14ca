"""The compiled trainer: world and learner in one program, many runs side by side.

A run is a key, a reward and its noise; `jit(vmap(train))` takes any number of them, over seeds, noise levels and reward
worlds. A long training is cut into pieces of equal length, so that it can be watched and stopped: each step's
randomness comes from the run's key and the step's number, and nothing else is carried over than the `Carry`.

`run` rehearses, charges, draws, runs: what cannot work is refused before anything is paid. The noise is in memory only,
and one training uses it up: it is never written to a file, from which a second program could go on with it.
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
from jaxtyping import Array, Bool, Float

from quietq.paper.agents.jax_world import WorldState, as_single, reset, step
from quietq.paper.agents.method import EnvironmentSpaces, Method, Moment, Noise, State, Transition
from quietq.paper.agents.training import LISTENERS, Event, Result, Runs, Training
from quietq.worlds import World

FEWEST_RUNS = 8  # a core is worth using for at least so many runs
_one_core: ContextVar[bool] = ContextVar("one_core", default=False)


class Carry(NamedTuple):
    world: WorldState
    learner: State


class RunSnapshot(NamedTuple):
    """What a run saw, step by step: rewards as the learner got them, and where episodes ended."""

    reward: Float[Array, "runs steps"]
    over: Bool[Array, "runs steps"]


@contextmanager
def on_one_core() -> Iterator[None]:
    """In here runs are not spread over cores, so that a run's bits are the same on machines of any size."""
    token = _one_core.set(True)
    try:
        yield
    finally:
        _one_core.reset(token)


def spaces_of(world: World) -> EnvironmentSpaces:
    return EnvironmentSpaces(world.box, world.actions, world.steps)


def run(training: Training) -> Result:
    assert isinstance(training.world, World)
    world, core, steps, length = training.world, training.method.core(), training.steps, training.piece()
    tell = max(steps // 100, 1) if training.progress == "compiled" else None
    with training.running() as report:
        rewards = training.rewards()
        training.probe(rewards)
        runs = Runs(training.keys(), rewards, None)
        runs = training.draw(runs, lambda runs: rehearse(core, world, runs, length, tell))
        carry, pieces, step, ended = begin(core, world, runs), [], 0, False
        seen = lambda: tuple(np.concatenate(parts, axis=1) for parts in zip(*pieces, strict=True))  # noqa: E731
        while step < steps and not ended:
            piece = min(length, steps - step)
            carry, new = advance(core, world, runs, carry, step, piece, tell)
            pieces.append(new)
            step += piece
            report(step, seen)
            if training.callback is not None:
                so_far = release(core, runs, carry, last=False)
                ended = training.callback(Event.of(step, core, so_far)) is True
        return Result(jax.block_until_ready(release(core, runs, carry)), seen(), step)


def begin(method: Method, world: World, runs: Runs) -> Carry:
    return _spread(partial(_begin, method, world), runs, None)


def advance(
    method: Method, world: World, runs: Runs, carry: Carry, first: int, length: int, tell_every: int | None = None
) -> tuple[Carry, RunSnapshot]:
    """All runs, `length` steps on from step `first`; `tell_every` so many steps, `LISTENERS` hear of it."""
    program = partial(_advance, method, world, length, tell_every, jnp.asarray(first))
    return _spread(program, runs, carry)


def rehearse(method: Method, world: World, runs: Runs, length: int, tell_every: int | None) -> None:
    """Traces the whole program without running any of it: raises what it would raise."""
    carry = jax.eval_shape(partial(_begin, method, world), runs, None)
    program = partial(_advance, method, world, length, tell_every, jnp.asarray(0))
    after, _ = jax.eval_shape(program, runs, carry)
    for last in (True, False):
        jax.eval_shape(partial(_release, method, last), after.learner, runs.noise)


def release(method: Method, runs: Runs, carry: Carry, last: bool = True) -> Any:
    """What each run releases at its end; or else has released so far, if anything, which uses no noise up."""
    return _release(method, last, carry.learner, runs.noise)


def _tell(now: Any) -> None:
    for listener in LISTENERS:
        listener(int(now))


@partial(jax.jit, static_argnums=(0, 1))
def _begin(method: Method, world: World, runs: Runs, carry: None) -> Carry:
    def one(key: Array) -> Carry:
        key_world, key_learner = jax.random.split(key)
        return Carry(reset(world, key_world), method.init(spaces_of(world), key_learner))

    return jax.vmap(one)(runs.keys)


@partial(jax.jit, static_argnums=(0, 1, 2, 3), donate_argnums=6)
def _advance(
    method: Method, world: World, length: int, tell_every: int | None, first: Array, runs: Runs, carry: Carry
) -> tuple[Carry, RunSnapshot]:
    def one(run: Runs, carry: Carry) -> tuple[Carry, RunSnapshot]:
        def body(carry: Carry, now: Array) -> tuple[Carry, RunSnapshot]:
            if tell_every is not None:
                lax.cond(now % tell_every == 0, lambda: jax.debug.callback(_tell, now), lambda: None)
            return _one_step(method, world, run, carry, now)

        return lax.scan(body, carry, first + jnp.arange(length))

    return jax.vmap(one)(runs, carry)


def _one_step(method: Method, world: World, run: Runs, carry: Carry, now: Array) -> tuple[Carry, RunSnapshot]:
    key_act, key_world, key_learn, key_reset = jax.random.split(jax.random.fold_in(run.keys, now), 4)
    here = carry.world.position
    action = method.act(carry.learner, here[None], Moment(now, key_act, run.noise))[0]
    after, terminated, truncated = step(world, carry.world, action, key_world)
    gained = run.reward(here, action, after.position)
    if method.spends:  # no value raises anything: what is no number counts as 0, what is infinite is clipped
        gained = as_single(gained)
        gained = jnp.where(jnp.isnan(gained), 0.0, gained)
    seen = Transition(*(x[None] for x in (here, action, gained, after.position, terminated, truncated)))
    learner = method.update(carry.learner, seen, Moment(now, key_learn, run.noise))
    over = terminated | truncated
    following = jax.tree.map(lambda new, old: jnp.where(over, new, old), reset(world, key_reset), after)
    return Carry(following, learner), RunSnapshot(gained, over)


@partial(jax.jit, static_argnums=(0, 1))
def _release(method: Method, last: bool, learner: State, noise: Noise) -> Any:
    return jax.vmap(method.finish if last else method.current)(learner, noise)


def _spread(program: Callable[..., Any], runs: Runs, carry: Carry | None) -> Any:
    """Runs the program on equal parts of the runs, one core for each, and puts the parts together.

    Threads, because XLA leaves Python's lock while it works; the parts are equal, because each size is compiled.
    """
    number = len(runs.keys)
    parts = 1 if _one_core.get() else min(os.cpu_count() or 1, max(number // FEWEST_RUNS, 1))
    if parts == 1:
        return program(runs, carry)
    size = math.ceil(number / parts)
    indices = [np.minimum(np.arange(i * size, (i + 1) * size), number - 1) for i in range(parts)]

    def part(index: np.ndarray) -> Any:
        own = None if carry is None else jax.tree.map(lambda leaf: leaf[index], carry)
        return jax.block_until_ready(program(runs.pick(index), own))

    with ThreadPoolExecutor(parts) as pool:
        results = list(pool.map(part, indices))
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves)[:number], *results)
