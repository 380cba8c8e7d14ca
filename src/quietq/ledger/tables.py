"""The table, its guards, and what a transaction of each kind of database begins with."""

import sqlite3
from pathlib import Path

import sqlalchemy as sa

NAME = "quietq_ledger"
_LOCK = "SELECT pg_advisory_xact_lock(7104)"  # any role may take it; a lock on the table would need the right to update

table = sa.Table(
    NAME,
    sa.MetaData(),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False, unique=True),
)

FIRST = {
    "sqlite": (),  # BEGIN IMMEDIATE has taken the lock
    "postgresql": (
        "SET LOCAL lock_timeout = '60s'",
        "SET LOCAL synchronous_commit = on",
        _LOCK,
        "SHOW fsync",
    ),
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


def create_table(connection: sa.Connection) -> None:
    """Makes the table and its guards, unless somebody else was quicker."""
    kind = connection.dialect.name
    if kind == "postgresql":
        connection.execute(sa.text(_LOCK))
    if not sa.inspect(connection).has_table(NAME):
        table.create(connection)
        for statement in _GUARDS[kind]:
            connection.exec_driver_sql(statement)


def connect_sqlite(file: Path, patience: float) -> sqlite3.Connection:
    """A connection to a file that is there; connecting must not make one."""
    connection = sqlite3.connect(f"{file.as_uri()}?mode=rw", uri=True, timeout=patience, isolation_level=None)
    connection.text_factory = lambda data: data.decode(errors="surrogateescape")  # a hostile row must not stop reading
    connection.execute("PRAGMA synchronous = EXTRA")  # a charge is on the disk before noise is drawn
    return connection


def begin_sqlite(connection: sa.Connection) -> None:
    """The driver would begin late, and two readers would both think that it was their turn."""
    only_reads = connection.get_execution_options().get("only_reads", False)
    connection.exec_driver_sql("BEGIN" if only_reads else "BEGIN IMMEDIATE")
