"""Budgets, what a release costs of them, and what many releases cost together under caps that were set beforehand.

Theorem (Dong, Roth & Su 2022; for adaptively chosen mu_i Smith & Thakurta 2022). Rounds that are mu_i-GDP, each given
all earlier outputs, are together sqrt(sum mu_i^2)-GDP, exactly; the mu_i may be chosen as one goes along, as long as
the sum of squares is capped beforehand. Of releases that have no mu, epsilons and deltas add up, under a cap of their
own (Rogers, Roth, Ullman & Vadhan 2016). Both kinds at once are a concurrent composition, which costs no more than one
after the other (Vadhan & Zhang 2023): (epsilon + epsilon_apart, delta + delta_apart) in all.

What then holds are the caps: the theorems are filters, not odometers, so the sums so far are a promise only if the
number and the sizes of the releases did not depend on earlier outputs.

Proof: docs/theory.md#two-caps.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from quietq.privacy.checks import count, instance, not_negative, positive, positive_delta, probability
from quietq.privacy.errors import InvalidInput, MissingExtra
from quietq.privacy.gaussian import delta_from_mu, epsilon_from_mu, mu_from_budget
from quietq.privacy.records import Positive, Probability, Record

if TYPE_CHECKING:
    import dp_accounting

_STEP = 1e-12
"""Relative: by so much parts of a budget are made smaller until they come to no more than the whole."""
_PAIR = ("epsilon", "delta")
_ROUNDING = 1e-9  # relative, of sums of costs
TOLERANCE = 1e-12
"""Relative, for sums of squares that meet the cap but for rounding; `Budget.mu` keeps as much back."""


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


class Cost(Record, frozen=True, tag=False, tag_field=None):
    """Of one release: the mu of Gaussian noise, or epsilon and delta where there is no mu.

    >>> print(Cost.gaussian(0.02, rounds=100), "/", Cost.apart(0.5))
    mu = 0.2 / epsilon = 0.5, delta = 0
    """

    mu: Positive | None = None
    epsilon: Positive | None = None
    delta: Probability | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.mu is None) == (self.epsilon is None) or (self.epsilon is None) != (self.delta is None):
            raise InvalidInput("A cost has either a mu or an epsilon and a delta, and not both.")

    @classmethod
    def gaussian(cls, mu: float, rounds: int = 1) -> "Cost":
        """Returns the cost of Gaussian releases.

        Args:
            mu: The parameter of Gaussian differential privacy of one release.
            rounds: The number of such releases.

        """
        return cls(mu=positive("mu", mu) * math.sqrt(count("rounds", rounds)))

    @classmethod
    def apart(cls, epsilon: float, delta: float = 0.0) -> "Cost":
        """Returns the cost of a release that has no mu: pure noise, or a bound that is only (epsilon, delta).

        Args:
            epsilon: Its epsilon.
            delta: Its delta.

        """
        return cls(epsilon=epsilon, delta=delta)

    @classmethod
    def of_all(cls, costs: Sequence["Cost"]) -> "Cost | None":
        """Returns what releases cost together, each of which may depend on earlier ones; None if only some have a mu.

        Args:
            costs: The cost of each release.

        """
        if all(cost.mu is not None for cost in costs):
            return cls(math.hypot(*(cost.mu or 0.0 for cost in costs)))
        if any(cost.mu is not None for cost in costs):
            return None
        return cls.apart(*(math.fsum(getattr(cost, name) for cost in costs) for name in _PAIR))

    def at_most(self, other: "Cost") -> bool:
        """Returns whether this cost is of the same kind as another one and no larger, but for rounding.

        Args:
            other: The cost that it is compared with.

        """
        pairs = [(getattr(self, name), getattr(other, name)) for name in ("mu", *_PAIR)]
        return all(cap is not None and amount <= cap * (1 + _ROUNDING) for amount, cap in pairs if amount is not None)

    def __str__(self) -> str:
        return f"mu = {self.mu:g}" if self.mu is not None else f"epsilon = {self.epsilon:g}, delta = {self.delta:g}"


@dataclass(frozen=True)
class Spending:
    """Costs under their caps: `budget` for Gaussian noise, `apart` for what has no mu; None where there can be none."""

    budget: Budget | None
    apart: Budget | None = None
    costs: Mapping[Cost, int] = field(default_factory=dict)
    """And how often each was spent."""

    def covers(self, cost: Cost) -> bool:
        if cost.mu is not None:
            return self._squares() + cost.mu**2 <= self.mu**2 * (1 + TOLERANCE)
        return all(_exact(cost, name) <= left for name, left in self._left().items())

    @property
    def mu(self) -> float:
        """The cap on Gaussian noise; 0 if there can be none."""
        return 0.0 if self.budget is None else self.budget.mu

    @property
    def spent_mu(self) -> float:
        return math.sqrt(self._squares())

    @property
    def remaining_mu(self) -> float:
        """The largest Gaussian release that is still covered."""
        return math.sqrt(max(self.mu**2 - self._squares(), 0.0))

    @property
    def spent_apart(self) -> tuple[float, float]:
        return float(self._sum("epsilon")), float(self._sum("delta"))

    @property
    def remaining_apart(self) -> tuple[float, float]:
        left = self._left()
        return _at_most(left["epsilon"]), _at_most(left["delta"])

    @property
    def promised(self) -> tuple[float, float]:
        """(epsilon, delta) of everything that can ever be released: the sum of both caps."""
        caps = [cap for cap in (self.budget, self.apart) if cap is not None]
        return math.fsum(cap.epsilon for cap in caps), math.fsum(cap.delta for cap in caps)

    @property
    def spent(self) -> tuple[float, float]:
        """(epsilon, delta) of what was charged so far, at the delta of both caps; for a schedule fixed beforehand."""
        (epsilon, delta), (epsilon_apart, delta_apart) = self.promised, self.spent_apart
        if self.spent_mu == 0:
            return epsilon_apart, delta
        return (min(self.get_epsilon(delta), epsilon) if delta > delta_apart else epsilon), delta

    def get_epsilon(self, delta: float) -> float:
        """Returns the epsilon of all costs together: that of the Gaussian ones, and the sum of the others'.

        Args:
            delta: The delta of all costs together; what the others leave of it is for the Gaussian ones.

        """
        delta = positive_delta(delta)
        epsilon_apart, delta_apart = self.spent_apart
        if delta < delta_apart or (self.spent_mu and delta == delta_apart):
            raise InvalidInput(f"delta must be above {delta_apart:g}, which releases without a mu took, not {delta:g}.")
        gaussian = epsilon_from_mu(self.spent_mu, delta - delta_apart) if self.spent_mu else 0.0
        return gaussian + epsilon_apart

    def get_delta(self, epsilon: float) -> float:
        """Returns the delta of all costs together: that of the Gaussian ones, and the sum of the others'.

        Args:
            epsilon: The epsilon of all costs together; what the others leave of it is for the Gaussian ones.

        """
        epsilon = not_negative("epsilon", epsilon)
        epsilon_apart, delta_apart = self.spent_apart
        if epsilon < epsilon_apart:
            return 1.0
        gaussian = delta_from_mu(self.spent_mu, epsilon - epsilon_apart) if self.spent_mu else 0.0
        return min(gaussian + delta_apart, 1.0)

    def to_event(self, *, fixed_schedule: bool = False) -> "dp_accounting.DpEvent":
        if any(self.spent_apart) if fixed_schedule else self.apart is not None:
            raise InvalidInput(
                "There is a part without a mu, and dp-accounting has no event for that: add its epsilon and delta to "
                "those of the Gaussian part."
            )
        spent = {cost.mu: n for cost, n in self.costs.items() if cost.mu is not None}
        return gaussian_event(spent if fixed_schedule else {self.mu: 1})

    def shortage(self, cost: Cost) -> str:
        """Why a cost is not covered: what is left, or that there is nothing for its kind."""
        if cost.mu is not None and self.budget is None:
            return f"{cost} was asked for, and there is no budget for Gaussian noise: use pure noise"
        if cost.mu is None and self.apart is None:
            return (
                f"{cost} has no mu, and nothing was set apart for that by apart=Budget(...): take Gaussian "
                'noise, by a budget with a delta above 0, or noise="path" or "knots"'
            )
        left = f"mu = {self.remaining_mu:g} of {self.mu:g}{self.in_epsilon()}"
        if cost.mu is None:
            caps = zip(_PAIR, self.remaining_apart, strict=True)
            left = " and ".join(f"{name} = {amount:g} of {getattr(self.apart, name):g}" for name, amount in caps)
        return f"{cost} is more than what is left, {left}"

    def in_epsilon(self) -> str:
        """What is left for Gaussian noise, as one budget at the cap's delta; nothing if nothing is left."""
        if self.budget is None or self.remaining_mu == 0:
            return ""
        return f" (epsilon {epsilon_from_mu(self.remaining_mu, self.budget.delta):.4g} at delta {self.budget.delta:g})"

    def _squares(self) -> float:
        return math.fsum(n * cost.mu**2 for cost, n in self.costs.items() if cost.mu is not None)

    def _sum(self, name: str) -> Fraction:
        """Of epsilons or of deltas as the decimal numbers that were written: three times 0.1 is 0.3."""
        return sum((n * _exact(cost, name) for cost, n in self.costs.items() if cost.mu is None), Fraction())

    def _left(self) -> dict[str, Fraction]:
        """Of epsilon and of delta; less than any release takes where nothing was set apart."""
        return {name: _exact(self.apart, name) - self._sum(name) for name in _PAIR}


def check_caps(budget: Budget | None, apart: Budget | None) -> None:
    for name, cap in (("budget", budget), ("apart", apart)):
        instance(name, cap, Budget | None, "a Budget, e.g. Budget(epsilon=0.9, delta=1e-4), or None")
    if apart is not None:
        apart.require_mu(None, "what is set apart")
    if budget is None:
        if apart is None:
            raise InvalidInput("There must be a budget, or something set apart: give budget, apart, or both.")
        return
    if budget.is_pure:
        raise InvalidInput(
            "budget caps Gaussian noise, which has no delta of 0: give a delta above 0, or give this amount as apart, "
            "for pure noise."
        )
    _ = budget.mu  # refuses numbers that cannot be computed with
    if apart is not None and budget.delta + apart.delta >= 1:
        raise InvalidInput("delta of budget and apart must be below 1 together, or nothing is promised.")


def gaussian_event(rounds: Mapping[float, int]) -> "dp_accounting.DpEvent":
    """A dp-accounting event for {mu: number of rounds}: noise multiplier 1/mu a round.

    Compose it with dp-accounting's default relation, ADD_OR_REMOVE_ONE, for which an event's sensitivity is 1: our mu
    is already relative to all that neighbours can differ by. Its PLD accountant reads REPLACE_ONE as a sensitivity of 2
    (its Renyi accountant does not), which would charge this event twice: safe, but more than was spent. For a mixture
    with events whose sensitivity is 1 when one record is added or removed, that is the one to use
    (docs/theory.md#adaptive-composition).
    """
    try:
        import dp_accounting as dpa
    except ImportError as error:
        raise MissingExtra.of("accounting", "Exporting an event needs dp-accounting") from error
    events: list[dpa.DpEvent] = [dpa.SelfComposedDpEvent(dpa.GaussianDpEvent(1 / mu), n) for mu, n in rounds.items()]
    return dpa.ComposedDpEvent(events)


def _exact(amounts: object, name: str) -> Fraction:
    return Fraction(repr(getattr(amounts, name, 0)))


def _at_most(left: Fraction) -> float:
    """The largest number that would still be covered."""
    number = max(float(left), 0.0)
    return number if Fraction(repr(number)) <= left or number == 0 else math.nextafter(number, 0.0)
