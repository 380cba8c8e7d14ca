"""Gaussian noise whose size follows the data: the smooth sensitivity of Nissim, Raskhodnikova & Smith (2007).

Theorem. Let S be such that any two neighbours X, X' have |f(X) - f(X')| <= S(X) and S(X') <= e^beta S(X). Then
f(X) + (S(X)/alpha) N(0, I_d) is (epsilon, delta)-DP if delta is at least the exact one of two Gaussians that are alpha
apart and differ by e^beta in size (`delta_of_two_sizes`).

Proof. Scale both so that the smaller noise has size 1. The larger one has a size of at most e^beta, and the shift, at
most S of either, is at most alpha.

How smooth a bound must be, and how much of it one standard deviation is, follows from tail bounds first
(`quietq.paper.baselines.balle.Admissible`). With z the upper normal quantile of tail delta/2, and q the upper and p the
lower one of chi-squared with d degrees of freedom, these are enough:

    (e^(2 beta) - 1) q/2 - beta d  + e^beta alpha z + alpha^2/2 <= epsilon  and
    beta d - (1 - e^(-2 beta)) p/2 +        alpha z + alpha^2/2 <= epsilon.

They say how much of epsilon a beta takes, and give an alpha that is never too large; the exact delta then allows for a
larger one, by a factor of 1.5 to 2 at usual budgets.

The lemma of 2007 slides first and dilates after, so that its two halves delta/2 add up to delta (1 + e^(epsilon/2))/2.
Its alpha = epsilon/(5 sqrt(2 ln(2/delta))) and beta = epsilon/(4 (d + ln(2/delta))) have room for that when epsilon is
small, but are not enough at epsilon = 50; those here are larger at usual budgets, and hold at all.
"""

import functools
import math
from collections.abc import Callable

import numpy as np
from scipy.special import chdtri, gammaincc, gammainccinv, gammaincinv, gammaln, ndtr, ndtri

from quietq.privacy.budget import log_delta

_SURE = 1e-7
"""The relative margin of delta: far more than the error of numerical integration."""
MOST_BETA = 1.0


def dilation(beta: float, d: int, delta: float) -> tuple[float, float]:
    """Returns what a change of size costs of epsilon, for lambda < 0 and lambda > 0; exact for small beta."""
    low, high = min(2 * float(gammaincinv(d / 2, delta / 2)), d), max(float(chdtri(d, delta / 2)), d)
    return math.expm1(2 * beta) * high / 2 - beta * d, beta * d + math.expm1(-2 * beta) * low / 2


def smooth_epsilon(beta: float, d: int, scale: float, delta: float) -> float:
    """The least epsilon of Gaussian noise of size `scale` times a smooth bound, 1/alpha in the theorem."""
    alpha, z = 1 / scale, -float(ndtri(delta / 2))
    if beta > MOST_BETA:
        return math.inf
    narrower, wider = dilation(beta, d, delta)
    most = max(narrower + math.exp(beta) * alpha * z, wider + alpha * z) + alpha**2 / 2
    return threshold(lambda epsilon: exact_delta(alpha, beta, d, epsilon, delta) <= delta, 0.0, most)[1]


def exact_delta(alpha: float, beta: float, d: int, epsilon: float, delta: float) -> float:
    """Not too small; `delta` says how small numbers still matter."""
    return delta_of_two_sizes(alpha, beta, d, epsilon, _SURE * delta) * (1 + _SURE)


def delta_of_two_sizes(alpha: float, beta: float, d: int, epsilon: float, tail: float) -> float:
    """The least delta of two Gaussians of different size, too large by `tail` at the most, but for rounding.

    Theorem. Let P = N(0, I_d) and Q = N(a, t^2 I_d), with |a| <= alpha and 1 <= t <= e^beta. For every epsilon >= 0
    the divergences H(P|Q) = sup_E P(E) - e^epsilon Q(E) and H(Q|P) are at most the largest of three numbers: both of
    them at |a| = alpha and t = e^beta, and what they are at |a| = alpha and t = 1, the delta of alpha-GDP. So nothing
    less will do (docs/theory.md#two-sizes). The best E is a ball or its outside. Its probability is an integral over
    the distance v from the line along a, which is chi distributed, of what the ball leaves of that line.

    Proof. Let s = t^2 - 1 > 0 and a = |a| w. ln p/q is -s/(2 t^2) times the squared distance from c = -a/s, plus a
    constant. So the best E is a ball around c for H(P|Q), and the outside of one for H(Q|P). Its radius r has, with e =
    epsilon and e = -epsilon,

        r^2 = (1 + s) (|a|^2 + s (d ln(1 + s) - 2e))/s^2.

    (1) The shift. As E is the best one, only q changes: moving a along w changes H(P|Q) at the rate -e^epsilon times
    the integral of <x - a, w> q/t^2 over E, and H(Q|P) at the rate of that integral. The ball's centre lies on the side
    of a where <x - a, w> < 0, so whatever of the ball lies on the other side is in the ball when it is mirrored, and q
    is the same there: the integral of <x - a, w> q over the ball is at most 0. Neither rate is negative.

    (2) The size. The derivative of q by s is half its Laplacian. Both divergences change with s at a rate of half the
    integral of <x - a, x - c> q/(r t^2) over the sphere, times e^epsilon for the first (Gauss). With R = |c - a| =
    |a| (1 + s)/s and x = c + r u, q is in proportion to exp(k <u, w>), k = r R/t^2, so the rate has the sign of
    v - A(k), where v = r/R and A(k) is the mean of <u, w> under that von Mises-Fisher density, for which A' = 1 - A^2 -
    (d - 1) A/k > 0. From the formula for r,

        (v^2)' = (v^2 - 1 + d v/k)/(s (1 + s)),    k'/k = v'/v - (2 + s)/(s (1 + s)).

    Where v = A(k), put D = A'(k) = 1 - v^2 - (d - 1) v/k. Then 2 v v' = -(D - v/k)/(s (1 + s)), and

        s (1 + s) (v - A(k))' = k/(2 v^2) (D - v/k)^2 + D k (2 + s) > 0.

    So v - A(k) changes its sign at most once, from below: a divergence falls first, if at all, and rises then, and is
    largest at an end. (Where r^2 <= 0, E is empty and H(P|Q) is 0; this happens for s in one interval, since
    s ln(1 + s) is convex.)
    """
    wide, cut_off = math.exp(beta), max(tail * math.exp(-min(epsilon, 600.0)), 1e-300)
    masses = functools.partial(_masses, alpha, math.expm1(2 * beta), d, cut_off)  # of P and Q at their extremes
    narrow_first = masses(1.0, 0.0, epsilon)[0] - _times(epsilon, masses(wide, alpha, epsilon)[0])
    wide_first = masses(wide, alpha, -epsilon)[1] - _times(epsilon, masses(1.0, 0.0, -epsilon)[1])
    return max(math.exp(log_delta(epsilon, alpha)), narrow_first + tail, wide_first + tail)


def _times(epsilon: float, mass: float) -> float:
    """e^epsilon mass, which is at most 1 wherever it matters."""
    return math.exp(min(epsilon + math.log(mass), 1.0)) if mass > 0 else 0.0


def _masses(alpha: float, s: float, d: int, tail: float, size: float, mean: float, level: float) -> tuple[float, float]:
    """The masses of N(mean, size^2 I) in the ball where ln p/q is at least a level, and outside it.

    They are noncentral chi-squared probabilities. `scipy.stats.ncx2` is not used for them: at beta = 1e-7 its delta is
    a hundredth of the right one or not a number, and at 1e-9 it takes 18 seconds.
    """
    rest = d * math.log1p(s) - 2 * level
    squared_radius = (1 + s) * (alpha**2 + s * rest) / s**2
    if squared_radius <= 0:
        return 0.0, 1.0
    v, weights, beyond = _distances(d - 1, math.sqrt(squared_radius) / size, tail)
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


@functools.lru_cache(maxsize=1)
def _rule() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss and Legendre on [0, 1]: so many that what they err by is far below `_SURE`."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    return (1 + nodes) / 2, weights / 2


def threshold(holds: Callable[[float], bool], low: float, high: float, tolerance: float = 1e-13) -> tuple[float, float]:
    """The last number without and the first with a property that, once it holds, goes on to hold; by bisection."""
    while high - low > tolerance * max(abs(low), abs(high), 1.0):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high
