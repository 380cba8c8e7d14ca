"""The paper's theorem, as printed: what it asks for, and where its own parameters miss it.

Wang & Hegde (NeurIPS 2019), theorem 5: Algorithm 1 "is (epsilon, delta + J exp(-(2k - 8.68 sqrt(beta) sigma)^2/2))-DP"
provided that 2k > 8.68 sqrt(beta) sigma and sigma >= sqrt(2 (T/B) ln(e + epsilon/delta)) C/epsilon, where
v = 4 alpha (k + 1)/B, beta = 1/v and C = (v^2 + v) L^2. The proof does not hold (`docs/errata.md`), so everything here
is a *claim*: this module computes what was claimed, never what is true (docs/theory.md#gaussian-curve).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from quietq.privacy.assumptions import Code
from quietq.privacy.budget import Budget, root
from quietq.privacy.certificate import Certificate
from quietq.privacy.checks import Checked, count, instance, positive, positive_delta
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import SupBall


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


def paper_noise(epsilon: float, delta: float) -> float:
    """The noise that the paper's theorem asks for, sqrt(2 ln(e + epsilon/delta))/epsilon per root of rounds."""
    logarithm = float(np.logaddexp(1, math.log(epsilon) - math.log(delta)))  # of e + epsilon/delta
    return math.sqrt(2 * logarithm) / epsilon


def falling_root(f: Callable[[float], float], low: float, most: float) -> float | None:
    """The zero of a function that falls, beyond `low`; None if there is none up to `most`."""
    high = 1.0
    while f(high) > 0:
        high *= 2
        if high > most:
            return None
    return root(f, low, high, 1e-10)
