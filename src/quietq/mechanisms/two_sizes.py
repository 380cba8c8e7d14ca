"""How well Gaussian noise hides a shift if its own size differs between neighbours: exactly.

Theorem. Let P = N(0, I_d) and Q = N(a, t^2 I_d), with |a| <= alpha and 1 <= t <= e^beta. For every epsilon >= 0 the
divergences H(P|Q) = sup_E P(E) - e^epsilon Q(E) and H(Q|P) are at most the largest of three numbers: both of them at
|a| = alpha and t = e^beta, and what they are at |a| = alpha and t = 1, the delta of alpha-GDP. So nothing less will do.

Both grow with |a|; as functions of t they fall first, if at all, and rise then. The best E is a ball or its outside.
Its probability is an integral over the distance v from the line along a, which is chi distributed, of what the ball
leaves of that line. Proof: `docs/theory.md`, section 4.6.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.special import gammaincc, gammainccinv, gammaincinv, gammaln, ndtr

from quietq.privacy.gaussian import log_delta

_NODES = 200
_SMALLEST = 1e-300


def delta_of_two_sizes(alpha: float, beta: float, d: int, epsilon: float, tail: float) -> float:
    """The least delta, not too small by anything and too large by `tail` at the most, but for rounding."""
    pair = _Pair(alpha, beta, d, max(tail * math.exp(-min(epsilon, 600.0)), _SMALLEST))
    narrow_first = pair.inside(1.0, 0.0, epsilon) - _times(epsilon, pair.inside(pair.t, alpha, epsilon))
    wide_first = pair.outside(pair.t, alpha, -epsilon) - _times(epsilon, pair.outside(1.0, 0.0, -epsilon))
    return max(math.exp(log_delta(epsilon, alpha)), narrow_first + tail, wide_first + tail)


def _times(epsilon: float, mass: float) -> float:
    """e^epsilon mass, which is at most 1 wherever it matters."""
    return math.exp(min(epsilon + math.log(mass), 1.0)) if mass > 0 else 0.0


class _Pair:
    """P and Q at their extremes, and the ball in which ln p/q is at least a level."""

    def __init__(self, alpha: float, beta: float, d: int, tail: float) -> None:
        self.alpha, self.t, self.s, self.d, self.tail = alpha, math.exp(beta), math.expm1(2 * beta), d, tail

    def inside(self, size: float, mean: float, level: float) -> float:
        """The mass of N(mean, size^2 I) in the ball."""
        return self._mass(size, mean, level)[0]

    def outside(self, size: float, mean: float, level: float) -> float:
        return self._mass(size, mean, level)[1]

    def _mass(self, size: float, mean: float, level: float) -> tuple[float, float]:
        alpha, s, rest = self.alpha, self.s, self.d * math.log1p(self.s) - 2 * level
        squared_radius = (1 + s) * (alpha**2 + s * rest) / s**2
        if squared_radius <= 0:
            return 0.0, 1.0
        v, weights, beyond = _distances(self.d - 1, math.sqrt(squared_radius) / size, self.tail)
        # On the line at distance v the ball is s x^2 + 2 alpha x <= K.
        k = alpha**2 - s * (size * v) ** 2 + (1 + s) * rest
        root = alpha + np.sqrt(np.maximum(alpha**2 + s * k, 0.0))
        high, low = (k / root - mean) / size, (-root / s - mean) / size
        within = float(weights @ np.maximum(ndtr(high) - ndtr(low), 0.0))
        return within, float(weights @ (ndtr(-high) + ndtr(low))) + beyond


def _distances(degrees: int, most: float, tail: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Nodes and weights for distances below `most`, and the probability of those beyond; the tails are left out."""
    if degrees == 0:
        return np.zeros(1), np.ones(1), 0.0
    low, high = (math.sqrt(2 * float(q(degrees / 2, tail / 2))) for q in (gammaincinv, gammainccinv))
    nodes, weights = _rule()
    if most >= high:
        v, widths, beyond = low + (high - low) * nodes, (high - low) * weights, 0.0
    else:  # roots vanish at the edge: squares of nodes make them smooth
        width, beyond = most - min(low, most), float(gammaincc(degrees / 2, most**2 / 2))
        v, widths = most - width * nodes**2, 2 * width * nodes * weights
    with np.errstate(divide="ignore"):
        log = (degrees - 1) * np.log(v) - v**2 / 2 - (degrees / 2 - 1) * math.log(2) - float(gammaln(degrees / 2))
    return v, widths * np.exp(log), beyond


@lru_cache(maxsize=1)
def _rule() -> tuple[np.ndarray, np.ndarray]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return (1 + nodes) / 2, weights / 2
