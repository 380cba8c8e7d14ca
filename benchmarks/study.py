"""What takes hours: many draws of many cases, each kept as it is done, so that a run that was ended goes on later.

A study offers `add_options(parser)` and `study(options) -> Study`, opens with a docstring for its heading and
joins STUDIES in `__main__`. Draws are kept in runs/ with a fingerprint of the code that made them: those of other code
do not count.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PACKAGE_ROOMS = tuple(
    ROOT / "src" / "quietq" / room for room in ("privacy", "noise", "feedback", "released", "mechanisms")
)
"""The rooms of the package that every release rests on."""
Numbers = dict[str, float]
Draws = dict[int, Numbers]


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
    each: str = "draws"
    """What one measurement of each case is called."""
    overlap: float = 0.0
    """Where draws are splits of the same people: those held out over the others."""
    compare: Callable[[list[Draws]], list[Draws]] = lambda found: found
    """From what was measured of each case to what is shown of it, such as differences on the same draw."""


def fingerprint(paths: Iterable[Path]) -> str:
    """Of the bytes of all Python files."""
    digest = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.relative_to(ROOT).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def run(study: Study, draws: int, tell: Callable[[str], None], minutes: float = float("inf")) -> list[dict[str, Any]]:
    """Measures what is missing, draw by draw over all cases, for so long; the results are written after each."""
    kept = ROOT / "runs" / "benchmarks" / f"{study.name}.jsonl"
    kept.parent.mkdir(parents=True, exist_ok=True)
    known: dict[str, Draws] = {}
    for line in kept.read_text().splitlines() if kept.exists() else []:
        record = json.loads(line)
        known.setdefault(record["key"], {})[record["draw"]] = record["numbers"]
    keys = [case.key() for case in study.cases]  # before anything is measured: the code may be edited meanwhile
    left = [
        (draw, case, key)
        for draw in range(draws)
        for case, key in zip(study.cases, keys, strict=True)
        if case.wanted and draw not in known.setdefault(key, {})
    ]
    started = time.monotonic()
    for number, (draw, case, key) in enumerate(left, start=1):
        if time.monotonic() - started > 60 * minutes:
            tell(f"{len(left) - number + 1} of {len(left)} were left for the next run.")
            break
        before = time.monotonic()
        numbers = case.measure(draw)
        known[key][draw] = numbers
        with kept.open("a") as file:
            file.write(json.dumps({"key": key, "draw": draw, "numbers": numbers}) + "\n")
        text = ", ".join(f"{name} {value:.3f}" for name, value in numbers.items())
        named, seconds = " ".join(map(str, case.labels.values())), time.monotonic() - before
        tell(f"{number} of {len(left)}, draw {draw}: {named}: {text} ({seconds:.1f} s)")
        _write(study, keys, known)
    tell(f"That took {(time.monotonic() - started) / 60:.1f} minutes.")
    return _write(study, keys, known)


def _write(study: Study, keys: list[str], known: dict[str, Draws]) -> list[dict[str, Any]]:
    shown = study.compare([known.get(key, {}) for key in keys])
    entries = [
        _entry(case, list(draws.values()), study.overlap) for case, draws in zip(study.cases, shown, strict=True)
    ]
    rows = [entry for entry in entries if entry["draws"]]
    found = {"across": study.across, "each": study.each, "overlap": study.overlap, "remarks": study.remarks}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{study.name}.json").write_text(json.dumps(found | {"rows": rows}, indent=1) + "\n")
    return rows


def _entry(case: Case, draws: list[Numbers], overlap: float) -> dict[str, Any]:
    entry: dict[str, Any] = {**case.labels, "draws": len(draws), "target": case.target, "numbers": {}}
    if case.settings:
        entry["settings"] = case.settings
    for name in dict.fromkeys(name for one in draws for name in one):
        values = [one[name] for one in draws if name in one]
        entry["numbers"][name] = {"mean": float(np.mean(values)), "standard error": standard_error(values, overlap)}
    if draws and case.target is not None:
        entry["verdict"] = "reached" if next(iter(entry["numbers"].values()))["mean"] >= case.target else "below"
    return entry


def standard_error(values: list[float], overlap: float = 0.0) -> float | None:
    """Of a mean over draws. Splits of the same people are not independent, and their variance is not divided by their
    number n but multiplied by 1/n + overlap (Nadeau & Bengio 2003, the corrected resampled t)."""
    return float(np.std(values, ddof=1) * np.sqrt(1 / len(values) + overlap)) if len(values) > 1 else None


def tables(found: dict[str, Any]) -> dict[str, list[list[str]]]:
    """For each number a table, headings first: one column for each value of `across`, the target in brackets."""
    across, each, rows = found["across"], found.get("each", "draws"), found["rows"]
    plain = ("draws", "target", "numbers", "verdict", "settings", across)
    labels = [name for name in rows[0] if name not in plain] if rows else []
    result = {}
    for number in dict.fromkeys(name for row in rows for name in row["numbers"]):
        lines: dict[tuple, dict[Any, dict[str, Any]]] = {}
        with_it = [row for row in rows if number in row["numbers"]]
        for row in with_it:
            lines.setdefault(tuple(row[name] for name in labels), {})[row[across]] = row
        columns = list(dict.fromkeys(row[across] for row in with_it))
        if not any(isinstance(column, str) for column in columns):
            columns.sort()
        headings = [column if isinstance(column, str) else f"{across} {column}" for column in columns]
        result[number] = [
            [*labels, *headings, each],
            *(
                [*map(str, line), *(_cell(cells.get(column), number) for column in columns), _draws(cells)]
                for line, cells in lines.items()
            ),
        ]
    return result


def _cell(row: dict[str, Any] | None, name: str) -> str:
    """A target is for the first number of its row."""
    if row is None:
        return ""
    number, target = row["numbers"][name], ""
    error = "" if number["standard error"] is None else f" ± {number['standard error']:.3f}"
    if row["target"] is not None and name == next(iter(row["numbers"])):
        target = f" (≥ {row['target']:g}{'' if row['verdict'] == 'reached' else ': below'})"
    return f"{number['mean']:.3f}{error}{target}"


def _draws(cells: dict[Any, dict[str, Any]]) -> str:
    counts = [row["draws"] for row in cells.values()]
    return str(counts[0]) if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)}"
