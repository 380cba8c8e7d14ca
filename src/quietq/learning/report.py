"""How far a training is: a bar with the time left, and TensorBoard. Returns of the true reward are marked as such."""

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from quietq.learning import trainer
from quietq.privacy.errors import MissingExtra


def bar(shown: bool) -> Progress:
    """A bar on stderr, with the time that went by and the time left."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"),
               TimeElapsedColumn(), TextColumn("gone,"), TimeRemainingColumn(), TextColumn("left"))  # fmt: skip
    return Progress(*columns, console=Console(stderr=True), disable=not shown)


class Reporter:
    """Shows a bar on stderr and writes a log, if asked to."""

    def __init__(self, steps: int, progress: bool | str, log: Path | None, covered: bool) -> None:
        self._bar = bar(bool(progress))
        self._task = self._bar.add_task("Training", total=steps)
        self._inside = progress == "compiled"
        self._tag = "private_reward/return" if covered else "not_private/return"
        self._writer = None if log is None else _writer(log)

    def __enter__(self) -> "Reporter":
        self._bar.start()
        if self._inside:
            trainer.LISTENERS.append(self._hear)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._inside:
            trainer.LISTENERS.remove(self._hear)
        self._bar.stop()
        if self._writer is not None:
            self._writer.close()

    def at(self, step: int, recent: Callable[[], float | None]) -> None:
        """The training is at this step; `recent` gives the last episodes' mean return."""
        self._bar.update(self._task, completed=step)
        if self._writer is not None and (value := recent()) is not None:
            self._writer.add_scalar(self._tag, value, step)

    def _hear(self, step: int) -> None:
        self._bar.update(self._task, completed=max(step, self._bar.tasks[0].completed))


def _writer(log: Path) -> Any:
    try:
        from tensorboardX import SummaryWriter
    except ImportError as error:
        raise MissingExtra.of("train", "Logs for TensorBoard need tensorboardX") from error
    log.mkdir(parents=True, mode=0o700, exist_ok=True)  # returns of the true reward are for the operator only
    return SummaryWriter(str(log))
