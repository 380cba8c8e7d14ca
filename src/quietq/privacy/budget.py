"""How much may be given away: an amount, not an account."""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from quietq.privacy.checks import count, positive, positive_delta, probability
from quietq.privacy.errors import InvalidInput
from quietq.privacy.gaussian import epsilon_from_mu, mu_from_budget
from quietq.privacy.records import Positive, Probability, Record

_STEP = 1e-12
"""Relative: by so much parts of a budget are made smaller until they come to no more than the whole."""


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
        """The budget that a mu-GDP mechanism uses at this delta."""
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
        """A part for each of several releases of the same people, which together keep this promise if each part is
        spent once. An account of the whole, charged for all, makes sure of that: `account=Accountant(whole)` or, where
        the budget is pure, `Accountant(None, apart=whole)`.

        Shares are of mu squared, and of epsilon where the budget is pure; they come to 1 or less, and what is left over
        is spent by nobody. A part that has a delta is good for Gaussian noise only: mus add up as squares, so each part
        keeps the whole delta, and epsilons of parts come to more than that of the whole. Whatever has no mu refuses it.

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
    """As the decimal numbers that were written: 0.7, 0.2 and 0.1 are 1."""
    parts = [Fraction(repr(positive("A share", one))) for one in given]
    whole = sum(parts, Fraction())
    if not parts or whole > 1 + Fraction(_STEP):
        raise InvalidInput(f"shares must be numbers above 0 that come to at most 1, e.g. 0.9 and 0.1, not {given!r}.")
    return [part / max(whole, Fraction(1)) for part in parts]


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
