"""How well noise of uniform direction and Gamma length hides a shift, if there may be a delta: exactly.

Theorem. Let z have density proportional to exp(-loss |z|) in n numbers, and let neighbours be at most 1 apart. The
least delta at epsilon is, with k = epsilon/loss < 1, z's length r and the cosine c of its angle with the shift,

    delta = P(c < (1 - k^2)/(2r) - k) - e^epsilon P(c > (1 - k^2)/(2r) + k).

For n = 1 the loss is all of `loss` half the time, and a delta helps nobody. In many dimensions it hardly ever is: the
same promise then needs less noise than a pure one, and less than Gaussian noise has. Proof: `docs/theory.md`, 4.1.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.special import betainc, gammainc, gammainccinv, gammaln

from quietq.privacy.roots import threshold

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(160)
_SURE = 1e-7
"""Of delta, relative: far more than what numerical integration is off by."""
_SMALLEST = 1e-300
_MOST_EPSILON = 600.0
_MOST_NUMBERS = 10_000
"""Of more, lengths lie so near together that the nodes would miss them: their noise stays pure."""


@lru_cache(maxsize=64)
def epsilon_of_ball(loss: float, numbers: int, delta: float) -> float:
    """The least epsilon, at most `loss`, which it is without a delta."""
    if numbers == 1 or numbers > _MOST_NUMBERS or loss > _MOST_EPSILON:
        return loss
    return threshold(lambda epsilon: _delta(loss, numbers, epsilon, delta) <= delta, 0.0, loss)[1]


@lru_cache(maxsize=64)
def loss_of_ball(epsilon: float, numbers: int, delta: float) -> float:
    """The most that may be lost, for less noise: at least epsilon, which it is without a delta.

    >>> [round(0.9 / loss_of_ball(0.9, numbers, 1e-4), 2) for numbers in (4, 6, 8)]
    [0.96, 0.91, 0.85]
    """
    if numbers == 1 or numbers > _MOST_NUMBERS or epsilon > _MOST_EPSILON / 2:
        return epsilon
    high = 2 * epsilon
    while high < _MOST_EPSILON and _delta(high, numbers, epsilon, delta) <= delta:
        high *= 2
    return threshold(lambda loss: _delta(loss, numbers, epsilon, delta) > delta, epsilon, high)[0]


def _delta(loss: float, numbers: int, epsilon: float, delta: float) -> float:
    """Not too small; `delta` says how small numbers still matter."""
    if epsilon >= loss:
        return 0.0
    k, tail = epsilon / loss, max(_SURE * delta * math.exp(-epsilon), _SMALLEST)
    nearest, farthest = loss * (1 - k) / 2, float(gammainccinv(numbers, tail))  # of lengths, in units of 1/loss
    low, weights = _lengths(numbers, nearest, farthest)
    first = float(gammainc(numbers, nearest)) + float(weights @ _below(loss * (1 - k * k) / (2 * low) - k, numbers))
    high, weights = _lengths(numbers, loss * (1 + k) / 2, farthest)
    second = float(weights @ _below(-k - loss * (1 - k * k) / (2 * high), numbers))
    return (first - math.exp(epsilon) * second + tail) * (1 + _SURE)


def _lengths(numbers: int, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for Gamma lengths; squares, because what is integrated may begin with a root at the low end."""
    nodes, width = (1 + _NODES) / 2, max(high - low, 0.0)
    lengths = low + width * nodes**2
    log = (numbers - 1) * np.log(lengths) - lengths - float(gammaln(numbers))
    return lengths, width * nodes * _WEIGHTS * np.exp(log)


def _below(cosine: np.ndarray, numbers: int) -> np.ndarray:
    """The probability that a uniform direction has a smaller cosine."""
    held = np.clip(cosine, -1.0, 1.0)
    tail = betainc((numbers - 1) / 2, 0.5, 1 - held**2) / 2
    return np.where(held < 0, tail, 1 - tail)
