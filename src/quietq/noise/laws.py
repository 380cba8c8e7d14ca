"""The laws of noise: how it is drawn, in which norm it hides a difference, and what hiding one costs.

Theorems. Gaussian noise sigma L z, with z ~ N(0, I), hides numbers that differ by at most Delta in |L^-1 v| with
mu = Delta/sigma (Gaussian DP). Noise of density proportional to exp(-rate |z|_K), for the gauge of a symmetric convex
body K, hides numbers that differ by at most Delta in that gauge with epsilon = rate Delta, by the triangle inequality
(Hardt & Talwar 2010). Both laws own their distance, so that auditors and "auto" ask them and keep no copy.

Proof: docs/theory.md#gaussian-process and docs/theory.md#k-norm.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from quietq.noise.entropy import Entropy
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


@runtime_checkable
class Shape(Protocol):
    """Gaussian noise of unit size, correlated in some way: L z."""

    @property
    def norm(self) -> AnyNorm:
        """Returns the norm in which certificates state the noise."""
        ...

    def draw(self, shape: tuple[int, ...], entropy: Entropy) -> np.ndarray:
        """Returns L z in floating point."""
        ...

    def length(self, difference: np.ndarray) -> float:
        """Returns |L^-1 v|."""
        ...

    def whiten(self, numbers: np.ndarray, step: float) -> Whitened:
        """Returns L^-1 v in units of the step, for noise that is drawn exactly."""
        ...

    def restore(self, whitened: np.ndarray) -> np.ndarray:
        """Returns v, from L^-1 v."""
        ...


@dataclass(frozen=True)
class Independent:
    """Independent normals, the shape of noise on every mean of people; `norm` is what certificates call their
    Euclidean norm.
    """

    norm: AnyNorm

    def draw(self, shape: tuple[int, ...], entropy: Entropy) -> Float[np.ndarray, "..."]:
        return entropy.normals(shape)

    def length(self, difference: np.ndarray) -> float:
        return float(np.linalg.norm(difference))

    def whiten(self, numbers: np.ndarray, step: float) -> Whitened:
        return as_they_are(numbers, step)

    def restore(self, whitened: np.ndarray) -> Float[np.ndarray, "..."]:
        return whitened


@dataclass(frozen=True)
class Gaussian(RoundedLaw):
    """Gaussian noise: sigma times noise of a shape. What protects is drawn in real numbers."""

    family = "gaussian"
    deviation: float
    shape: Shape

    def __post_init__(self) -> None:
        object.__setattr__(self, "deviation", positive("deviation", self.deviation))  # a plain float, and no subclass

    @property
    def norm(self) -> AnyNorm:
        return self.shape.norm

    @property
    def size(self) -> float:
        return self.deviation

    @property
    def sigma(self) -> float:
        return self.deviation

    def distance(self, difference: np.ndarray) -> float:
        return self.shape.length(difference)

    def log_density(self, noise: np.ndarray) -> float:
        return -((self.distance(noise) / self.sigma) ** 2) / 2

    def cost(self, sensitivity: float) -> Cost:
        return Cost.gaussian(sensitivity / self.sigma)

    def draw(self, shape: tuple[int, ...], simulated: Entropy) -> Float[np.ndarray, "..."]:
        return self.sigma * self.shape.draw(shape, simulated)

    def add_exactly(self, numbers: np.ndarray) -> Float[np.ndarray, "..."]:
        """Where noise is independent, numbers + noise, rounded once; what follows is computed from that alone."""
        step = rounding_step(self.sigma)
        restored = self.shape.restore(add_exactly(self.shape.whiten(numbers, step), self.sigma, step))
        return round_release(restored, np.zeros(()), self.sigma)


@runtime_checkable
class Body(Protocol):
    """A symmetric convex body, what one person can do to the numbers, and noise of density exp(-rate |z|) in its
    gauge.
    """

    @property
    def norm(self) -> AnyNorm:
        """Returns the norm in which certificates state the noise."""
        ...

    def gauge(self, difference: np.ndarray) -> float:
        """Returns |v| in the gauge: at most 1 inside the body."""
        ...

    def draw(self, rate: float, entropy: Entropy) -> np.ndarray:
        """Returns noise in floating point."""
        ...

    def add_exactly(self, numbers: np.ndarray, rate: float, step: float) -> np.ndarray:
        """Returns numbers + noise of exactly that density, rounded once to the step."""
        ...

    def typical_noise(self, rate: float) -> float:
        """Returns the noise's typical size in the numbers that it is added to."""
        ...


@dataclass(frozen=True)
class KNorm(RoundedLaw):
    """Pure noise of density exp(-rate |z|) in the gauge of a body. What protects is drawn in real numbers."""

    family = "pure"
    body: Body
    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", positive("rate", self.rate))  # a plain float, and no subclass

    @property
    def norm(self) -> AnyNorm:
        return self.body.norm

    @property
    def size(self) -> float:
        return 1 / self.rate

    @property
    def sigma(self) -> float:
        return self.body.typical_noise(self.rate)

    def distance(self, difference: np.ndarray) -> float:
        return self.body.gauge(difference)

    def log_density(self, noise: np.ndarray) -> float:
        return -self.rate * self.distance(noise)

    def cost(self, sensitivity: float) -> Cost:
        return Cost.apart(self.rate * sensitivity)

    def draw(self, shape: tuple[int, ...], simulated: Entropy) -> Float[np.ndarray, "..."]:
        return self.body.draw(self.rate, simulated).reshape(shape)

    def add_exactly(self, numbers: np.ndarray) -> Float[np.ndarray, "..."]:
        return self.body.add_exactly(numbers, self.rate, rounding_step(self.sigma))
