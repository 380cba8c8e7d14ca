"""A fresh ledger's address for each test, in SQLite and on a real PostgreSQL server that the tests start themselves."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest


@dataclass
class Server:
    """A PostgreSQL server in a folder of its own."""

    folder: Path
    binaries: Path
    port: int

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def run(self, program: str, *arguments: str) -> None:
        user = "postgres" if os.getuid() == 0 else None  # the server refuses to run as root
        command = [str(self.binaries / program), "-D", str(self.folder / "data"), *arguments]
        subprocess.run(command, cwd=self.folder, user=user, check=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)  # fmt: skip

    def start(self) -> None:
        options = f"-h 127.0.0.1 -p {self.port} -k {self.folder}"
        self.run("pg_ctl", "start", "-w", "-l", str(self.folder / "log"), "-o", options)

    def stop(self, mode: str) -> None:
        self.run("pg_ctl", "stop", "-w", "-m", mode)

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement.encode())

    def ask(self, question: str) -> object:
        with psycopg.connect(self.url, autocommit=True) as connection:
            row = connection.execute(question.encode()).fetchone()
        return None if row is None else row[0]


def find_binaries() -> Path | None:
    on_path = shutil.which("pg_ctl")
    places = [Path(on_path).resolve().parent] if on_path else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists() and (place / "pg_ctl").exists()), None)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    binaries = find_binaries()
    if binaries is None:
        if os.environ.get("QUIETQ_TEST_PROGRAMS") == "required":
            pytest.fail("PostgreSQL is not installed, and QUIETQ_TEST_PROGRAMS asks for it.")
        pytest.skip("PostgreSQL is not installed.")
    folder = Path(tempfile.mkdtemp(prefix="quietq"))
    if os.getuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        started = Server(folder, binaries, free.getsockname()[1])
    try:
        started.run("initdb", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-locale")
        started.start()
        yield started
    finally:
        if (folder / "data" / "postmaster.pid").exists():
            started.stop("fast")
        shutil.rmtree(folder)


@pytest.fixture
def postgresql(server: Server) -> str:
    """The address of a database without a ledger."""
    server.execute("DROP TABLE IF EXISTS quietq_ledger")
    return server.url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a ledger can be made."""
    return str(tmp_path / "ledger.db") if request.param == "sqlite" else request.getfixturevalue("postgresql")
