"""Budgets (epsilon, delta), the exact curve of Gaussian differential privacy, and what either means to a guesser.

Theorem (Dong, Roth & Su 2022; Balle & Wang 2018). A mechanism is mu-GDP if and only if for every epsilon >= 0 it
is (epsilon, delta)-DP with

    delta(epsilon) = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2).

The difference cancels and the exponential overflows when taken literally. With x = epsilon/mu - mu/2,
y = epsilon/mu + mu/2 and Mills' ratio R(t) = Phi(-t)/phi(t) it is phi(x) (R(x) - R(y)), which does neither.
Inverses are rounded towards safety: mu down, epsilon up.

Theorem. Of two neighbours, either as likely as the other, nobody tells which one was there with a chance above
Phi(mu/2) from what is mu-GDP (the two errors add up to at least 2 Phi(-mu/2)), nor above (e^epsilon + delta)/(1 +
e^epsilon) from what is (epsilon, delta)-DP. Both are attained, so epsilon alone says little: at 1 it is 73.2 of 100 for
pure noise, and 55.4 for Gaussian noise with delta = 1e-5.

Proof: docs/theory.md#gaussian-curve and docs/theory.md#guessing.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from scipy.special import erfcx, expit, log_ndtr, ndtr

from quietq.privacy.checks import (
    Positive,
    Probability,
    Record,
    count,
    not_negative,
    positive,
    positive_delta,
    probability,
)
from quietq.privacy.errors import InvalidInput

_STEP = 1e-12
"""Relative: by so much parts of a budget are made smaller until they come to no more than the whole."""
LARGE_EPSILON = 10.0
"""The epsilon from which on a promise says hardly anything, and whoever makes it is warned."""
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
    """Says whether every mu-GDP mechanism is (epsilon, delta)-DP; without a search, so certificates load quickly."""
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


class Budget(Record, frozen=True, tag=False, tag_field=None, dict=True):
    """(epsilon, delta), immutable. With delta = 0 it is pure: only pure mechanisms accept it.

    Having a Budget spends nothing. What spends it is a mechanism, once.

    >>> budget = Budget(epsilon=0.9, delta=1e-4)
    >>> round(budget.mu, 5)
    0.28596
    """

    gaussian: ClassVar[bool] = False
    """Whether it is good for Gaussian noise only, as a part of a budget with a delta is."""
    epsilon: Positive
    delta: Probability

    @classmethod
    def from_mu(cls, mu: float, delta: float) -> "Budget":
        """Returns the budget that a mu-GDP mechanism uses at this delta.

        Args:
            mu: The parameter of Gaussian differential privacy.
            delta: The delta at which epsilon is stated.

        """
        epsilon = epsilon_from_mu(positive("mu", mu), positive_delta(delta))
        if epsilon == 0:
            raise InvalidInput(f"mu {mu!r} is already (0, {delta!r})-DP: give a smaller delta.")
        return cls(epsilon=epsilon, delta=delta)

    @property
    def is_pure(self) -> bool:
        """Whether delta is 0, so that no Gaussian noise can meet it."""
        return self.delta == 0

    @cached_property
    def mu(self) -> float:
        """The largest mu such that mu-GDP implies this budget, exactly; a pure budget has none and says so."""
        if self.is_pure:
            positive_delta(self.delta)
        return mu_from_budget(self.epsilon, self.delta)

    def split(self, *shares: float) -> "tuple[Budget, ...]":
        """Divides the budget between several releases of the same people, which together cost no more than the whole.

        Each part is to be spent once; an account of the whole makes sure of that: `account=Accountant(whole)` or, where
        the budget is pure, `Accountant(None, apart=whole)`. A part with a delta is for Gaussian noise only: each keeps
        the whole delta, and epsilons of parts add up to more than that of the whole.

        Args:
            shares: Shares of mu squared (of epsilon, where the budget is pure) that come to 1 or less.

        >>> whole = Budget(epsilon=1, delta=1e-5)
        >>> world, check = whole.split(0.9, 0.1)
        >>> print(world, "/", check)
        (0.943816, 1e-05)-DP, mu = 0.2543 / (0.284543, 1e-05)-DP, mu = 0.084765
        >>> check
        GaussianBudget(epsilon=0.28454..., delta=1e-05)
        >>> [part.epsilon for part in Budget(epsilon=0.9, delta=0).split(0.5, 0.25)]
        [0.45, 0.225]

        """
        parts = _shares(shares)
        whole = Fraction(repr(self.epsilon)) if self.is_pure else Fraction(self.mu) ** 2
        scale = 1.0
        while True:
            found = tuple(self._part(float(share), scale) for share in parts)
            if sum(Fraction(repr(one.epsilon)) if self.is_pure else Fraction(one.mu) ** 2 for one in found) <= whole:
                return found
            scale *= 1 - _STEP  # rounding made the parts more than the whole

    def _part(self, share: float, scale: float) -> "Budget":
        if self.is_pure:
            return Budget(self.epsilon * share * scale, 0.0)
        mu = self.mu * math.sqrt(share) * scale
        if epsilon_from_mu(mu, self.delta) == 0:
            raise InvalidInput(
                f"A share of {share:g} is too small: its epsilon would be 0, as delta {self.delta:g} alone allows as "
                "much. Give a larger share, or a smaller delta."
            )
        return GaussianBudget.from_mu(mu, self.delta)

    def require_mu(self, mu: float | None, what: str) -> None:
        """Refuses this budget, if it is good for Gaussian noise only, for `what` has no mu."""
        if self.gaussian and mu is None:
            raise InvalidInput(
                f"This budget, {self}, is a part of a larger one and good for Gaussian noise only, as mus add up as "
                f"squares and epsilons do not; {what} has no mu: use Gaussian noise, or split a budget whose delta "
                "is 0 by its epsilon."
            )

    def __str__(self) -> str:
        promise = f"({self.epsilon:g}, {self.delta:g})-DP"
        return promise if self.is_pure else f"{promise}, mu = {self.mu:.5g}"


class GaussianBudget(Budget, frozen=True):
    """A part of a budget with a delta: parts come to the whole by their mus, not by their epsilons."""

    gaussian = True

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_delta(self.delta)


def _shares(given: Sequence[float]) -> list[Fraction]:
    """Returns shares as the decimal numbers that were written: 0.7, 0.2 and 0.1 are 1."""
    parts = [Fraction(repr(positive("A share", one))) for one in given]
    whole = sum(parts, Fraction())
    if not parts or whole > 1 + Fraction(_STEP):
        raise InvalidInput(f"shares must be numbers above 0 that come to at most 1, e.g. 0.9 and 0.1, not {given!r}.")
    return [part / max(whole, Fraction(1)) for part in parts]


def guess_right(epsilon: float, delta: float, mu: float | None = None) -> float:
    """The largest chance of being right: by mu where there is one, else by (epsilon, delta), of which no more is known.

    >>> round(guess_right(1.0, 0.0), 4), round(guess_right(1.0, 1e-5, mu=0.268053), 4)
    (0.7311, 0.5533)
    """
    if mu is not None:
        return float(ndtr(mu / 2))
    share = float(expit(epsilon))
    return share + (1 - share) * delta


def pure_epsilon(mu: float) -> float:
    """The epsilon of pure noise with which a guesser is right as often as with mu-GDP: it is then mu-GDP, too.

    >>> round(pure_epsilon(Budget(0.9, 1e-4).mu), 4)
    0.2284
    """
    return float(log_ndtr(mu / 2) - log_ndtr(-mu / 2))


def of_hundred(share: float) -> str:
    """Returns in how many of 100 cases: rounded upwards, because it is "at most".

    >>> of_hundred(guess_right(1.0, 0.0))
    '73.2'
    """
    return f"{math.ceil(1000 * share) / 10:.1f}"


def pure_at(budget: Budget) -> tuple[str, ...]:
    """Says, for pure noise where the budget has a delta, what a guesser gains over Gaussian noise.

    >>> print(*pure_at(Budget(0.9, 1e-4)), *pure_at(Budget(0.9, 0)))
    Pure noise was taken at (0.9, 0.0001): a guesser is right in at most 71.1 of 100 cases, with Gaussian noise in 55.7.
    """
    if budget.is_pure:
        return ()
    pure, gaussian = (of_hundred(guess_right(budget.epsilon, 0.0, mu)) for mu in (None, budget.mu))
    return (
        f"Pure noise was taken at ({budget.epsilon:g}, {budget.delta:g}): a guesser is right in at most {pure} of 100 "
        f"cases, with Gaussian noise in {gaussian}.",
    )


def weak_epsilon(epsilon: float, delta: float, mu: float | None = None) -> str | None:
    """A sentence if epsilon is so large that a guesser is nearly always right, else None.

    >>> print(weak_epsilon(1000.0, 0.0))
    epsilon = 1000 hides little: whoever knows all else and guesses what one person gave may be right in 100.0 of 100
    cases.
    """
    if epsilon < LARGE_EPSILON:
        return None
    return (
        f"epsilon = {epsilon:g} hides little: whoever knows all else and guesses what one person gave may be right in "
        f"{of_hundred(guess_right(epsilon, delta, mu))} of 100 cases."
    )


def weak_delta(delta: float, people: int | None) -> str | None:
    """A sentence if delta is so large that it would allow giving one whole person away, else None."""
    delta = probability("delta", delta)
    if people is None or delta < 1 / count("people", people):
        return None
    safe = 10.0 ** math.floor(math.log10(1 / people) - 1)
    return (
        f"delta {delta:g} is not below 1/people = {1 / people:g}: such a promise would allow publishing "
        f"one person's data outright; {safe:g} or less would be usual."
    )


def weak_promise(budget: Budget, people: int | None, pure: bool = False) -> str | None:
    """Returns the warning about an epsilon or a delta that is too large; None if neither is.

    Args:
        budget: The (epsilon, delta).
        people: The number of people, if there is one.
        pure: Whether the noise has no delta, whatever the budget has.

    """
    delta, mu = (0.0, None) if pure or budget.is_pure else (budget.delta, budget.mu)
    found = (weak_epsilon(budget.epsilon, delta, mu), None if pure else weak_delta(budget.delta, people))
    return " ".join(one for one in found if one is not None) or None
