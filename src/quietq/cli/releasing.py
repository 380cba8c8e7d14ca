"""What the commands share that read people's files and release something of them, once."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import quietq as qq
from quietq.cli.app import warn
from quietq.cli.ledger_command import LEDGER, SOURCE
from quietq.cli.options import Options, dashed, option, read_pair

NEEDED = "  [required]"
PROMISE: Options = {
    "epsilon": option(float, "Privacy budget: how much any one person's data may matter, above 0." + NEEDED),
    "delta": option(float, "Probability that the promise fails; well below 1/people." + NEEDED),
}
NOTHING_SPENT = "Nothing was spent, and nothing written."
PAIRS = ("box", "action_box")
"""Options with a pair of numbers for each coordinate."""


def results(thing: str) -> Options:
    """Where the release of such a thing goes, and what it is charged to."""
    return {
        "check": option(bool, "Only read and count rows; nothing is spent, and no --epsilon, --delta or --out needed."),
        "out": option(Path, f"The file that may leave: the private {thing} and its certificate." + NEEDED),
        "plot": option(Path, f"A picture of the private {thing}, .png or .svg."),
        "ledger": option(str, LEDGER),
        "source": option(str, SOURCE),
    }


def require(sentence: str, given: dict[str, Any], *names: str) -> None:
    if missing := [name for name in names if name not in given]:
        raise qq.InvalidInput(f"{sentence} {dashed(*missing)}.")


def check_pairs(given: dict[str, Any]) -> None:
    """First of all: a pair of which one number is left out takes the next option for the other."""
    for name in PAIRS:
        for text in given.get(name, ()):
            read_pair(text, name)


def read_boxes(name: str, words: list[str], coordinates: int) -> list[tuple[float, float]]:
    """Low and high for each coordinate; those that are given once are for all."""
    pairs = [read_pair(text, name) for text in words]
    if len(pairs) not in (1, coordinates):
        raise qq.InvalidInput(
            f"{dashed(name)} must be given once, for all coordinates, or once for each of the {coordinates}, in their "
            f"order, not {len(pairs)} times."
        )
    return pairs * coordinates if len(pairs) == 1 else pairs


def read_names(name: str, words: list[str]) -> str | list[str]:
    """A public list: a file of it, or its names one by one."""
    if len(words) == 1 and not Path(words[0]).is_file():
        raise qq.InvalidInput(
            f"There is no file {words[0]!r}: give {dashed(name)} once per {name.removesuffix('s')}, or once with a "
            "file of one name in each line."
        )
    return words[0] if len(words) == 1 else words


def plain(given: dict[str, Any]) -> dict[str, Any]:
    """Options as JSON has them."""
    pairs = {name: [read_pair(text, name) for text in given[name]] for name in PAIRS if name in given}
    return {name: str(value) if isinstance(value, Path) else value for name, value in {**given, **pairs}.items()}


def counts_in_words(counts: dict[str, int]) -> str:
    told = ", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in counts.items())
    return f"Not private, for you only: {told}"


def check_outputs(files: list[Path], out: Path, plot: Path | None, policy: Path | None = None) -> None:
    """Before anything is read or spent: can the results be written, and over nothing that is needed?"""
    from quietq.released.container import check_target

    sources = {path.resolve() for path in files}
    given = {"out": out, "plot": plot, "policy": policy}
    results = {name: path for name, path in given.items() if path is not None}
    if len({*sources, *(path.resolve() for path in results.values())}) < len(sources) + len(results):
        raise qq.InvalidInput(f"{', '.join(results)} and the files to read must be different files.")
    for name, path in results.items():
        if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
            raise qq.InvalidInput(f"{name} must name a file in a folder that can be written to, not {str(path)!r}.")
        with tempfile.TemporaryFile(dir=path.parent):  # some folders only say that they can be written to
            pass
    check_target(out)
    if policy is not None:
        check_target(policy)
    if plot is not None:
        from quietq.cli.report.look import checked  # says what to install, if it has to, before anything is spent

        checked(plot)


@contextmanager
def reading(kind: str) -> Iterator[tuple[Callable[[int], None], Callable[[str], None]]]:
    """A line on a terminal: what is told of rows as they are read, and what is done after that."""
    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    console, columns = Console(stderr=True), (TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task(f"Reading {kind}")

        def say(sentence: str) -> None:
            progress.update(task, description=sentence)

        yield lambda rows: say(f"Reading {kind}: {rows:,} rows"), say


def publish(released: Any, out: Path) -> str:
    """Writes a release that was paid for; if that fails, says so."""
    if out.exists():
        warn(f"{out} is overwritten by a new release; if the old one was shared, budgets add up.")
    try:
        return qq.publish(released, out)
    except (OSError, qq.QuietqError) as error:
        raise qq.QuietqError(f"The budget was spent, but the release could not be written to {out}: {error}") from error


def draw(plot: Path | None, picture: Callable[[Path], None]) -> Path | None:
    """The picture that was written; the release stands without it."""
    if plot is None:
        return None
    try:
        picture(plot)
    except (OSError, qq.QuietqError) as error:
        warn(f"the release is written, but its picture is not: {error}")
        return None
    return plot
