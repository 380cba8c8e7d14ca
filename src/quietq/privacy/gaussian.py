"""Gaussian differential privacy: the exact curve delta(epsilon) and its two inverses.

Theorem (Dong, Roth & Su 2022; Balle & Wang 2018). A mechanism is mu-GDP if and only if for every epsilon >= 0 it
is (epsilon, delta)-DP with

    delta(epsilon) = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2).

The difference cancels and the exponential overflows when taken literally. With x = epsilon/mu - mu/2,
y = epsilon/mu + mu/2 and Mills' ratio R(t) = Phi(-t)/phi(t) it is phi(x) (R(x) - R(y)), which does neither.
Inverses are rounded towards safety: mu down, epsilon up. Proof: docs/theory.md#gaussian-curve.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import erfcx, log_ndtr

from quietq.privacy.checks import not_negative, positive, positive_delta
from quietq.privacy.errors import InvalidInput

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_MOST_EPSILON, _MOST_MU = 1e6, 1e4  # beyond, the curve loses digits, and nothing is protected anyway
_SAFETY = 2e-12  # relative; the solver is accurate to ~1e-15, an Accountant tolerates 1e-12


def root(f: Callable[[float], float], low: float, high: float, tolerance: float = 1e-14) -> float:
    """A zero of f between low and high, where it has opposite signs (Brent's method)."""
    from scipy.optimize import brentq  # slow to import

    return float(brentq(f, low, high, xtol=tolerance))  # pyright: ignore[reportArgumentType]


def _mills(t: float | np.ndarray) -> Any:
    return math.sqrt(math.pi / 2) * erfcx(np.asarray(t) / math.sqrt(2))


def log_delta(epsilon: float, mu: float) -> float:
    """Log delta(epsilon) of a mu-GDP mechanism; finite where delta itself would underflow."""
    x, y = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if x > 1e100:  # x^2 would overflow; delta is below exp(-1e199)
        return -math.inf
    log_phi = -x * x / 2 - math.log(2 * math.pi) / 2
    if mu < 0.5 or x >= 0:
        gap = _gap(x, y, mu)
        return log_phi + math.log(gap if gap > 0 else mu / (1 + x * x))  # lost to rounding: -R'(t) < 1/(1 + t^2)
    log_head = float(log_ndtr(-x))
    log_ratio = log_phi + math.log(float(_mills(y))) - log_head
    # log(1 - e^t), which for a small e^t (delta near 1) keeps its digits as log1p only.
    return log_head + (math.log(-math.expm1(log_ratio)) if log_ratio > -0.7 else math.log1p(-math.exp(log_ratio)))


def _gap(x: float, y: float, mu: float) -> float:
    """R(x) - R(y); for close x and y, where that cancels, the integral of -R'(t) = 1 - t R(t)."""
    if mu >= 0.5:
        return float(_mills(x) - _mills(y))
    t = x + mu * (1 + _NODES) / 2
    return mu / 2 * float(_WEIGHTS @ (1 - t * _mills(t)))


def delta_from_mu(mu: float, epsilon: float) -> float:
    """Returns the smallest delta for which a mu-GDP mechanism is (epsilon, delta)-DP.

    Args:
        mu: The parameter of Gaussian differential privacy.
        epsilon: The epsilon.

    """
    mu = positive("mu", mu)
    return math.exp(log_delta(not_negative("epsilon", epsilon), mu))


def _range_of_mu(epsilon: float, delta: float) -> tuple[float, float]:
    """Two mus that the one with this delta at this epsilon lies between; refuses what cannot be computed with."""
    if epsilon > _MOST_EPSILON:
        raise InvalidInput(f"epsilon must be at most {_MOST_EPSILON:g} for Gaussian noise, not {epsilon!r}.")
    # epsilon/mu - mu/2 = 60 at the lower end (delta < 1e-700) and -40 at the upper end (delta = 1 in floats).
    low = 2 * epsilon / (60 + math.sqrt(3600 + 2 * epsilon))
    high = 40 + math.sqrt(1600 + 2 * epsilon)
    if log_delta(epsilon, low) >= math.log(delta):
        raise InvalidInput(f"epsilon {epsilon!r} is too large for delta {delta!r} to be distinguished from 0.")
    return low, high


def implies(mu: float, epsilon: float, delta: float) -> bool:
    """Whether every mu-GDP mechanism is (epsilon, delta)-DP; it searches for nothing, so certificates load quickly."""
    epsilon, delta = positive("epsilon", epsilon), positive_delta(delta)
    low, high = _range_of_mu(epsilon, delta)
    return mu <= low or (mu < high and log_delta(epsilon, mu) <= math.log(delta))


@lru_cache(maxsize=1024)
def mu_from_budget(epsilon: float, delta: float) -> float:
    """Returns the largest mu for which every mu-GDP mechanism is (epsilon, delta)-DP.

    Args:
        epsilon: The epsilon.
        delta: The delta.

    """
    epsilon, delta = positive("epsilon", epsilon), positive_delta(delta)
    low, high = _range_of_mu(epsilon, delta)
    target = math.log(delta)
    solution = root(lambda s: log_delta(epsilon, math.exp(s)) - target, math.log(low), math.log(high), 1e-15)
    mu = math.exp(solution) * (1 - _SAFETY)
    while log_delta(epsilon, mu) > target:
        mu *= 1 - _SAFETY
    return mu


def epsilon_from_mu(mu: float, delta: float) -> float:
    """Returns the smallest epsilon for which a mu-GDP mechanism is (epsilon, delta)-DP.

    Args:
        mu: The parameter of Gaussian differential privacy.
        delta: The delta.

    """
    mu, delta = positive("mu", mu), positive_delta(delta)
    if mu > _MOST_MU:
        raise InvalidInput(f"mu must be at most {_MOST_MU:g}, not {mu!r}.")
    target, at_zero = math.log(delta), log_delta(0.0, mu)
    if at_zero <= target - _SAFETY * min(1.0, -target):
        return 0.0
    high = mu * mu / 2 + 60 * mu
    # At 0 the curve may meet delta but for rounding: then the least epsilon above 0 is safe.
    solution = root(lambda e: log_delta(e, mu) - target, 0.0, high, 1e-16 * high) if at_zero > target else 0.0
    epsilon = solution * (1 + _SAFETY) + 1e-15 * high
    while log_delta(epsilon, mu) > target:
        epsilon = epsilon * (1 + _SAFETY) + 1e-15 * high
    return epsilon
