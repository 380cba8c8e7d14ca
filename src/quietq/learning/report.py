"""What is seen of a training while it runs: released values for callbacks, a bar and TensorBoard for the operator.

Returns of the true reward are marked as such.
"""

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from quietq.learning.method import Method
from quietq.privacy.errors import MissingExtra

LISTENERS: list[Callable[[int], None]] = []
"""Called with the step's number from inside the compiled program, if it was told to tell."""


class Event(NamedTuple):
    """What a callback gets: the step, and the values that have been released so far (None if nothing has been)."""

    step: int
    values: Callable[[np.ndarray], np.ndarray] | None
    """From observations (points, d) to (runs, points, actions)."""

    @classmethod
    def of(cls, step: int, core: Method, current: Any) -> "Event":
        """With what all runs have released so far, or None."""
        if current is None:
            return cls(step, None)
        values = jax.vmap(jax.vmap(core.values, in_axes=(None, 0)), in_axes=(0, None))
        return cls(step, lambda points: np.asarray(values(current, jnp.asarray(points, jnp.float32))))


def episode_returns(seen: Any) -> list[list[float]]:
    """The returns of all episodes that ended, one list per row of rewards and ends."""
    rows = []
    for rewards, over in zip(*(np.asarray(part) for part in seen), strict=True):
        ends = np.flatnonzero(over) + 1
        total = np.concatenate([[0.0], np.cumsum(rewards.astype(np.float64))])
        rows.append(np.diff(total[np.concatenate([[0], ends])]).tolist())
    return rows


def bar(shown: bool) -> Progress:
    """A bar on stderr, with the time that went by and the time left."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"),
               TimeElapsedColumn(), TextColumn("gone,"), TimeRemainingColumn(), TextColumn("left"))  # fmt: skip
    return Progress(*columns, console=Console(stderr=True), disable=not shown)


class Reporter:
    def __init__(self, steps: int, progress: bool | str, log: Path | None, covered: bool) -> None:
        self._bar = bar(bool(progress))
        self._task = self._bar.add_task("Training", total=steps)
        self._inside = progress == "compiled"
        self._tag = "private_reward/return" if covered else "not_private/return"
        self._writer = None if log is None else _writer(log)

    def __enter__(self) -> "Reporter":
        self._bar.start()
        if self._inside:
            LISTENERS.append(self._hear)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._inside:
            LISTENERS.remove(self._hear)
        self._bar.stop()
        if self._writer is not None:
            self._writer.close()

    def at(self, step: int, seen: Callable[[], Any]) -> None:
        """The training is at this step; `seen` gives all rewards and ends, for the mean of the last returns."""
        self._bar.update(self._task, completed=step)
        if self._writer is not None and (last := [row[-1] for row in episode_returns(seen()) if row]):
            self._writer.add_scalar(self._tag, float(np.mean(last)), step)

    def _hear(self, step: int) -> None:
        self._bar.update(self._task, completed=max(step, self._bar.tasks[0].completed))


def _writer(log: Path) -> Any:
    try:
        from tensorboardX import SummaryWriter
    except ImportError as error:
        raise MissingExtra.of("train", "Logs for TensorBoard need tensorboardX") from error
    log.mkdir(parents=True, mode=0o700, exist_ok=True)  # returns of the true reward are for the operator only
    return SummaryWriter(str(log))
