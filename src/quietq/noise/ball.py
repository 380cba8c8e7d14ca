"""Pure noise on numbers that neighbours change by at most a radius together, in the Euclidean norm.

Theorem (Hardt & Talwar 2010, for the Euclidean ball). If neighbours' numbers differ by at most Delta in the Euclidean
norm, then w + z with density proportional to exp(-epsilon |z|/Delta) is epsilon-DP, by the triangle inequality. z is a
uniform direction times a Gamma(d, Delta/epsilon) length, of root mean square Delta sqrt(d (d + 1))/epsilon, where
Gaussian noise has Delta sqrt(d)/mu: less while d + 1 < (epsilon/mu)^2. A release is drawn in real numbers and rounded
once (`noise.exact`), so that delta is 0 and not almost 0.

Proof: docs/theory.md#ball.
"""

import math
import secrets
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from quietq.noise.entropy import Entropy
from quietq.noise.exact import Enclosure, LazyUniform, RandomBits, decide, exponentials, round_exactly
from quietq.noise.laws import KNorm
from quietq.privacy.norms import AnyNorm


@dataclass(frozen=True)
class BallNoise(KNorm):
    """Noise on so many numbers, in the Euclidean norm."""

    count: int
    stated: AnyNorm
    """What certificates call this norm."""

    @property
    def norm(self) -> AnyNorm:
        return self.stated

    @property
    def sigma(self) -> float:
        return math.sqrt(self.count + 1) / self.rate

    def distance(self, difference: np.ndarray) -> float:
        return float(np.linalg.norm(difference))

    def draw(self, shape: tuple[int, ...], simulated: Entropy) -> Float[np.ndarray, "..."]:
        return self.draws(simulated, 1).reshape(shape)

    def draws(self, entropy: Entropy, number: int) -> Float[np.ndarray, "number numbers"]:
        """Returns so many draws in floating point: uniform directions times Gamma(count, 1/rate) lengths."""
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
