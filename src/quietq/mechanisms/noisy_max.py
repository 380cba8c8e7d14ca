"""The largest of several numbers, each with exponential noise of its own: which one it is, and nothing else.

Theorem. If neighbours' numbers move by d, with max d - min d at most Delta, then the place of the largest of
q_j + scale E_j, with independent standard exponential E_j, is (Delta/scale)-DP, without a delta. *Proof.* Fix the noise
of all but j, and let M be the largest of the others. j wins with probability min(1, exp(-(M - q_j)/scale)). For a
neighbour M - q_j grows by at most max d - min d, so that falls by a factor of at most exp(Delta/scale). It is attained
wherever both probabilities are below 1. (McKenna & Sheldon 2020 state it as permute-and-flip; Ding, Kifer et al. 2021
show the two to be the same.)
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.mechanisms.laws import Law
from quietq.noise.entropy import Entropy
from quietq.noise.exact import LazyUniform, Undecided, decide, exponentials
from quietq.privacy import Assumption, Cost


@dataclass(frozen=True)
class NoisyMax(Law):
    """Only the place of the largest number comes out."""

    scale: float
    norm: dict[str, Any]

    @property
    def sigma(self) -> float:
        return self.scale

    def distance(self, difference: np.ndarray) -> float:
        return float(np.ptp(difference))

    def log_density(self, noise: np.ndarray) -> float:
        return -float(noise.sum()) / self.scale if (noise >= 0).all() else -np.inf

    def cost(self, sensitivity: float) -> Cost:
        return Cost.apart(sensitivity / self.scale)

    def draw(self, shape: tuple[int, ...], entropy: Entropy) -> Float[np.ndarray, "..."]:
        return -self.scale * np.log(entropy.uniforms(shape))

    def add(self, numbers: np.ndarray, entropy: Entropy) -> Float[np.ndarray, " 1"]:
        """The place of the largest of numbers + noise; what protects is decided in real numbers."""
        if entropy.reproducible:
            return np.array([float(np.argmax(numbers + self.draw(numbers.shape, entropy)))])
        return np.array([float(largest_exactly(numbers, self.scale))])

    def measured(self) -> dict[str, Any]:
        return {"norm": self.norm, "sigma": self.sigma, "scale": self.scale}

    def conditions(self, largest: float, error: float) -> tuple[Assumption, ...]:
        exact = (
            "Exponential noise was drawn from the operating system's generator, with as many bits as it took to tell "
            "which number is the largest, and only its place was released."
        )
        bounded = f"Numbers stay below {largest:g} in size whatever the data is, and were computed to within {error:g}."
        return Assumption(exact, True), Assumption(bounded, False)


def largest_exactly(numbers: np.ndarray, scale: float) -> int:
    """Where numbers + scale E is largest, with as many bits of E as that takes."""
    uniforms = [LazyUniform() for _ in numbers]

    def largest() -> int:
        noisy = [exponentials([one]) * scale + float(number) for one, number in zip(uniforms, numbers, strict=True)]
        best = max(range(len(noisy)), key=lambda j: noisy[j].low)
        if any(one.high >= noisy[best].low for j, one in enumerate(noisy) if j != best):
            raise Undecided
        return best

    return decide(largest, uniforms)
