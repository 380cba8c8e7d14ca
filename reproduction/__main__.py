"""`python -m reproduction`: every figure and claim of the paper again, as tables, pictures and a report."""

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

from rich.console import Console
from rich.table import Table

from quietq.privacy.errors import InvalidInput, QuietqError

PARTS = ("figure1", "figure2", "claims", "comparison", "extensions", "all")


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One sentence, without the usage above it."""
        raise InvalidInput(f"{message}.")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser("python -m reproduction", description=__doc__)
    parser.add_argument("what", nargs="?", default="all", choices=PARTS, help="a figure, the claims, or all (default)")
    parser.add_argument("--out", type=Path, help="folder for tables, pictures and report.html; default runs/paper/WHAT")
    parser.add_argument("--quick", action="store_true", help="less of everything, in two minutes: numbers are rough")
    parser.add_argument("--no-cache", action="store_true", help="keep nothing, and use nothing that was kept")
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    return parser.parse_args(arguments)


def reproduce(asked: argparse.Namespace) -> None:
    began = time.monotonic()
    from quietq.cli.report import require

    require()
    out = Path("runs/paper") / asked.what if asked.out is None else asked.out
    if out.exists() and not out.is_dir():
        raise InvalidInput(f"--out must be a folder, and {str(out)!r} is a file.")
    from reproduction.engine import carry_out
    from reproduction.experiment import tables_of
    from reproduction.experiments import EXPERIMENTS
    from reproduction.report import draw, write_report
    from reproduction.results import Cache, write_tables

    chosen = list(EXPERIMENTS.values()) if asked.what == "all" else [EXPERIMENTS[asked.what]]
    out.mkdir(parents=True, exist_ok=True)
    if asked.no_cache:  # neither rows nor trainings of audits
        os.environ["QUIETQ_CACHE"] = ""
    with bar(asked.what) as progress:
        tasks = [task for experiment in chosen for task in experiment.tasks(asked.quick)]
        tables = tables_of(carry_out(tasks, Cache.usual(), progress))
        for experiment in chosen:
            tables |= experiment.derive(tables)
    claims = [claim for experiment in chosen for claim in experiment.claims(tables)]
    files = write_tables(tables, claims, tasks, out, quick=asked.quick)
    figures = draw(chosen, tables, out)
    seconds, page = round(time.monotonic() - began, 3), write_report(chosen, tables, out, quick=asked.quick)
    if asked.json:
        record = {
            "claims": [asdict(claim) for claim in claims],
            "figures": [str(file) for file in figures],
            "tables": [str(file) for file in files],
            "report": str(page),
            "quick": asked.quick,
            "seconds": seconds,
        }
        print(json.dumps(record))
        return
    verdicts = Table("claim", "verdict", title="What the paper says, and what was found")
    for claim in claims:  # what was measured is longer, and in the report
        verdicts.add_row(claim.name, claim.verdict)
    Console().print(verdicts)
    print(f"Figures: {', '.join(str(file) for file in figures if file.suffix == '.png')} (and as .svg).")
    print(f"Tables: {', '.join(str(file) for file in files if file.suffix == '.csv')}.")
    rough = " It was quick, so the numbers are rough." if asked.quick else ""
    print(f"Read {page}. It took {seconds:.0f} seconds.{rough}")


@contextmanager
def bar(what: str) -> Iterator:
    """A bar on stderr with the time left; where nobody looks, a line at each tenth."""
    from quietq.progress import progress_bar

    told = -1

    def tell(done: int, total: int, title: str) -> None:
        nonlocal told
        shown.update(task, completed=done, total=total, description=title or f"Reproducing {what}")
        if not sys.stderr.isatty() and (tenth := 10 * done // max(total, 1)) > told:
            told = tenth
            print(f"{done} of {total} done", file=sys.stderr)

    try:
        with progress_bar(sys.stderr.isatty()) as shown:
            task = shown.add_task(f"Reproducing {what}", total=None)
            yield tell
    except KeyboardInterrupt:
        print("\npaper: stopped; what is done is kept: run it again to go on.", file=sys.stderr, flush=True)
        os._exit(130)  # at once: Python would wait for the tasks that are under way, which are lost anyway


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code. Wrong input: one sentence on stderr, and 2."""
    warnings.showwarning = lambda message, *_, **__: print(f"paper: warning: {message}", file=sys.stderr)
    try:
        reproduce(parse(arguments))
        return 0
    except QuietqError as error:
        sentence = str(error)
    except OSError as error:
        sentence = f"{error.strerror or type(error).__name__}: {str(error.filename or '')!r}."
    print(f"paper: {sentence}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
