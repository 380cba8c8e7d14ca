"""How far a long computation is, and about how much time is left, shown on stderr."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress


def progress_bar(shown: bool, transient: bool = False) -> "Progress":
    """Makes a bar, to be entered as a context; it stays silent unless it is `shown`."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("gone,"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    return Progress(*columns, console=Console(stderr=True), disable=not shown, transient=transient)


@contextmanager
def progress_of(title: str, transient: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Shows a bar if somebody looks; what it yields is called with how much is done, and of how much."""
    with progress_bar(sys.stderr.isatty(), transient) as shown:
        task = shown.add_task(title, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


@contextmanager
def progress_line(sentence: str) -> Iterator[Callable[[str], None]]:
    """Shows one sentence and the time that has gone, on a terminal; what it yields is called with the next sentence."""
    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task(sentence)
        yield lambda said: progress.update(task, description=said)


def write_seconds(seconds: float) -> str:
    """Writes an estimate in round numbers.

    >>> write_seconds(0.2), write_seconds(7.4), write_seconds(43), write_seconds(150)
    ('1 second', '7 seconds', '45 seconds', '3 minutes')
    """
    if seconds > 100:
        return f"{max(2, -(-seconds // 60)):.0f} minutes"
    rounded = max(1, round(seconds)) if seconds < 15 else 5 * round(seconds / 5)
    return f"{rounded} second{'s' if rounded > 1 else ''}"
