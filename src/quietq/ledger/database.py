"""One table that only grows, in SQLite or PostgreSQL, and a way to read all of it and add to it with nobody in between.

Each use is a connection and a transaction of its own, so that processes, threads and forks may share a ledger. A COMMIT
whose answer got lost is distinguished from a failure before it: only the latter is certain to have changed nothing.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.event import listen
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from quietq.ledger.entries import LedgerEntry, TamperedLedger
from quietq.privacy.errors import InvalidInput, MissingExtra, QuietqError

DRIVERS = {
    "sqlite": "sqlite", "sqlite+pysqlite": "sqlite", "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg", "postgresql+psycopg": "postgresql+psycopg",
}  # fmt: skip
PATIENCE = 60
"""Seconds to wait while others write."""
NOTHING = "Nothing was booked."
NAME = "quietq_ledger"
table = sa.Table(
    NAME,
    sa.MetaData(),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False, unique=True),
)
_LOCK = "SELECT pg_advisory_xact_lock(7104)"  # any role may take it; a lock on the table would need the right to update
_FIRST = {
    "sqlite": (),  # BEGIN IMMEDIATE has taken the lock
    "postgresql": ("SET LOCAL lock_timeout = '60s'", "SET LOCAL synchronous_commit = on", _LOCK, "SHOW fsync"),
}
"""What a transaction that writes begins with: alone, and on the disk before it is answered."""
_REFUSE = "BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END"
# No defence against somebody who may drop them, but against every slip: entries are not changed and not removed.
_GUARDS = {
    "sqlite": (
        f"CREATE TRIGGER {NAME}_no_update BEFORE UPDATE ON {NAME} {_REFUSE}",
        f"CREATE TRIGGER {NAME}_no_delete BEFORE DELETE ON {NAME} {_REFUSE}",
        # INSERT OR REPLACE removes rows without asking the trigger above.
        f"CREATE TRIGGER {NAME}_no_replace BEFORE INSERT ON {NAME} "
        f"WHEN EXISTS (SELECT 1 FROM {NAME} WHERE number >= NEW.number OR hash = NEW.hash) {_REFUSE}",
    ),
    "postgresql": (
        f"CREATE OR REPLACE FUNCTION {NAME}_only_grows() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'a ledger only grows'; END $$",
        f"CREATE TRIGGER {NAME}_guard BEFORE UPDATE OR DELETE OR TRUNCATE ON {NAME} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {NAME}_only_grows()",
    ),
}


class LedgerUnavailable(QuietqError, RuntimeError):
    """The ledger's database cannot be used; the message says whether something may have been booked."""


class Unanswered(LedgerUnavailable):
    """A COMMIT was sent and its answer did not come: what it was for may be there or not."""


class Database:
    """A ledger's table."""

    def __init__(self, url: str | os.PathLike[str], create: bool) -> None:
        self._url = _parsed(url)
        self.kind = self._url.get_backend_name()
        self._file = Path(str(self._url.database)) if self.kind == "sqlite" else None
        try:
            if self._file is not None:
                self._engine = sa.create_engine("sqlite://", poolclass=NullPool, creator=self._connect_sqlite)
                listen(self._engine, "begin", _begin_sqlite)
            else:
                # With a snapshot for the whole transaction, the entries would be those from before the lock.
                self._engine = sa.create_engine(
                    self._url,
                    poolclass=NullPool,
                    isolation_level="READ COMMITTED",
                    connect_args={} if "connect_timeout" in self._url.query else {"connect_timeout": PATIENCE},
                )
        except ImportError as error:
            raise MissingExtra.of("ledger", "A ledger in PostgreSQL needs psycopg") from error
        if create:
            self._create()
        elif not self._exists():
            raise InvalidInput(f"There is no ledger at {self}: make one with Ledger.create or `quietq ledger create`.")

    def __str__(self) -> str:
        """The address without its password, and without what follows a question mark, where there may be one, too."""
        if self._file is not None:
            return str(self._file)
        return self._url.set(drivername="postgresql", query={}).render_as_string(hide_password=True)

    @property
    def place(self) -> tuple[int, int] | None:
        """Which file it is, by device and number, so that a copy is another; None where there is a server."""
        if self._file is None:
            return None
        found = self._file.stat()
        return found.st_dev, found.st_ino

    @contextmanager
    def alone(self) -> Iterator[sa.Connection]:
        """A transaction in which nobody else writes: what is added is there for good when it ends, or not at all.

        If the answer to its end is lost, raises Unanswered; the next use waits until the server has decided.
        """
        with self._told():
            connection = self._engine.connect()
        with closing(connection):  # which takes back what was not committed
            with self._told():
                self._check_durable([connection.execute(sa.text(statement)) for statement in _FIRST[self.kind]])
                yield connection
            try:
                connection.commit()
            except SQLAlchemyError as error:
                reason = self._reason(error)
            else:
                return
            driver = connection.connection.dbapi_connection if self.kind == "sqlite" else None
            if driver is not None and driver.in_transaction:  # SQLite says itself that it did not commit
                raise LedgerUnavailable(f"The ledger {self} cannot be written: {reason}. {NOTHING}")
        raise Unanswered(f"The ledger {self} gave no answer ({reason}), so the charge may or may not have been booked.")

    def read(self) -> list[LedgerEntry]:
        with self._told(), self._engine.connect() as connection:
            return entries_of(connection.execution_options(only_reads=True))

    def _create(self) -> None:
        """Creates the table in one transaction, so that it is whole; one that is there is left as it is."""
        if self._file is not None:
            try:
                os.close(os.open(self._file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            except FileExistsError:
                pass
            except OSError as error:
                raise InvalidInput(f"No ledger can be made at {self}: {error.strerror}.") from None
        if not self._exists():
            with self._told(), self._engine.begin() as connection:
                if self._file is None:
                    connection.execute(sa.text(_LOCK))
                if not sa.inspect(connection).has_table(NAME):  # or somebody else was quicker
                    table.create(connection)
                    for statement in _GUARDS[self.kind]:
                        connection.exec_driver_sql(statement)

    def _connect_sqlite(self) -> sqlite3.Connection:
        """Connects to a file that is there; connecting must not make one."""
        assert self._file is not None
        uri = f"{self._file.as_uri()}?mode=rw"
        connection = sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None)
        connection.text_factory = lambda data: data.decode(errors="surrogateescape")  # a hostile row is read, too
        try:
            connection.execute("PRAGMA synchronous = EXTRA")  # a charge is on the disk before noise is drawn
        except sqlite3.Error:  # it is no database
            connection.close()
            raise
        return connection

    def _exists(self) -> bool:
        if self._file is not None and not self._file.is_file():
            return False
        with self._told(), self._engine.connect() as connection:
            return sa.inspect(connection.execution_options(only_reads=True)).has_table(NAME)

    def _check_durable(self, answers: list[sa.CursorResult]) -> None:
        if self.kind == "postgresql" and answers[-1].scalar_one() != "on":
            raise LedgerUnavailable(
                f"The server of the ledger {self} runs with fsync off, so that it could forget charges when it "
                f"crashes: set fsync = on. {NOTHING}"
            )

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Returns what goes wrong before a COMMIT, in a sentence."""
        reason = None
        try:
            yield
        except SQLAlchemyError as error:
            reason = self._reason(error)
        if reason is not None:  # raised here, so that the driver's error, which knows the password, is not its context
            raise LedgerUnavailable(f"The ledger {self} cannot be used: {reason}. {NOTHING}")

    def _reason(self, error: SQLAlchemyError) -> str:
        """The driver's own words, first line; SQLAlchemy's would show statements and their values."""
        words = str(getattr(error, "orig", None) or "").strip() or type(error).__name__
        secret = self._url.password
        return (words.replace(secret, "***") if secret else words).splitlines()[0].rstrip(".")


def entries_of(connection: sa.Connection) -> list[LedgerEntry]:
    rows = connection.execute(sa.select(table).order_by(table.c.number))
    return [LedgerEntry.of_row(place, tuple(row)) for place, row in enumerate(rows, start=1)]


def add(connection: sa.Connection, entry: LedgerEntry) -> None:
    """Adds it at the end, and looks whether it is there: a rule of the database's own might have swallowed it."""
    connection.execute(sa.insert(table).values(**vars(entry)))
    rows = connection.execute(sa.select(table).where(table.c.number == entry.number)).all()
    if [tuple(row) for row in rows] != [astuple(entry)]:
        raise TamperedLedger(
            "The database did not keep the entry that was just written, so a rule or trigger of its own is in the "
            f"way. {NOTHING}"
        )


def _begin_sqlite(connection: sa.Connection) -> None:
    """The driver would begin late, and two readers would both think that it was their turn."""
    only_reads = connection.get_execution_options().get("only_reads", False)
    connection.exec_driver_sql("BEGIN" if only_reads else "BEGIN IMMEDIATE")


def _parsed(url: str | os.PathLike[str]) -> sa.URL:
    text = os.fspath(url)
    if "://" not in text:
        return sa.URL.create("sqlite", database=_in_a_file(text))
    parsed = None
    with suppress(ArgumentError, ValueError):  # both would show the password
        parsed = sa.make_url(text)
    if parsed is None or parsed.drivername not in DRIVERS:
        raise InvalidInput("url must be a file, or an address that starts with sqlite:/// or postgresql://.")
    parsed = parsed.set(drivername=DRIVERS[parsed.drivername])
    if parsed.drivername != "sqlite":
        return parsed
    if parsed.query:
        raise InvalidInput("The address of a SQLite ledger must end with the file's name: leave out what follows '?'.")
    return parsed.set(database=_in_a_file(parsed.database))


def _in_a_file(name: str | None) -> str:
    if name is None or name in ("", ":memory:") or name.startswith("file:"):
        raise InvalidInput("A ledger in memory would be forgotten with the process: url must name a file.")
    if "\0" in name:
        raise InvalidInput("url must name a file, and no file's name has a zero byte in it.")
    return str(Path(name).absolute())
