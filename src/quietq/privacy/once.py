"""Releases of the same data add up: what a certificate says about it, and data that is released once.

A certificate speaks of one release. Whether there are others only an account can know, so a certificate says whether
one was charged. An object that *is* the private data (`Ratings`) goes further: it carries a mark, and without an
account a second release is refused, and with accounts all of them must be charged to the same one. The mark is a name,
so that copies and pickles carry it along; which names are spent, and to what account, is known to the process that made
them, and any other process is refused unless a ledger counts for both.
"""

import os
import threading
from dataclasses import dataclass, field

from quietq.privacy.account import Account, Receipt
from quietq.privacy.certificate import Assumption
from quietq.privacy.cost import Cost, Spending
from quietq.privacy.errors import BudgetExhausted, QuietqError
from quietq.privacy.relations import Relation

NO_ACCOUNT = Assumption("No account was given: other releases of the same data add up.", enforced=False)

_ADVICE = (
    "where there is to be more than one, give every release, from the first on, the same account, "
    "`account=Accountant(Budget(...))` or a Ledger's, whose budget covers all of them."
)
_started = os.urandom(16).hex()  # tells this process from an earlier one of the same number
_spent: dict[str, tuple[Account | None, int]] = {}
"""By mark, the account that its releases are charged to, or None, and how many were made or are under way."""
_lock = threading.Lock()


def accounted(account: Account | None) -> Assumption:
    """What a certificate says about other releases of the same data.

    >>> print(accounted(None).text)
    No account was given: other releases of the same data add up.
    """
    while isinstance(account, OnceAccount):
        account = account.account
    if account is None:
        return NO_ACCOUNT
    if not type(account).__module__.startswith("quietq.") or "charge" in vars(account):
        return Assumption("The release was charged to an account of the caller's own kind, which adds up.", False)
    return Assumption(f"The release was charged to {account.kind} before the draw.", enforced=True)


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
        if before.book != account.book:
            raise BudgetExhausted(
                f"{self.what} was released before and charged to another account, and two accounts do not add up: "
                "give this release the same account."
            )

    def spend(self, account: Account | None, cost: Cost, relation: Relation | None) -> Receipt:
        """Marks a release and charges the account, if there is one; a refused charge leaves no mark."""
        self.check(account)  # before the lock, which a fork may have copied while it was held
        with _lock:
            self.check(account)
            _spent[self.name] = account, _spent.get(self.name, (None, 0))[1] + 1
        try:
            return Receipt() if account is None else account.charge(cost, relation)
        except QuietqError:
            with _lock:  # others may have been released meanwhile, under the same account: their mark stays
                left = _spent[self.name][1] - 1
                if left:
                    _spent[self.name] = account, left
                else:
                    del _spent[self.name]
            raise


class OnceAccount(Account):
    """What a release of marked data is charged to: its mark and, if there is one, an account."""

    kind = "an account"

    def __init__(self, once: Once, account: Account | None) -> None:
        self.once, self.account = once, account

    @property
    def spending(self) -> Spending:
        """That of the account."""
        return Spending(None) if self.account is None else self.account.spending

    @property
    def book(self) -> object:
        """That of the account."""
        return None if self.account is None else self.account.book

    def charge(self, cost: Cost, relation: Relation | None = None) -> Receipt:
        """Marks the data and charges the account, or raises BudgetExhausted and does neither."""
        return self.once.spend(self.account, cost, relation)
