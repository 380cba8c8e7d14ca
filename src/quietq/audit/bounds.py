"""The errors of an attack give lower bounds on epsilon and mu, valid at a stated confidence.

A test that was fixed beforehand, threshold included, guesses for each independent run whether it was made from r
("without") or from its neighbour r' ("with"). Few errors refute a promise, by Clopper and Pearson's exact intervals.

- (epsilon, delta)-DP means 1 - FNR <= e^epsilon FPR + delta, and the same with FPR and FNR changed about. Both rates'
  upper bounds hold at once when each has half the significance.
- mu-GDP means FNR >= Phi(Phi^-1(1 - FPR) - mu) (Dong, Roth & Su 2022), so that mu >= -Phi^-1(FPR) - Phi^-1(FNR).

Theorem (ours). With n runs a world and k errors among all N = 2n, mu >= -2 Phi^-1(U(k)) at confidence 1 - alpha, with
U(k) the binomial upper bound of k among N at the whole of alpha, or (k + 1)/N if that is larger.
Proof. By the tangent of slope -1 at the trade-off curve's symmetric point, the mean error rate p = (FPR + FNR)/2 of any
test is at least q = Phi(-mu/2). The bound fails when U(k) < q; U grows with k, so these are all k up to some m, and
m <= N U(m) - 1 < N p - 1. The number of errors S is a sum of N independent Bernoulli variables of mean rate p, for
which Hoeffding (1956, theorem 4) has P(S <= m) <= P(Bin(N, p) <= m) whenever m <= N p - 1. As p > U(m), that is at most
P(Bin(N, U(m)) <= m) <= alpha. QED. One interval instead of two at half the significance each: for small mu it lies
2.92/sqrt(n) below mu, not 4.91/sqrt(n), at 95 %. (k + 1)/N matters only at confidences below 0.75.

See docs/theory.md#lower-bounds.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import betainccinv, betaincinv, ndtri

from quietq.privacy import InvalidInput
from quietq.privacy.checks import count, numbers, probability, real

MOST_RUNS = 10**6
"""The most runs of each world that an audit makes."""


class Errors(NamedTuple):
    """How often a fixed test was wrong."""

    false_alarms: int  # runs from r that the test took for r'
    runs_without: int
    misses: int  # runs from r' that the test took for r
    runs_with: int

    @classmethod
    def at_threshold(cls, without: object, with_: object, threshold: float) -> "Errors":
        """Counts the errors of "r' if the score is above the threshold", which these scores must not have chosen."""
        threshold = real("threshold", threshold)
        scores = [numbers(name, given) for name, given in (("without", without), ("with_", with_))]
        if any(one.ndim != 1 or np.isnan(one).any() for one in scores):
            raise InvalidInput("without and with_ must be one score a run, none of them NaN.")
        alarms = [int((one > threshold).sum()) for one in scores]
        return cls(alarms[0], len(scores[0]), len(scores[1]) - alarms[1], len(scores[1]))

    @property
    def accuracy(self) -> float:
        """The share of right guesses when both worlds are equally likely."""
        return 1 - (self.false_alarms / self.runs_without + self.misses / self.runs_with) / 2


def significance_of(confidence: object) -> float:
    """1 - confidence, the chance of being wrong, for a confidence above a half."""
    number = real("confidence", confidence)
    if 0.5 < number < 1:
        return 1 - number
    raise InvalidInput(f"confidence must be above 0.5 and below 1, not {number!r}.")


def epsilon_lower(errors: Errors, delta: float, confidence: float = 0.95) -> float:
    """Computes a lower bound on epsilon: at this confidence no (epsilon, delta)-DP mechanism with a smaller epsilon is
    behind these errors.

    Args:
        errors: How often a test was wrong, of how many runs of both kinds.
        delta: The delta.
        confidence: The confidence of the bound.

    >>> round(epsilon_lower(Errors(3, 200, 5, 200), delta=1e-4), 3)
    3.083

    """
    delta, half = probability("delta", delta), significance_of(confidence) / 2
    _check(errors)
    worlds = ((errors.false_alarms, errors.runs_without), (errors.misses, errors.runs_with))
    highs = [_upper(wrong, runs, half) for wrong, runs in worlds]
    lows = [_least_right(wrong, runs, half) for wrong, runs in worlds]
    bounds = [math.log((lows[i] - delta) / highs[1 - i]) for i in range(2) if lows[i] > delta]
    return max(0.0, *bounds) if bounds else 0.0


def mu_lower(errors: Errors, confidence: float = 0.95) -> float:
    """Computes a lower bound on mu: at this confidence no mu-GDP mechanism with a smaller mu is behind these errors.

    Equal numbers of runs of both kinds give the tighter bound, by the theorem above.

    Args:
        errors: How often a test was wrong, of how many runs of both kinds.
        confidence: The confidence of the bound.

    """
    significance = significance_of(confidence)
    _check(errors)
    wrong, runs = errors.false_alarms + errors.misses, errors.runs_without + errors.runs_with
    if errors.runs_without == errors.runs_with:
        mean = min(1.0, max(_upper(wrong, runs, significance), (wrong + 1) / runs))
        return max(0.0, -2 * float(ndtri(mean)))
    false_alarms = _upper(errors.false_alarms, errors.runs_without, significance / 2)
    misses = _upper(errors.misses, errors.runs_with, significance / 2)
    return max(0.0, -float(ndtri(false_alarms)) - float(ndtri(misses)))


def _upper(wrong: int, runs: int, significance: float) -> float:
    """Clopper and Pearson: the rate at which so few errors, or fewer, have just this probability."""
    return 1.0 if wrong == runs else float(betainccinv(wrong + 1, runs - wrong, significance))


def _least_right(wrong: int, runs: int, significance: float) -> float:
    return 0.0 if wrong == runs else float(betaincinv(runs - wrong, wrong + 1, significance))


def _check(errors: Errors) -> None:
    for wrong, runs in (("false_alarms", "runs_without"), ("misses", "runs_with")):
        most = count(runs, getattr(errors, runs))
        count(wrong, getattr(errors, wrong), least=0, most=most)
