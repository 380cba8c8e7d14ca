"""The compiled trainer: world and learner in one program, many runs side by side.

A run is a key, a reward and its noise; `jit(vmap(train))` takes any number of them, over seeds, noise levels and reward
worlds, on one core, so that a run's bits are the same on machines of any size. Attacks look on in between, and go on
from there: each step's randomness comes from the run's key and the step's number, and nothing else is carried over than
the `Carry`.

`run` rehearses, charges, draws, runs: what cannot work is refused before anything is paid. The noise is in memory only,
and one training uses it up: it is never written to a file, from which a second program could go on with it.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from quietq.paper.agents.jax_world import WorldState, reset, step
from quietq.paper.agents.method import EnvironmentSpaces, Method, Released, State, Transition
from quietq.paper.agents.training import MOVE, RESET, Result, Runs, Training
from quietq.worlds import World

StepSeen = tuple[Float[Array, "*runs_steps"], Bool[Array, "*runs_steps"]]
"""Rewards as the learner got them, and where episodes ended."""


class Carry(NamedTuple):
    world: WorldState
    learner: State


def spaces_of(world: World) -> EnvironmentSpaces:
    return EnvironmentSpaces(world.box, world.actions, world.steps)


def run(training: Training) -> Result:
    assert isinstance(training.world, World)
    world, core, steps = training.world, training.method.core(), training.steps
    with training.running():
        # A run is a key and a reward, and noise only later.
        runs = Runs(training.keys(), training.rewards(), None)
        # The program is traced first; then the account is charged, and only then noise is drawn, all of it.
        runs = training.draw(runs, lambda runs: rehearse(core, world, runs, steps))
        # All runs go on side by side.
        carry, seen = advance(core, world, runs, begin(core, world, runs), 0, steps)
        return jax.block_until_ready(release(core, runs, carry)), tuple(map(np.asarray, seen)), steps


@partial(jax.jit, static_argnums=(0, 1))
def begin(method: Method, world: World, runs: Runs) -> Carry:
    """All runs before their first step."""

    def one(key: Array) -> Carry:
        key_world, key_learner = jax.random.split(key)
        return Carry(reset(world, key_world), method.init(spaces_of(world), key_learner))

    return jax.vmap(one)(runs.keys)


def advance(method: Method, world: World, runs: Runs, carry: Carry, first: int, length: int) -> tuple[Carry, StepSeen]:
    """All runs, `length` steps on from step `first`."""
    return _advance(method, world, runs, carry, first, length)


@partial(jax.jit, static_argnames=("method", "world", "length"), donate_argnames="carry")
def _advance(
    method: Method, world: World, runs: Runs, carry: Carry, first: Array | int, length: int
) -> tuple[Carry, StepSeen]:
    def one(run: Runs, carry: Carry) -> tuple[Carry, StepSeen]:
        return lax.scan(partial(_one_step, method, world, run), carry, first + jnp.arange(length))

    return jax.vmap(one)(runs, carry)


@partial(jax.jit, static_argnames=("method", "last"))
def release(method: Method, runs: Runs, carry: Carry, last: bool = True) -> Released:
    """Returns what each run releases at its end; or else has released so far, if anything, which uses no noise up."""
    return jax.vmap(method.finish if last else method.current)(carry.learner, runs.noise)


def rehearse(method: Method, world: World, runs: Runs, length: int) -> None:
    """Traces the whole program without running any of it: raises what it would raise."""
    carry = jax.eval_shape(partial(begin, method, world), runs)
    after, _ = jax.eval_shape(partial(_advance, method, world, length=length), runs, carry, 0)
    jax.eval_shape(partial(release, method), runs, after)


def _one_step(method: Method, world: World, run: Runs, carry: Carry, now: Array) -> tuple[Carry, StepSeen]:
    """One step of one run: act, move, be rewarded, learn; after an end, begin a new episode."""
    here = carry.world.position
    # Act by what was learned so far, and be moved by the world, which does not know the reward.
    action = run.act(method, carry.learner, here[None], now)[0]
    after, terminated, truncated = step(world, carry.world, action, run.key(now, MOVE))
    # Be rewarded for the state that was reached, by this run's own reward: private, true, or of the audit's two worlds.
    gained = run.reward(here, action, after.position)
    # Learn. Methods that noise as they go use this step's part of the noise here, and nowhere else.
    seen = Transition(*(x[None] for x in (here, action, gained, after.position, terminated, truncated)))
    learner, (gained,) = run.learn(method, carry.learner, seen, now)
    # Begin anew where the episode is over. Both states are computed and one is taken: in a program for many runs at
    # once a branch would cost as much.
    over = terminated | truncated
    begun = reset(world, run.key(now, RESET))
    following = jax.tree.map(lambda new, old: jnp.where(over, new, old), begun, after)
    return Carry(following, learner), (gained, over)
