"""Ledgers in files: their addresses and permissions, what is no ledger, and somebody who holds one."""

import os
import stat
import subprocess
import sys
import traceback
from pathlib import Path

import pytest
import sqlalchemy as sa
from ledger_cases import BUDGET, FIFTY

from quietq import InvalidInput, MissingExtra
from quietq.ledger import Ledger, LedgerUnavailable, database
from quietq.privacy import Cost


def test_a_new_file_is_for_its_owner_only(tmp_path: Path):
    before = os.umask(0)
    try:
        Ledger.create(tmp_path / "ledger.db").open("ratings", BUDGET)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "ledger.db").stat().st_mode) == 0o600
    (tmp_path / "ledger.db").chmod(0o640)
    Ledger.create(tmp_path / "ledger.db")
    assert stat.S_IMODE((tmp_path / "ledger.db").stat().st_mode) == 0o640  # the owner's own choice


def test_files_by_name_and_by_address_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.create("a #?% ledger.db")
    ledger.open("ratings", BUDGET)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert list(ledger.balances()) == ["ratings"]
    assert list(Ledger(tmp_path / "a #?% ledger.db").balances()) == ["ratings"]
    Ledger.create(f"sqlite:///{tmp_path}/other.db")
    assert Ledger(tmp_path / "other.db").balances() == {}


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        (":memory:", "in memory would be forgotten"),
        ("sqlite://", "in memory would be forgotten"),
        ("sqlite:///:memory:", "in memory would be forgotten"),
        ("sqlite:///file:x?mode=memory&uri=true", "leave out what follows"),
        ("sqlite:///x.db?nolock=1", "leave out what follows"),
        ("", "must name a file"),
        ("mysql://host/name", "starts with sqlite:/// or postgresql://"),
        ("sqlite+aiosqlite:///x.db", "starts with sqlite:/// or postgresql://"),
        ("postgresql://user:hunter2@host:port/name", "starts with sqlite:/// or postgresql://"),
        ("no/such/folder/ledger.db", "No ledger can be made at"),
    ],
)
def test_addresses_that_cannot_be(url: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=sentence) as refused:
        Ledger.create(url)
    assert "hunter2" not in "".join(traceback.format_exception(refused.value))
    assert os.listdir(tmp_path) == []


def test_what_is_no_ledger_is_left_alone(tmp_path: Path):
    for name in ("nothing", "nothing.db"):
        with pytest.raises(InvalidInput, match="There is no ledger at"):
            Ledger(tmp_path / name)
    (tmp_path / "text").write_text("a diary, long enough to be looked at as a database" * 20)
    for use in (Ledger, Ledger.create):
        with pytest.raises(LedgerUnavailable, match=r"file is not a database. Nothing was booked."):
            use(tmp_path / "text")
    assert sorted(os.listdir(tmp_path)) == ["text"]
    ledger = Ledger.create(tmp_path / "ledger.db")
    (tmp_path / "ledger.db").unlink()
    with pytest.raises(LedgerUnavailable, match="Nothing was booked"):
        ledger.open("ratings", BUDGET)
    assert sorted(os.listdir(tmp_path)) == ["text"]  # a new, empty ledger would forget what was spent


def test_somebody_who_does_not_let_go_is_waited_for_but_not_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(database, "PATIENCE", 0.05)
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.open("ratings", BUDGET)
    engine = sa.create_engine(f"sqlite:///{tmp_path}/ledger.db", poolclass=sa.NullPool)
    with engine.connect() as other:
        for held, sentence in (
            ("BEGIN IMMEDIATE", "cannot be used: database is locked. Nothing was booked"),
            ("BEGIN", "cannot be written: database is locked. Nothing was booked"),  # reads, so that nobody can commit
        ):
            driver = other.connection.dbapi_connection
            assert driver is not None
            driver.execute(held)
            driver.execute("SELECT * FROM quietq_ledger").fetchall()
            with pytest.raises(LedgerUnavailable, match=sentence):
                ledger.account("ratings").charge(Cost.gaussian(0.1), FIFTY)
            driver.execute("ROLLBACK")
    assert ledger.balance("ratings").bookings == ()


def test_what_to_install():
    code = """
import sys, quietq
sys.modules["sqlalchemy"] = None
try:
    import quietq.ledger
except quietq.MissingExtra as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{MissingExtra.of('ledger', 'A ledger needs SQLAlchemy')}\n"
