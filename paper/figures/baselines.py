"""The paper's baselines, for its relation: rewards that differ by at most 1.

They are simulations for figure 2 and refuse any other noise. Both put noise into the learner that the authors ran.
How much is our reading. For noise on rewards the appendix names only the composition theorem of Kairouz et al.; we take
the formula that the paper quotes from it in the proof of its Theorem 5 (section 3.2). For noise on gradients it names
Theorem 1 of Abadi et al., with c2 = sqrt 2, and neither the sampling share, the clipping, nor the number of updates.
What the noise is really worth, for ideal Gaussian noise, is `mu`.

`InputPerturbation` (Venkitasubramaniam 2013): T observed rewards, each moved by at most 1 and noised once, are
sqrt(T)/sigma-GDP; all else is post-processing. The formula for sigma is conservative.

`GradientPerturbation` (Abadi et al. 2016). Ours: a sampling share q of 1, because every reward may change; noise
sigma C on the mean of a batch's clipped gradients; U updates, as many as the authors' program makes. Neighbours'
clipped gradients both have a length of at most C and may point in opposite directions; with all rewards replaced, the
mean of a batch moves by up to 2C, so that U updates are 2 sqrt(U)/sigma-GDP. Abadi et al. count C, because there a
person is added or removed; for rewards that are *replaced* a factor 2 is missing. Huber's loss does not make up for it:
its derivative moves by no more than the reward, so a gradient by at most min(2C, |grad Q|), which would be C if
|grad Q| were at most C; but the derivative by the output's bias alone is 1 = C, and nothing bounds the others. 2C is
attained where |grad Q| >= 2C, by temporal differences of plus and minus a half in a batch of equal transitions.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from quietq.learning import replay as memory
from quietq.learning.deep_q import DeepQ, DeepQState, chosen
from quietq.learning.method import Moment, Spaces, Transition
from quietq.learning.networks import Network
from quietq.learning.options import option
from quietq.learning.protect import protect
from quietq.learning.published import Published
from quietq.noise.entropy import Entropy, SeededEntropy
from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput
from quietq.privacy.gaussian import epsilon_from_mu
from quietq.worlds.walk import WALK

C2 = math.sqrt(2)
"""The constant of Abadi et al.'s theorem 1, as the paper sets it."""


class BaselineDraw(NamedTuple):
    normals: Float[np.ndarray, "..."]
    scale: Float[np.ndarray, ""]


@dataclass(frozen=True, kw_only=True)
class Baseline(DeepQ):
    """The authors' learner, without their noise, and with another's."""

    spends: ClassVar[bool] = True
    epsilon: float = option(0.9, "The target, by our reading of the paper's computation.")
    delta: float = option(1e-4, "The target's delta.")

    @classmethod
    def of(cls, epsilon: float, delta: float, **changes: Any) -> Any:
        """With the settings of the authors' program; its target network is copied every tenth episode."""
        theirs = Published.code(0.0)
        settings: dict[str, Any] = {field.name: getattr(theirs, field.name) for field in fields(DeepQ) if field.init}
        settings["target_every"] = theirs.target_every * WALK.steps
        return cls(**settings | {"epsilon": epsilon, "delta": delta, **changes})

    def core(self) -> Any:
        """Without the target, which is in the noise."""
        return replace(self, epsilon=1.0, delta=0.5)

    @abstractmethod
    def sigma(self, steps: int) -> float:
        """The noise's standard deviation by our reading of the paper, in units of the sensitivity that it assumes."""

    @abstractmethod
    def mu(self, steps: int) -> float:
        """The Gaussian-DP parameter of that noise for the paper's relation, by the theorem at the top."""

    def worth(self, steps: int) -> float:
        return epsilon_from_mu(self.mu(steps), self.delta)

    def certificate(self, spaces: Spaces, steps: int) -> Certificate:
        """Standing `none`: nothing but simulated noise can be had."""
        return Certificate(method=self.name, standing="none", remarks=("A baseline for simulation only.",))


@dataclass(frozen=True, kw_only=True)
class InputPerturbation(Baseline):
    """Every observed reward gets noise once, before it is stored.

    >>> one = InputPerturbation.of(0.9, 1e-4)
    >>> round(one.sigma(5000), 1), round(one.worth(5000), 3)
    (1029.8, 0.181)
    """

    name: ClassVar[str] = "input perturbation"

    def sigma(self, steps: int) -> float:
        """By the composition that the paper quotes as the best known (proof of Theorem 5), for a sensitivity of 1."""
        logs = math.log(1.25 / self.delta) * math.log(math.e + self.epsilon / self.delta)
        return math.sqrt(2 * steps * logs) / self.epsilon

    def mu(self, steps: int) -> float:
        return math.sqrt(steps) / self.sigma(steps)

    def draw(self, spaces: Spaces, steps: int, entropy: Entropy) -> BaselineDraw:
        return simulated(entropy, (steps,), self.sigma(steps))

    def update(self, state: DeepQState, seen: Transition, now: Moment) -> DeepQState:
        copies = seen.reward.shape[0]
        index = now.step * copies + jnp.arange(copies)
        noised = protect(seen.reward, now.noise.normals[index], now.noise.scale)
        return super().update(state, seen._replace(reward=noised), now)


@dataclass(frozen=True, kw_only=True)
class GradientPerturbation(Baseline):
    """Every transition's gradient is clipped, and their mean is noised.

    >>> one = GradientPerturbation.of(0.9, 1e-4)
    >>> one.updates(5000), round(one.sigma(5000)), round(one.worth(5000), 2)
    (4873, 333, 1.39)
    """

    name: ClassVar[str] = "gradient perturbation"
    clip: float = option(1.0, "C: the length that each transition's gradient is clipped to.")

    def updates(self, steps: int) -> int:
        """U: one at every step, as the authors have it, from the first full batch on."""
        return steps - self.start + 1

    def sigma(self, steps: int) -> float:
        """By Abadi et al.'s theorem 1 with a sampling share of 1: our reading."""
        return C2 * math.sqrt(self.updates(steps) * math.log(1 / self.delta)) / self.epsilon

    def mu(self, steps: int) -> float:
        return 2 * math.sqrt(self.updates(steps)) / self.sigma(steps)

    def draw(self, spaces: Spaces, steps: int, entropy: Entropy) -> BaselineDraw:
        return simulated(entropy, (self.updates(steps), self.parameters(spaces)), self.sigma(steps) * self.clip)

    def update(self, state: DeepQState, seen: Transition, now: Moment) -> DeepQState:
        copies, noise = seen.action.shape[0], now.noise
        buffer = memory.store(state.replay, seen, now.step, self.bootstrap_truncated)
        turn = now.step + 1 - self.start

        def gradient(network: Network) -> Any:
            batch = memory.sample(buffer, self.batch, copies, now)
            mean = self.clipped(network, self.goals(state.target, batch), batch)
            flat, build = ravel_pytree(eqx.filter(mean, eqx.is_array))
            return build(protect(flat, noise.normals[turn], noise.scale))

        ready = (turn >= 0) & (turn < noise.normals.shape[0])
        return self.descend(state, buffer, gradient, ready, (now.step + 1) % self.target_every == 0)

    def clipped(self, network: Network, goals: Float[Array, " batch"], batch: Transition) -> Any:
        """The mean of the transitions' gradients, each clipped to length C."""

        def loss(network: Network, goal: Array, state: Array, action: Array) -> Array:
            return self.losses(chosen(network(state)[None], action[None]) - goal[None])[0]

        each = jax.vmap(eqx.filter_grad(loss), in_axes=(None, 0, 0, 0))(network, goals, batch.state, batch.action)
        squares = [(leaf.reshape(len(goals), -1) ** 2).sum(axis=1) for leaf in jax.tree.leaves(each)]
        lengths = jnp.sqrt(sum(squares[1:], squares[0]))
        share = jnp.minimum(1.0, self.clip / jnp.maximum(lengths, 1e-12)) / len(goals)
        return jax.tree.map(lambda leaf: jnp.tensordot(share, leaf, 1), each)


def simulated(entropy: Entropy, shape: tuple[int, ...], scale: float) -> BaselineDraw:
    """Simulated normals of that scale; real noise is refused."""
    if not isinstance(entropy, SeededEntropy):
        raise InvalidInput("The paper's baselines are for simulation: use simulate, or a method of quietq's own.")
    return BaselineDraw(entropy.normals(shape).astype(np.float32), np.asarray(scale, np.float32))
