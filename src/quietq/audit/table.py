"""The table of an audit of everything, as files: Markdown to read, CSV to compute with, JSON with all that is known."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from quietq.audit.finding import Finding
from quietq.audit.movement import Movement

COLUMNS = (
    "name", "standing", "epsilon", "delta", "mu", "epsilon_lower", "mu_lower", "confidence", "runs", "move", "view",
    "score", "verdict",
)  # fmt: skip


def write_table(findings: Mapping[str, Finding], folder: Path) -> list[Path]:
    """Writes audit.md, audit.csv and audit.json to a folder that exists."""
    rows = [_row(name, finding) for name, finding in findings.items()]
    files = [folder / f"audit.{ending}" for ending in ("md", "csv", "json")]
    files[0].write_text(_markdown(COLUMNS, rows), encoding="utf-8")
    with files[1].open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list[str](COLUMNS))
        writer.writeheader()
        writer.writerows(rows)
    table = [{"name": name, **finding.to_dict()} for name, finding in findings.items()]
    files[2].write_text(json.dumps(table, indent=1))
    return files


def write_movements(movements: Sequence[Movement], folder: Path) -> list[Path]:
    """Writes sensitivity.md and sensitivity.json: how far private steps were moved, with their noise held fixed."""
    columns = ("name", "norm", "stated", "found", "share", "by")
    rows = [movement.to_dict() for movement in movements]
    files = [folder / "sensitivity.md", folder / "sensitivity.json"]
    files[0].write_text(_markdown(columns, rows), encoding="utf-8")
    files[1].write_text(json.dumps(rows, indent=1))
    return files


def _row(name: str, finding: Finding) -> dict[str, object]:
    promise, attack = finding.promise, finding.attack
    return {
        "name": name, "standing": promise.standing, "epsilon": promise.epsilon, "delta": promise.delta,
        "mu": promise.mu, "epsilon_lower": finding.epsilon_lower, "mu_lower": finding.mu_lower,
        "confidence": finding.confidence, "runs": finding.runs, "move": attack.move, "view": attack.view,
        "score": attack.score, "verdict": finding.verdict,
    }  # fmt: skip


def _markdown(columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> str:
    lines = [columns, ("---",) * len(columns), *([_written(row[column]) for column in columns] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _written(value: object) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
