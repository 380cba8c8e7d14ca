"""How far a long computation is, and about how much time is left, told on stderr."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
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


class ProgressSteps:
    """The steps of a long command: which one is under way, and about how much time is left.

    On a terminal a line is rewritten while a step goes on; elsewhere there is one now and then. `expected` has the
    seconds that each step takes on an idle machine. The time left is what it says of the steps that are to come, times
    how much longer than expected everything took so far: an estimate, and called "about".
    """

    def __init__(self, expected: Mapping[str, float], shown: bool, before: float = 0.0) -> None:
        """`before` are seconds that were expected for what happened until now, since the process began."""
        self._titles = list(expected)
        self._seconds = list(expected.values())
        self._shown = shown
        self._began = time.monotonic() - time.process_time()  # imports are part of what one waits for
        self._before = before
        self._step = 0
        self._terminal = sys.stderr.isatty()
        self._told = 0.0

    def begin(self) -> None:
        """The next step begins."""
        self.end()
        self._step += 1
        self._told = time.monotonic()
        self._tell(f"{self.where('/')} {self._titles[self._step - 1]} (about {self.left(0.0)} left)\n")

    def left(self, share: float) -> str:
        """Estimates the time that everything still takes, if so much of this step is done."""
        done = self._before + sum(self._seconds[: self._step - 1]) + share * self._seconds[self._step - 1]
        slower = (time.monotonic() - self._began) / done if done > 0 else 1.0
        return write_seconds(slower * (self._before + sum(self._seconds) - done))

    def progress(self, done: int, total: int) -> None:
        """So much of the step that is under way is done."""
        now = time.monotonic()
        if now - self._told < (0.2 if self._terminal else 10.0):
            return
        self._told = now
        line = f"    {done / total:.0%} of this step, about {self.left(done / total)} left"
        self._tell(f"\r{line}\x1b[K" if self._terminal else f"{line}\n")

    def end(self) -> None:
        """Wipes the line that is rewritten."""
        if self._terminal:
            self._tell("\r\x1b[K")

    def where(self, of: str = " of ") -> str:
        return f"{self._step}{of}{len(self._titles)}"

    def _tell(self, text: str) -> None:
        if self._shown:
            print(text, end="", file=sys.stderr, flush=True)


def write_seconds(seconds: float) -> str:
    """Writes an estimate in round numbers.

    >>> write_seconds(0.2), write_seconds(7.4), write_seconds(43), write_seconds(150)
    ('1 second', '7 seconds', '45 seconds', '3 minutes')
    """
    if seconds > 100:
        return f"{max(2, -(-seconds // 60)):.0f} minutes"
    rounded = max(1, round(seconds)) if seconds < 15 else 5 * round(seconds / 5)
    return f"{rounded} second{'s' if rounded > 1 else ''}"
