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
from quietq.privacy.norms import AnyNorm


@dataclass(frozen=True)
class Ball:
    """The unit ball of so many numbers; `norm` is what certificates call it."""

    size: int
    norm: AnyNorm

    def gauge(self, difference: np.ndarray) -> float:
        return float(np.linalg.norm(difference))

    def draw(self, rate: float, entropy: Entropy) -> Float[np.ndarray, " numbers"]:
        return self.draws(rate, entropy, 1)[0]

    def draws(self, rate: float, entropy: Entropy, number: int) -> Float[np.ndarray, "number numbers"]:
        direction = entropy.normals((number, self.size))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        return -np.log(entropy.uniforms((number, self.size))).sum(axis=1, keepdims=True) / rate * direction

    def add_exactly(
        self, numbers: np.ndarray, rate: float, step: float, random_bits: RandomBits = secrets.randbits
    ) -> Float[np.ndarray, "..."]:
        """Numbers with exact noise of that density, rounded to multiples of the step.

        Directions come from pairs of normals by the polar method (Marsaglia & Bray 1964), all in real numbers.
        """
        lengths = [LazyUniform(random_bits) for _ in range(self.size)]
        discs = [_in_disc(random_bits) for _ in range(-(-self.size // 2))]

        def noise() -> list[Enclosure]:
            normals = [normal for disc in discs for normal in _normals(*disc)][: self.size]
            squares = sum((normal * normal for normal in normals), Enclosure.exactly(0))
            length = exponentials(lengths) / rate / squares.sqrt()
            return [length * normal for normal in normals]

        return round_exactly(numbers, noise, [*lengths, *(uniform for disc in discs for uniform in disc)], step)

    def typical_noise(self, rate: float) -> float:
        return math.sqrt(self.size + 1) / rate


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
