"""A source's account in a ledger, to be given to whatever draws noise, in place of an Accountant."""

import threading
from collections import Counter
from typing import TYPE_CHECKING

from quietq.privacy.accountant import Accountant
from quietq.privacy.checks import count, not_negative, positive, positive_delta
from quietq.privacy.errors import InvalidInput
from quietq.privacy.gaussian import delta_from_mu, epsilon_from_mu
from quietq.privacy.relations import Relation

if TYPE_CHECKING:
    import dp_accounting

    from quietq.ledger.balance import Balance
    from quietq.ledger.ledger import Ledger


class Account(Accountant):
    """An Accountant whose book is a ledger: it may be shared by threads, forks and processes, and survives them.

    What a thread charged last is what its `committed` is about.
    """

    kind = "a source's account in a ledger"

    def __init__(self, ledger: "Ledger", source: str, method: str = "") -> None:
        balance = ledger.balance(source)
        self.ledger, self.source, self.method = ledger, source, method
        self.budget, self._cap = balance.budget, balance.mu
        self._last = threading.local()

    @property
    def balance(self) -> "Balance":
        """How the source stands now."""
        return self.ledger.balance(self.source)

    @property
    def relation(self) -> None:
        """None: a ledger adds up what protects the same unit (`balance.unit`), not the same relation."""
        return None

    @property
    def book(self) -> object:
        """The ledger and the source."""
        return repr(self.ledger), self.source

    @property
    def reservation(self) -> str | None:
        """The id of this thread's last charge."""
        return getattr(self._last, "reservation", None)

    def charge(self, mu: float, rounds: int = 1, relation: Relation | None = None) -> None:
        """Reserves in the ledger, or raises BudgetExhausted and books nothing. Nothing gives it back."""
        mu, rounds = positive("mu", mu), count("rounds", rounds)
        self._last.reservation = None  # a refused or unanswered charge has no release
        self._last.reservation = self.ledger.reserve(
            self.source, mu=mu * rounds**0.5, relation=relation, method=self.method
        )

    def charge_apart(self, epsilon: float, delta: float = 0.0, relation: Relation | None = None) -> None:
        """The same for a release that has no mu, which is booked apart."""
        self._last.reservation = None
        self._last.reservation = self.ledger.reserve(
            self.source, epsilon=epsilon, delta=delta, relation=relation, method=self.method
        )

    def committed(self, release: str) -> None:
        """Notes the release that this thread's last charge was for, by its hash, which `publish` gives."""
        if self.reservation is None:
            raise InvalidInput("Nothing was charged to this account in this thread, so there is no release to note.")
        self.ledger.commit(self.source, self.reservation, release)

    def get_epsilon(self, delta: float) -> float:
        """The epsilon of what is booked so far, both parts, for a schedule fixed beforehand; else see `promised`."""
        delta, balance = positive_delta(delta), self.balance
        epsilon_apart, delta_apart = balance.spent_apart
        if balance.spent_mu == 0 and delta >= delta_apart:
            return epsilon_apart
        if delta <= delta_apart:
            raise InvalidInput(f"delta must be above {delta_apart:g}, which releases without a mu took, not {delta:g}.")
        return epsilon_from_mu(balance.spent_mu, delta - delta_apart) + epsilon_apart

    def get_delta(self, epsilon: float) -> float:
        """The delta of what is booked so far, both parts, for a schedule fixed beforehand; else see `promised`."""
        epsilon, balance = not_negative("epsilon", epsilon), self.balance
        epsilon_apart, delta_apart = balance.spent_apart
        if epsilon < epsilon_apart:
            raise InvalidInput(
                f"epsilon must be at least {epsilon_apart:g}, which releases without a mu took, not {epsilon:g}."
            )
        rest = delta_from_mu(balance.spent_mu, epsilon - epsilon_apart) if balance.spent_mu else 0.0
        return min(rest + delta_apart, 1.0)

    def to_event(self, *, fixed_schedule: bool = False) -> "dp_accounting.DpEvent":
        """As an Accountant's; refused if there is a part without a mu, for which dp-accounting has no event."""
        balance = self.balance
        if any(balance.spent_apart) if fixed_schedule else balance.apart is not None:
            raise InvalidInput(
                f"Source {self.source!r} has a part without a mu, and dp-accounting has no event for that: "
                "add its epsilon and delta to those of the Gaussian part."
            )
        return super().to_event(fixed_schedule=fixed_schedule)

    def _booked(self) -> dict[float, int]:
        return Counter(charge.mu for charge in self.balance.charges if charge.mu is not None)

    def __repr__(self) -> str:
        return f"Account({self.source!r}, {self.ledger!r})"
