"""Costs of releases, and what can be charged for them: an account in memory, or one in a ledger (`quietq.ledger`).

Theorem (Dong, Roth & Su 2022; for adaptively chosen mu_i Smith & Thakurta 2022). Rounds that are mu_i-GDP, each given
all earlier outputs, are together sqrt(sum mu_i^2)-GDP, exactly; the mu_i may be chosen as one goes along, as long as
the sum of squares is capped beforehand. Of releases that have no mu, epsilons and deltas add up, under a cap of their
own (Rogers, Roth, Ullman & Vadhan 2016). Both kinds at once are a concurrent composition, which costs no more than one
after the other (Vadhan & Zhang 2023): (epsilon + epsilon_apart, delta + delta_apart) in all.

What then holds are the caps: the theorems are filters, not odometers, so the sums so far are a promise only if the
number and the sizes of the releases did not depend on earlier outputs.

Charge first, draw after. What was charged is never given back; the receipt is there to note afterwards which release
the charge was for.

A certificate speaks of one release. Whether there are others only an account can know, so a certificate says whether
one was charged. An object that *is* the private data (`Ratings`) goes further: it carries a mark, `Once`,
and without an account a second release is refused, and with accounts all of them must be charged to the same one. The
mark is a name, so that copies and pickles carry it along; which names are spent, and to what account, is known to the
process that made them, and any other process is refused unless a ledger counts for both.

Proofs: docs/theory.md#adaptive-composition and docs/theory.md#two-caps.
"""

import math
import os
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from quietq.privacy.budget import Budget, epsilon_from_mu
from quietq.privacy.checks import (
    Positive,
    Probability,
    Record,
    count,
    instance,
    positive,
    positive_delta,
    same_process,
)
from quietq.privacy.errors import BudgetExhausted, InvalidInput, QuietqError
from quietq.privacy.relations import Relation

_PAIR = ("epsilon", "delta")
_ROUNDING = 1e-9  # relative, of sums of costs
TOLERANCE = 1e-12
"""Relative, for sums of squares that meet the cap but for rounding; `Budget.mu` keeps as much back."""
Thing = TypeVar("Thing", bound="Issued")
_A_RELATION = "a relation, e.g. people(50, low=0, high=0.5, slope=1)"


class Cost(Record, frozen=True, tag=False, tag_field=None):
    """The cost of one release: the mu of Gaussian noise, or epsilon and delta where there is no mu.

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
        """Returns the sum of epsilons or of deltas as the decimal numbers that were written: three times 0.1 is 0.3."""
        return sum((n * _exact(cost, name) for cost, n in self.costs.items() if cost.mu is None), Fraction())

    def _left(self) -> dict[str, Fraction]:
        """Returns what is left of epsilon and of delta; less than any release takes where nothing was set apart."""
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


def _exact(amounts: object, name: str) -> Fraction:
    return Fraction(repr(getattr(amounts, name, 0)))


def _at_most(left: Fraction) -> float:
    """The largest number that would still be covered."""
    number = max(float(left), 0.0)
    return number if Fraction(repr(number)) <= left or number == 0 else math.nextafter(number, 0.0)


@dataclass(frozen=True)
class Receipt:
    """The receipt of one charge."""

    id: str | None = None
    """The id by which a ledger knows it; an account in memory keeps none."""
    note: Callable[[str], None] | None = None

    def commit(self, release: str) -> None:
        """Notes the release that the charge was for; it charges nothing.

        Args:
            release: The hash that `publish` gives.

        """
        if self.note is not None:
            self.note(release)


class Issued:
    """Something that was released: it keeps the receipt of its charge, if there was one, and a digest of what it was.

    `publish` commits the receipt, and refuses a certified thing that is not what was issued: another one made of the
    same certificate, as by `dataclasses.replace`, has no digest, and one whose numbers were changed has another. Copies
    and pickles keep the digest, and go without the receipt, which belongs to whoever was charged. A digest is no
    signature: code in the same process can call `issued` itself.
    """

    receipt: Receipt | None = None
    seal: str | None = None
    """The digest; None for what nobody issued."""

    def fingerprint(self) -> str | None:
        """Returns a digest of the numbers that can be published and of their certificate; None if there are none."""
        return None

    def issued(self: Thing, receipt: Receipt | None = None) -> Thing:
        """Marks it as what was released, with the receipt of its charge, and returns it."""
        object.__setattr__(self, "receipt", receipt)
        object.__setattr__(self, "seal", self.fingerprint())
        return self

    def is_as_issued(self) -> bool:
        """Returns whether its numbers and its certificate are those that were released together."""
        return self.seal == self.fingerprint()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "receipt"}


class Account(ABC):
    """Something that can be charged, and what was charged to it: `spending`.

    What is promised are its caps, `spending.promised`, however releases were chosen. What was spent so far
    (`spending.get_epsilon`) is a promise too only for a schedule fixed beforehand: neither how
    many releases there are nor their size may depend on what came out.
    """

    persists: ClassVar[bool] = False
    """Whether it counts for other processes too."""

    @abstractmethod
    def charge(self, cost: Cost, relation: Relation | None = None) -> Receipt:
        """Charges the cost of a release before its draw, or raises BudgetExhausted and charges nothing.

        Args:
            cost: `Cost.gaussian(mu)` or `Cost.apart(epsilon, delta)`.
            relation: The neighbouring relation of the release.

        Returns:
            A receipt, whose `commit` notes the release that the charge was for.

        """

    @property
    @abstractmethod
    def spending(self) -> Spending:
        """The caps, and what was charged."""

    @property
    @abstractmethod
    def book(self) -> object:
        """What distinguishes two accounts: equal for those that add up in one place."""


class Accountant(Account):
    """Adds up releases in memory, and refuses the one that would exceed the budget.

    All releases must protect the same privacy unit: that of the relation given here, or of the first charge that names
    one.

    Args:
        budget: The cap on Gaussian releases, whose mu squared add up; None if there is none.
        relation: The neighbouring relation of the releases.
        apart: The cap on releases without a mu, whose epsilon and delta add up.

    >>> accountant = Accountant(Budget(epsilon=0.9, delta=1e-4))
    >>> receipt = accountant.charge(Cost.gaussian(0.02, rounds=100))
    >>> round(accountant.spending.get_epsilon(1e-4), 4), round(accountant.spending.remaining_mu, 4)
    (0.6016, 0.2044)
    >>> accountant.charge(Cost.gaussian(0.3))
    Traceback (most recent call last):
    ...
    quietq.privacy.errors.BudgetExhausted: mu = 0.3 is more than what is left, mu = 0.204379 ...

    """

    def __init__(self, budget: Budget | None, relation: Relation | None = None, *, apart: Budget | None = None) -> None:
        instance("relation", relation, Relation | None, _A_RELATION)
        check_caps(budget, apart)
        if hasattr(self, "_costs"):
            raise InvalidInput("This Accountant counts already, and is not begun anew: make another.")
        self._relation, self._process, self._lock = relation, os.getpid(), threading.Lock()
        self._book = os.urandom(16).hex()
        self._costs: Counter[Cost] = Counter()
        self._spending = Spending(budget, apart, MappingProxyType(self._costs))  # to be read, not written

    @property
    def spending(self) -> Spending:
        return self._spending

    @property
    def book(self) -> object:
        return self._book

    def charge(self, cost: Cost, relation: Relation | None = None) -> Receipt:
        instance("cost", cost, Cost, "a Cost, e.g. Cost.gaussian(0.1) or Cost.apart(epsilon=0.5)")
        instance("relation", relation, Relation | None, _A_RELATION)
        same_process(self._process, "This Accountant")
        with self._lock:
            if self._relation is not None and relation is not None and not self._relation.adds_up_with(relation):
                raise InvalidInput(
                    f"This Accountant adds up releases for {self._relation}, and a sum with one for {relation} would "
                    "mean nothing; nothing was booked. For other people use an Accountant of its own; where both are "
                    "about the same people, give relations that protect any one person, which add up."
                )
            if not self._spending.covers(cost):
                raise BudgetExhausted(f"{self._spending.shortage(cost)}; nothing was booked.")
            self._costs[cost] += 1
            self._relation = self._relation or relation
        return Receipt()

    def __reduce__(self) -> str:
        raise TypeError("An Accountant guards one budget and is not copied or pickled; share the object itself.")

    def __repr__(self) -> str:
        return f"Accountant({self._spending.budget}, spent_mu={self._spending.spent_mu:.6g})"


_ADVICE = (
    "where there is to be more than one, give every release, from the first on, the same account, "
    "`account=Accountant(Budget(...))` or a Ledger's, whose budget covers all of them."
)
_started = os.urandom(16).hex()  # tells this process from an earlier one of the same number
_spent: dict[str, tuple[object, int]] = {}
"""By mark, the book that its releases were charged to when they were made, or None, and how many were made or are under
way. The account itself would not do: it could be made to point to another book afterwards."""
_lock = threading.Lock()


def released_here() -> bool:
    """Says whether this process marked anything as released, and so may have charged for it."""
    return bool(_spent)


@dataclass(frozen=True)
class Once:
    """The mark of data that is released once; all copies of it are the same mark."""

    what: str
    """How a refusal begins, e.g. "These people's reward"."""
    name: str = field(default_factory=lambda: os.urandom(16).hex())
    process: tuple[str, int] = field(default_factory=lambda: (_started, os.getpid()))

    def check(self, account: Account | None) -> None:
        """Raises BudgetExhausted if there was a release, or might have been one, that this account does not know of."""
        here = self.process == (_started, os.getpid())
        if not here and not (account is not None and account.persists):
            raise BudgetExhausted(
                f"{self.what} belongs to another process, which may have released it, and only a ledger counts for "
                "both: give every release the same Ledger's account."
            )
        if self.name not in _spent:
            return
        before, _ = _spent[self.name]
        if account is None or before is None:
            raise BudgetExhausted(f"{self.what} was released already, and releases add up: {_ADVICE}")
        if before != account.book:
            raise BudgetExhausted(
                f"{self.what} was released before and charged to another account, and two accounts do not add up: "
                "give this release the same account."
            )

    def __reduce__(self) -> tuple[object, ...]:
        """What was released carries that along into another process; what was not cannot know what comes later."""
        book, _ = _spent.get(self.name, (None, 0))
        return _arrived, (self.what, self.name, self.process, self.name in _spent, book)

    def spend(self, account: Account | None, cost: Cost, relation: Relation | None) -> Receipt:
        """Marks a release and charges the account, if there is one; a refused charge leaves no mark."""
        self.check(account)  # before the lock, which a fork may have copied while it was held
        with _lock:
            self.check(account)
            book = None if account is None else account.book
            _spent[self.name] = book, _spent.get(self.name, (None, 0))[1] + 1
        try:
            return Receipt() if account is None else account.charge(cost, relation)
        except QuietqError:
            with _lock:  # others may have been released meanwhile, under the same account: their mark stays
                left = _spent.pop(self.name)[1] - 1
                if left:
                    _spent[self.name] = book, left
            raise


def _arrived(what: str, name: str, process: tuple[str, int], released: bool, book: object) -> Once:
    """A mark that was pickled, with what was known of it then."""
    if released:
        with _lock:
            _spent.setdefault(name, (book, 1))
    return Once(what, name, process)
