"""What takes hours: many draws of many cases, each kept as it is done, so that a run that was ended goes on later.

A study offers `NAME`, `add_options(parser)` and `study(options) -> Study`, opens with a docstring for its heading and
joins STUDIES in `__main__`. Draws are kept in runs/ with a fingerprint of the code that made them: those of other code
do not count.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
Numbers = dict[str, float]


@dataclass(frozen=True)
class Case:
    """One thing that is measured again and again; draws differ in their seed alone."""

    labels: Mapping[str, str | float]
    measure: Callable[[int], Numbers]
    made_of: tuple[Path, ...]
    """The files and folders of code on which the numbers depend."""
    target: float | None = None
    """What the mean of the first number should reach."""
    settings: dict[str, Any] = field(default_factory=dict)
    """What was chosen beforehand, for the record."""
    wanted: bool = True
    """Whether it is measured now; what is known of others is kept."""

    def key(self) -> str:
        return json.dumps([dict(self.labels), self.settings, fingerprint(self.made_of)])


@dataclass(frozen=True)
class Study:
    name: str
    across: str
    """The label whose values become the columns of the page's tables."""
    cases: list[Case]
    remarks: tuple[str, ...] = ()


def fingerprint(paths: Iterable[Path]) -> str:
    """Of the bytes of all Python files."""
    digest = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.relative_to(ROOT).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def run(study: Study, draws: int, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """Measures what is missing, draw by draw over all cases; the results are written after each."""
    kept = ROOT / "runs" / "benchmarks" / f"{study.name}.jsonl"
    kept.parent.mkdir(parents=True, exist_ok=True)
    known: dict[str, dict[int, Numbers]] = {}
    for line in kept.read_text().splitlines() if kept.exists() else []:
        record = json.loads(line)
        known.setdefault(record["key"], {})[record["draw"]] = record["numbers"]
    keys = [case.key() for case in study.cases]  # before anything is measured: the code may be edited meanwhile
    for draw in range(draws):
        for case, key in zip(study.cases, keys, strict=True):
            if not case.wanted or draw in known.setdefault(key, {}):
                continue
            numbers = case.measure(draw)
            known[key][draw] = numbers
            with kept.open("a") as file:
                file.write(json.dumps({"key": key, "draw": draw, "numbers": numbers}) + "\n")
            text = ", ".join(f"{name} {number:.3f}" for name, number in numbers.items())
            tell(f"draw {draw}: {' '.join(map(str, case.labels.values()))}: {text}")
            _write(study, keys, known)
    return _write(study, keys, known)


def _write(study: Study, keys: list[str], known: dict[str, dict[int, Numbers]]) -> list[dict[str, Any]]:
    entries = [_entry(case, list(known.get(key, {}).values())) for case, key in zip(study.cases, keys, strict=True)]
    found = {"across": study.across, "remarks": study.remarks, "rows": [entry for entry in entries if entry["draws"]]}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{study.name}.json").write_text(json.dumps(found, indent=1) + "\n")
    return found["rows"]


def _entry(case: Case, draws: list[Numbers]) -> dict[str, Any]:
    entry: dict[str, Any] = {**case.labels, "draws": len(draws), "target": case.target, "numbers": {}}
    if case.settings:
        entry["settings"] = case.settings
    for name in draws[0] if draws else ():
        values = [one[name] for one in draws]
        error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
        entry["numbers"][name] = {"mean": float(np.mean(values)), "standard error": error}
    if draws and case.target is not None:
        entry["verdict"] = "reached" if next(iter(entry["numbers"].values()))["mean"] >= case.target else "below"
    return entry


def tables(found: dict[str, Any]) -> dict[str, list[list[str]]]:
    """For each number a table, headings first: one column for each value of `across`, the target in brackets."""
    across, rows = found["across"], found["rows"]
    columns = list(dict.fromkeys(row[across] for row in rows))
    plain = ("draws", "target", "numbers", "verdict", "settings", across)
    labels = [name for name in rows[0] if name not in plain]
    lines: dict[tuple, dict[Any, dict[str, Any]]] = {}
    for row in rows:
        lines.setdefault(tuple(row[name] for name in labels), {})[row[across]] = row
    numbers = list(dict.fromkeys(name for row in rows for name in row["numbers"]))
    return {
        name: [
            [*labels, *(f"{across} {column}" for column in columns), "draws"],
            *(
                [
                    *map(str, line),
                    *(_cell(cells.get(column), name, name == numbers[0]) for column in columns),
                    _draws(cells),
                ]
                for line, cells in lines.items()
                if any(name in row["numbers"] for row in cells.values())
            ),
        ]
        for name in numbers
    }


def _cell(row: dict[str, Any] | None, name: str, held: bool) -> str:
    if row is None or name not in row["numbers"]:
        return ""
    number = row["numbers"][name]
    error = "" if number["standard error"] is None else f" ± {number['standard error']:.3f}"
    target = (
        f" (≥ {row['target']:g}{'' if row['verdict'] == 'reached' else ': below'})" if held and row["target"] else ""
    )
    return f"{number['mean']:.3f}{error}{target}"


def _draws(cells: dict[Any, dict[str, Any]]) -> str:
    counts = [row["draws"] for row in cells.values()]
    return str(counts[0]) if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)}"
