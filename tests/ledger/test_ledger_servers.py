"""Ledgers on a server: passwords, roles, settings, and a crash of the server itself."""

import re
import socket
import time
from collections.abc import Callable

import psycopg
import pytest
import sqlalchemy as sa
from ledger_cases import BUDGET, FIFTY
from pages import blocks_of, page_named
from postgresql_server import Server

from quietq import BudgetExhausted
from quietq.ledger import Ledger, LedgerEntry, LedgerUnavailable, database
from quietq.privacy import Cost


def test_no_password_is_shown(postgresql: str):
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


def test_a_role_that_may_only_read_and_add_is_enough(server: Server):
    """The roles that the page on the ledger makes."""
    ((_, statements, _),) = [block for block in blocks_of(page_named("ledger")) if block.language == "sql"]
    make_database, *make_roles = re.sub(" *--.*", "", statements).splitlines()
    server.execute(make_database)
    postgresql = server.url.rpartition("/")[0] + "/budgets"
    Ledger.create(postgresql).open("ratings", BUDGET)
    with psycopg.connect(postgresql) as owner:
        owner.execute("\n".join(make_roles).encode())
    try:
        ledger = Ledger.create(postgresql.replace("postgres@", "clerk@"))  # there already: nothing is made
        ledger.account("ratings").charge(Cost.gaussian(0.1), FIFTY)
        reader = Ledger(postgresql.replace("postgres@", "officer@"))
        assert len(reader.balance("ratings").bookings) == 1
        with pytest.raises(LedgerUnavailable, match=r"permission denied.*Nothing was booked"):
            reader.account("ratings").charge(Cost.gaussian(0.1), FIFTY)
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
        server.execute("DROP DATABASE budgets WITH (FORCE)")
        server.execute("DROP ROLE clerk; DROP ROLE officer")


def wait_until(is_so: Callable[[], bool]) -> None:
    """A server takes a moment to notice new settings."""
    for _ in range(1000):
        if is_so():
            return
        time.sleep(0.01)
    pytest.fail("The server did not take the setting.")


def test_a_servers_settings_cannot_weaken_a_charge(postgresql: str, server: Server):
    ledger = Ledger.create(
        f"{postgresql}?options=-csynchronous_commit%3Doff%20-cdefault_transaction_isolation%3Dserializable"
    )
    ledger.open("ratings", BUDGET)
    with ledger._database.alone() as connection:
        shown = [connection.exec_driver_sql(f"SHOW {what}").scalar() for what in
                 ("synchronous_commit", "transaction_isolation")]  # fmt: skip
    assert shown == ["on", "read committed"]
    server.execute("ALTER SYSTEM SET fsync = off")
    server.execute("SELECT pg_reload_conf()")
    try:
        wait_until(lambda: server.ask("SHOW fsync") == "off")
        with pytest.raises(LedgerUnavailable, match=r"fsync off.*Nothing was booked"):
            ledger.account("ratings").charge(Cost.gaussian(0.001), FIFTY)
    finally:
        server.execute("ALTER SYSTEM RESET fsync")
        server.execute("SELECT pg_reload_conf()")
        wait_until(lambda: server.ask("SHOW fsync") == "on")
    assert ledger.balance("ratings").bookings == ()


def test_charges_survive_a_crash_of_the_server(postgresql: str, server: Server, monkeypatch: pytest.MonkeyPatch):
    ledger = Ledger.create(postgresql)
    ledger.open("ratings", BUDGET)
    ledger.account("ratings").charge(Cost.gaussian(0.2), FIFTY)
    head = ledger.verify()
    add = database.add

    def add_and_crash(connection: sa.Connection, entry: LedgerEntry) -> None:
        add(connection, entry)
        server.crash()

    with monkeypatch.context() as patched:
        patched.setattr("quietq.ledger.ledger.add", add_and_crash)
        try:
            with pytest.raises(LedgerUnavailable, match="may or may not have been booked"):
                ledger.account("ratings").charge(Cost.gaussian(0.1), FIFTY)
            with pytest.raises(LedgerUnavailable, match="Nothing was booked"):
                ledger.reserve("ratings", Cost.gaussian(0.1), FIFTY)
        finally:
            server.start()
    assert ledger.verify(head) == head
    with pytest.raises(BudgetExhausted):
        ledger.account("ratings").charge(Cost.gaussian(0.25), FIFTY)
    ledger.account("ratings").charge(Cost.gaussian(0.1), FIFTY)
