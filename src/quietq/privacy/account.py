"""What can be charged for a release: an account in memory, or a source's account in a ledger (`quietq.ledger`).

Charge first, draw after. What was charged is never given back; the receipt is there to note afterwards which release
the charge was for.

A certificate speaks of one release. Whether there are others only an account can know, so a certificate says whether
one was charged. An object that *is* the private data (`Ratings`) goes further: it carries a mark, `Once`,
and without an account a second release is refused, and with accounts all of them must be charged to the same one. The
mark is a name, so that copies and pickles carry it along; which names are spent, and to what account, is known to the
process that made them, and any other process is refused unless a ledger counts for both.
"""

import os
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from quietq.privacy.budget import Budget, Cost, Spending, check_caps
from quietq.privacy.checks import instance, same_process
from quietq.privacy.errors import BudgetExhausted, InvalidInput, QuietqError
from quietq.privacy.relations import Relation

if TYPE_CHECKING:
    pass

Thing = TypeVar("Thing", bound="Issued")
_A_RELATION = "a relation, e.g. people(50, low=0, high=0.5, slope=1)"


@dataclass(frozen=True)
class Receipt:
    """Of one charge."""

    id: str | None = None
    """By which a ledger knows it; an account in memory keeps none."""
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
    (`spending.get_epsilon`, `spending.get_delta`) is a promise too only for a schedule fixed beforehand: neither how
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
    def relation(self) -> Relation | None:
        return self._relation

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
    """Whether this process marked anything as released, and so may have charged for it."""
    return bool(_spent)


@dataclass(frozen=True)
class Once:
    """The mark of data that is released once; all copies of it are the same mark."""

    what: str
    """How a refusal begins, e.g. "These people's reward"."""
    name: str = field(default_factory=lambda: os.urandom(16).hex())
    process: tuple[str, int] = field(default_factory=lambda: (_started, os.getpid()))
    several: bool = False
    """Whether that is more than one thing."""

    def check(self, account: Account | None) -> None:
        """Raises BudgetExhausted if there was a release, or might have been one, that this account does not know of."""
        here = self.process == (_started, os.getpid())
        belongs, it, was = ("belong", "them", "were") if self.several else ("belongs", "it", "was")
        if not here and not (account is not None and account.persists):
            raise BudgetExhausted(
                f"{self.what} {belongs} to another process, which may have released {it}, and only a ledger counts for "
                "both: give every release the same Ledger's account."
            )
        if self.name not in _spent:
            return
        before, _ = _spent[self.name]
        if account is None or before is None:
            raise BudgetExhausted(f"{self.what} {was} released already, and releases add up: {_ADVICE}")
        if before != account.book:
            raise BudgetExhausted(
                f"{self.what} {was} released before and charged to another account, and two accounts do not add up: "
                "give this release the same account."
            )

    def __reduce__(self) -> tuple[object, ...]:
        """What was released carries that along into another process; what was not cannot know what comes later."""
        book, _ = _spent.get(self.name, (None, 0))
        return _arrived, (self.what, self.name, self.process, self.several, self.name in _spent, book)

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


def _arrived(what: str, name: str, process: tuple[str, int], several: bool, released: bool, book: object) -> Once:
    """A mark that was pickled, with what was known of it then."""
    if released:
        with _lock:
            _spent.setdefault(name, (book, 1))
    return Once(what, name, process, several)
