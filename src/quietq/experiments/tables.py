"""Tables as files: CSV to compute with, and beside each the configuration that made it."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import quietq
from quietq.audit.store import hash_of_code
from quietq.experiments.shelf import CODE
from quietq.experiments.task import Row, Task


def write_tables(done: Mapping[Task, Sequence[Row]], folder: Path) -> list[Path]:
    """Writes NAME.csv and NAME.json for every table, to a folder that exists."""
    files = []
    for name in dict.fromkeys(task.table for task in done):
        tasks = [task for task in done if task.table == name]
        rows = [row for task in tasks for row in done[task]]
        made_by = {"quietq": quietq.__version__, "code": hash_of_code(CODE), "tasks": [t.describe() for t in tasks]}
        files += [write_csv(rows, folder / f"{name}.csv"), folder / f"{name}.json"]
        files[-1].write_text(json.dumps(made_by, indent=1))
    return files


def write_csv(rows: Sequence[Mapping[str, object]], path: Path) -> Path:
    """One line a row, with a line of names first."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, columns)
        writer.writeheader()
        writer.writerows(rows)
    return path
