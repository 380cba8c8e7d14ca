"""A real PostgreSQL server that ends with the test run, however that ends."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg

# The shell waits for an order, and the pipe it would come through closes when the test run is gone, even if killed.
GUARD = """
folder=$1; shift
"$@" & server=$!
read -r order; ordered=$?
kill -QUIT $server; wait $server
[ $ordered = 0 ] || rm -rf "$folder"
"""
OPTIONS = ["-c", "shared_buffers=16MB", "-c", "autovacuum=off", "-c", "max_wal_senders=0"]


def find_binaries() -> Path | None:
    """Where PostgreSQL's programs are."""
    on_path = shutil.which("initdb")
    places = [Path(on_path).resolve().parent] if on_path else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists() and (place / "postgres").exists()), None)


class Server:
    """A server in a folder of its own."""

    def __init__(self, binaries: Path) -> None:
        self._binaries = binaries
        self._user = "postgres" if os.getuid() == 0 else None  # the server refuses to run as root
        self.folder = Path(tempfile.mkdtemp(prefix="quietq"))
        if self._user is not None:
            shutil.chown(self.folder, self._user, self._user)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        initdb = [binaries / "initdb", "-D", self.folder / "data", "-A", "trust", "-U", "postgres", "-E", "UTF8"]
        subprocess.run([*initdb, "--no-locale", "--no-sync"], cwd="/", user=self._user, check=True, timeout=120,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip

    @property
    def url(self) -> str:
        """Its address."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Returns when it answers."""
        server = [self._binaries / "postgres", "-D", self.folder / "data", "-h", "127.0.0.1", "-p", str(self.port),
                  "-k", self.folder, *OPTIONS]  # fmt: skip
        with open(self.folder / "log", "ab") as log:
            self._guard = subprocess.Popen(
                ["/bin/sh", "-c", GUARD, "sh", self.folder, *server], cwd="/", user=self._user,
                stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + 60
        while True:
            try:
                self._owner = psycopg.connect(self.url, autocommit=True, prepare_threshold=None)
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise RuntimeError((self.folder / "log").read_text()) from None
            time.sleep(0.05)

    def crash(self) -> None:
        """Ends it at once, as a failure of the power would; its folder stays."""
        self._owner.close()
        self._guard.communicate(b"crash\n", timeout=60)

    def close(self) -> None:
        """Ends it and takes its folder away, as happens also when the test run is killed."""
        self._owner.close()
        self._guard.communicate(timeout=60)

    def execute(self, statement: str) -> None:
        """Runs statements as the server's owner."""
        self._owner.execute(statement.encode())

    def ask(self, question: str) -> object:
        """The first value of the answer."""
        row = self._owner.execute(question.encode()).fetchone()
        return None if row is None else row[0]
