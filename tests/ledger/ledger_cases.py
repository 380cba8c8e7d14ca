"""What the ledger's tests share: a budget, a relation, a filled ledger, and what its database's owner can do to it."""

import sqlalchemy as sa

from quietq import Budget, people
from quietq.ledger import Ledger, LedgerEntry
from quietq.ledger.entries import GENESIS, link
from quietq.privacy import Cost

BUDGET = Budget(0.9, 1e-4)
FIFTY = people(50, 0, 0.5, 1)


def filled(url: str) -> Ledger:
    ledger = Ledger.create(url)
    ledger.open("ratings", BUDGET, Budget(0.3, 0))
    account = ledger.account("ratings", "first")
    account.charge(Cost.gaussian(0.1), FIFTY).commit("ab" * 32)
    account.charge(Cost.apart(0.1), FIFTY)
    ledger.open("votes", BUDGET)
    return ledger


def execute(url: str, *statements: str) -> None:
    """As somebody who owns the database."""
    address = sa.make_url(url).set(drivername="postgresql+psycopg") if "://" in url else f"sqlite:///{url}"
    with sa.create_engine(address, poolclass=sa.NullPool).begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def without_guards(url: str) -> None:
    if "://" in url:
        execute(url, "ALTER TABLE quietq_ledger DISABLE TRIGGER USER")
    else:
        execute(url, *(f"DROP TRIGGER quietq_ledger_no_{what}" for what in ("update", "delete", "replace")))


def rewritten(entries: list[LedgerEntry]) -> list[LedgerEntry]:
    """The same with a chain that holds, as somebody who can compute hashes would leave it."""
    chain: list[LedgerEntry] = []
    for number, entry in enumerate(entries, start=1):
        before = chain[-1].hash if chain else GENESIS
        chain.append(LedgerEntry(number, entry.source, entry.body, link(before, number, entry.source, entry.body)))
    return chain
