"""The compiled trainer: world and learner in one program, many runs side by side.

A run is a key, a reward and its noise; `jit(vmap(train))` takes any number of them, over seeds, noise levels and reward
worlds. A long training is cut into pieces of equal length, so that it can be watched, stopped, and taken up again where
it was: each step's randomness comes from the run's key and the step's number, and nothing else is carried over than the
`Carry`.

`run` rehearses, charges, draws, keeps, runs: what cannot work is refused before anything is paid; what was drawn is on
disk before it is used, and what ended is marked as ended before its end is released. So a training that is resumed
draws nothing, pays nothing, and uses no number for a second purpose.

Not even a copy of a checkpoint does. What a piece does is a function of the checkpoint and the program, and a
checkpoint is bound to its program: method, world, reward, every hyper-parameter, seed, budget and code. So all copies
compute the same numbers, which is post-processing of one release, or are refused. And a training that is ended early,
and might be gone on with elsewhere, releases what it has released already and no more. (A processor of another kind may
round otherwise in the last place: then a copy on it is a copy but for that.)
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

from quietq.learning import checkpoint
from quietq.learning.cache import disk_cache, is_public
from quietq.learning.method import Method, Moment, Noise, Spaces, State, Transition
from quietq.learning.report import LISTENERS, Event
from quietq.learning.training import Result, Runs, Training
from quietq.privacy import InvalidInput
from quietq.worlds import World
from quietq.worlds.jax_rewards import as_single
from quietq.worlds.jax_world import WorldState, reset, step

FEWEST_RUNS = 8  # a core is worth using for at least so many runs
_one_core: ContextVar[bool] = ContextVar("one_core", default=False)


class Carry(NamedTuple):
    world: WorldState
    learner: State


class Seen(NamedTuple):
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


def spaces_of(world: World) -> Spaces:
    return Spaces(world.box, world.actions, world.steps)


def run(training: Training) -> Result:
    assert isinstance(training.world, World)
    with training.running() as report:
        return _Piecewise(training, training.world).run(report)


class _Piecewise:
    """A training in pieces, with a checkpoint before each if there is a folder for it."""

    def __init__(self, training: Training, world: World) -> None:
        self.training, self.world, self.core = training, world, training.method.core()
        self.length = training.piece()
        self.kept = training.folder is not None and training.method.spends
        # What is told from inside is a part of the program, which must be the same for all copies of a checkpoint.
        told = training.progress == "compiled" and not self.kept
        self.tell = max(training.steps // 100, 1) if told else None
        rewards, keys = training.rewards(), training.keys()
        probe = training.probe(rewards)
        if training.folder is not None:
            checkpoint.prepare(training.folder)
            self.fingerprint = self._identify(rewards, keys, probe)
        if training.resume:
            noise = training.shaped() if training.releases else training.noise(seeded=True)
            self._take_up(Runs(keys, rewards, noise))  # of which only the shapes count
        else:
            self._start(Runs(keys, rewards, None))

    def _identify(self, rewards: Any, keys: Any, probe: np.ndarray) -> str:
        names = ("seed", "steps", "seeds", "simulate", "every")
        settings: dict[str, object] = {name: getattr(self.training, name) for name in names}
        settings["world"] = [type(self.world).__name__, repr(self.world)]
        settings["reward"] = str(jax.tree.structure(rewards)) if self.training.releases else None
        return checkpoint.fingerprint(self.training.method, settings, (keys, rewards, probe))

    def _start(self, runs: Runs) -> None:
        training = self.training
        if training.folder is not None and (training.folder / checkpoint.NAME).exists():
            raise InvalidInput(
                f"{str(training.folder)!r} holds a checkpoint already: resume it, or choose another directory."
            )
        self.runs = training.draw(runs, lambda runs: rehearse(self.core, self.world, runs, self.length, self.tell))
        self.carry, self.seen = begin(self.core, self.world, self.runs), self._nothing_seen()
        self.step, self.finished = 0, False
        self.booked = training.receipt is not None and (training.receipt.id or True)

    def _take_up(self, runs: Runs) -> None:
        training = self.training
        assert training.folder is not None  # `Training` refuses it
        carry = jax.eval_shape(partial(_begin, self.core, self.world), runs, None)
        like = runs.noise, carry, self._nothing_seen()
        (noise, self.carry, self.seen), header = checkpoint.read(training.folder, like, self.fingerprint)
        self.runs, self.step, self.finished = runs._replace(noise=noise), int(header["step"]), bool(header["finished"])
        self.booked = header.get("booked", False)
        if training.account is not None and training.method.spends:
            if not self.booked:
                raise InvalidInput("This training was begun without an account, so nothing was booked: go on without.")
            training.receipt = training.account.receipt(self.booked) if isinstance(self.booked, str) else None
        training.booked = bool(self.booked)

    def run(self, report: Callable[..., None]) -> Result:
        steps, ended = self.training.steps, False
        while self.step < steps and not self.finished and not ended:
            self._keep(finished=False)
            piece = min(self.length, steps - self.step)
            self.carry, new = advance(self.core, self.world, self.runs, self.carry, self.step, piece, self.tell)
            place = (0, self.step)
            self.seen = Seen(*(lax.dynamic_update_slice(*both, place) for both in zip(self.seen, new, strict=True)))
            self.step += piece
            report(self.step, lambda: self.seen)
            ended = self._call_back()
        self._keep(finished=True)  # before the end is released: it is not gone on with, only its end is repeated
        released = release(self.core, self.runs, self.carry, last=self.step == steps or not self.kept)
        released = jax.block_until_ready(released)
        return Result(released, tuple(np.asarray(part)[:, : self.step] for part in self.seen), self.step)

    def _call_back(self) -> bool:
        if self.training.callback is None:
            return False
        so_far = release(self.core, self.runs, self.carry, last=False)
        ended = self.training.callback(Event.of(self.step, self.core, so_far)) is True
        if ended and so_far is None and self.kept and self.step < self.training.steps:
            raise InvalidInput(
                f"{self.training.method.name!r} releases at its end only, and its checkpoint might be gone on with: "
                "resume it without ending it, or train without a directory."
            )
        return ended

    def _keep(self, finished: bool) -> None:
        if self.training.folder is not None:
            header = {"fingerprint": self.fingerprint, "step": self.step, "finished": finished, "booked": self.booked}
            checkpoint.write(self.training.folder, (self.runs.noise, self.carry, self.seen), header)

    def _nothing_seen(self) -> Seen:
        shape = (self.training.members, self.training.steps)
        return Seen(jnp.zeros(shape), jnp.zeros(shape, bool))


def begin(method: Method, world: World, runs: Runs) -> Carry:
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
    for last in (True, False):
        jax.eval_shape(partial(_release, method, last), after.learner, runs.noise)


def release(method: Method, runs: Runs, carry: Carry, last: bool = True) -> Any:
    """What each run releases at its end; or else has released so far, if anything, which uses no noise up."""
    with disk_cache(is_public(method)):
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
) -> tuple[Carry, Seen]:
    def one(run: Runs, carry: Carry) -> tuple[Carry, Seen]:
        def body(carry: Carry, now: Array) -> tuple[Carry, Seen]:
            if tell_every is not None:
                lax.cond(now % tell_every == 0, lambda: jax.debug.callback(_tell, now), lambda: None)
            return _one_step(method, world, run, carry, now)

        return lax.scan(body, carry, first + jnp.arange(length))

    return jax.vmap(one)(runs, carry)


def _one_step(method: Method, world: World, run: Runs, carry: Carry, now: Array) -> tuple[Carry, Seen]:
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
    return Carry(following, learner), Seen(gained, over)


@partial(jax.jit, static_argnums=(0, 1))
def _release(method: Method, last: bool, learner: State, noise: Noise) -> Any:
    return jax.vmap(method.finish if last else method.current)(learner, noise)


def _is_public(method: Method, world: World, runs: Runs) -> bool:
    return is_public(method) and is_public(world) and is_public(runs.reward)


def _spread(program: Callable[..., Any], runs: Runs, carry: Carry | None, public: bool) -> Any:
    """Runs the program on equal parts of the runs, one core for each, and puts the parts together.

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
        own = None if carry is None else jax.tree.map(lambda leaf: leaf[index], carry)
        with disk_cache(public):
            return jax.block_until_ready(program(runs.pick(index), own))

    with ThreadPoolExecutor(parts) as pool:
        results = list(pool.map(part, indices))
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves)[:number], *results)
