"""Releases of the same data add up: what a certificate says about it, and data that is released once.

A certificate speaks of one release. Whether there are others only an account can know, so a certificate says whether
one was charged. An object that *is* the private data (`People`) goes further: it carries a mark, and without an account
a second release is refused, and with accounts all of them must be charged to the same one. The mark is a name, so that
copies and pickles carry it along; which names are spent, and to what account, is known to the process that made them,
and without an account any other process is refused.
"""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from quietq.privacy.accountant import Accountant
from quietq.privacy.certificate import Assumption
from quietq.privacy.errors import BudgetExhausted
from quietq.privacy.relations import Relation

NO_ACCOUNT = Assumption("No account was given: other releases of the same data add up.", enforced=False)

_ADVICE = (
    "give every release the same account, `ledger=Accountant(Budget(...))` for Gaussian noise or a Ledger's account "
    "for any, whose budget covers all of them."
)
_started = os.urandom(16).hex()  # tells this process from an earlier one of the same number
_spent: dict[str, Accountant | None] = {}
"""The accounts that released marks were charged to; None if there was none."""
_lock = threading.Lock()


def accounted(account: Accountant | None) -> Assumption:
    """What a certificate says about other releases of the same data.

    >>> print(accounted(None).text)
    No account was given: other releases of the same data add up.
    """
    if isinstance(account, Counted):
        account = account.account
    if account is None:
        return NO_ACCOUNT
    if not type(account).__module__.startswith("quietq."):
        return Assumption("The release was charged to an account of the caller's own kind, which adds up.", False)
    return Assumption(f"The release was charged to {account.kind} before the draw.", enforced=True)


@dataclass(frozen=True)
class Once:
    """The mark of data that is released once; all copies of it are the same mark."""

    what: str
    """How a refusal begins, e.g. "These people's reward"."""
    name: str = field(default_factory=lambda: os.urandom(16).hex())
    process: tuple[str, int] = field(default_factory=lambda: (_started, os.getpid()))

    def check(self, account: Accountant | None) -> None:
        """Raises BudgetExhausted if there was a release, or might have been one, that this account does not know of."""
        before = _spent.get(self.name)
        if account is not None:
            if before is not None and before.book != account.book:
                raise BudgetExhausted(
                    f"{self.what} was released before and charged to another account, and two accounts do not add up: "
                    "give this release the same account."
                )
            return
        if self.process != (_started, os.getpid()):
            raise BudgetExhausted(f"{self.what} belongs to another process, which may have released it: {_ADVICE}")
        if self.name in _spent:
            raise BudgetExhausted(f"{self.what} was released already, and releases add up: {_ADVICE}")

    def spend(self, account: Accountant | None, charge: Callable[[Accountant], None]) -> None:
        """Charges the account and marks a release; without one there is no second time."""
        self.check(account)  # before the lock, which a fork may have copied while it was held
        if account is not None:
            charge(account)
        with _lock:
            self.check(account)
            _spent[self.name] = account


class Counted(Accountant):
    """What a release of marked data is charged to: its mark and, if there is one, an account, which goes first."""

    def __init__(self, once: Once, account: Accountant | None) -> None:
        self.once, self.account = once, account

    def charge(self, mu: float, rounds: int = 1, relation: Relation | None = None) -> None:
        """Charges the account and marks the data, or raises BudgetExhausted and does neither."""
        self.once.spend(self.account, lambda account: account.charge(mu, rounds, relation))

    def charge_apart(self, epsilon: float, delta: float = 0.0, relation: Relation | None = None) -> None:
        """The same for a release that has no mu."""
        self.once.spend(self.account, lambda account: account.charge_apart(epsilon, delta, relation))

    def __repr__(self) -> str:
        return f"Counted({self.once.what}, {self.account!r})"
