"""What is seen of a training while it runs: released values for callbacks, a bar and TensorBoard for the operator.

Returns of the true reward are marked as such.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from quietq.paper.agents.method import Method, values_of_runs
from quietq.privacy import MissingExtra
from quietq.progress import progress_bar

LISTENERS: list[Callable[[int], None]] = []
"""Called with the step's number from inside the compiled program, if it was told to tell."""


class Event(NamedTuple):
    """What a callback gets: the step, and the values that have been released so far (None if nothing has been)."""

    step: int
    values: Callable[[np.ndarray], np.ndarray] | None  # from observations (points, d) to (runs, points, actions)

    @classmethod
    def of(cls, step: int, core: Method, current: Any) -> "Event":
        if current is None:
            return cls(step, None)
        return cls(step, lambda points: np.asarray(values_of_runs(core, current, jnp.asarray(points, jnp.float32))))


def episode_returns(seen: Any) -> list[list[float]]:
    """The returns of all episodes that ended, one list per row of rewards and ends."""
    rows = []
    for rewards, over in zip(*(np.asarray(part) for part in seen), strict=True):
        ends = np.flatnonzero(over) + 1
        total = np.concatenate([[0.0], np.cumsum(rewards.astype(np.float64))])
        rows.append(np.diff(total[np.concatenate([[0], ends])]).tolist())
    return rows


@contextmanager
def reporting(steps: int, progress: bool | str, log: Path | None, covered: bool) -> Iterator[Callable[..., None]]:
    """Gives the function to call with the step that a training is at, and with what gives all rewards and ends so far.

    A bar moves, and the mean of the last returns is logged, as private where training sees what is `covered`.
    """
    writer, tag = None if log is None else _writer(log), "private_reward/return" if covered else "not_private/return"
    with progress_bar(bool(progress)) as shown:
        task = shown.add_task("Training", total=steps)

        def at(step: int, seen: Callable[[], Any]) -> None:
            shown.update(task, completed=step)
            if writer is not None and (last := [row[-1] for row in episode_returns(seen()) if row]):
                writer.add_scalar(tag, float(np.mean(last)), step)

        def hear(step: int) -> None:
            shown.update(task, completed=max(step, shown.tasks[0].completed))

        listening = [hear] if progress == "compiled" else []
        LISTENERS.extend(listening)
        try:
            yield at
        finally:
            for listener in listening:
                LISTENERS.remove(listener)
            if writer is not None:
                writer.close()


def _writer(log: Path) -> Any:
    try:
        from tensorboardX import SummaryWriter
    except ImportError as error:
        raise MissingExtra.of("paper", "Logs for TensorBoard need tensorboardX") from error
    log.mkdir(parents=True, mode=0o700, exist_ok=True)  # returns of the true reward are for the operator only
    return SummaryWriter(str(log))
