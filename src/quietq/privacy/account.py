"""What can be charged for a release: an account in memory, or a source's account in a ledger (`quietq.ledger`).

Charge first, draw after. What was charged is never given back; the receipt is there to note afterwards which release
the charge was for.
"""

import os
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from quietq.privacy.budget import Budget
from quietq.privacy.checks import instance, same_process
from quietq.privacy.cost import Cost, Spending
from quietq.privacy.errors import BudgetExhausted, InvalidInput
from quietq.privacy.relations import Relation

if TYPE_CHECKING:
    import dp_accounting

Thing = TypeVar("Thing")
_A_RELATION = "a relation, e.g. people(50, low=0, high=0.5, slope=1)"


@dataclass(frozen=True)
class Receipt:
    """Of one charge."""

    id: str | None = None
    """By which a ledger knows it; an account in memory keeps none."""
    note: Callable[[str], None] | None = None

    def commit(self, release: str) -> None:
        """Notes the release that the charge was for, by the hash that `publish` gives; it charges nothing."""
        if self.note is not None:
            self.note(release)


class Receipted:
    """Something released, with the receipt of its charge, if there was one: `publish` commits it.

    Copies and pickles go without: the receipt belongs to whoever was charged.
    """

    receipt: Receipt | None = None

    def with_receipt(self: Thing, receipt: Receipt | None) -> Thing:
        """The same, with its receipt."""
        object.__setattr__(self, "receipt", receipt)
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "receipt"}


class Account(ABC):
    """Something that can be charged, and what was charged to it.

    What is promised are its caps, `spending.promised`, however releases were chosen. What was spent so far (`spent_mu`,
    `get_epsilon`, `get_delta`) is a promise too only for a schedule fixed beforehand: neither how many releases there
    are nor their size may depend on what came out.
    """

    kind: ClassVar[str]
    """In words, for certificates."""
    persists: ClassVar[bool] = False
    """Whether it counts for other processes too."""

    @abstractmethod
    def charge(self, cost: Cost, relation: Relation | None = None) -> Receipt:
        """Books a release that protects `relation`, or raises BudgetExhausted and books nothing."""

    @property
    @abstractmethod
    def spending(self) -> Spending:
        """The caps, and what was charged."""

    @property
    @abstractmethod
    def book(self) -> object:
        """What tells two accounts apart: equal for those that add up in one place."""

    def receipt(self, id: str) -> Receipt:
        """The receipt of an earlier charge, by its id."""
        raise InvalidInput(f"{type(self).__name__} keeps no receipts: only a ledger does.")

    @property
    def budget(self) -> Budget | None:
        """The cap on Gaussian noise."""
        return self.spending.budget

    @property
    def spent_mu(self) -> float:
        """The mu of all Gaussian noise so far, for a schedule fixed beforehand."""
        return self.spending.spent_mu

    @property
    def remaining_mu(self) -> float:
        """The largest Gaussian release that would still be accepted."""
        return self.spending.remaining_mu

    def get_epsilon(self, delta: float) -> float:
        """The epsilon of what was charged so far, for a schedule fixed beforehand."""
        return self.spending.get_epsilon(delta)

    def get_delta(self, epsilon: float) -> float:
        """The delta of what was charged so far, for a schedule fixed beforehand."""
        return self.spending.get_delta(epsilon)

    def to_event(self, *, fixed_schedule: bool = False) -> "dp_accounting.DpEvent":
        """The promise as a dp-accounting event: the whole cap or, for a schedule fixed beforehand, what was spent."""
        return self.spending.to_event(fixed_schedule=fixed_schedule)


class Accountant(Account):
    """An account in memory: adds releases up, and refuses the one that would break the budget.

    `budget` caps Gaussian noise, `apart` what has no mu. All releases must speak of one `relation`, given here or by
    the first charge to name one.

    >>> accountant = Accountant(Budget(epsilon=0.9, delta=1e-4))
    >>> receipt = accountant.charge(Cost.gaussian(0.02, rounds=100))
    >>> round(accountant.get_epsilon(1e-4), 4), round(accountant.remaining_mu, 4)
    (0.6016, 0.2044)
    >>> accountant.charge(Cost.gaussian(0.3))
    Traceback (most recent call last):
    ...
    quietq.privacy.errors.BudgetExhausted: mu = 0.3 is more than what is left, mu = 0.204379 ...
    """

    kind = "an Accountant in memory"

    def __init__(self, budget: Budget | None, relation: Relation | None = None, *, apart: Budget | None = None) -> None:
        instance("budget", budget, Budget | None, "a Budget, e.g. Budget(epsilon=0.9, delta=1e-4)")
        instance("relation", relation, Relation | None, _A_RELATION)
        instance("apart", apart, Budget | None, "a Budget for what has no mu, e.g. Budget(epsilon=0.5, delta=0)")
        check_caps(budget, apart)
        self._relation = relation
        self._process = os.getpid()
        self._spending = Spending(budget, apart, Counter())
        self._lock = threading.Lock()

    @property
    def spending(self) -> Spending:
        """The caps, and what was charged."""
        return self._spending

    @property
    def relation(self) -> Relation | None:
        """The relation that all releases speak of, once one has been named."""
        return self._relation

    @property
    def book(self) -> object:
        """Itself."""
        return id(self)

    def charge(self, cost: Cost, relation: Relation | None = None) -> Receipt:
        """Books a release, or raises BudgetExhausted and books nothing."""
        instance("cost", cost, Cost, "a Cost, e.g. Cost.gaussian(0.1) or Cost.apart(epsilon=0.5)")
        instance("relation", relation, Relation | None, _A_RELATION)
        same_process(self._process, "This Accountant")
        with self._lock:
            if relation is not None and self._relation not in (None, relation):
                raise InvalidInput(
                    f"This Accountant adds up releases for {self._relation}, and a sum with one for {relation} would "
                    "mean nothing: use an Accountant of its own; nothing was booked."
                )
            if not self._spending.covers(cost):
                raise BudgetExhausted(f"{_shortage(self._spending, cost)}; nothing was booked.")
            self._spending.costs[cost] += 1  # pyright: ignore[reportIndexIssue]
            self._relation = self._relation if relation is None else relation
        return Receipt()

    def __reduce__(self) -> str:
        raise TypeError("An Accountant guards one budget and is not copied or pickled; share the object itself.")

    def __repr__(self) -> str:
        return f"Accountant({self.budget}, spent_mu={self.spent_mu:.6g}, remaining_mu={self.remaining_mu:.6g})"


def check_caps(budget: Budget | None, apart: Budget | None) -> None:
    """Refuses caps under which nothing could be released, or nothing be promised."""
    if budget is None and apart is None:
        raise InvalidInput("There must be a budget, or something set apart: give budget, apart, or both.")
    if budget is not None and budget.is_pure:
        raise InvalidInput(
            "budget caps Gaussian noise, which has no delta of 0: give a delta above 0, or give this amount as apart, "
            "for pure noise."
        )
    if budget is not None:
        _ = budget.mu  # refuses numbers that cannot be computed with
    if budget is not None and apart is not None and budget.delta + apart.delta >= 1:
        raise InvalidInput("delta of budget and apart must be below 1 together, or nothing is promised.")


def _shortage(spending: Spending, cost: Cost) -> str:
    if cost.mu is not None and spending.budget is not None:
        return f"{cost} is more than what is left, mu = {spending.remaining_mu:g} of {spending.mu:g}"
    if cost.mu is not None:
        return f"{cost} was asked for, and there is no budget for Gaussian noise"
    if spending.apart is None:
        return (
            f"{cost} has no mu, and nothing was set apart for that: use Gaussian noise, or an account with "
            "apart=Budget(epsilon, delta)"
        )
    (epsilon, delta), cap = spending.remaining_apart, spending.apart
    return (
        f"{cost} is more than what is left apart, epsilon = {epsilon:g} of {cap.epsilon:g} and delta = {delta:g} of "
        f"{cap.delta:g}"
    )
