"""What is done to the stored entries behind the ledger's back shows, and grants nothing."""

import dataclasses
import itertools
import json
import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from quietq import Budget, BudgetExhausted, InvalidInput, people
from quietq.ledger import Entry, Ledger, TamperedLedger
from quietq.ledger.chain import GENESIS, canonical, link, verify
from quietq.ledger.record import read

BUDGET = Budget(0.9, 1e-4)
FIFTY = people(50, 0, 0.5, 1)


def filled(url: str) -> Ledger:
    ledger = Ledger.create(url)
    ledger.open("ratings", BUDGET, Budget(0.3, 0))
    account = ledger.account("ratings", "first")
    account.charge(0.1, relation=FIFTY)
    account.committed("ab" * 32)
    account.charge_apart(0.1, relation=FIFTY)
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


def rewritten(entries: list[Entry]) -> list[Entry]:
    """The same with a chain that holds, as somebody who can compute hashes would leave it."""
    chain: list[Entry] = []
    for number, entry in enumerate(entries, start=1):
        before = chain[-1].hash if chain else GENESIS
        chain.append(Entry(number, entry.source, entry.body, link(before, number, entry.source, entry.body)))
    return chain


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
    ledger.account("votes").charge(0.1, relation=FIFTY)
    assert ledger.verify(head) != head  # it has grown since
    assert ledger.verify(GENESIS)
    with pytest.raises(InvalidInput, match="SHA-256"):
        ledger.verify("not a hash")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE quietq_ledger SET body = replace(body, '0.1', '0.2') WHERE number = 2",
        "UPDATE quietq_ledger SET source = 'votes' WHERE number = 2",
        "UPDATE quietq_ledger SET hash = replace(hash, 'a', 'b') WHERE number = 3",
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
        lambda: account.reserve("votes", mu=0.1, relation=FIFTY),
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


OPEN = {"what": "open", "id": "1" * 32, "at": "2026-01-01T00:00:00+00:00", "budget": {"epsilon": 1.0, "delta": 1e-5},
        "apart": None}  # fmt: skip
RESERVE = {"what": "reserve", "id": "2" * 32, "at": "2026-01-01T00:00:00+00:00", "mu": 0.1, "epsilon": None,
           "delta": None, "relation": FIFTY.describe(), "method": ""}  # fmt: skip
COMMIT = {"what": "commit", "id": "2" * 32, "at": "2026-01-01T00:00:00+00:00", "release": "ab" * 32}
DEEP = "[" * 100_000 + "]" * 100_000
HOSTILE = [
    *({**RESERVE, "mu": value} for value in (-0.1, 0, 1e300, 10**400, True, "0.1", [], None)),
    *({**RESERVE, "mu": None, "epsilon": e, "delta": d} for e, d in ((-1, 0), (1, -1), (1, 1), (1, None), (None, 0))),
    {**RESERVE, "epsilon": 1.0, "delta": 0.0},
    *({**RESERVE, "relation": value} for value in (None, "people", [])),
    *({**RESERVE, "method": value} for value in ("a\nb", "\x1b[31m", "a" * 201, 3, None)),
    *({**RESERVE, "id": value} for value in ("2", "X" * 32, 2, None)),
    *({**RESERVE, "at": value} for value in ("yesterday", "2026-01-01", "2026-01-01T00:00:00+02:00", 0, None)),
    *({**OPEN, "budget": {"epsilon": e, "delta": d}} for e, d in ((-1, 1e-5), (1e300, 1e-5), (1, 2), (1, 0), ("1", 0))),
    {**OPEN, "budget": None},
    {**OPEN, "budget": {"epsilon": 1.0}},
    {**OPEN, "budget": [1.0, 1e-5]},
    {**OPEN, "more": 1},
    {**COMMIT, "release": "x"},
    {**COMMIT, "what": "refund"},
    {**COMMIT, "what": ["commit"]},
    {},
]
TEXTS = ["", "null", "[]", "3", "{", *(canonical(RESERVE).replace("0.1", number) for number in ("NaN", "1e999")),
         " " + canonical(RESERVE), canonical(RESERVE)[:-1] + ',"mu":0.0}', DEEP, "9" * 10_000]  # fmt: skip


@pytest.mark.parametrize("body", [*(json.dumps(one, sort_keys=True, separators=(",", ":")) for one in HOSTILE), *TEXTS],
                         ids=lambda body: ascii(body[:60]))  # fmt: skip
def test_hostile_entries_are_refused_even_if_their_hashes_hold(body: str):
    with pytest.raises(TamperedLedger):
        read(Entry(2, "ratings", body, GENESIS))


@pytest.mark.parametrize(
    "said",
    [
        [RESERVE],
        [OPEN, OPEN],
        [OPEN, {**OPEN, "id": "3" * 32}],
        [OPEN, RESERVE, RESERVE],
        [OPEN, {**RESERVE, "id": OPEN["id"]}],
        [OPEN, COMMIT],
        [OPEN, RESERVE, COMMIT, COMMIT],
        [OPEN, RESERVE, {**COMMIT, "id": OPEN["id"]}],
    ],
)
def test_entries_that_make_no_sense_together_are_refused(tmp_path: Path, said: list[dict[str, object]]):
    path = str(tmp_path / "ledger.db")
    ledger = Ledger.create(path)
    with sqlite3.connect(path) as connection:
        for entry in rewritten([Entry(0, "ratings", canonical(one), "") for one in said]):
            connection.execute("INSERT INTO quietq_ledger VALUES (?, ?, ?, ?)", dataclasses.astuple(entry))
    connection.close()
    with pytest.raises(TamperedLedger, match=f"Entry {len(said)} "):
        ledger.balances()


def test_a_huge_charge_written_by_somebody_else_only_takes(tmp_path: Path):
    path = str(tmp_path / "ledger.db")
    ledger = Ledger.create(path)
    with sqlite3.connect(path) as connection:
        for entry in rewritten([Entry(0, "ratings", canonical(one), "") for one in (OPEN, {**RESERVE, "mu": 1e100})]):
            connection.execute("INSERT INTO quietq_ledger VALUES (?, ?, ?, ?)", dataclasses.astuple(entry))
    connection.close()
    assert ledger.balance("ratings").remaining_mu == 0
    with pytest.raises(BudgetExhausted, match="mu = 0 of"):
        ledger.account("ratings").charge(0.01, relation=FIFTY)


@pytest.mark.parametrize(
    "row",
    [
        ("x'00ff'", "'ratings'", "'{}'", "'h'"),
        ("'two'", "'ratings'", "'{}'", "'h'"),
        ("2.5", "'ratings'", "'{}'", "'h'"),
        ("2", "x'ff'", "'{}'", "'h'"),
        ("2", "'ratings'", "x'00ff'", "'h'"),
        ("2", "'ratings'", "cast(x'ff' as text)", "'h'"),
        ("2", "'ratings'", "'{}'", "x'ff'"),
        ("9223372036854775807", "'ratings'", "'{}'", "'h'"),
    ],
)
def test_columns_of_any_type_are_refused(tmp_path: Path, row: tuple[str, ...]):
    path = str(tmp_path / "ledger.db")
    ledger = Ledger.create(path)
    ledger.open("ratings", BUDGET)
    loose = "CREATE TABLE loose AS SELECT * FROM quietq_ledger"
    execute(path, loose, "DROP TABLE quietq_ledger", "ALTER TABLE loose RENAME TO quietq_ledger",
            f"INSERT INTO quietq_ledger VALUES ({', '.join(row)})")  # fmt: skip
    with pytest.raises(TamperedLedger):
        ledger.balance("ratings")
