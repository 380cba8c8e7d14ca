"""The compiled trainer: world and learner in one program, many runs side by side.

A run is a key, a reward and its noise; `jit(vmap(train))` takes any number of them, over seeds, noise levels and reward
worlds. A training whose bar is shown is cut into pieces of equal length: each step's
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
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, PyTree

from quietq.paper.agents.jax_world import WorldState, as_single, reset, step
from quietq.paper.agents.method import EnvironmentSpaces, Method, Moment, Noise, Released, State, Transition
from quietq.paper.agents.training import Result, Runs, Training
from quietq.worlds import World

_one_core: ContextVar[bool] = ContextVar("one_core", default=False)


StepSeen = tuple[Float[Array, "*runs_steps"], Bool[Array, "*runs_steps"]]
"""Rewards as the learner got them, and where episodes ended."""


class Carry(NamedTuple):
    world: WorldState
    learner: State


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
    with training.running() as tell:
        runs = Runs(training.keys(), training.rewards(), None)
        # The program is traced first; then the account is charged, and only then noise is drawn, all of it.
        runs = training.draw(runs, lambda runs: rehearse(core, world, runs, length))
        carry, pieces = begin(core, world, runs), []
        for first in range(0, steps, length):
            carry, new = advance(core, world, runs, carry, first, length)
            pieces.append(new)
            tell(first + length)
        seen = tuple(np.concatenate(parts, axis=1) for parts in zip(*pieces, strict=True))
        return Result(jax.block_until_ready(release(core, runs, carry)), seen, steps)


def begin(method: Method, world: World, runs: Runs) -> Carry:
    return _spread(partial(_begin, method, world), runs, None)


def advance(method: Method, world: World, runs: Runs, carry: Carry, first: int, length: int) -> tuple[Carry, StepSeen]:
    """All runs, `length` steps on from step `first`."""
    return _spread(partial(_advance, method, world, length, jnp.asarray(first)), runs, carry)


def rehearse(method: Method, world: World, runs: Runs, length: int) -> None:
    """Traces the whole program without running any of it: raises what it would raise."""
    carry = jax.eval_shape(partial(_begin, method, world), runs, None)
    program = partial(_advance, method, world, length, jnp.asarray(0))
    after, _ = jax.eval_shape(program, runs, carry)
    jax.eval_shape(partial(_release, method, True), after.learner, runs.noise)


def release(method: Method, runs: Runs, carry: Carry, last: bool = True) -> Released:
    """What each run releases at its end; or else has released so far, if anything, which uses no noise up."""
    return _release(method, last, carry.learner, runs.noise)


@partial(jax.jit, static_argnums=(0, 1))
def _begin(method: Method, world: World, runs: Runs, carry: None) -> Carry:
    def one(key: Array) -> Carry:
        key_world, key_learner = jax.random.split(key)
        return Carry(reset(world, key_world), method.init(spaces_of(world), key_learner))

    return jax.vmap(one)(runs.keys)


@partial(jax.jit, static_argnums=(0, 1, 2), donate_argnums=5)
def _advance(
    method: Method, world: World, length: int, first: Array, runs: Runs, carry: Carry
) -> tuple[Carry, StepSeen]:
    def one(run: Runs, carry: Carry) -> tuple[Carry, StepSeen]:
        return lax.scan(partial(_one_step, method, world, run), carry, first + jnp.arange(length))

    return jax.vmap(one)(runs, carry)


def _one_step(method: Method, world: World, run: Runs, carry: Carry, now: Array) -> tuple[Carry, StepSeen]:
    """One step of one run: act, move, be rewarded, learn; after an end, begin a new episode."""
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
    # Both are computed and one is taken: in a program for many runs at once a branch would cost as much.
    over = terminated | truncated
    following = jax.tree.map(lambda new, old: jnp.where(over, new, old), reset(world, key_reset), after)
    return Carry(following, learner), (gained, over)


@partial(jax.jit, static_argnums=(0, 1))
def _release(method: Method, last: bool, learner: State, noise: Noise) -> Released:
    return jax.vmap(method.finish if last else method.current)(learner, noise)


def _spread(program: Callable[..., PyTree], runs: Runs, carry: Carry | None) -> PyTree:
    """Runs the program on equal parts of the runs, one core for each, and puts the parts together.

    Threads, because XLA leaves Python's lock while it works; the parts are equal, because each size is compiled.
    """
    number = len(runs.keys)
    # A core is worth using for eight runs or more.
    parts = 1 if _one_core.get() else min(os.cpu_count() or 1, max(number // 8, 1))
    if parts == 1:
        return program(runs, carry)
    size = math.ceil(number / parts)
    indices = [np.minimum(np.arange(i * size, (i + 1) * size), number - 1) for i in range(parts)]

    def part(index: np.ndarray) -> PyTree:
        own = None if carry is None else jax.tree.map(lambda leaf: leaf[index], carry)
        return jax.block_until_ready(program(runs.pick(index), own))

    with ThreadPoolExecutor(parts) as pool:
        results = list(pool.map(part, indices))
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves)[:number], *results)
