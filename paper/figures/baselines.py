"""The paper's baselines, for its relation: rewards that differ by at most 1. Here is what they share, and the first.

They are simulations for figure 2 and refuse any other noise. Both put noise into the learner that the authors ran.
How much is our reading. For noise on rewards the appendix names only the composition theorem of Kairouz et al.; we take
the formula that the paper quotes from it in the proof of its Theorem 5 (section 3.2). For noise on gradients it names
Theorem 1 of Abadi et al., with c2 = sqrt 2, and neither the sampling share, the clipping, nor the number of updates.
What the noise is really worth, for ideal Gaussian noise, is `mu`.

`InputPerturbation` (Venkitasubramaniam 2013): T observed rewards, each moved by at most 1 and noised once, are
sqrt(T)/sigma-GDP; all else is post-processing. The formula for sigma is conservative.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from quietq.learning.deep_q import DeepQ, DeepQState, check_learns
from quietq.learning.method import Noise, Spaces, Transition
from quietq.learning.options import option
from quietq.learning.protect import protect
from quietq.learning.published import Published
from quietq.noise.entropy import Entropy, SeededEntropy
from quietq.privacy.certificate import Certificate
from quietq.privacy.checks import positive, positive_delta
from quietq.privacy.errors import InvalidInput
from quietq.privacy.gaussian import epsilon_from_mu
from quietq.worlds.walk import WALK


class BaselineDraw(NamedTuple):
    """Normals, and the standard deviation that they are multiplied by."""

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
        settings |= {"epsilon": epsilon, "delta": delta, **changes}
        return cls(**settings)

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("epsilon", self.epsilon)
        positive_delta(self.delta)

    def core(self) -> Any:
        """Without the target, which is in the noise."""
        return replace(self, epsilon=1.0, delta=0.5)

    def check(self, spaces: Spaces, steps: int) -> None:
        """There must be something to learn."""
        check_learns(self, steps)

    @abstractmethod
    def sigma(self, steps: int) -> float:
        """The noise's standard deviation by our reading of the paper, in units of the sensitivity that it assumes."""

    @abstractmethod
    def mu(self, steps: int) -> float:
        """The Gaussian-DP parameter of that noise for the paper's relation, by the theorem at the top."""

    def worth(self, steps: int) -> float:
        """The epsilon that the noise is really worth, at the same delta."""
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
        """sqrt(T)/sigma."""
        return math.sqrt(steps) / self.sigma(steps)

    def draw(self, spaces: Spaces, steps: int, entropy: Entropy) -> BaselineDraw:
        """One normal a reward."""
        return drawn(entropy, (steps,), self.sigma(steps))

    def update(self, state: DeepQState, seen: Transition, step: Array, key: PRNGKeyArray, noise: Noise) -> DeepQState:
        """Noises the reward, and learns as ever."""
        copies = seen.reward.shape[0]
        index = step * copies + jnp.arange(copies)
        noised = protect(seen.reward, noise.normals[index], noise.scale)
        return super().update(state, seen._replace(reward=noised), step, key, noise)


def drawn(entropy: Entropy, shape: tuple[int, ...], scale: float) -> BaselineDraw:
    """Simulated normals of that scale; real noise is refused."""
    if not isinstance(entropy, SeededEntropy):
        raise InvalidInput("The paper's baselines are for simulation: use simulate, or a method of quietq's own.")
    return BaselineDraw(entropy.normals(shape).astype(np.float32), np.asarray(scale, np.float32))
