"""Budgets by reward source that outlive the process, are shared by processes, and cannot be overspent."""

from quietq.privacy.errors import MissingExtra

try:
    import sqlalchemy as _sqlalchemy  # noqa: F401
except ImportError as error:
    raise MissingExtra.of("ledger", "A ledger needs SQLAlchemy") from error

from quietq.ledger.account import SourceAccount
from quietq.ledger.balance import Balance, Booking
from quietq.ledger.chain import Entry, TamperedLedger
from quietq.ledger.database import LedgerUnavailable
from quietq.ledger.ledger import Ledger

__all__ = ["Balance", "Booking", "Entry", "Ledger", "LedgerUnavailable", "SourceAccount", "TamperedLedger"]
