"""The laws of noise: how it is drawn, in which norm it hides a difference, and what hiding one costs.

Theorems. Gaussian noise sigma L z, with z ~ N(0, I), hides numbers that differ by at most Delta in |L^-1 v| with
mu = Delta/sigma (Gaussian DP). Noise of density proportional to exp(-rate |z|_K), for the gauge of a symmetric convex
body K, hides numbers that differ by at most Delta in that gauge with epsilon = rate Delta, by the triangle inequality
(Hardt & Talwar 2010). Both laws own their distance, so that auditors and "auto" ask them and keep no copy.

Proof: docs/theory.md#gaussian-process and docs/theory.md#k-norm.
"""

import secrets
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from quietq.noise.entropy import Entropy
from quietq.noise.exact import RandomBits
from quietq.noise.exact_gaussian import Whitened, add_exactly, as_they_are
from quietq.noise.rounding import (
    check_size,
    check_values,
    exact_rounding,
    largest_value,
    round_release,
    rounding_step,
)
from quietq.privacy import Assumption, Cost
from quietq.privacy.checks import positive
from quietq.privacy.norms import AnyNorm
from quietq.privacy.transcript import Law


class RoundedLaw(Law):
    """Noise that is drawn in real numbers, of which sums are rounded to a step far below it (`noise.rounding`)."""

    def check_size(self, largest: float) -> None:
        check_size(largest, self.sigma)

    def check_values(self, numbers: np.ndarray) -> None:
        check_values(numbers, largest_value(self.sigma))

    def assumptions(self, largest: float, error: float) -> tuple[Assumption, ...]:
        return exact_rounding(self.sigma, largest, error)

    @abstractmethod
    def add_exactly(self, numbers: np.ndarray) -> Float[np.ndarray, "..."]:
        """Returns numbers + noise that was drawn in real numbers, rounded to the public step."""

    def add(
        self, numbers: np.ndarray, simulated: Entropy | None = None, given: object = None
    ) -> Float[np.ndarray, "..."]:
        if simulated is None or not simulated.reproducible:
            return self.add_exactly(numbers)
        return round_release(numbers, self.draw(numbers.shape, simulated), self.sigma)


@dataclass(frozen=True)
class Gaussian(RoundedLaw):
    """Independent Gaussian noise of one deviation, as every mean of people has it; what protects is drawn exactly.

    A subclass correlates it, as sigma L z with standard normals z: it overrides what is said of L here.
    """

    family = "gaussian"
    deviation: float
    stated: AnyNorm
    """The norm in which certificates state the noise."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "deviation", positive("deviation", self.deviation))  # a plain float, and no subclass

    @property
    def norm(self) -> AnyNorm:
        return self.stated

    @property
    def size(self) -> float:
        return self.deviation

    @property
    def sigma(self) -> float:
        return self.deviation

    def distance(self, difference: np.ndarray) -> float:
        """Returns |L^-1 v|."""
        return float(np.linalg.norm(difference))

    def unit(self, shape: tuple[int, ...], simulated: Entropy) -> Float[np.ndarray, "..."]:
        """Returns L z in floating point."""
        return simulated.normals(shape)

    def whiten(self, numbers: np.ndarray, step: float) -> Whitened:
        """Returns L^-1 v in units of the step, for noise that is drawn exactly."""
        return as_they_are(numbers, step)

    def restore(self, whitened: np.ndarray) -> Float[np.ndarray, "..."]:
        """Returns v, from L^-1 v."""
        return whitened

    def log_density(self, noise: np.ndarray) -> float:
        return -((self.distance(noise) / self.sigma) ** 2) / 2

    def cost(self, sensitivity: float) -> Cost:
        return Cost.gaussian(sensitivity / self.sigma)

    def draw(self, shape: tuple[int, ...], simulated: Entropy) -> Float[np.ndarray, "..."]:
        return self.sigma * self.unit(shape, simulated)

    def add_exactly(self, numbers: np.ndarray) -> Float[np.ndarray, "..."]:
        """Where noise is independent, numbers + noise, rounded once; what follows is computed from that alone."""
        step = rounding_step(self.sigma)
        restored = self.restore(add_exactly(self.whiten(numbers, step), self.sigma, step))
        return round_release(restored, np.zeros(()), self.sigma)


@dataclass(frozen=True)
class KNorm(RoundedLaw):
    """Pure noise of density exp(-rate |z|) in the gauge of a symmetric convex body: what one person can do.

    A subclass says which body by `norm`, by the gauge, which is its `distance`, and by how noise is drawn.
    """

    family = "pure"
    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", positive("rate", self.rate))  # a plain float, and no subclass

    @property
    def size(self) -> float:
        return 1 / self.rate

    @abstractmethod
    def distance(self, difference: np.ndarray) -> float:
        """Returns |v| in the gauge: at most 1 inside the body."""

    def log_density(self, noise: np.ndarray) -> float:
        return -self.rate * self.distance(noise)

    def cost(self, sensitivity: float) -> Cost:
        return Cost.apart(self.rate * sensitivity)

    def add_exactly(self, numbers: np.ndarray) -> Float[np.ndarray, "..."]:
        return self.round_exactly(numbers, rounding_step(self.sigma))

    @abstractmethod
    def round_exactly(
        self, numbers: np.ndarray, step: float, random_bits: RandomBits = secrets.randbits
    ) -> Float[np.ndarray, "..."]:
        """Returns numbers + noise of exactly that density, rounded once to multiples of the step."""
