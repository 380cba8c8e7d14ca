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
from quietq.privacy.checks import count
from quietq.privacy.roots import root

_Curve = Callable[[float, float, int], float]  # (noise, delta, rounds) -> epsilon, or inf where it does not apply


@dataclass(frozen=True)
class Charge:
    """One theorem's answer."""

    theorem: str
    epsilon: float | None
    """What it charges for the exact noise; None where the theorem does not apply."""
    noise_multiplier: float | None
    """The noise that it asks for to meet the budget; None where the theorem does not apply."""
    ratio: float | None
    """That noise over the exact one; below 1 it does not protect."""


def compare(budget: Budget, rounds: int = 1) -> list[Charge]:
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
    rounds = count("rounds", rounds)
    exact_noise = math.sqrt(rounds) / budget.mu
    rows = [Charge("exact", budget.epsilon, exact_noise, 1.0)]
    for theorem, curve in _CURVES.items():
        epsilon = curve(exact_noise, budget.delta, rounds)
        noise = _noise_for(curve, budget, rounds, exact_noise)
        rows.append(
            Charge(
                theorem,
                epsilon if math.isfinite(epsilon) else None,
                noise,
                None if noise is None else noise / exact_noise,
            )
        )
    return rows[:1] + sorted(rows[1:], key=lambda row: (row.ratio is None, row.ratio))


def _noise_for(curve: _Curve, budget: Budget, rounds: int, guess: float) -> float | None:
    """The noise at which `curve` charges the budget's epsilon; None if it only applies beyond that."""

    def excess(log_noise: float) -> float:
        return math.log(curve(math.exp(log_noise), budget.delta, rounds) / budget.epsilon)

    high = math.log(guess) + 1
    while excess(high) > 0:
        high += 1
    low = high - 1
    while excess(low) < 0:
        low -= 1
    if math.isinf(excess(low)):  # the theorem stops applying on the way down: move `low` to just before that
        edge = high
        while edge - low > 1e-13:
            middle = (low + edge) / 2
            low, edge = (middle, edge) if math.isinf(excess(middle)) else (low, middle)
        if excess(edge) < 0:
            return None
        low = edge
    return math.exp(root(excess, low, high, 1e-13))


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
    i = np.arange(rounds + 1)
    loss = (rounds - 2.0 * i) * each
    log_binomial = gammaln(rounds + 1) - gammaln(i + 1) - gammaln(rounds - i + 1)
    log_weight = log_binomial + (rounds - i) * each - rounds * np.logaddexp(0, each)
    allowed = math.log(-math.expm1(math.log1p(-delta) - rounds * math.log1p(-share)))

    def excess(epsilon: float) -> float:
        above = loss > epsilon
        terms = log_weight[above] + np.log(-np.expm1(epsilon - loss[above]))
        return float(np.logaddexp.reduce(terms)) - allowed

    high = rounds * each
    return 0.0 if excess(0.0) <= 0 else root(excess, 0.0, high * (1 - 1e-15), 1e-14)


def _renyi(noise: float, delta: float, rounds: int) -> float:
    """Renyi DP (Mironov 2017) with the conversion of Canonne, Kamath & Steinke (2020), best order."""
    from scipy.optimize import minimize_scalar

    def epsilon(log_excess: float) -> float:
        excess = math.exp(log_excess)  # order - 1
        order = 1 + excess
        return rounds * order / (2 * noise**2) + math.log(excess / order) - (math.log(delta) + math.log(order)) / excess

    best: Any = minimize_scalar(epsilon, bounds=(-14, 18), method="bounded", options={"xatol": 1e-10})
    return max(float(best.fun), 0.0)


def paper_noise(epsilon: float, delta: float, rounds: int = 1) -> float:
    """The noise that the paper's theorem asks for, sqrt(2 rounds ln(e + epsilon/delta))/epsilon."""
    return math.sqrt(2 * rounds * math.log(math.e + epsilon / delta)) / epsilon


def _paper(noise: float, delta: float, rounds: int) -> float:
    def excess(log_epsilon: float) -> float:
        return math.log(paper_noise(math.exp(log_epsilon), delta, rounds) / noise)

    return math.exp(root(excess, -200, 200, 1e-14))


_CURVES: dict[str, _Curve] = {
    "classical": _classical,
    "advanced-composition": _advanced_composition,
    "kairouz-oh-viswanath": _kairouz_oh_viswanath,
    "renyi": _renyi,
    "paper": _paper,
}
