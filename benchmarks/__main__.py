"""Runs every benchmark, or those that are named; fails if a limit is exceeded.

What it takes is looked for before anything is measured, and each benchmark's numbers are kept as soon as it is done.
What takes hours is a study, which runs by its name alone: `python -m benchmarks families --draws 20` (see `study.py`).
"""

import argparse
import json
import os
import platform
import sys
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.needs import BENCHMARKS, STUDIES, load, missing, title
from benchmarks.page import HEADINGS, stored, write_page
from benchmarks.study import RESULTS, run, tables
from quietq.privacy.checks import did_you_mean


def main(arguments: Sequence[str]) -> int:
    """Measures, prints, writes benchmarks/results/*.json and docs/benchmarks.md; 1 if a limit is exceeded."""
    named = next((word for word in arguments if not word.startswith("-")), None)
    if named in STUDIES and not _refuse(missing([named])):
        return _study(named, _study_parser(named).parse_args(arguments))
    if named in STUDIES:
        return 2
    names = _names(_parser().parse_args(arguments).name)
    if names is None or _refuse(missing(names)):
        return 2
    failed = []
    for name in names:
        try:
            over = _measure(name)
        except Exception:  # the others are measured, and what is known is kept, whatever one of them lacks
            traceback.print_exc()
            over = True
        failed += [name] if over else []
    if any((RESULTS / f"{name}.json").exists() for name in BENCHMARKS):
        write_page()
    if failed:
        print(f"Over a limit, or failed: {', '.join(failed)}.", file=sys.stderr)
    return int(bool(failed))


def _names(words: Sequence[str]) -> Sequence[str] | None:
    """Those to measure, each once; None if one is not known, which is told."""
    for word in words:
        if word in STUDIES:
            print(f"{word} is a study, which takes hours: name it alone, python -m benchmarks {word}.", file=sys.stderr)
            return None
        if word not in BENCHMARKS:
            near = did_you_mean(word, (*BENCHMARKS, *STUDIES))
            print(f"There is no benchmark {word!r}: python -m benchmarks --help lists all.{near}", file=sys.stderr)
            return None
    return list(dict.fromkeys(words)) or BENCHMARKS


def _refuse(sentences: list[str]) -> bool:
    """Whether something is missing, which is told."""
    if sentences:
        print("Nothing was measured. Install this first, or name others:", *sentences, sep="\n", file=sys.stderr)
    return bool(sentences)


def _parser() -> argparse.ArgumentParser:
    def listed(names: Sequence[str]) -> str:
        return "\n".join(f"  {name:15} {title(name)}" for name in names)

    parser = argparse.ArgumentParser(
        "python -m benchmarks",
        description="Measures the benchmarks that are named, one by one; without a name, all of them (minutes).",
        epilog=f"benchmarks:\n{listed(BENCHMARKS)}\n\nstudies (hours; one at a time, with options of its own: "
        f"python -m benchmarks NAME --help):\n{listed(list(STUDIES))}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", nargs="*")
    return parser


def _study_parser(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(f"python -m benchmarks {name}", description=title(name))
    parser.add_argument("name", choices=[name], help=argparse.SUPPRESS)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop then, and go on the next time")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON, and nothing else")
    load(name).add_options(parser)
    return parser


def _measure(name: str) -> bool:
    """Whether a limit is exceeded. What was measured is kept before the next begins."""
    rows = load(name).rows()
    _console().print(_table(title(name), [HEADINGS, *(row.cells() for row in rows)]))
    machine = {"python": platform.python_version(), "numpy": version("numpy"), "jax": version("jax")}
    entries = [asdict(row) | {"verdict": row.verdict} for row in rows]
    RESULTS.mkdir(exist_ok=True)
    record = {**machine, "cpus": os.cpu_count(), "rows": entries}
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n")
    return any(row.verdict == "over" for row in rows)


def _study(name: str, chosen: argparse.Namespace) -> int:
    """One study; it has targets but no limits, so it never fails."""
    study = load(name).study(chosen)
    rows = run(study, chosen.draws, lambda text: None if chosen.json else print(text, flush=True), chosen.minutes)
    if chosen.json:
        print(json.dumps(rows))
    else:
        _console().print(f"{title(name)}:")
        for number, lines in tables(stored(study.name)).items():
            _console().print(f"\n{number}", _table("", lines))
    getattr(load(name), "write_page", lambda: None)()  # of the study's own page
    write_page()
    return 0


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 160)


def _table(title: str, lines: list[Any]) -> Table:
    table = Table(*lines[0], title=title)
    for cells in lines[1:]:
        table.add_row(*(f"[red]{cell}[/]" if cell == "over" else cell for cell in cells))
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
