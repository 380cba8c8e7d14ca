"""What takes hours: many draws of many cases, each kept as it is done, so that a run that was ended goes on later.

A study offers `study() -> Study`, opens with a docstring for its heading and joins STUDIES in `needs.py`. Draws are
kept in runs/ with a fingerprint of the code that made them: those of other code do not count.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PACKAGE_ROOMS = tuple(
    ROOT / "src" / "quietq" / room for room in ("privacy", "noise", "feedback", "released", "mechanisms")
)
"""The rooms of the package that every release rests on."""
Label = str | float
Numbers = dict[str, float]
Draws = dict[int, Numbers]
Table = list[list[str]]
"""Headings first."""


@dataclass(frozen=True)
class Case:
    """One thing that is measured again and again; draws differ in their seed alone."""

    labels: Mapping[str, Label]
    measure: Callable[[int], Numbers] | None
    """None if its numbers follow from those of other cases."""
    made_of: tuple[Path, ...]
    """The files and folders of code on which the numbers depend."""
    target: float | None = None
    """What the mean of the first number should reach."""

    def key(self) -> str:
        return json.dumps([dict(self.labels), fingerprint(self.made_of)])


@dataclass(frozen=True)
class Mean:
    """A mean over draws, with its standard error unless there is one draw only."""

    mean: float
    error: float | None


@dataclass(frozen=True)
class Entry:
    """What was found of one case."""

    labels: dict[str, Label]
    draws: int
    numbers: dict[str, Mean]
    target: float | None = None


@dataclass(frozen=True)
class Results:
    """What is stored of a study, and all that its page needs."""

    across: str
    each: str
    remarks: tuple[str, ...]
    entries: list[Entry]
    more: dict[str, Table] = field(default_factory=dict)

    @classmethod
    def load(cls, name: str) -> "Results":
        found = json.loads((RESULTS / f"{name}.json").read_text())
        entries = found.pop("entries")
        for entry in entries:
            entry["numbers"] = {name: Mean(**number) for name, number in entry["numbers"].items()}
        return cls(**found, entries=[Entry(**entry) for entry in entries])


@dataclass(frozen=True)
class Study:
    name: str
    across: str
    """The label whose values become the columns of the page's tables."""
    cases: list[Case]
    remarks: tuple[str, ...] = ()
    each: str = "draws"
    """What one measurement of each case is called."""
    draws: int = 20
    """How many there are, unless a run asks for others."""
    overlap: float = 0.0
    """Where draws are splits of the same people: those held out over the others."""
    compare: Callable[[list[Draws]], list[Draws]] = lambda found: found
    """From what was measured of each case to what is shown of it, such as differences on the same draw."""
    more: Callable[[list[Entry]], dict[str, Table]] = lambda entries: {}
    """Further tables, by their headings."""


def fingerprint(paths: Iterable[Path]) -> str:
    """Of the bytes of all Python files."""
    digest = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.relative_to(ROOT).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def own_files(*names: str) -> tuple[Path, ...]:
    """Modules of the benchmarks, by name."""
    return tuple(ROOT / "benchmarks" / f"{name}.py" for name in names)


def run(
    study: Study,
    draws: int,
    tell: Callable[[str], None],
    minutes: float = float("inf"),
    only: Mapping[str, str] | None = None,
) -> Results:
    """Measures what is missing, draw by draw over all cases or `only` those of some labels, for so long.

    The results are written after each; what is known of other cases is kept.
    """
    kept = ROOT / "runs" / "benchmarks" / f"{study.name}.jsonl"
    kept.parent.mkdir(parents=True, exist_ok=True)
    known: dict[str, Draws] = {}
    for line in kept.read_text().splitlines() if kept.exists() else []:
        record = json.loads(line)
        known.setdefault(record["key"], {})[record["draw"]] = record["numbers"]
    keys = [case.key() for case in study.cases]  # before anything is measured: the code may be edited meanwhile
    left = [
        (draw, case, case.measure, key)
        for draw in range(draws)
        for case, key in zip(study.cases, keys, strict=True)
        if case.measure is not None
        and all(str(case.labels.get(label)) == value for label, value in (only or {}).items())
        and draw not in known.setdefault(key, {})
    ]
    started = time.monotonic()
    for number, (draw, case, measure, key) in enumerate(left, start=1):
        if time.monotonic() - started > 60 * minutes:
            tell(f"{len(left) - number + 1} of {len(left)} were left for the next run.")
            break
        before = time.monotonic()
        numbers = measure(draw)
        known[key][draw] = numbers
        with kept.open("a") as file:
            file.write(json.dumps({"key": key, "draw": draw, "numbers": numbers}) + "\n")
        text = ", ".join(f"{name} {value:.3f}" for name, value in numbers.items())
        named = " ".join(map(str, case.labels.values()))
        tell(f"{number} of {len(left)}, draw {draw}: {named}: {text} ({time.monotonic() - before:.1f} s)")
        _write(study, keys, known)
    tell(f"That took {(time.monotonic() - started) / 60:.1f} minutes.")
    return _write(study, keys, known)


def _write(study: Study, keys: list[str], known: dict[str, Draws]) -> Results:
    shown = study.compare([known.get(key, {}) for key in keys])
    entries = [
        Entry(dict(case.labels), len(draws), _means(list(draws.values()), study.overlap), case.target)
        for case, draws in zip(study.cases, shown, strict=True)
        if draws
    ]
    found = Results(study.across, study.each, study.remarks, entries, study.more(entries))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{study.name}.json").write_text(json.dumps(asdict(found), indent=1) + "\n")
    return found


def _means(draws: list[Numbers], overlap: float) -> dict[str, Mean]:
    found = {}
    for name in dict.fromkeys(name for one in draws for name in one):
        values = [one[name] for one in draws if name in one]
        found[name] = Mean(float(np.mean(values)), standard_error(values, overlap))
    return found


def standard_error(values: list[float], overlap: float = 0.0) -> float | None:
    """Of a mean over draws. Splits of the same people are not independent, and their variance is not divided by their
    number n but multiplied by 1/n + overlap (Nadeau & Bengio 2003, the corrected resampled t)."""
    return float(np.std(values, ddof=1) * np.sqrt(1 / len(values) + overlap)) if len(values) > 1 else None


def tables(found: Results) -> dict[str, Table]:
    """For each number a table: one column for each value of `across`, the target in brackets."""
    labels = [label for label in found.entries[0].labels if label != found.across] if found.entries else []
    result = {}
    for number in dict.fromkeys(name for entry in found.entries for name in entry.numbers):
        lines: dict[tuple[Label, ...], dict[Label, Entry]] = {}
        with_it = [entry for entry in found.entries if number in entry.numbers]
        for entry in with_it:
            line = tuple(entry.labels[label] for label in labels)
            lines.setdefault(line, {})[entry.labels[found.across]] = entry
        columns = list(dict.fromkeys(entry.labels[found.across] for entry in with_it))
        if not any(isinstance(column, str) for column in columns):
            columns.sort()
        headings = [column if isinstance(column, str) else f"{found.across} {column}" for column in columns]
        result[number] = [[*labels, *headings, found.each]]
        for line, cells in lines.items():
            counts = sorted({entry.draws for entry in cells.values()})
            draws = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
            shown = (_cell(cells.get(column), number) for column in columns)
            result[number].append([*map(str, line), *shown, draws])
    return result | found.more


def _cell(entry: Entry | None, name: str) -> str:
    """A target is for the first number of its entry."""
    if entry is None:
        return ""
    number, target = entry.numbers[name], ""
    error = "" if number.error is None else f" ± {number.error:.3f}"
    if entry.target is not None and name == next(iter(entry.numbers)):
        target = f" (≥ {entry.target:g}{'' if number.mean >= entry.target else ': below'})"
    return f"{number.mean:.3f}{error}{target}"
