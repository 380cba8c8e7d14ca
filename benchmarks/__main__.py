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

from rich.console import Console
from rich.table import Table

from benchmarks.measuring import HEADINGS
from benchmarks.needs import BENCHMARKS, STUDIES, load, missing, title
from benchmarks.page import write_page
from benchmarks.study import RESULTS, run, tables
from quietq.privacy.checks import did_you_mean


def main(arguments: Sequence[str]) -> int:
    """Measures, prints, writes benchmarks/results/*.json and docs/benchmarks.md; 1 if a limit is exceeded."""
    asked = _parser().parse_args(arguments)
    names, refusal = list(dict.fromkeys(asked.name)) or BENCHMARKS, None
    for name in names:
        if name not in (*BENCHMARKS, *STUDIES):
            near = did_you_mean(name, (*BENCHMARKS, *STUDIES))
            refusal = f"There is no benchmark {name!r}: python -m benchmarks --help lists all.{near}"
        elif name in STUDIES and len(names) > 1:
            refusal = f"{name} is a study, which takes hours: name it alone, python -m benchmarks {name}."
    if refusal is None and (sentences := missing(names)):
        refusal = "\n".join(["Nothing was measured. Install this first, or name others:", *sentences])
    if refusal is not None:
        print(refusal, file=sys.stderr)
        return 2
    if names[0] in STUDIES:
        return _study(names[0], asked)
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


def _parser() -> argparse.ArgumentParser:
    def listed(names: Sequence[str]) -> str:
        return "\n".join(f"  {name:15} {title(name)}" for name in names)

    parser = argparse.ArgumentParser(
        "python -m benchmarks",
        description="Measures the benchmarks that are named, one by one; without a name, all of them (minutes).",
        epilog=f"benchmarks:\n{listed(BENCHMARKS)}\n\nstudies (hours; one at a time):\n{listed(STUDIES)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", nargs="*")
    studies = parser.add_argument_group("for a study")
    studies.add_argument("--draws", type=int, help="of each case; the study's own number by default")
    studies.add_argument("--minutes", type=float, default=float("inf"), help="stop then, and go on the next time")
    told = "measure only cases with this label, such as: family peak; several must all hold"
    studies.add_argument("--only", nargs=2, action="append", default=[], metavar=("LABEL", "VALUE"), help=told)
    return parser


def _measure(name: str) -> bool:
    """Whether a limit is exceeded. What was measured is kept before the next begins."""
    rows = load(name).rows()
    _print(title(name), [HEADINGS, *(row.cells() for row in rows)])
    machine = {"python": platform.python_version(), "numpy": version("numpy"), "jax": version("jax")}
    entries = [asdict(row) | {"verdict": row.verdict} for row in rows]
    RESULTS.mkdir(exist_ok=True)
    record = {**machine, "cpus": os.cpu_count(), "rows": entries}
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n")
    return any(row.verdict == "over" for row in rows)


def _study(name: str, asked: argparse.Namespace) -> int:
    """One study; it has targets but no limits, so it never fails."""
    study = load(name).study()
    found = run(
        study, asked.draws or study.draws, lambda text: print(text, flush=True), asked.minutes, dict(asked.only)
    )
    for number, lines in tables(found).items():
        _print(f"{title(name)}: {number}", lines)
    getattr(load(name), "write_page", lambda: None)()  # of the study's own page
    write_page()
    return 0


def _print(title: str, lines: Sequence[Sequence[str]]) -> None:
    table = Table(*lines[0], title=title)
    for cells in lines[1:]:
        table.add_row(*(f"[red]{cell}[/]" if cell == "over" else cell for cell in cells))
    Console(width=None if sys.stdout.isatty() else 160).print(table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
