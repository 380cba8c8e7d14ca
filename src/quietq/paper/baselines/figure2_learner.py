"""The learner into which figure 2 puts other authors' noise, for the paper's relation: rewards differ by at most 1.

What comes of it is a simulation for figure 2; any other noise is refused. How much noise is our reading. For noise on
rewards the appendix names only the composition theorem of Kairouz et al.; we take the formula that the paper quotes
from it in the proof of its Theorem 5 (section 3.2). For noise on gradients it names Theorem 1 of Abadi et al., with
c2 = sqrt 2, and neither the sampling share, the clipping, nor the number of updates. What the noise is really worth,
for ideal Gaussian noise, is `mu`.
"""

from abc import abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float

from quietq.noise.entropy import Entropy, SeededEntropy
from quietq.paper.agents.deep_q import DeepQ
from quietq.paper.agents.hyper_parameters import option
from quietq.paper.agents.method import EnvironmentSpaces
from quietq.paper.algorithm import Published
from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput
from quietq.privacy.gaussian import epsilon_from_mu
from quietq.worlds.walk import WALK


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

    def certificate(self, spaces: EnvironmentSpaces, steps: int) -> Certificate:
        """Standing `none`: nothing but simulated noise can be had."""
        return Certificate(method=self.name, standing="none", remarks=("A baseline for simulation only.",))


def simulated(entropy: Entropy, shape: tuple[int, ...], scale: float) -> BaselineDraw:
    """Simulated normals of that scale; real noise is refused."""
    if not isinstance(entropy, SeededEntropy):
        raise InvalidInput("The paper's baselines are for simulation: use simulate, or a method of quietq's own.")
    return BaselineDraw(entropy.normals(shape).astype(np.float32), np.asarray(scale, np.float32))
