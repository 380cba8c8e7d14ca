"""Gaussian noise whose size follows the data: the smooth sensitivity of Nissim, Raskhodnikova & Smith (2007).

Theorem. Let S be such that any two neighbours X, X' have |f(X) - f(X')| <= S(X) and S(X') <= e^beta S(X). Then
f(X) + (S(X)/alpha) N(0, I_d) is (epsilon, delta)-DP if delta is at least the exact one of two Gaussians that are alpha
apart and differ by e^beta in size (`two_sizes`).

Proof. Scale both so that the smaller noise has size 1. The larger one has a size of at most e^beta, and the shift, at
most S of either, is at most alpha.

A pair is found by tail bounds first. With z the upper normal quantile of tail delta/2, and q the upper and p the lower
one of chi-squared with d degrees of freedom, these are enough:

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
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.special import chdtri, gammaincinv, ndtri

from quietq.mechanisms.two_sizes import delta_of_two_sizes
from quietq.privacy import Budget, InvalidInput
from quietq.privacy.checks import count, positive, positive_delta, real
from quietq.privacy.norms import NORMS, Norm, Record
from quietq.privacy.roots import threshold
from quietq.privacy.words import plural

_AT_ONCE = 256
_SURE = 1e-7
"""Of delta, relative: far more than what numerical integration is off by."""
_MOST_BETA = 1.0


def _dilation(beta: float, d: int, delta: float) -> tuple[float, float]:
    """What a change of size takes of epsilon, for lambda < 0 and lambda > 0; in a form that is exact for small beta."""
    low, high = min(2 * float(gammaincinv(d / 2, delta / 2)), d), max(float(chdtri(d, delta / 2)), d)
    return math.expm1(2 * beta) * high / 2 - beta * d, beta * d + math.expm1(-2 * beta) * low / 2


def smooth_epsilon(norm: Record, scale: float, delta: float) -> float:
    """The least epsilon of Gaussian noise of size `scale` times a smooth bound, 1/alpha in the theorem."""
    beta, d, alpha, z = norm["beta"], norm["weights"], 1 / scale, -float(ndtri(delta / 2))
    if beta > _MOST_BETA:
        return math.inf
    narrower, wider = _dilation(beta, d, delta)
    most = max(narrower + math.exp(beta) * alpha * z, wider + alpha * z) + alpha**2 / 2
    return threshold(lambda epsilon: _exact_delta(alpha, beta, d, epsilon, delta) <= delta, 0.0, most)[1]


def _exact_delta(alpha: float, beta: float, d: int, epsilon: float, delta: float) -> float:
    """Not too small; `delta` says how small numbers still matter."""
    return delta_of_two_sizes(alpha, beta, d, epsilon, _SURE * delta) * (1 + _SURE)


NORMS["smooth-bound"] = Norm(
    fields={"weights": count, "beta": positive},
    difference=lambda norm, relation: 1.0 if relation["kind"] == "replace-trajectory" else None,  # by definition
    words=lambda norm: (
        f"units of a smooth bound for {plural(norm['weights'], 'weight')}, which follows the data and is not released"
    ),
    epsilon=smooth_epsilon,
)


@dataclass(frozen=True)
class Admissible:
    """How smooth a bound must be (beta), and how much of it is one standard deviation of the noise (alpha).

    >>> pair = Admissible.for_budget(Budget(1.0, 1e-6), dimension=5)
    >>> round(1 / pair.alpha, 1), round(1 / pair.beta, 1)
    (5.9, 65.9)
    """

    alpha: float
    """The noise is N(0, (S/alpha)^2) in each coordinate."""
    beta: float
    """S must change by a factor of at most e^beta between neighbours."""

    @classmethod
    @functools.lru_cache(maxsize=64)
    def for_budget(cls, budget: Budget, dimension: int, share: float = 0.5) -> "Admissible":
        """The largest beta that takes this `share` of epsilon by tail bounds, then the largest alpha that it leaves."""
        d, delta = count("dimension", dimension), positive_delta(budget.delta)
        if not 0 < real("share", share) < 1:
            raise InvalidInput(f"share must lie between 0 and 1, not {share!r}.")
        epsilon, most = budget.epsilon, share * budget.epsilon
        beta, _ = threshold(lambda b: max(_dilation(b, d, delta)) >= most, 0.0, min(_MOST_BETA, epsilon), 1e-15)
        (narrower, wider), z = _dilation(positive("beta", beta), d, delta), -float(ndtri(delta / 2))
        least = positive("alpha", min(_root(math.exp(beta) * z, epsilon - narrower), _root(z, epsilon - wider)))
        more = threshold(lambda a: _exact_delta(a, beta, d, epsilon, delta) > delta, least, max(budget.mu, least))
        return cls(alpha=more[0], beta=beta)


def _root(slope: float, rest: float) -> float:
    """The positive alpha with slope alpha + alpha^2/2 = rest."""
    return 2 * rest / (slope + math.sqrt(slope**2 + 2 * rest))


def smooth_bound(
    reach: Callable[[Int[np.ndarray, " distances"]], Float[np.ndarray, " distances"]], last: int, beta: float
) -> float:
    """The largest e^(-k beta) reach(k) over all distances k.

    `reach(k)` bounds the local sensitivity of all data within distance k; it must never fall with k, stay the same from
    k = `last` on, and be at most reach(k + 1) of any neighbour's data. The last of these makes the result smooth:
    S(X') = max e^(-k beta) reach'(k) <= max e^(-k beta) reach(k + 1) <= e^beta S(X).

    >>> smooth_bound(lambda k: 1 / np.maximum(10.0 - k, 1.0), last=10, beta=0.5)
    0.1
    """
    first, end = (float(value) for value in reach(np.array([0, last])))
    # beyond `stop`, e^(-k beta) reach(last) is below reach(0)
    stop = min(last, math.ceil(math.log(end / first) / beta)) if end > first else 0
    best = first
    for start in range(0, stop + 1, _AT_ONCE):
        distances = np.arange(start, min(start + _AT_ONCE, stop + 1))
        best = max(best, float(np.max(np.exp(-beta * distances) * reach(distances))))
    return best
