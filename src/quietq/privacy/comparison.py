"""What other theorems would charge for the same Gaussian noise, beside the exact curve.

Only the exact curve certifies anything here; the others show what the choice of theorem costs. `noise` below is the
standard deviation per unit of sensitivity, the same in each of `rounds` rounds.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from quietq.privacy.budget import Budget
from quietq.privacy.checks import count, instance
from quietq.privacy.roots import root, threshold

_Curve = Callable[[float, float, int], float]  # (noise, delta, rounds) -> epsilon, or inf where it does not apply
MOST_ROUNDS = 10**6
_FURTHEST = 600.0  # of the logarithm of a noise; exp overflows at 709


@dataclass(frozen=True)
class Comparison:
    """One theorem's answer."""

    theorem: str
    epsilon: float | None
    """What it charges for the exact noise; None where the theorem does not apply."""
    noise_multiplier: float | None
    """The noise that it asks for to meet the budget; None where the theorem does not apply."""
    ratio: float | None
    """That noise over the exact one; below 1 it does not protect."""

    @property
    def protects(self) -> bool | None:
        """Whether the noise that it asks for meets the budget; None where the theorem does not apply."""
        return None if self.ratio is None else self.ratio >= 1 - 1e-9


def compare(budget: Budget, rounds: int = 1) -> list[Comparison]:
    """The exact charge first, then the others, for `rounds` rounds that must meet `budget` together.

    >>> for charge in compare(Budget(0.9, 1e-4)):
    ...     print(charge.theorem, round(charge.ratio, 2))
    exact 1.0
    renyi 1.1
    paper 1.36
    classical 1.38
    kairouz-oh-viswanath 1.43
    advanced-composition 6.67
    """
    instance("budget", budget, Budget, "a Budget, e.g. Budget(epsilon=0.9, delta=1e-4)")
    rounds = count("rounds", rounds, most=MOST_ROUNDS)
    exact_noise = math.sqrt(rounds) / budget.mu
    rows = []
    for theorem, curve in _CURVES.items():
        epsilon = _charge(curve, exact_noise, budget.delta, rounds)
        noise = _noise_for(curve, budget, rounds)
        ratio = None if noise is None else noise / exact_noise
        rows.append(Comparison(theorem, epsilon if math.isfinite(epsilon) else None, noise, ratio))
    rows.sort(key=lambda row: (row.ratio is None, row.ratio))
    return [Comparison("exact", budget.epsilon, exact_noise, 1.0), *rows]


def _charge(curve: _Curve, noise: float, delta: float, rounds: int) -> float:
    """The curve's epsilon; inf where the theorem does not apply or its numbers leave the floating-point range."""
    try:
        epsilon = curve(noise, delta, rounds)
    except (ArithmeticError, ValueError):
        return math.inf
    return epsilon if epsilon >= 0 else math.inf  # NaN too


def _noise_for(curve: _Curve, budget: Budget, rounds: int) -> float | None:
    """The noise at which `curve` charges the budget's epsilon; None if it only applies beyond that."""

    def charge(log_noise: float) -> float:
        return _charge(curve, math.exp(log_noise), budget.delta, rounds)

    low, high = threshold(lambda log_noise: charge(log_noise) <= budget.epsilon, -_FURTHEST, _FURTHEST)
    return math.exp(high) if math.isfinite(charge(low)) and charge(high) <= budget.epsilon else None


def _dwork_roth(noise: float, delta: float) -> float:
    """Theorem A.1 of Dwork & Roth (2014), which holds for epsilon < 1 only."""
    epsilon = math.sqrt(2 * math.log(1.25 / delta)) / noise
    return epsilon if epsilon < 1 else math.inf


def _classical(noise: float, delta: float, rounds: int) -> float:
    """The classical Gaussian mechanism, epsilons and deltas added up over the rounds."""
    return rounds * _dwork_roth(noise, delta / rounds)


def _advanced_composition(noise: float, delta: float, rounds: int) -> float:
    """Dwork, Rothblum & Vadhan (2010), half of delta for the composition and half for the rounds."""
    each = _dwork_roth(noise, delta / (2 * rounds))
    if math.isinf(each):
        return math.inf
    return math.sqrt(2 * rounds * math.log(2 / delta)) * each + rounds * each * math.expm1(each)


def _kairouz_oh_viswanath(noise: float, delta: float, rounds: int) -> float:
    """Optimal composition (2015, theorem 3.3, for every epsilon) of the classical mechanism.

    The worst mechanism that is (e, d)-DP fails with probability d and else answers by randomised response, whose
    privacy loss after all rounds is (rounds - 2 i) e with a binomial i.
    """
    share = delta / (2 * rounds)
    each = _dwork_roth(noise, share)
    if math.isinf(each):
        return math.inf
    allowed = math.log(-math.expm1(math.log1p(-delta) - rounds * math.log1p(-share)))
    # Only the middle of the binomial matters: by Hoeffding, what lies beyond is below exp(-40) of what is allowed.
    mean, reach = rounds / (1 + math.exp(each)), math.sqrt(rounds * (40 - allowed) / 2)
    i = np.arange(max(math.floor(mean - reach), 0), min(math.ceil(mean + reach), rounds) + 1)
    loss = (rounds - 2.0 * i) * each
    log_binomial = gammaln(rounds + 1) - gammaln(i + 1) - gammaln(rounds - i + 1)
    log_weight = log_binomial + (rounds - i) * each - rounds * np.logaddexp(0, each)

    def covered(epsilon: float) -> bool:
        above = loss > epsilon
        terms = log_weight[above] + np.log(-np.expm1(epsilon - loss[above]))
        return float(np.logaddexp.reduce(terms)) <= allowed

    return 0.0 if covered(0.0) else threshold(covered, 0.0, rounds * each)[1]


def _renyi(noise: float, delta: float, rounds: int) -> float:
    """Renyi DP (Mironov 2017) with the conversion of Canonne, Kamath & Steinke (2020), best order."""
    from scipy.optimize import minimize_scalar

    def epsilon(log_excess: float) -> float:
        excess = math.exp(log_excess)  # order - 1
        order = 1 + excess
        return rounds * order / (2 * noise**2) + math.log(excess / order) - (math.log(delta) + math.log(order)) / excess

    middle = math.log(noise) + math.log(-2 * math.log(delta) / rounds) / 2  # the best order, but for small terms
    bounds = (min(-14.0, middle - 5), max(18.0, middle + 5))
    best: Any = minimize_scalar(epsilon, bounds=bounds, method="bounded", options={"xatol": 1e-10})
    return max(float(best.fun), 0.0)


def paper_noise(epsilon: float, delta: float, rounds: int = 1) -> float:
    """The noise that the paper's theorem asks for, sqrt(2 rounds ln(e + epsilon/delta))/epsilon."""
    logarithm = float(np.logaddexp(1, math.log(epsilon) - math.log(delta)))  # of e + epsilon/delta
    return math.sqrt(2 * rounds * logarithm) / epsilon


def _paper(noise: float, delta: float, rounds: int) -> float:
    def excess(log_epsilon: float) -> float:
        return math.log(paper_noise(math.exp(log_epsilon), delta, rounds)) - math.log(noise)

    return math.exp(root(excess, -_FURTHEST, _FURTHEST, 1e-14))


_CURVES: dict[str, _Curve] = {
    "classical": _classical,
    "advanced-composition": _advanced_composition,
    "kairouz-oh-viswanath": _kairouz_oh_viswanath,
    "renyi": _renyi,
    "paper": _paper,
}
