"""Rows that were found: kept by what names their task, the code and what that stands on; and written as tables."""

import csv
import functools
import hashlib
import json
import os
import platform
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import quietq
from reproduction.experiment import Claim, Row, Tables, Task


@dataclass(frozen=True)
class Cache:
    """A folder with a file for each task that was done; None keeps nothing."""

    folder: Path | None

    @classmethod
    def usual(cls) -> "Cache":
        """QUIETQ_CACHE, or else the user's cache folder; nothing is kept where QUIETQ_CACHE is empty."""
        place = os.environ.get("QUIETQ_CACHE", Path.home() / ".cache" / "quietq")
        return cls(Path(place) / "paper" if place else None)

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
        named = json.dumps([_plain(task), code(), versions()], sort_keys=True)
        return self.folder / f"{hashlib.sha256(named.encode()).hexdigest()[:24]}.json"


@functools.cache
def code() -> str:
    """A hash of all code that rows can depend on: this folder's and quietq's."""
    digest = hashlib.sha256()
    for root in (Path(__file__).parent, Path(quietq.__file__).parent):
        for file in sorted(file for file in root.rglob("*") if file.suffix in (".py", ".toml")):
            digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


@functools.cache
def versions() -> dict[str, str]:
    here = {"python": platform.python_version(), "machine": platform.machine()}
    return here | {package: version(package) for package in ("jax", "jaxlib", "numpy", "scipy", "equinox", "optax")}


def _plain(task: Task) -> Any:
    return json.loads(json.dumps(task.describe()))


def _is_row(row: object) -> bool:
    return isinstance(row, dict) and all(isinstance(value, str | int | float | bool | None) for value in row.values())


def write_tables(
    tables: Tables, claims: Sequence[Claim], tasks: Sequence[Task], folder: Path, *, quick: bool = False
) -> list[Path]:
    """Writes NAME.csv for every table and the verdicts, and beside it what it comes from, to a folder that exists."""
    files, about = [], {"quietq": quietq.__version__, "code": code(), "stands_on": versions(), "quick": quick}
    for name, rows in {**tables, "verdicts": [asdict(claim) for claim in claims]}.items():
        if not rows:
            continue
        files += [folder / f"{name}.csv", folder / f"{name}.json"]
        with files[-2].open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(dict.fromkeys(column for row in rows for column in row)))
            writer.writeheader()
            writer.writerows(rows)
        sources: object = [task.describe() for task in tasks if task.table == name] or "from the other tables"
        files[-1].write_text(json.dumps({**about, "tasks": sources}, indent=1))
    return files
