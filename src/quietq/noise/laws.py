"""The laws of noise: how it is drawn, in which norm it hides a difference, and what hiding one costs.

Theorems. Gaussian noise sigma L z, with z ~ N(0, I), hides numbers that differ by at most Delta in |L^-1 v| with
mu = Delta/sigma (Gaussian DP). Noise of density proportional to exp(-rate |z|_K), for the gauge of a symmetric convex
body K, hides numbers that differ by at most Delta in that gauge with epsilon = rate Delta, by the triangle inequality
(Hardt & Talwar 2010). Both laws own their distance, so that auditors and "auto" ask them and keep no copy.

For the Euclidean ball in d dimensions, K-norm noise is a uniform direction times a Gamma(d, Delta/epsilon) length, of
root mean square Delta sqrt(d (d + 1))/epsilon, where Gaussian noise has Delta sqrt(d)/mu: less while
d + 1 < (epsilon/mu)^2. A release is drawn in real numbers and rounded once, so that delta is 0 and not almost 0.

Proof: docs/theory.md#gaussian-process, docs/theory.md#k-norm and docs/theory.md#ball.
"""

import math
import secrets
from abc import abstractmethod
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from quietq.noise.entropy import Entropy
from quietq.noise.exact import Enclosure, LazyUniform, RandomBits, decide, exponentials, round_exactly
from quietq.noise.exact_gaussian import Whitened, add_exactly, as_they_are
from quietq.noise.rounding import (
    check_size,
    check_values,
    largest_value,
    round_release,
    rounding_step,
)
from quietq.privacy import Assumption, Code, Cost
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
        step = rounding_step(self.sigma)
        return Code.NUMBERS_BOUNDED(largest, error), Code.EXACT_NOISE(step)

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
    sigma: float
    norm: AnyNorm
    size: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", positive("sigma", self.sigma))  # a plain float, and no subclass
        object.__setattr__(self, "size", self.sigma)

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
        """Returns, where noise is independent, numbers + noise, rounded once; the rest is computed from that alone."""
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
    def size(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
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

    def draw(self, shape: tuple[int, ...], simulated: Entropy) -> Float[np.ndarray, "..."]:
        return self.draws(simulated, 1).reshape(shape)

    @abstractmethod
    def draws(self, entropy: Entropy, number: int) -> Float[np.ndarray, "number numbers"]:
        """Returns this number of draws in floating point."""

    @abstractmethod
    def round_exactly(
        self, numbers: np.ndarray, step: float, random_bits: RandomBits = secrets.randbits
    ) -> Float[np.ndarray, "..."]:
        """Returns numbers + noise of exactly that density, rounded once to multiples of the step."""


@dataclass(frozen=True)
class BallNoise(KNorm):
    """Noise on a vector of this length, in the Euclidean norm."""

    count: int
    norm: AnyNorm

    @property
    def sigma(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return math.sqrt(self.count + 1) / self.rate

    def distance(self, difference: np.ndarray) -> float:
        return float(np.linalg.norm(difference))

    def draws(self, entropy: Entropy, number: int) -> Float[np.ndarray, "number numbers"]:
        """Returns uniform directions times Gamma(count, 1/rate) lengths."""
        direction = entropy.normals((number, self.count))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        return -np.log(entropy.uniforms((number, self.count))).sum(axis=1, keepdims=True) / self.rate * direction

    def round_exactly(
        self, numbers: np.ndarray, step: float, random_bits: RandomBits = secrets.randbits
    ) -> Float[np.ndarray, "..."]:
        """Directions come from pairs of normals by the polar method (Marsaglia & Bray 1964), all in real numbers."""
        lengths = [LazyUniform(random_bits) for _ in range(self.count)]
        discs = [_in_disc(random_bits) for _ in range(-(-self.count // 2))]

        def noise() -> list[Enclosure]:
            normals = [normal for disc in discs for normal in _normals(*disc)][: self.count]
            squares = sum((normal * normal for normal in normals), Enclosure.exactly(0))
            length = exponentials(lengths) / self.rate / squares.sqrt()
            return [length * normal for normal in normals]

        return round_exactly(numbers, noise, [*lengths, *(uniform for disc in discs for uniform in disc)], step)


def _in_disc(random_bits: RandomBits) -> tuple[LazyUniform, LazyUniform]:
    """A uniform point of the unit disc, by where it lies in the square around it."""
    while True:
        pair = LazyUniform(random_bits), LazyUniform(random_bits)
        if decide(lambda pair=pair: _is_in_disc(*map(_signed, pair)), pair):
            return pair


def _is_in_disc(x: Enclosure, y: Enclosure) -> bool:
    return (x * x + y * y).is_below(1)


def _normals(first: LazyUniform, second: LazyUniform) -> list[Enclosure]:
    """Two independent standard normals from a uniform point of the disc."""
    x, y = _signed(first), _signed(second)
    squared = x * x + y * y
    factor = (2 * -squared.log() / squared).sqrt()
    return [x * factor, y * factor]


def _signed(uniform: LazyUniform) -> Enclosure:
    return 2 * uniform.enclosure() + -1
