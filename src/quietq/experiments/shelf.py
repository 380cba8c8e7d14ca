"""Where outcomes are kept: a file a task, named by a hash of its configuration and of the code."""

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import jax

from quietq.audit.store import hash_of_code
from quietq.experiments.task import Row, Task
from quietq.learning.cache import cache_folder

CODE = ("privacy", "noise", "rewards", "worlds", "learning", "audit", "experiments")
"""The rooms that outcomes can depend on."""


class Shelf:
    """A folder of outcomes; None keeps nothing."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    @classmethod
    def usual(cls) -> "Shelf":
        """In the cache folder, if there is one."""
        place = cache_folder()
        return cls(None if place is None else place / "experiments")

    def get(self, task: Task) -> list[Row] | None:
        """The rows of a task that was done before by the same code; None if it was not, or not to its end."""
        if self.folder is None:
            return None
        try:
            kept: Any = json.loads(self._file(task).read_text())
            return [dict(row) for row in kept["rows"]]
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, task: Task, rows: list[Row]) -> None:
        """Keeps them, whole or not at all; whoever comes first or last writes the same."""
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"configuration": task.describe(), "rows": rows})
        with tempfile.NamedTemporaryFile("w", dir=self.folder, suffix=".part", delete=False) as file:
            file.write(text)
        os.replace(file.name, self._file(task))

    def _file(self, task: Task) -> Path:
        assert self.folder is not None
        made_by = [task.describe(), hash_of_code(CODE), jax.__version__]
        text = json.dumps(made_by, sort_keys=True).encode()
        return self.folder / f"{hashlib.sha256(text).hexdigest()[:24]}.json"
