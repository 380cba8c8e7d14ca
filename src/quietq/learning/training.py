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

from quietq.learning import bound, compiled as in_pieces, in_loop
from quietq.learning.cache import disk_cache
from quietq.learning.events import Event, episode_returns
from quietq.learning.method import Method, Noise, Released, Spaces
from quietq.learning.promise import UnitNoise
from quietq.learning.report import Reporter
from quietq.noise.entropy import SeededEntropy, SystemEntropy
from quietq.privacy.account import Account, Receipt, accounted
from quietq.privacy.certificate import Assumption, Certificate
from quietq.privacy.cost import Cost
from quietq.privacy.errors import InvalidInput
from quietq.worlds.environment import WorldEnv
from quietq.worlds.independence import independence, is_own_world, with_assumption
from quietq.worlds.jax_rewards import JaxFunction, JaxReward, LiftedReward, as_jax, as_single, stack
from quietq.worlds.world import World

STACKED = Assumption("Each copy's rewards were float32, or more exact, before they were put in one array.", False)
"""Of a vector environment, whose array hides the type that a copy computed in."""
PROBES = 257
PIECES = 20
"""A bar moves so often at the least."""


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
    account: Account | None
    charged: bool = False
    receipt: Receipt | None = None
    booked: bool | None = None
    """For a training that was resumed: whether its checkpoint says that it was charged to an account."""

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
        self.independent = None
        private = self.method.spends or self.sources is not None
        if private and self.simulate is None and not is_own_world(self.world):
            self.independent = independence(WorldEnv(self.world) if isinstance(self.world, World) else self.world)
        self.certificate()  # before anything is drawn or spent: what contradicts itself is refused
        if self.method.spends and getattr(jax.config, "jax_enable_x64"):  # noqa: B009
            raise InvalidInput(
                f"{self.method.name!r} computes in float32, whose rounding its noise covers, but JAX was told to use "
                'float64: jax.config.update("jax_enable_x64", False) or JAX_ENABLE_X64=0; nothing was drawn or spent.'
            )
        if not self.compiled and self.directory is not None:
            raise InvalidInput(
                "A Gymnasium environment's state cannot be saved, so there is no checkpoint to resume from."
            )

        bound.check(self)

    @property
    def releases(self) -> bool:
        """Whether its noise is drawn to protect, as it goes."""
        return self.method.spends and self.simulate is None

    def run(
        self, resume: bool, progress: bool | str, callback: Callable[[Event], bool | None] | None, log: Path | None
    ) -> Result:
        """Does all of it."""
        if resume and self.directory is None:
            raise InvalidInput("resume needs the directory of the checkpoint to go on from.")
        if callback is not None and not callable(callback):
            raise InvalidInput(f"callback must be a function of an Event, or None, not {type(callback).__name__}.")
        precise = jax.default_matmul_precision("highest")  # sensitivities allow for float32's rounding and no more
        # A reward of the caller's own may be traced anywhere in here; the trainer keeps what it knows to be public.
        kept = disk_cache(public=False)
        with precise, kept, Reporter(self.steps, progress, log, not self.method.uses_true_reward) as reporter:
            if isinstance(self.world, World):
                released, seen, steps = in_pieces.run(self, self.world, resume, progress, callback, reporter)
            else:
                released, seen, steps = in_loop.run(self, self.world, progress, callback, reporter)
        return Result(released, self.certificate(), episode_returns(seen), steps)

    def certificate(self) -> Certificate:
        """The method's, or for a simulation one that promises nothing."""
        if self.simulate is None or not self.method.spends:
            stated = self.method.certificate(self.spaces, self.steps)
            if self.independent is not None:  # which says it more exactly than the method does
                others = tuple(one for one in stated.assumptions if "through the agent's actions only" not in one.text)
                stated = with_assumption(replace(stated, assumptions=others), self.independent)
            if self.method.spends and isinstance(self.world, VectorEnv) and self.reward is None:
                stated = with_assumption(stated, STACKED)
            return with_assumption(stated, self._accounted()) if self.method.spends else stated
        return Certificate(
            method=self.method.name,
            standing="none",
            reproducible=True,
            remarks=("Simulated noise from a seed, for an experiment: it protects nobody.",),
        )

    def _accounted(self) -> Assumption:
        """What is said of other releases; of a charge before a training was resumed its checkpoint alone knows."""
        if self.booked:
            return Assumption("The training was resumed, and had been charged to an account before.", enforced=False)
        return accounted(None if self.booked is False else self.account)

    def pay(self) -> None:
        """Charges before anything is drawn."""
        budget, relation = getattr(self.method, "budget", None), getattr(self.method, "relation", None)
        if self.account is not None and self.method.spends and self.simulate is None:
            if budget is None:
                raise InvalidInput(f"{self.method.name!r} has no certified budget to charge an account with.")
            self.receipt = self.account.charge(Cost.gaussian(budget.mu), relation)
        self.charged = True

    def noise(self, seeded: bool) -> Noise:
        """The noise of every run, stacked; the same for all seeds of one draw."""
        drawn = []
        for draw in range(self.draws):
            entropy = SeededEntropy(_stream(self.seed, draw)) if seeded else SystemEntropy()
            drawn += [self.method.draw(self.spaces, self.steps, entropy)] * self.seeds
        return jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *drawn)

    def no_noise(self) -> Noise:
        """Something of the same shapes, to rehearse with."""
        one = self.method.draw(self.spaces, self.steps, UnitNoise())
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.draws * self.seeds, *leaf.shape)), one)

    def rewards(self) -> Any:
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

    def probe(self, rewards: Any) -> np.ndarray:
        """The rewards of all runs at some public states: finite, or else refused."""
        states = self.spaces.box.from_unit(
            np.random.default_rng(0).random((PROBES, self.spaces.box.dimension)).squeeze()
        )
        states = jnp.asarray(np.asarray(states).reshape(PROBES, -1), jnp.float32)
        single = as_single if self.method.spends else jnp.asarray
        one = jax.vmap(lambda reward, state: single(reward(state, jnp.array(0), state)), in_axes=(None, 0))
        values = np.asarray(jax.vmap(one, in_axes=(0, None), axis_size=self.draws * self.seeds)(rewards, states))
        if not np.isfinite(values).all():
            raise InvalidInput("reward must be finite everywhere; nothing was drawn or spent.")
        return values

    def keys(self) -> Any:
        """A key a run."""
        return jax.random.split(jax.random.key(self.seed), self.draws * self.seeds)

    def piece(self, progress: Any, callback: Any) -> int:
        """How many steps go by between two looks: equal pieces where it can be, for each length is compiled."""
        if self.every is not None:
            return min(self.every, self.steps)
        if progress is True or callback is not None or self.directory is not None:
            return next(n for n in range(-(-self.steps // PIECES), self.steps + 1) if self.steps % n == 0)
        return self.steps


def _stream(seed: int, draw: int) -> int:
    """A seed for each simulated draw, far from those of other draws."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/{draw}".encode(), digest_size=6).digest())
