"""Budgets by reward source that outlive the process, are shared by processes, and cannot be overspent."""

from quietq.privacy.errors import MissingExtra as MissingExtra

try:
    import sqlalchemy as _sqlalchemy  # noqa: F401
except ImportError as error:
    raise MissingExtra.of("ledger", "A ledger needs SQLAlchemy") from error

from quietq.ledger.database import LedgerUnavailable as LedgerUnavailable
from quietq.ledger.entries import LedgerEntry as LedgerEntry, TamperedLedger as TamperedLedger
from quietq.ledger.ledger import (
    Balance as Balance,
    Booking as Booking,
    Ledger as Ledger,
    SourceAccount as SourceAccount,
)
