"""K-norm noise on the increments between knots: pure epsilon-DP, delta = 0.

Theorem (Hardt & Talwar 2010). If neighbours' vectors u, u' of d numbers differ by an element of a symmetric convex body
K, then u + z with density proportional to exp(-epsilon |z|_K) is epsilon-DP, by the triangle inequality. z is
Gamma(d + 1, 1/epsilon) times a uniform point of K.

Here u are the increments of the reward between d + 1 knots: the constant is left out, because it changes no policy when
all episodes have the same length. Neighbours in a LipschitzBall(rho, l) differ by increments |u_i| <= l/d whose running
sum has a range of at most 2 rho. Uniform points of that body come from a cube by rejection, which is exact.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from quietq.noise.entropy import Entropy, SeededEntropy
from quietq.privacy.checks import count, positive
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import LipschitzBall

_AT_ONCE = 20_000
_MOST_TRIES = 4_000_000


@dataclass(frozen=True)
class IncrementBody:
    """What replacing one person can do to the increments between knots.

    >>> body = IncrementBody(LipschitzBall(radius=0.5, lipschitz=2.0), pieces=4)
    >>> body.gauge(np.array([0.5, 0.5, 0.0, 0.0]))  # as far as it goes
    1.0
    """

    ball: LipschitzBall
    pieces: int
    """d, the number of increments"""

    def __post_init__(self) -> None:
        if not 1 <= count("pieces", self.pieces) <= 32:
            raise InvalidInput(f"K-norm noise has 1 to 32 pieces between knots, not {self.pieces}.")

    def gauge(self, increments: np.ndarray) -> float:
        """|u|_K: at most 1 inside the body."""
        path = np.append(0.0, np.cumsum(increments))
        steepest = np.abs(increments).max() / (self.ball.lipschitz / self.pieces)
        return float(max(steepest, np.ptp(path) / (2 * self.ball.radius)))

    def uniform(self, entropy: Entropy, points: int = 1) -> Float[np.ndarray, "points pieces"]:
        """Independent uniform points of the body."""
        half = min(self.ball.lipschitz / self.pieces, 2 * self.ball.radius)
        found, accepted, tries = [], 0, 0
        while accepted < points:
            if tries >= _MOST_TRIES:
                raise InvalidInput(f"{self.pieces} pieces are too many for this range and slope: use fewer knots.")
            cube = half * (2 * entropy.uniforms((_AT_ONCE, self.pieces)) - 1)
            sums = np.cumsum(cube, axis=1)
            spread = np.maximum(sums.max(axis=1), 0) - np.minimum(sums.min(axis=1), 0)
            found.append(cube[spread <= 2 * self.ball.radius])
            accepted += len(found[-1])
            tries += _AT_ONCE
        return np.concatenate(found)[:points]


def draw(body: IncrementBody, epsilon: float, entropy: Entropy, draws: int = 1) -> Float[np.ndarray, "draws pieces"]:
    """Independent K-norm noise vectors."""
    exponentials = -np.log(entropy.uniforms((draws, body.pieces + 1)))
    length = exponentials.sum(axis=1, keepdims=True) / positive("epsilon", epsilon)  # Gamma(pieces + 1, 1/epsilon)
    return length * body.uniform(entropy, draws)


@functools.lru_cache(maxsize=64)
def typical_noise(body: IncrementBody, epsilon: float) -> float:
    """Root mean square of the noise in the released function, up to its constant: public, by a fixed simulation."""
    curves = to_curve(draw(body, epsilon, SeededEntropy(0), draws=2000))
    return math.sqrt(float(np.mean(curves**2)))


def to_curve(increments: np.ndarray) -> Float[np.ndarray, "... knots"]:
    """Values at the knots from increments, centred."""
    zero = np.zeros((*increments.shape[:-1], 1))
    curve = np.concatenate([zero, np.cumsum(increments, axis=-1)], axis=-1)
    return curve - curve.mean(axis=-1, keepdims=True)
