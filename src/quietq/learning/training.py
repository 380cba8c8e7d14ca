"""One training, from its checks to its result: charge, draw, run in pieces, keep checkpoints, finish."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import VectorEnv

from quietq.learning import checkpoint, trainer
from quietq.learning.cache import use_disk_cache
from quietq.learning.loop import loop
from quietq.learning.method import Method, Noise, Released, Spaces
from quietq.learning.report import Reporter
from quietq.noise.entropy import SeededEntropy, SystemEntropy
from quietq.privacy.accountant import Accountant
from quietq.privacy.certificate import Assumption, Certificate
from quietq.privacy.errors import InvalidInput
from quietq.worlds.jax_rewards import JaxFunction, JaxReward, LiftedReward, as_jax, stack
from quietq.worlds.world import World

PROBES = 257
PIECES = 20
"""A bar moves so often at the least."""


class Event(NamedTuple):
    """What a callback gets: the step, and the values that have been released so far (None if nothing has been)."""

    step: int
    values: Callable[[np.ndarray], np.ndarray] | None
    """From observations (points, d) to (runs, points, actions)."""


class Result(NamedTuple):
    """A finished training."""

    released: Released
    certificate: Certificate
    returns: list[list[float]]
    """Of the episodes that ended, one list a run; as the learner got rewards."""
    steps: int


@dataclass
class Training:
    """What is to be trained. `charged` says whether noise was paid for."""

    world: World | gymnasium.Env | VectorEnv
    spaces: Spaces
    method: Method
    reward: object
    seed: int
    steps: int
    seeds: int
    simulate: int | None
    directory: Path | None
    every: int | None
    ledger: Accountant | None
    charged: bool = False

    def __post_init__(self) -> None:
        self.sources = getattr(self.method, "rewards", None)
        if self.sources is not None:
            if self.simulate is not None:
                raise InvalidInput(
                    "simulate is for methods that draw noise themselves: give 'reward' simulated rewards."
                )
            self.draws = len(self.sources)
        else:
            self.draws = self.simulate or 1
        if self.method.spends and self.simulate is None and self.seeds != 1:
            raise InvalidInput(
                f"seeds must be 1 for {self.method.name!r}, not {self.seeds}: every training would be a release of its "
                "own. For experiments use simulate."
            )
        self.method.check(self.spaces, self.steps)
        self.compiled = isinstance(self.world, World)
        if not self.compiled and self.directory is not None:
            raise InvalidInput(
                "A Gymnasium environment's state cannot be saved, so there is no checkpoint to resume from."
            )

    def run(
        self, resume: bool, progress: bool | str, callback: Callable[[Event], bool | None] | None, log: Path | None
    ) -> Result:
        """Does all of it."""
        if resume and self.directory is None:
            raise InvalidInput("resume needs the directory of the checkpoint to go on from.")
        use_disk_cache()
        precise = jax.default_matmul_precision("highest")  # sensitivities allow for float32's rounding and no more
        with precise, Reporter(self.steps, progress, log, not self.method.uses_true_reward) as reporter:
            work = self._compiled if self.compiled else self._looped
            released, seen, steps = work(resume, progress, callback, reporter)
        return Result(released, self.certificate(), _episode_returns(seen), steps)

    def certificate(self) -> Certificate:
        """The method's, or for a simulation one that promises nothing."""
        if self.simulate is None or not self.method.spends:
            stated = self.method.certificate(self.spaces, self.steps)
            return stated if self.compiled or stated.standing != "certified" else _with_world(stated)
        return Certificate(
            method=self.method.name,
            standing="none",
            reproducible=True,
            remarks=("Simulated noise from a seed, for an experiment: it protects nobody.",),
        )

    def _pay(self) -> None:
        """Charges before anything is drawn."""
        budget, relation = getattr(self.method, "budget", None), getattr(self.method, "relation", None)
        if self.ledger is not None and self.method.spends and self.simulate is None:
            if budget is None:
                raise InvalidInput(f"{self.method.name!r} has no certified budget that a ledger could be charged with.")
            self.ledger.charge(budget.mu, relation=relation)
        self.charged = True

    def _noise(self, seeded: bool) -> Noise:
        """The noise of every run, stacked; the same for all seeds of one draw."""
        drawn = []
        for draw in range(self.draws):
            entropy = SeededEntropy(_stream(self.seed, draw)) if seeded else SystemEntropy()
            drawn += [self.method.draw(self.spaces, self.steps, entropy)] * self.seeds
        return jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *drawn)

    def _rewards(self) -> Any:
        """Each run's reward, stacked; None where an environment gives its own."""
        if self.sources is not None:
            return stack([as_jax(one) for one in self.sources for _ in range(self.seeds)])
        if self.reward is not None:
            return stack([self._lifted()] * (self.draws * self.seeds))
        return stack([as_jax(self.world)] * (self.draws * self.seeds)) if self.compiled else None

    def _lifted(self) -> JaxReward:
        """A reward of the caller's own, with the data that it holds as arguments of the program, not in it."""
        reward, state = as_jax(self.reward), jnp.asarray(self.spaces.box.low, jnp.float32)
        if not isinstance(reward, JaxFunction):
            return reward
        return LiftedReward(reward, state)

    def _probe(self, rewards: Any) -> np.ndarray:
        """The rewards of all runs at some public states: finite, or else refused."""
        states = self.spaces.box.from_unit(
            np.random.default_rng(0).random((PROBES, self.spaces.box.dimension)).squeeze()
        )
        states = jnp.asarray(np.asarray(states).reshape(PROBES, -1), jnp.float32)
        one = jax.vmap(lambda reward, state: reward(state, jnp.array(0), state), in_axes=(None, 0))
        values = np.asarray(jax.vmap(one, in_axes=(0, None), axis_size=self.draws * self.seeds)(rewards, states))
        if not np.isfinite(values).all():
            raise InvalidInput("reward must be finite everywhere; nothing was drawn or spent.")
        return values

    def _keys(self) -> Any:
        return jax.random.split(jax.random.key(self.seed), self.draws * self.seeds)

    def _compiled(self, resume: bool, progress: Any, callback: Any, reporter: Reporter) -> tuple[Any, Any, int]:
        core, rewards, keys = self.method.core(), self._rewards(), self._keys()
        world = self.world
        assert isinstance(world, World)
        mark, probe = None, self._probe(rewards)
        if self.directory is not None:
            self.directory.mkdir(parents=True, exist_ok=True)
            mark = checkpoint.fingerprint(self._settings(), rewards, probe)
        if resume:
            assert self.directory is not None
            assert mark is not None
            noise = self._noise(seeded=True)  # for its shapes
            like = noise, trainer.begin(core, world, trainer.Runs(keys, rewards, noise)), self._nothing_seen()
            (noise, carry, seen), header = checkpoint.read(self.directory, like, mark)
            first = int(header["step"])
            finished = bool(header["finished"])
        else:
            if self.directory is not None and (self.directory / checkpoint.NAME).exists():
                raise InvalidInput(
                    f"{str(self.directory)!r} holds a checkpoint already: resume it, or choose another directory."
                )
            self._pay()
            noise = self._noise(self.simulate is not None)
            carry, seen = trainer.begin(core, world, trainer.Runs(keys, rewards, noise)), self._nothing_seen()
            first, finished = 0, False
        runs = trainer.Runs(keys, rewards, noise)
        length = self._piece(progress, callback)
        while first < self.steps and not finished:
            if self.directory is not None:
                assert mark is not None
                checkpoint.write(self.directory, (noise, carry, seen), mark, first, finished=False)
            piece = min(length, self.steps - first)
            tell = max(self.steps // 100, 1) if progress == "compiled" else None
            carry, new = trainer.advance(core, world, runs, carry, first, piece, tell)
            seen = tuple(
                jax.lax.dynamic_update_slice(old, part, (0, first)) for old, part in zip(seen, new, strict=True)
            )
            first += piece
            reporter.at(first, lambda seen=seen: _recent(seen))
            if callback is not None and callback(self._event(core, runs, carry, first)) is True:
                break
        if self.directory is not None:
            assert mark is not None
            # Before the end is released: a training that ended is not gone on with, only its end is repeated.
            checkpoint.write(self.directory, (noise, carry, seen), mark, first, finished=True)
        released = trainer.finish(core, runs, carry)
        return jax.block_until_ready(released), tuple(np.asarray(part)[:, :first] for part in seen), first

    def _looped(self, resume: bool, progress: Any, callback: Any, reporter: Reporter) -> tuple[Any, Any, int]:
        assert not isinstance(self.world, World)
        core, rewards, keys = self.method.core(), self._rewards(), self._keys()
        self._pay()
        noise = self._noise(self.simulate is not None)
        all_released, all_seen, steps = [], [], self.steps
        every = self._piece(progress, callback)
        for run, key in enumerate(keys):
            pick = lambda tree, run=run: jax.tree.map(lambda leaf: leaf[run], tree)  # noqa: E731
            gained, over, now = [], [], None
            source = None if rewards is None else pick(rewards)
            for now in loop(core, self.world, self.steps, key, pick(noise), source, self.seed + run):
                gained.append(now.rewards)
                over.append(now.over)
                steps = now.step * len(now.over)
                if steps // every != (steps - len(now.over)) // every:
                    reporter.at(steps, lambda gained=gained, over=over: _recent(_columns(gained, over)))
                    if (
                        callback is not None
                        and callback(self._loop_event(core, now.learner, pick(noise), steps)) is True
                    ):
                        break
            assert now is not None
            all_released.append(jax.jit(core.finish)(now.learner, pick(noise)))
            all_seen.append(_columns(gained, over))
        released = jax.tree.map(lambda *leaves: jnp.stack(leaves), *all_released)
        return released, tuple(np.concatenate(parts) for parts in zip(*all_seen, strict=True)), steps

    def _piece(self, progress: Any, callback: Any) -> int:
        """How many steps go by between two looks: equal pieces where it can be, for each length is compiled."""
        if self.every is not None:
            return min(self.every, self.steps)
        if progress is True or callback is not None or self.directory is not None:
            return next(n for n in range(-(-self.steps // PIECES), self.steps + 1) if self.steps % n == 0)
        return self.steps

    def _event(self, core: Method, runs: trainer.Runs, carry: Any, step: int) -> Event:
        return Event(step, _answers(core, trainer.current(core, runs, carry)))

    def _loop_event(self, core: Method, learner: Any, noise: Noise, step: int) -> Event:
        one = jax.tree.map(lambda leaf: leaf[None], jax.jit(core.current)(learner, noise))
        return Event(step, _answers(core, one))

    def _nothing_seen(self) -> tuple[Any, Any]:
        shape = (self.draws * self.seeds, self.steps)
        return jnp.zeros(shape), jnp.zeros(shape, bool)

    def _settings(self) -> dict[str, object]:
        assert isinstance(self.world, World)
        record: dict[str, object] = {
            "world": repr(self.world), "seed": self.seed, "steps": self.steps, "seeds": self.seeds,
            "simulate": self.simulate, "every": self.every, "settings": self.method.settings(),
        }  # fmt: skip
        for name in ("relation", "budget"):
            record[name] = repr(getattr(self.method, name, None))
        return record


def _with_world(certificate: Certificate) -> Certificate:
    """The same for an environment that is not ours: what it shows must not depend on the reward."""
    text = "The environment's observations and ends depend on the private reward through the agent's actions only."
    if any("through the agent's actions only" in assumption.text for assumption in certificate.assumptions):
        return certificate
    return replace(certificate, assumptions=(*certificate.assumptions, Assumption(text, enforced=False)))


def _answers(core: Method, current: Released | None) -> Callable[[np.ndarray], np.ndarray] | None:
    if current is None:
        return None
    values = jax.vmap(jax.vmap(core.values, in_axes=(None, 0)), in_axes=(0, None))
    return lambda points: np.asarray(values(current, jnp.asarray(points, jnp.float32)))


def _stream(seed: int, draw: int) -> int:
    """A seed for each simulated draw, far from those of other draws."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/{draw}".encode(), digest_size=6).digest())


def _columns(gained: list[np.ndarray], over: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """A loop's rewards and ends, one row for all copies in turn if there is one copy, else a row a copy."""
    return np.stack([np.asarray(one) for one in gained], axis=1), np.stack(over, axis=1)


def _recent(seen: Any) -> float | None:
    """The mean return of the last episodes, for the log."""
    last = [returns[-1] for returns in _episode_returns(seen) if returns]
    return float(np.mean(last)) if last else None


def _episode_returns(seen: Any) -> list[list[float]]:
    """The returns of all episodes that ended, one list a row."""
    rows = []
    for rewards, over in zip(*(np.asarray(part) for part in seen), strict=True):
        ends = np.flatnonzero(over) + 1
        total = np.concatenate([[0.0], np.cumsum(rewards.astype(np.float64))])
        rows.append(np.diff(total[np.concatenate([[0], ends])]).tolist())
    return rows
