"""`quietq reproduce`."""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table

import quietq as qq
from quietq.cli.app import AsJson, app

if TYPE_CHECKING:
    from quietq.experiments import Claim
    from quietq.experiments.engine import Progress


@app.command()
def reproduce(
    what: Annotated[
        Literal["figure1", "figure2", "claims", "honest", "extensions", "all"],
        typer.Argument(help="The paper's figures, its claims checked, our comparison, its extensions, or all."),
    ] = "all",
    out: Annotated[
        Path | None, typer.Option(help="Folder for tables, pictures and report.html; default runs/reproduce/WHAT.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Less of everything, to see how it works: its numbers are rough.")
    ] = False,
    engine: Annotated[
        Literal["local", "ray"], typer.Option(help="On this machine, or on a Ray cluster (RAY_ADDRESS, else local).")
    ] = "local",
    cache: Annotated[
        bool, typer.Option("--cache/--no-cache", help="Keep what is done, and go on where it was stopped.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Makes every figure and checks every claim of the paper, then compares what is certified; writes a report."""
    began = time.monotonic()
    from quietq.report import require

    require()
    out = Path("runs/reproduce") / what if out is None else out
    if out.exists() and not out.is_dir():
        raise qq.InvalidInput(f"--out must be a folder, and {str(out)!r} is a file.")
    from quietq.experiments import Shelf, carry_out, write_tables
    from quietq.experiments.everything import EXPERIMENTS, gather
    from quietq.report.reproduction import draw, write_report

    chosen = list(EXPERIMENTS.values()) if what == "all" else [EXPERIMENTS[what]]
    out.mkdir(parents=True, exist_ok=True)
    with _cache(cache), _bar(what) as progress:
        tasks = [task for experiment in chosen for task in experiment.tasks(quick)]
        done = carry_out(tasks, Shelf.usual(), engine, progress)
        outcome = gather(chosen, done)
    tables = write_tables(outcome.tables, outcome.claims, list(done), out, quick=quick)
    figures = draw(outcome, out)
    seconds = round(time.monotonic() - began, 3)
    page = write_report(outcome, out, quick=quick)
    if as_json:
        record = {
            "claims": [claim.to_dict() for claim in outcome.claims],
            "figures": [str(file) for file in figures],
            "tables": [str(file) for file in tables],
            "report": str(page),
            "quick": quick,
            "seconds": seconds,
        }
        print(json.dumps(record))
        return
    if outcome.claims:
        _print(outcome.claims)
    print(f"Figures: {', '.join(str(file) for file in figures if file.suffix == '.png')} (and as .svg).")
    print(f"Tables: {', '.join(str(file) for file in tables if file.suffix == '.csv')}.")
    rough = " It was quick, so the numbers are rough." if quick else ""
    print(f"Read {page}. It took {seconds:.0f} seconds.{rough}")


def _print(claims: "list[Claim]") -> None:
    """The verdicts; what was measured is longer, and in the report."""
    table = Table(title="What the paper says, and what was found")
    for heading in ("claim", "verdict"):
        table.add_column(heading)
    for claim in claims:
        table.add_row(claim.name, claim.verdict)
    Console().print(table)


@contextmanager
def _cache(used: bool) -> Iterator[None]:
    """Without it nothing is kept or looked up anywhere: neither outcomes nor trainings of audits."""
    before = os.environ.get("QUIETQ_CACHE")
    if not used:
        os.environ["QUIETQ_CACHE"] = ""
    try:
        yield
    finally:
        if not used:
            os.environ.pop("QUIETQ_CACHE") if before is None else os.environ.update(QUIETQ_CACHE=before)


@contextmanager
def _bar(what: str) -> "Iterator[Progress]":
    """A bar on stderr with the time left; where nobody looks, a line at each tenth."""
    from quietq.learning.report import bar

    told = -1

    def tell(done: int, total: int, title: str) -> None:
        nonlocal told
        shown.update(task, completed=done, total=total, description=title or f"Reproducing {what}")
        if not sys.stderr.isatty() and (tenth := 10 * done // max(total, 1)) > told:
            told = tenth
            print(f"{done} of {total} done", file=sys.stderr)

    try:
        with bar(sys.stderr.isatty()) as shown:
            task = shown.add_task(f"Reproducing {what}", total=None)
            yield tell
    except KeyboardInterrupt:
        print("\nquietq: stopped; what is done is kept: run it again to go on.", file=sys.stderr, flush=True)
        os._exit(130)  # at once: Python would wait for the tasks that are under way, which are lost anyway
