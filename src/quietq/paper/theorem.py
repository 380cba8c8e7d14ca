"""The paper's theorem, as printed: what it asks for, and where its own parameters miss it.

Wang & Hegde (NeurIPS 2019), theorem 5: Algorithm 1 "is (epsilon, delta + J exp(-(2k - 8.68 sqrt(beta) sigma)^2/2))-DP"
provided that 2k > 8.68 sqrt(beta) sigma and sigma >= sqrt(2 (T/B) ln(e + epsilon/delta)) C/epsilon, where
v = 4 alpha (k + 1)/B, beta = 1/v and C = (v^2 + v) L^2. The proof does not hold (`docs/errata.md`), so everything here
is a *claim*: this module computes what was claimed, never what is true.

Below it, `compare`: what other composition theorems would charge for the same Gaussian noise, beside the exact curve.
Only the exact curve certifies anything here; the others show what the choice of theorem costs. `noise` there is the
standard deviation per unit of sensitivity, the same in each of `rounds` rounds.

See docs/theory.md#gaussian-curve.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaln

from quietq.privacy.assumptions import Code
from quietq.privacy.budget import Budget, root
from quietq.privacy.certificate import Certificate
from quietq.privacy.checks import Checked, count, instance, positive, positive_delta
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import SupBall
from quietq.privacy.smooth_sensitivity import threshold

_Curve = Callable[[float, float, int], float]  # (noise, delta, rounds) -> epsilon, or inf where it does not apply
_FURTHEST = 600.0  # of the logarithm of a noise; exp overflows at 709


@dataclass(frozen=True)
class PublishedCheck:
    """The theorem's conditions for one sigma, each with its two sides."""

    sigma: float
    sigma_required: float
    left: float
    """2k"""
    right: float
    """8.68 sqrt(beta) sigma; the theorem needs left > right"""
    delta_path: float
    """delta_g, what the path's excursions add to delta; 1 where the condition fails"""
    delta_path_allowed: float

    @property
    def failures(self) -> tuple[str, ...]:
        """The conditions that fail, in words; empty if the theorem's hypotheses are met."""
        found, larger = [], self.left > self.right
        if not larger:
            found.append(f"2k > 8.68 sqrt(beta) sigma fails: 2k is {self.left:.4g}, the right side {self.right:.4g}.")
        if self.sigma < self.sigma_required * (1 - 1e-12):
            found.append(f"sigma is {self.sigma:.4g}, below the required {self.sigma_required:.4g}.")
        if larger and self.delta_path > self.delta_path_allowed * (1 + 1e-6):
            found.append(f"delta_g is {self.delta_path:.4g}, above the {self.delta_path_allowed:.4g} set apart for it.")
        return tuple(found)

    @property
    def holds(self) -> bool:
        """Whether the theorem's hypotheses are met (which still does not make it true)."""
        return not self.failures


@dataclass(frozen=True)
class PublishedTheorem(Checked):
    """The theorem for one set of parameters; the defaults are those of the paper's appendix E.3.

    `budget` is what the Gaussian noise is calibrated to; the promise as a whole is
    (epsilon, budget.delta + delta_path).

    >>> check = PublishedTheorem(Budget(0.9, 5e-5)).check(sigma=0.32)
    >>> check.holds, round(check.left, 1), round(check.right)
    (False, 4.6, 353)
    """

    fields: ClassVar = {
        **dict.fromkeys(("learning_rate", "bound", "lipschitz_squared"), positive),
        **dict.fromkeys(("batch", "steps", "resets"), count),
    }
    budget: Budget
    learning_rate: float = 3e-4
    bound: float = 2.3
    """k: the path is taken to stay below 2k"""
    lipschitz_squared: float = 16.0
    """L^2 of the value function, which nothing in the algorithm enforces"""
    batch: int = 64
    steps: int = 5000
    resets: int = 78
    """J: how often the path is drawn anew"""
    delta_path: float = 5e-5
    """delta_g: what of delta is set apart for the path's excursions beyond 2k"""
    with_square_root: bool = False
    """Take the square root in C that the proof needs and the statement lacks"""

    def __post_init__(self) -> None:
        instance("budget", self.budget, Budget, "a Budget, e.g. Budget(epsilon=0.9, delta=5e-5)")
        positive_delta(self.budget.delta)
        positive_delta(self.delta_path, "delta_path")
        super().__post_init__()

    @property
    def v(self) -> float:
        """4 alpha (k + 1)/B, the claimed movement of Q in one step, over L."""
        return 4 * self.learning_rate * (self.bound + 1) / self.batch

    @property
    def beta(self) -> float:
        """1/v, the kernel's parameter."""
        return 1 / self.v

    @property
    def sensitivity(self) -> float:
        """C(alpha, k, L, B)."""
        squared = (self.v * self.v + self.v) * self.lipschitz_squared
        return math.sqrt(squared) if self.with_square_root else squared

    @property
    def sigma(self) -> float:
        each = paper_noise(self.budget.epsilon, self.budget.delta)
        return self.sensitivity * each * math.sqrt(self.steps / self.batch)

    def check(self, sigma: float | None = None) -> PublishedCheck:
        """Returns both conditions, for the given sigma or for the one that the theorem asks for."""
        sigma = self.sigma if sigma is None else positive("sigma", sigma)
        # By lemma 8 of the paper, E max g <= 8.68 sqrt(beta) sigma.
        left, right = 2 * self.bound, 8.68 * math.sqrt(self.beta) * sigma
        delta_path = min(self.resets * math.exp(-((left - right) ** 2) / 2), 1.0) if left > right else 1.0
        return PublishedCheck(sigma, self.sigma, left, right, delta_path, self.delta_path)

    def smallest(self) -> "PublishedTheorem":
        """Returns the same theorem with the smallest k for which all its conditions hold."""
        margin = math.sqrt(2 * math.log(self.resets / self.delta_path))

        def shortfall(bound: float) -> float:
            check = replace(self, bound=bound).check()
            return check.right + margin - check.left

        bound = falling_root(shortfall, 1e-12, 1e12)
        if bound is None:
            raise InvalidInput("No k meets the theorem's conditions for these parameters.")
        return replace(self, bound=bound * (1 + 1e-9))

    def certificate(self, sigma: float | None = None) -> Certificate:
        """Returns what the paper claims for this sigma, with standing `claimed` and every failed condition named."""
        check = self.check(sigma)
        refutation = (
            "The proof does not hold even where its conditions do: parameters carry un-noised state from round to "
            "round, and all rewards of a batch may change at once."
        )
        return Certificate(
            method="published",
            standing="claimed",
            relation=SupBall(radius=1.0),
            budget=Budget(self.budget.epsilon, self.budget.delta + self.delta_path),
            assumptions=(Code.LIPSCHITZ_VALUES(),),
            remarks=(*check.failures, refutation),
        )


_STATED = {0.32: 0.9, 0.74: 0.45}  # appendix E.3


def claimed_budget(sigma: float) -> Budget:
    """Returns what the paper claims for noise of this size: its appendix's pairs, else its theorem solved for epsilon.

    The theorem is taken with k = 23, from which the appendix's sigma follows (its 2.3 does not give it).

    >>> claimed_budget(0.32), round(claimed_budget(0.5).epsilon, 2)
    (Budget(epsilon=0.9, delta=5e-05), 0.55)
    """
    if positive("sigma", sigma) in _STATED:
        return Budget(_STATED[sigma], 5e-5)

    def excess(epsilon: float) -> float:
        return PublishedTheorem(Budget(epsilon, 5e-5), bound=23.0).sigma - sigma

    if excess(1e-9) < 0:
        raise InvalidInput(f"sigma = {sigma!r} is too large for the paper's theorem to claim anything.")
    epsilon = falling_root(excess, 1e-9, 1e9)
    if epsilon is None:
        raise InvalidInput(f"sigma = {sigma!r} is too small for the paper's theorem to claim anything.")
    return Budget(epsilon, 5e-5)


# The same Gaussian noise by other theorems


@dataclass(frozen=True)
class TheoremCharge:
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


def compare(budget: Budget, rounds: int = 1) -> list[TheoremCharge]:
    """Returns what other theorems would charge for the same noise: the exact charge first, then the others.

    Args:
        budget: The (epsilon, delta) of all rounds together.
        rounds: The number of rounds.

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
    rounds = count("rounds", rounds, most=10**6)
    exact_noise = math.sqrt(rounds) / budget.mu
    rows = []
    for theorem, curve in _CURVES.items():
        epsilon = _charge(curve, exact_noise, budget.delta, rounds)
        noise = _noise_for(curve, budget, rounds)
        ratio = None if noise is None else noise / exact_noise
        rows.append(TheoremCharge(theorem, epsilon if math.isfinite(epsilon) else None, noise, ratio))
    rows.sort(key=lambda row: (row.ratio is None, row.ratio))
    return [TheoremCharge("exact", budget.epsilon, exact_noise, 1.0), *rows]


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


def falling_root(f: Callable[[float], float], low: float, most: float) -> float | None:
    """The zero of a function that falls, beyond `low`; None if there is none up to `most`."""
    high = 1.0
    while f(high) > 0:
        high *= 2
        if high > most:
            return None
    return root(f, low, high, 1e-10)
