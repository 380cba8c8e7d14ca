"""Tables as files: CSV to compute with, and beside each the configuration that made it."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import quietq
from paper.experiment import Claim
from paper.results import code, versions
from paper.task import Row, Task


def write_tables(
    tables: Mapping[str, Sequence[Row]],
    claims: Sequence[Claim],
    tasks: Sequence[Task],
    folder: Path,
    *,
    quick: bool = False,
) -> list[Path]:
    """Writes NAME.csv and NAME.json for every table, and the verdicts, to a folder that exists."""
    everything = {**tables, "verdicts": [claim.to_dict() for claim in claims]}
    files = []
    for name, rows in everything.items():
        if not rows:
            continue
        made_by: object = [task.describe() for task in tasks if task.table == name] or "from the other tables"
        note = {
            "quietq": quietq.__version__, "code": code(), "stands_on": versions(), "quick": quick,
            "tasks": made_by,
        }  # fmt: skip
        files += [_csv(rows, folder / f"{name}.csv"), folder / f"{name}.json"]
        files[-1].write_text(json.dumps(note, indent=1))
    return files


def _csv(rows: Sequence[Mapping[str, object]], path: Path) -> Path:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, columns)
        writer.writeheader()
        writer.writerows(rows)
    return path
