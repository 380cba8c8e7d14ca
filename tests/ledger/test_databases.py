"""Addresses, permissions, passwords, and what happens when the database or the way to it breaks."""

import os
import socket
import stat
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from quietq import Budget, BudgetExhausted, InvalidInput, people
from quietq.ledger import Ledger, LedgerUnavailable, database

BUDGET = Budget(0.9, 1e-4)
FIFTY = people(50, 0, 0.5, 1)


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
                ledger.account("ratings").charge(0.1, relation=FIFTY)
            driver.execute("ROLLBACK")
    assert ledger.balance("ratings").charges == ()


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
    assert done.stdout == "A ledger needs SQLAlchemy: pip install 'quietq[ledger]'.\n"


def test_no_password_is_shown(postgresql: str, tmp_path: Path):
    address = postgresql.replace("postgres@", "postgres:hunter2@")
    ledger = Ledger.create(address)
    assert repr(ledger) == f"Ledger('{postgresql}')".replace("postgres@", "postgres:***@")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody answers there
        closed = f"127.0.0.1:{taken.getsockname()[1]}"
        for url in (
            f"postgresql://postgres:hunter2@{closed}/postgres",
            f"postgresql://postgres@{closed}/postgres?password=hunter2",
            f"postgresql://postgres:hunter2@{postgresql.split('@')[1]}hunter2",
            f"postgresql://postgres:hunter2@{closed}/postgres?no_such_option=hunter2",
        ):
            with pytest.raises(LedgerUnavailable, match="Nothing was booked") as refused:
                Ledger(url)
            error: BaseException | None = refused.value
            while error is not None:
                assert "hunter2" not in str(error).replace("postgreshunter2", "").replace("postgres***", "")
                error = error.__context__


def test_a_role_that_may_only_read_and_add_is_enough(postgresql: str, server):
    Ledger.create(postgresql).open("ratings", BUDGET)
    server.execute("DROP ROLE IF EXISTS clerk")
    server.execute("CREATE ROLE clerk LOGIN; GRANT SELECT, INSERT ON quietq_ledger TO clerk")
    server.execute("DROP ROLE IF EXISTS officer; CREATE ROLE officer LOGIN; GRANT SELECT ON quietq_ledger TO officer")
    try:
        ledger = Ledger.create(postgresql.replace("postgres@", "clerk@"))  # there already: nothing is made
        ledger.account("ratings").charge(0.1, relation=FIFTY)
        reader = Ledger(postgresql.replace("postgres@", "officer@"))
        assert len(reader.balance("ratings").charges) == 1
        with pytest.raises(LedgerUnavailable, match=r"permission denied.*Nothing was booked"):
            reader.account("ratings").charge(0.1, relation=FIFTY)
        for statement in (
            "UPDATE quietq_ledger SET source = 'x'",
            "DELETE FROM quietq_ledger",
            "DROP TABLE quietq_ledger",
        ):
            with (
                psycopg.connect(postgresql.replace("postgres@", "clerk@")) as clerk,
                pytest.raises(psycopg.errors.InsufficientPrivilege),
            ):
                clerk.execute(statement.encode())
    finally:
        server.execute("DROP TABLE quietq_ledger; DROP ROLE clerk; DROP ROLE officer")


def wait_until(is_so: Callable[[], bool]) -> None:
    """A server takes a moment to notice new settings."""
    for _ in range(1000):
        if is_so():
            return
        time.sleep(0.01)
    pytest.fail("The server did not take the setting.")


def test_a_servers_settings_cannot_weaken_a_charge(postgresql: str, server):
    ledger = Ledger.create(
        f"{postgresql}?options=-csynchronous_commit%3Doff%20-cdefault_transaction_isolation%3Dserializable"
    )
    ledger.open("ratings", BUDGET)
    with ledger._database.alone() as session:
        shown = [session._connection.exec_driver_sql(f"SHOW {what}").scalar() for what in
                 ("synchronous_commit", "transaction_isolation")]  # fmt: skip
    assert shown == ["on", "read committed"]
    server.execute("ALTER SYSTEM SET fsync = off")
    server.execute("SELECT pg_reload_conf()")
    try:
        wait_until(lambda: server.ask("SHOW fsync") == "off")
        with pytest.raises(LedgerUnavailable, match=r"fsync off.*Nothing was booked"):
            ledger.account("ratings").charge(0.001, relation=FIFTY)
    finally:
        server.execute("ALTER SYSTEM RESET fsync")
        server.execute("SELECT pg_reload_conf()")
        wait_until(lambda: server.ask("SHOW fsync") == "on")
    assert ledger.balance("ratings").charges == ()


def _received(one: socket.socket) -> bytes:
    try:
        return one.recv(65536)
    except OSError:
        return b""


class Proxy:
    """Stands between a client and the server, and cuts the connection at the next so many COMMITs."""

    def __init__(self, port: int, cuts: int, passes_on: bool) -> None:
        self._server, self._cuts, self._passes_on = port, cuts, passes_on
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client = self._listening.accept()[0]
            except OSError:
                return
            upstream = socket.create_connection(("127.0.0.1", self._server))
            threading.Thread(target=self._requests, args=(client, upstream), daemon=True).start()

    def _requests(self, client: socket.socket, upstream: socket.socket) -> None:
        answers = threading.Thread(target=self._answers, args=(client, upstream), daemon=True)
        answers.start()
        with client, upstream:
            while data := _received(client):
                cut = b"COMMIT\0" in data and self._cuts > 0
                if cut:
                    self._cuts -= 1
                    client.shutdown(socket.SHUT_RDWR)  # no answer will get through
                if self._passes_on or not cut:
                    upstream.sendall(data)
                if cut:
                    break
            upstream.shutdown(socket.SHUT_WR)
            answers.join()  # the server has answered and closed

    def _answers(self, client: socket.socket, upstream: socket.socket) -> None:
        while data := _received(upstream):
            with suppress(OSError):
                client.sendall(data)

    def close(self) -> None:
        self._listening.close()


@pytest.mark.parametrize("passes_on", [True, False], ids=["after", "before"])
@pytest.mark.parametrize("cuts", [1, 2])
def test_an_answer_that_got_lost(postgresql: str, server, cuts: int, passes_on: bool):
    ledger = Ledger.create(postgresql)
    ledger.open("ratings", BUDGET)
    proxy = Proxy(server.port, cuts, passes_on)
    try:
        account = Ledger(postgresql.replace(str(server.port), str(proxy.port))).account("ratings")
        if cuts == 2 and not passes_on:
            with pytest.raises(
                LedgerUnavailable, match=r"may or may not have been booked. It is entry [0-9a-f]{32} of"
            ):
                account.charge(0.2, relation=FIFTY)
            assert account.reservation is None
        else:
            account.charge(0.2, relation=FIFTY)
            account.committed("ab" * 32)
    finally:
        proxy.close()
    charges = ledger.balance("ratings").charges
    assert len(charges) == (0 if cuts == 2 and not passes_on else 1)
    ledger.verify()


def test_charges_survive_a_crash_of_the_server(postgresql: str, server, monkeypatch: pytest.MonkeyPatch):
    ledger = Ledger.create(postgresql)
    ledger.open("ratings", BUDGET)
    ledger.account("ratings").charge(0.2, relation=FIFTY)
    head = ledger.verify()
    add = database.Session.add

    def add_and_crash(session: database.Session, entry: object) -> None:
        add(session, entry)  # pyright: ignore[reportArgumentType]
        server.stop("immediate")

    with monkeypatch.context() as patched:
        patched.setattr(database.Session, "add", add_and_crash)
        try:
            with pytest.raises(LedgerUnavailable, match="may or may not have been booked"):
                ledger.account("ratings").charge(0.1, relation=FIFTY)
            with pytest.raises(LedgerUnavailable, match="Nothing was booked"):
                ledger.reserve("ratings", mu=0.1, relation=FIFTY)
        finally:
            server.start()
    assert ledger.verify(head) == head
    with pytest.raises(BudgetExhausted):
        ledger.account("ratings").charge(0.25, relation=FIFTY)
    ledger.account("ratings").charge(0.1, relation=FIFTY)
