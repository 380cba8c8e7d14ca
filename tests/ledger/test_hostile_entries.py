"""Entries that no ledger wrote grant nothing, even if their hashes hold."""

import dataclasses
import json
import sqlite3
from pathlib import Path

import pytest
from ledger_cases import BUDGET, FIFTY, execute, rewritten

from quietq import BudgetExhausted
from quietq.ledger import Ledger, LedgerEntry, TamperedLedger
from quietq.ledger.entries import GENESIS, canonical
from quietq.privacy import Cost

OPEN = {"what": "open", "id": "1" * 32, "at": "2026-01-01T00:00:00+00:00", "budget": {"epsilon": 1.0, "delta": 1e-5},
        "apart": None}  # fmt: skip
RESERVE = {"what": "reserve", "id": "2" * 32, "at": "2026-01-01T00:00:00+00:00",
           "cost": {"mu": 0.1, "epsilon": None, "delta": None}, "relation": FIFTY.to_dict(), "method": ""}  # fmt: skip


def costing(mu: object = 0.1, epsilon: object = None, delta: object = None) -> dict[str, object]:
    """A reservation of this cost."""
    return {**RESERVE, "cost": {"mu": mu, "epsilon": epsilon, "delta": delta}}


COMMIT = {"what": "commit", "id": "2" * 32, "at": "2026-01-01T00:00:00+00:00", "release": "ab" * 32}
DEEP = "[" * 100_000 + "]" * 100_000
HOSTILE = [
    *(costing(value) for value in (-0.1, 0, 1e300, 10**400, True, "0.1", [], None)),
    *(costing(None, e, d) for e, d in ((-1, 0), (1, -1), (1, 1), (1, None), (None, 0))),
    costing(epsilon=1.0, delta=0.0),
    {**RESERVE, "cost": {"mu": 0.1}},
    {**RESERVE, "cost": None},
    *({**RESERVE, "relation": value} for value in (None, "people", [], {}, {"kind": "hamming"}, {"kind": "sup-ball"})),
    {**RESERVE, "relation": {**FIFTY.to_dict(), "radius": -1.0}},
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
        LedgerEntry(2, "ratings", body, GENESIS).read()


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
        for entry in rewritten([LedgerEntry(0, "ratings", canonical(one), "") for one in said]):
            connection.execute("INSERT INTO quietq_ledger VALUES (?, ?, ?, ?)", dataclasses.astuple(entry))
    connection.close()
    with pytest.raises(TamperedLedger, match=f"Entry {len(said)} "):
        ledger.balances()


def test_a_huge_charge_written_by_somebody_else_only_takes(tmp_path: Path):
    path = str(tmp_path / "ledger.db")
    ledger = Ledger.create(path)
    with sqlite3.connect(path) as connection:
        for entry in rewritten([LedgerEntry(0, "ratings", canonical(one), "") for one in (OPEN, costing(1e100))]):
            connection.execute("INSERT INTO quietq_ledger VALUES (?, ?, ?, ?)", dataclasses.astuple(entry))
    connection.close()
    assert ledger.balance("ratings").spending.remaining_mu == 0
    with pytest.raises(BudgetExhausted, match="mu = 0 of"):
        ledger.account("ratings").charge(Cost.gaussian(0.01), FIFTY)


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
