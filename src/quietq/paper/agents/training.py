"""One training: its settings and checks, what it is charged and draws. `trainer` and `gymnasium_loop` carry it out."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import VectorEnv
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from quietq.noise import Entropy, SeededEntropy, SystemEntropy
from quietq.paper.agents.in_loop_method import InLoopMethod, UnitSteps
from quietq.paper.agents.jax_world import as_jax, as_single, stack
from quietq.paper.agents.method import (
    EnvironmentSpaces,
    Method,
    Moment,
    Noise,
    Released,
    State,
    Transition,
    some_states,
)
from quietq.privacy import Account, Certificate, Code, InvalidInput, QuietqError, Receipt
from quietq.privacy.checks import count
from quietq.privacy.transcript import Transcript
from quietq.worlds import WORLDS, World
from quietq.worlds.guards import refuse_private_worlds

Seen = tuple[np.ndarray, ...]
"""Rewards as the learner got them, and where episodes ended, one row per run (and copy): for most not private."""
Result = tuple[Released, Seen, int]
"""What all runs released, what they saw, and the steps that they took."""


def episode_returns(seen: Seen) -> list[list[float]]:
    """The returns of all episodes that ended, one list per row of rewards and ends."""
    rows = []
    for rewards, over in zip(*(np.asarray(part) for part in seen), strict=True):
        ends = np.flatnonzero(over) + 1
        total = np.concatenate([[0.0], np.cumsum(rewards.astype(np.float64))])
        rows.append(np.diff(total[np.concatenate([[0], ends])]).tolist())
    return rows


_KEPT_FROM = "jax_persistent_cache_min_compile_time_secs"
_in_memory: list[float] = []  # what that setting was when each of those who are in `programs_in_memory` came
_lock = threading.Lock()


@contextmanager
def programs_in_memory() -> Iterator[None]:
    """Keeps what JAX compiles in here in memory only, also where the caller has set up JAX's cache on disk.

    Every scalar that a reward of the caller's own looks at becomes a part of the program. The setting is the process's:
    it is put back when the last thread has left.
    """
    with _lock:
        _in_memory.append(getattr(jax.config, _KEPT_FROM))
        jax.config.update(_KEPT_FROM, 1e9)  # seconds, which no program takes to compile
    try:
        yield
    finally:
        with _lock:
            usual = _in_memory.pop()  # of the first to come, where this is the last to leave
            if not _in_memory:
                jax.config.update(_KEPT_FROM, usual)


ACT, MOVE, LEARN, RESET = range(4)  # what a step needs randomness for


class Runs(NamedTuple):
    """The runs of a training; every leaf has a leading axis, one entry per run.

    One of them, without the axis, takes the steps that both loops make: compiled, and in an environment of Gymnasium's.
    """

    keys: Array
    reward: PyTree  # None where an environment gives its own
    noise: Noise

    def pick(self, index: int | np.ndarray) -> "Runs":
        """One of them, without the axis; or some, with it."""
        return jax.tree.map(lambda leaf: leaf[index], self)

    def key(self, step: Array, use: int) -> PRNGKeyArray:
        """The randomness of a step, which follows from the run's key and the step's number and from nothing else."""
        return jax.random.split(jax.random.fold_in(self.keys, step), 4)[use]

    def act(self, method: Method, learner: State, observation: Float[Array, "copies d"], step: Array) -> Array:
        return method.act(learner, observation, Moment(step, self.key(step, ACT), self.noise))

    def learn(self, method: Method, learner: State, seen: Transition, step: Array) -> tuple[State, Array]:
        """Returns what is learned from a step, and its rewards as the learner got them.

        Where noise must cover them no value raises anything: what is no number counts as 0, and what is infinite the
        method clips.
        """
        gained = jnp.asarray(seen.reward, jnp.float32)
        if method.spends:
            gained = as_single(seen.reward)
            gained = jnp.where(jnp.isnan(gained), 0.0, gained)
        now = Moment(step, self.key(step, LEARN), self.noise)
        return method.update(learner, seen._replace(reward=gained), now), gained


@dataclass(kw_only=True)
class Training:
    """What is to be trained, checked when it is made, before anything is drawn or spent."""

    world: World | gymnasium.Env | VectorEnv
    spaces: EnvironmentSpaces
    method: Method
    steps: int
    seed: int
    reward: object = None
    account: Account | None = None
    seeds: int = 1
    simulate: int | None = None
    charged: bool = False  # whether noise was paid for
    receipt: Receipt | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "seeds", "simulate"):
            if getattr(self, name) is not None:
                setattr(self, name, count(name, getattr(self, name)))
        self.sources = getattr(self.method, "rewards", None)
        if self.sources is not None and self.simulate is not None:
            raise InvalidInput("simulate is for methods that draw noise themselves: give 'reward' simulated rewards.")
        if self.releases and self.seeds != 1:
            raise InvalidInput(
                f"seeds must be 1 for {self.method.name!r}, not {self.seeds}: every training would be a release of its "
                "own. For experiments use simulate."
            )
        self.draws = (self.simulate or 1) if self.sources is None else len(self.sources)
        self.members = self.draws * self.seeds
        self.method.check(self.spaces, self.steps)
        if self.releases or self.sources is not None:
            refuse_private_worlds(self.world)
        self.booked: Transcript | None = None
        if self.releases and isinstance(self.method, InLoopMethod):
            self.booked = self.method.open(self.spaces, self.steps, self.account)
        elif self.releases and self.account is not None:
            raise InvalidInput(f"{self.method.name!r} has no certified budget to charge an account with.")
        self.certificate()  # what contradicts itself is refused
        if self.method.spends and getattr(jax.config, "jax_enable_x64"):  # noqa: B009
            raise InvalidInput(
                f"{self.method.name!r} computes in float32, whose rounding its noise covers, but JAX was told to use "
                'float64: jax.config.update("jax_enable_x64", False) or JAX_ENABLE_X64=0; nothing was drawn or spent.'
            )

    @property
    def releases(self) -> bool:
        return self.method.spends and self.simulate is None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Sets the precision while it runs, as sensitivities allow for float32's rounding, and no program on disk."""
        with jax.default_matmul_precision("highest"), programs_in_memory():
            yield

    def certificate(self) -> Certificate:
        if self.method.spends and self.simulate is not None:
            remark = "Simulated noise from a seed, for an experiment: it protects nobody."
            return Certificate(method=self.method.name, standing="none", reproducible=True, remarks=(remark,))
        if self.booked is None:
            stated = self.method.certificate(self.spaces, self.steps)
            # A step of quietq's own worlds is not shown the reward; of others that is trusted.
            own = self.method.spends or self.sources is None or type(self.world) in WORLDS.values()
            return stated if own else stated.with_assumption(Code.INDEPENDENT())
        assert isinstance(self.method, InLoopMethod)
        stated = self.method.certify(self.booked, self.spaces, self.steps)
        stacked = isinstance(self.world, VectorEnv) and self.reward is None
        return stated.with_assumption(Code.STACKED()) if stacked else stated

    def draw(self, runs: Runs, trace: Callable[[Runs], None]) -> Runs:
        """Returns the runs with their noise. Charges before anything is drawn.

        Where a budget would be lost if the program failed, it is traced before, with ones for noise.
        """
        if self.releases:
            try:
                trace(runs._replace(noise=self.shaped()))
            except QuietqError:
                raise
            except Exception as error:
                error.add_note("This was a rehearsal, before the training: nothing was drawn or spent.")
                raise
            if self.booked is not None:
                self.booked.charge()
                self.receipt = self.booked.receipt
        self.charged = True
        return runs._replace(noise=self.noise())

    def shaped(self) -> Noise:
        """Ones in place of noise that protects, of its shapes and types."""
        one = self.method.draw(self.spaces, self.steps, UnitSteps())
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.members, *leaf.shape)), one)

    def noise(self) -> Noise:
        """The noise of every run, stacked; the same for all seeds of one draw."""

        def one(draw: int) -> Noise:
            if self.booked is not None:
                assert isinstance(self.method, InLoopMethod)
                return self.method.draw(self.spaces, self.steps, self.booked)
            entropy: Entropy = SystemEntropy() if self.simulate is None else SeededEntropy(_stream(self.seed, draw))
            return self.method.draw(self.spaces, self.steps, entropy)

        with ThreadPoolExecutor() as pool:  # each draw has randomness of its own
            drawn = [each for each in pool.map(one, range(self.draws)) for _ in range(self.seeds)]
        return jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *drawn)

    def rewards(self) -> PyTree:
        """Each run's reward, stacked; None where an environment gives its own.

        Refused are those that are not finite at some public states.
        """
        if self.sources is not None:
            rewards = stack([as_jax(one) for one in self.sources for _ in range(self.seeds)])
        elif self.reward is not None or isinstance(self.world, World):
            rewards = stack([as_jax(self.world if self.reward is None else self.reward)] * self.members)
        else:
            return None
        states = jnp.asarray(some_states(self.spaces.box), jnp.float32)
        single = as_single if self.method.spends else jnp.asarray
        one = jax.vmap(lambda reward, state: single(reward(state, jnp.array(0), state)), in_axes=(None, 0))
        values = np.asarray(jax.vmap(one, in_axes=(0, None), axis_size=self.members)(rewards, states))
        if not np.isfinite(values).all():
            raise InvalidInput("reward must be finite everywhere; nothing was drawn or spent.")
        return rewards

    def keys(self) -> Array:
        return jax.random.split(jax.random.key(self.seed), self.members)


def _stream(seed: int, draw: int) -> int:
    """A seed for each simulated draw, far from those of other draws."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/{draw}".encode(), digest_size=6).digest())
