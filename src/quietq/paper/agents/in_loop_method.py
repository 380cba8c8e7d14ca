"""Methods that noise as they go: a relation, a budget, noise for the whole run, and the certificate of many rounds.

See docs/theory.md#rounds-of-rewards.
"""

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from quietq.noise import Entropy
from quietq.noise.entropy import SystemEntropy
from quietq.noise.rounding import size_bound
from quietq.paper.agents.method import EnvironmentSpaces, Method, Moment, Released, State, Transition
from quietq.paper.agents.protect import STEPS, room, watched
from quietq.privacy import (
    Account,
    Assumption,
    Budget,
    Certificate,
    Code,
    Cost,
    InvalidInput,
    LipschitzBall,
    PrivacyWarning,
    Relation,
    RkhsBall,
    SupBall,
    weak_promise,
)
from quietq.privacy.checks import instance
from quietq.privacy.norms import AnyNorm, rounding
from quietq.privacy.transcript import Law, Query, Transcript

_LEAST = 1e-9
_MOST = 1e15
"""Rewards are clipped to no more: times slopes of the steepest kind they stay far from float32's largest number, and so
do values that are large enough for such rewards to be lost in their rounding."""


ROUNDS = 3  # rounds of an audited training, where the method has rounds: their number is part of what is audited


class NoiseDraw(NamedTuple):
    """The noise of a run, as compiled code takes it. No number is rounded to less than it was."""

    normals: Float[np.ndarray, "..."] | Int[np.ndarray, "..."]
    """Whole numbers of steps (`protect`), exact; or in float32, for simulation."""
    scale: Float[np.ndarray, ""]  # of the noise, in the method's norm
    radius: Float[np.ndarray, ""]  # the most that one reward differs between neighbours
    largest: Float[np.ndarray, ""]  # rewards are clipped to it

    def clip(self, seen: Transition) -> Transition:
        """Rewards clipped to `largest`: a projection, so no two neighbours get farther apart."""
        return seen._replace(reward=jnp.clip(seen.reward, -self.largest, self.largest))


class PrivateStep(NamedTuple):
    """Networks, states and actions are public, hence fixed; rewards and noise come in."""

    method: "InLoopMethod"  # as it is audited: each round sees the whole batch
    steps: int  # of a training with all rounds
    calls: int  # of `update` in it, all copies at once, before `finish`
    one_round: Callable[[Transition, NoiseDraw], PyTree]
    """A function of the batch and the noise, through `protect` once. It must not be compiled yet."""
    public: Callable[[State], PyTree]  # what may be seen of a state
    rounds: int = ROUNDS  # how many of them share the budget
    centre: Float[Array, " rewards"] | float = 0.0  # rewards around which the step is most sensitive


class UnitNoise:
    """Ones in place of noise: what is drawn from it shows the shape and the scale that noise would have."""

    reproducible = True

    def normals(self, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        return np.ones(shape, np.float32)

    def uniforms(self, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        return np.full(shape, 0.5)


class UnitSteps(UnitNoise):
    """Ones in place of exact noise, of its type."""

    def whole_normals(self, shape: tuple[int, ...], deviation: float) -> Int[np.ndarray, "..."]:
        return np.full(shape, 2**STEPS)


def whole_noise(shape: tuple[int, ...], mu: float, entropy: SystemEntropy | UnitSteps) -> Int[np.ndarray, "..."]:
    """Exact noise whose deviation is 2^18 steps, and a little more, because what it goes on was rounded to steps."""
    size = 2.0**STEPS * room(math.prod(shape), mu)
    # Float64 has all whole numbers of 53 bits, which hold 128 times that many steps.
    if size > 2.0**46:
        raise InvalidInput("The budget is so small that its noise has no room in whole numbers: it must be larger.")
    return entropy.whole_normals(shape, size).astype(np.int32)  # of more than 32 bits the remainder is enough


@dataclass(frozen=True)
class WholeNoise(Law):
    """Gaussian noise in whole numbers of a step, which a compiled loop adds itself, each number once."""

    family = "gaussian"
    norm: AnyNorm
    size: float
    mu: float
    clip: float

    @property
    def sigma(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.size

    def cost(self, sensitivity: float) -> Cost:
        return Cost.gaussian(sensitivity / self.size)

    def check_size(self, largest: float) -> None:
        """Rewards are clipped, and what `protect` adds noise to is clipped to what it covers."""

    def check_values(self, numbers: np.ndarray) -> None:
        """The loop clips them."""

    def draw(self, shape: tuple[int, ...], simulated: Entropy | None) -> Int[np.ndarray, "..."]:
        return whole_noise(shape, self.mu, SystemEntropy())

    def add(self, numbers: np.ndarray, simulated: Entropy | None = None, given: object = None) -> np.ndarray:
        raise InvalidInput("The noise of a training is taken beforehand, and added in the loop.")

    def assumptions(self, largest: float, error: float) -> tuple[Assumption, ...]:
        return Code.FLOAT32_COVERED(self.clip), Code.WHOLE_NOISE()


@dataclass(frozen=True, kw_only=True)
class InLoopMethod(Method):
    """A method with a promise of its own; every training is one release."""

    spends: ClassVar[bool] = True
    relation: Relation | None = None
    budget: Budget | None = None

    @property
    def radius(self) -> float:
        """The most that one observed reward can differ between neighbours."""
        return self.promised()[0].sup_radius

    @property
    def largest(self) -> float:
        """Rewards are clipped to plus and minus this, a public number far above them if they lie near 0.

        A projection, so no two neighbours get farther apart; and it bounds what rounding can do.
        """
        relation, _ = self.promised()
        return size_bound(self.radius, relation.people)

    def operations(self, spaces: EnvironmentSpaces) -> int:
        """The number of operations in a row in float32 whose rounding errors the noise must cover too."""
        return 0

    def allowance(self, spaces: EnvironmentSpaces) -> float:
        return rounding(self.operations(spaces), self.promised()[0].people)

    @abstractmethod
    def noise_shape(self, spaces: EnvironmentSpaces, steps: int) -> tuple[int, ...]:
        """Returns how many normals a run of `steps` may use: one for each number that is noised."""

    def rounds(self, steps: int) -> int:
        """Returns how often a run of `steps` adds noise."""
        return 1

    @property
    def mu(self) -> float:
        """How far apart neighbours may be in all rounds together, in units of the noise's deviation."""
        return self.promised()[1].mu

    def sensitivity(self, spaces: EnvironmentSpaces, steps: int) -> float:
        """Returns the theorem's sensitivity, with the allowance for rounding: the noise is as large, over `mu`."""
        return self.allowance(spaces) * self.radius * np.sqrt(self.rounds(steps))

    @abstractmethod
    def norm(self, spaces: EnvironmentSpaces, steps: int, noise: NoiseDraw) -> AnyNorm:
        """Returns what the scale of the noise that was drawn is measured in."""

    def draw(self, spaces: EnvironmentSpaces, steps: int, entropy: Entropy | Transcript) -> NoiseDraw:
        """Returns all noise of one run, and its `scale`: what the certificate states is read off it.

        Noise that protects is drawn by the transcript, which charges for it, as the answer to its one query.
        """
        shape = self.noise_shape(spaces, steps)
        if isinstance(entropy, Transcript):
            normals = entropy.noise(entropy.queries[0], shape)
        elif isinstance(entropy, SystemEntropy | UnitSteps):
            normals = whole_noise(shape, self.mu, entropy)
        else:
            normals = entropy.normals(shape).astype(np.float32, copy=False)
        return NoiseDraw(
            normals,
            not_below(self.sensitivity(spaces, steps) / self.mu),
            not_below(self.radius),
            np.asarray(self.largest, np.float32),
        )

    def promised(self) -> tuple[Relation, Budget]:
        """Returns the relation and the budget, if both were given."""
        if self.relation is None or self.budget is None:
            raise InvalidInput(f"{self.name} needs a relation and a budget: what must stay hidden, and how well?")
        return self.relation, self.budget

    def core(self) -> "InLoopMethod":
        return replace(self, relation=None, budget=None)

    def check(self, spaces: EnvironmentSpaces, steps: int) -> None:
        super().check(spaces, steps)
        relation, budget = self.promised()
        instance("relation", relation, SupBall | LipschitzBall | RkhsBall, "a SupBall, LipschitzBall or RkhsBall")
        instance("budget", budget, Budget, "a Budget(epsilon, delta)")
        if budget.is_pure:
            raise InvalidInput(f"{self.name} adds Gaussian noise, so delta must be above 0; see 'reward' with k-norm.")
        if not _LEAST <= self.radius <= 1 / _LEAST:
            raise InvalidInput(
                f"The relation's radius must lie between {_LEAST:g} and {1 / _LEAST:g}: scale the rewards."
            )
        if self.largest > _MOST:
            raise InvalidInput(
                f"The relation's radius times its number of people must be at most {_MOST / 2:g}, for float32, not "
                f"{self.largest / 2:g}: scale the rewards."
            )
        if sentence := weak_promise(budget, relation.people):
            warnings.warn(sentence, PrivacyWarning, stacklevel=2)

    @abstractmethod
    def conditions(self, steps: int) -> tuple[Assumption, ...]:
        """Returns what the certificate assumes besides what all such methods do."""

    def query(self, spaces: EnvironmentSpaces, steps: int) -> Query:
        """Returns the query of a run of `steps`, all rounds together.

        The sensitivity is by the relation and the method's norm, and apart from it the noise has the scale that
        compiled code is handed: the certificate holds the two against each other.
        """
        relation, _ = self.promised()
        ones = self.draw(spaces, steps, UnitNoise())
        norm = self.norm(spaces, steps, ones)
        law = WholeNoise(norm, float(ones.scale) * float(ones.normals.min()), self.mu, self.largest)
        return Query(np.atleast_1d, norm.sensitivity(relation), law)

    def open(self, spaces: EnvironmentSpaces, steps: int, account: Account | None = None) -> Transcript:
        """Returns the transcript of one training, asked its one query; nothing is charged yet."""
        relation, budget = self.promised()
        transcript = Transcript(relation, budget, account)
        transcript.ask(self.query(spaces, steps))
        return transcript

    def certify(self, transcript: Transcript, spaces: EnvironmentSpaces, steps: int) -> Certificate:
        return transcript.certificate(
            self.name,
            tuple(zip(spaces.box.low, spaces.box.high, strict=True)),
            (Code.NEIGHBOURS(), Code.INDEPENDENT(), *self.conditions(steps)),
            ("Scores, returns and learning curves depend on the true reward and are not covered.",),
        )

    def certificate(self, spaces: EnvironmentSpaces, steps: int) -> Certificate:
        return self.certify(self.open(spaces, steps), spaces, steps)

    def private_step(self, spaces: EnvironmentSpaces, batch: Transition, key: PRNGKeyArray) -> PrivateStep:
        """Returns one round with all rewards of the batch in it, for an audit to look into."""
        raise InvalidInput(f"There is no private step to audit in {type(self).__name__}.")


def not_below(number: float) -> Float[np.ndarray, ""]:
    """The number in float32, rounded up: a scale that was rounded down would be too small.

    >>> all(not_below(n) >= n for n in (0.1, 0.3, 1 / 3))
    True
    """
    single = np.float32(number)
    return np.asarray(single if float(single) >= number else np.nextafter(single, np.float32(np.inf)))


def update_and_finish(method: Method, state: State) -> Callable[[Transition, NoiseDraw], Released]:
    """A round that ends with the training. What untaken branches of `update` would noise is not looked at."""

    def one_round(seen: Transition, noise: NoiseDraw) -> Released:
        with watched():
            after = method.update(state, seen, Moment(jnp.array(0), jax.random.key(0), noise))
        return method.finish(after, noise)

    return one_round


def hide_replay(state: State) -> State:
    return state._replace(replay=None)
