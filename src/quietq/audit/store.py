"""Results kept by content: the same configuration of the same code is not computed twice."""

import hashlib
import json
import os
from pathlib import Path

import numpy as np

from quietq.version import hash_of_code

CODE = ("privacy", "noise", "feedback", "mechanisms", "worlds", "learning", "audit/pairs.py", "audit/runs.py")
"""What results can depend on: rooms, and files."""


class Store:
    """A folder of numbered arrays, named by a hash of the configuration and of the code; None keeps nothing."""

    def __init__(self, folder: Path | None, configuration: object) -> None:
        text = json.dumps([configuration, hash_of_code(CODE)], sort_keys=True).encode()
        self.name = hashlib.sha256(text).hexdigest()[:24]
        self.folder = None if folder is None else folder / self.name
        self._configuration = configuration

    def get(self, number: int) -> np.ndarray | None:
        """The array of this number; None if it is not there, or was not written to its end."""
        if self.folder is None:
            return None
        try:
            return np.load(self.folder / f"{number:05}.npy", allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None

    def put(self, number: int, array: np.ndarray) -> None:
        """Keeps it, whole or not at all."""
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        note = self.folder / "configuration.json"
        if not note.exists():
            note.write_text(json.dumps(self._configuration, indent=1, sort_keys=True))
        temporary = self.folder / f".{number:05}.{os.getpid()}.part"
        with temporary.open("wb") as file:
            np.save(file, array, allow_pickle=False)
        os.replace(temporary, self.folder / f"{number:05}.npy")
