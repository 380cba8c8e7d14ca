"""What is done to the stored entries behind the ledger's back shows, and nothing is spent from them."""

import dataclasses
import itertools
from pathlib import Path

import pytest
from ledger_cases import BUDGET, FIFTY, execute, filled, rewritten, without_guards
from sqlalchemy.exc import DBAPIError

from quietq import InvalidInput
from quietq.ledger import Ledger, TamperedLedger
from quietq.ledger.entries import GENESIS, verify
from quietq.privacy import Cost


def test_every_byte_counts(tmp_path: Path):
    entries = filled(str(tmp_path / "ledger.db")).history()
    assert verify(entries) == entries[-1].hash
    changes = 0
    for place, entry in enumerate(entries):
        for field in ("source", "body", "hash"):
            stored = getattr(entry, field)
            for at, letter in enumerate(stored):
                changed = stored[:at] + chr(ord(letter) ^ 1) + stored[at + 1 :]
                others = [*entries[:place], dataclasses.replace(entry, **{field: changed}), *entries[place + 1 :]]
                with pytest.raises(TamperedLedger):
                    verify(others)
                changes += 1
        with pytest.raises(TamperedLedger):
            verify([*entries[:place], dataclasses.replace(entry, number=entry.number + 1), *entries[place + 1 :]])
    assert changes > 1000


def test_entries_cannot_be_taken_out_swapped_or_put_in(tmp_path: Path):
    entries = filled(str(tmp_path / "ledger.db")).history()
    for place in range(len(entries) - 1):
        with pytest.raises(TamperedLedger, match=f"Entry {place + 1} of the ledger"):
            verify(entries[:place] + entries[place + 1 :])
    for one, other in itertools.combinations(range(len(entries)), 2):
        swapped = list(entries)
        swapped[one], swapped[other] = swapped[other], swapped[one]
        with pytest.raises(TamperedLedger):
            verify(swapped)
    for place, entry in itertools.product(range(len(entries)), entries):
        with pytest.raises(TamperedLedger):
            verify([*entries[:place], entry, *entries[place:]])


def test_a_cut_off_or_rewritten_chain_shows_against_a_noted_head(tmp_path: Path):
    ledger = filled(str(tmp_path / "ledger.db"))
    entries, head = ledger.history(), ledger.verify()
    for length in range(len(entries)):
        assert verify(entries[:length]) != head
        with pytest.raises(TamperedLedger, match=f"No entry of the ledger has the hash {head}"):
            verify(entries[:length], head)
    smaller = dataclasses.replace(entries[1], body=entries[1].body.replace('"mu":0.1', '"mu":0.01'))
    again = rewritten([entries[0], smaller, *entries[2:]])
    verify(again)
    with pytest.raises(TamperedLedger, match="cut off or it was written anew"):
        verify(again, head)
    ledger.account("votes").charge(Cost.gaussian(0.1), FIFTY)
    assert ledger.verify(head) != head  # it has grown since
    assert ledger.verify(GENESIS)
    with pytest.raises(InvalidInput, match="SHA-256"):
        ledger.verify("not a hash")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE quietq_ledger SET body = replace(body, '0.1', '0.2') WHERE number = 2",
        "UPDATE quietq_ledger SET source = 'votes' WHERE number = 2",
        "UPDATE quietq_ledger SET hash = 'x' || substr(hash, 2) WHERE number = 3",
        "UPDATE quietq_ledger SET number = 9 WHERE number = 5",
        "DELETE FROM quietq_ledger WHERE number = 2",
        "INSERT INTO quietq_ledger VALUES (0, 'ratings', '{}', 'x')",
        "INSERT INTO quietq_ledger VALUES (6, 'ratings', '{}', 'x')",
    ],
)
def test_nothing_is_spent_from_a_ledger_that_was_changed(url: str, statement: str):
    ledger = filled(url)
    without_guards(url)
    execute(url, statement)
    account = Ledger(url)  # opening it is no use of it
    for use in (
        lambda: account.balance("ratings"),
        lambda: account.reserve("votes", Cost.gaussian(0.1), FIFTY),
        lambda: account.open("third", BUDGET),
        lambda: ledger.history(),
        lambda: ledger.verify(),
    ):
        with pytest.raises(TamperedLedger, match="nothing is spent from it"):
            use()


def test_the_database_itself_refuses_every_slip(url: str):
    ledger = filled(url)
    head = ledger.verify()
    statements = ["UPDATE quietq_ledger SET source = 'x'", "DELETE FROM quietq_ledger"]
    if "://" in url:
        statements.append("TRUNCATE quietq_ledger")
    else:
        statements.append("INSERT OR REPLACE INTO quietq_ledger VALUES (2, 'ratings', '{}', 'x')")
        statements.append(f"INSERT OR REPLACE INTO quietq_ledger VALUES (6, 'ratings', '{{}}', '{head}')")
    for statement in statements:
        with pytest.raises(DBAPIError, match="a ledger only grows"):
            execute(url, statement)
    assert ledger.verify() == head
