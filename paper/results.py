"""Where outcomes are kept: a file a task, named by a hash of its configuration, the code and what that stands on."""

import functools
import hashlib
import json
import os
import platform
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from paper.task import Row, Task
from quietq.audit.store import hash_of_code
from quietq.learning.cache import cache_folder

CODE = ("privacy", "noise", "rewards", "worlds", "learning", "audit")
"""The rooms that outcomes can depend on, beside this folder."""
STANDS_ON = ("jax", "jaxlib", "numpy", "scipy", "equinox", "optax")


class Shelf:
    """A folder of outcomes; None keeps nothing."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    @classmethod
    def usual(cls) -> "Shelf":
        """In the cache folder, if there is one."""
        place = cache_folder()
        return cls(None if place is None else place / "paper")

    def get(self, task: Task) -> list[Row] | None:
        """The rows of a task that was done before by the same code; None if it was not, or not to its end."""
        if self.folder is None:
            return None
        try:
            kept: Any = json.loads(self._file(task).read_text())
            rows = kept["rows"]
            whole = kept["configuration"] == _plain(task) and len(rows) > 0 and all(map(_is_row, rows))
            return rows if whole else None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def put(self, task: Task, rows: list[Row]) -> None:
        """Keeps them, whole or not at all; whoever comes first or last writes the same."""
        if self.folder is None:
            return
        text = json.dumps({"configuration": _plain(task), "rows": rows})
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=self.folder, suffix=".part", delete=False) as file:
            file.write(text)
        os.replace(file.name, self._file(task))

    def _file(self, task: Task) -> Path:
        assert self.folder is not None
        made_by = json.dumps([_plain(task), code(), versions()], sort_keys=True)
        return self.folder / f"{hashlib.sha256(made_by.encode()).hexdigest()[:24]}.json"


@functools.cache
def code() -> str:
    """A hash of all code that rows can depend on."""
    here = Path(__file__).parent
    digest = hashlib.sha256(hash_of_code(CODE).encode())
    for file in sorted(here.rglob("*.py")):
        digest.update(file.relative_to(here).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


@functools.cache
def versions() -> dict[str, str]:
    """What the code stands on here."""
    here = {"python": platform.python_version(), "machine": platform.machine()}
    return here | {package: version(package) for package in STANDS_ON}


def _plain(task: Task) -> Any:
    """The configuration as it comes back from a file: with lists for tuples."""
    return json.loads(json.dumps(task.describe()))


def _is_row(row: object) -> bool:
    return isinstance(row, dict) and all(isinstance(value, str | int | float | bool | None) for value in row.values())
