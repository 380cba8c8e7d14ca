"""`quietq reward`."""

import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Literal

import typer

import quietq as qq
from quietq.cli.app import AsJson, Delta, Epsilon, High, Low, Noise, People, Slope, answer, app, warn
from quietq.cli.ledger import LedgerSource, LedgerUrl, open_account


@app.command()
def reward(
    ratings: Annotated[list[Path], typer.Argument(help="CSV or Parquet files, one row a rating.")],
    epsilon: Epsilon,
    delta: Delta,
    low: Low,
    high: High,
    slope: Slope,
    people: People,
    box: Annotated[
        tuple[float, float], typer.Option(help="Where states lie: lowest and highest (of every state column); public.")
    ],
    out: Annotated[Path, typer.Option(help="The file that may leave: the private reward and its certificate.")],
    person: Annotated[str, typer.Option(help="Column that says who.")] = "person",
    state: Annotated[list[str], typer.Option(help="Column that says where; give it once a coordinate.")] = ["state"],  # noqa: B006
    rating: Annotated[str, typer.Option(help="Column that says how good.")] = "rating",
    noise: Noise = "auto",
    plot: Annotated[Path | None, typer.Option(help="A picture of the private reward, .png or .svg.")] = None,
    engine: Annotated[Literal["local", "ray"], typer.Option(help="Where ratings are added up.")] = "local",
    ledger: LedgerUrl = None,
    source: LedgerSource = None,
    as_json: AsJson = False,
) -> None:
    """Make people's mean reward private, once: ratings in, a file that may be published out."""
    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    budget = qq.Budget(epsilon, delta)
    account = open_account(ledger, source, "reward")
    _check_outputs(ratings, out, plot)
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("Reading ratings")
        group = qq.Ratings.read(
            list(ratings), box=box if len(state) == 1 else [box] * len(state), low=low, high=high, slope=slope,
            count=people, person=person, state=list(state), rating=rating, engine=engine,
            progress=lambda rows: progress.update(task, description=f"Reading ratings: {rows:,} rows"),
        )  # fmt: skip
    if out.exists():
        warn(f"{out} is overwritten by a new release; if the old one was shared, budgets add up.")
    private = qq.privatise(group, budget, noise=noise, account=account)
    name = qq.publish(private, out)
    if plot is not None:
        from quietq.cli.report import plot_reward

        try:
            plot_reward(private, plot)
        except (OSError, qq.QuietqError) as error:
            warn(f"the release is written, but its picture is not: {error}")
            plot = None
    record = {
        "certificate": private.certificate.to_dict(), "out": str(out), "hash": name,
        "plot": None if plot is None else str(plot), "not_private": group.not_private,
    }  # fmt: skip
    counts = ", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in group.not_private.items())
    written = f"\nMay be published: {out}" + ("" if plot is None else f" and {plot}")
    answer(as_json, record, private.certificate, written, f"Not private, for you only: {counts}")


def _check_outputs(ratings: list[Path], out: Path, plot: Path | None) -> None:
    """Before anything is read or spent: can the results be written, and over nothing that is needed?"""
    from quietq.mechanisms.container import check_target

    sources = {path.resolve() for path in ratings}
    results = {"out": out} if plot is None else {"out": out, "plot": plot}
    if len({*sources, *(path.resolve() for path in results.values())}) < len(sources) + len(results):
        raise qq.InvalidInput("out, plot and the ratings must be different files.")
    for name, path in results.items():
        if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
            raise qq.InvalidInput(f"{name} must name a file in a folder that can be written to, not {str(path)!r}.")
        with tempfile.TemporaryFile(dir=path.parent):  # some folders only say that they can be written to
            pass
    check_target(out)
    if plot is not None:
        from quietq.cli.report.look import checked  # says what to install, if it has to, before anything is spent

        checked(plot)
