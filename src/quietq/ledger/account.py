"""A source's account in a ledger, to be given to whatever draws noise."""

from typing import TYPE_CHECKING

from quietq.privacy.account import Account, Receipt
from quietq.privacy.cost import Cost, Spending
from quietq.privacy.relations import Relation

if TYPE_CHECKING:
    from quietq.ledger.ledger import Ledger


class SourceAccount(Account):
    """An account whose book is a ledger: it may be shared by threads, forks and processes, and survives them."""

    kind = "a source's account in a ledger"
    persists = True

    def __init__(self, ledger: "Ledger", source: str, method: str = "") -> None:
        ledger.balance(source)  # refuses a source that is not there
        self.ledger, self.source, self.method = ledger, source, method

    @property
    def spending(self) -> Spending:
        """The source's caps, and what was booked."""
        return self.ledger.balance(self.source).spending

    @property
    def book(self) -> object:
        """The ledger and the source."""
        return repr(self.ledger), self.source

    def charge(self, cost: Cost, relation: Relation | None = None) -> Receipt:
        """Reserves in the ledger, or raises BudgetExhausted and books nothing. Nothing gives it back."""
        return self.receipt(self.ledger.reserve(self.source, cost, relation, self.method))

    def receipt(self, id: str) -> Receipt:
        """The receipt of a reservation."""
        return Receipt(id, lambda release: self.ledger.commit(self.source, id, release))

    def __repr__(self) -> str:
        return f"SourceAccount({self.source!r}, {self.ledger!r})"
