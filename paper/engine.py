"""Doing many tasks: on the cores of this machine, or on a Ray cluster; what was done before is taken from the shelf."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Literal, get_args

from paper.results import Shelf
from paper.task import Row, Task
from quietq.learning.cache import use_disk_cache
from quietq.learning.trainer import on_one_core
from quietq.privacy.errors import InvalidInput

Engine = Literal["local", "ray"]
Progress = Callable[[int, int, str], None]
"""Hears how many tasks of how many are done, and what was done last."""
Done = Mapping[Task, list[Row]]


def carry_out(
    tasks: Sequence[Task], shelf: Shelf, engine: Engine = "local", progress: Progress | None = None
) -> dict[Task, list[Row]]:
    """The rows of every task, in the tasks' order. Each is kept as soon as it is there, so nothing is done twice."""
    if engine not in get_args(Engine):
        raise InvalidInput(f"engine must be one of {', '.join(get_args(Engine))}, not {engine!r}.")
    wanted = list(dict.fromkeys(tasks))
    found = {task: rows for task in wanted if (rows := shelf.get(task)) is not None}
    left = _firsts_first([task for task in wanted if task not in found])
    tell = progress or (lambda done, total, title: None)
    tell(len(found), len(wanted), "")
    for task, rows in _work(left, engine):
        try:
            shelf.put(task, rows)
        except OSError as error:  # a full disk, say: what was found is still worth having
            warnings.warn(f"{task.title!r} could not be kept: {error.strerror}.", RuntimeWarning, stacklevel=2)
        found[task] = rows
        tell(len(found), len(wanted), task.title)
    return {task: found[task] for task in wanted}


def do(task: Task) -> list[Row]:
    """One task, on one core."""
    use_disk_cache()
    with on_one_core():
        return task.rows()


def _firsts_first(tasks: Sequence[Task]) -> list[Task]:
    """The first task of each program before all others: two threads that meet would compile the same one twice."""
    firsts = {task.program: task for task in reversed(tasks)}
    return sorted(tasks, key=lambda task: firsts[task.program] is not task)


def _work(tasks: Sequence[Task], engine: Engine) -> Iterator[tuple[Task, list[Row]]]:
    if not tasks:
        return
    if engine == "ray":
        from paper import ray_engine

        yield from ray_engine.work(tasks)
        return
    yield from _local(tasks)


def _local(tasks: Sequence[Task]) -> Iterator[tuple[Task, list[Row]]]:
    """A thread a core: XLA and NumPy leave Python's lock while they work.

    After an error nothing more is begun, but what is under way is finished and given before the error is raised.
    """
    pool, failed = ThreadPoolExecutor(os.cpu_count() or 1), None
    try:
        running: dict[Future[list[Row]], Task] = {pool.submit(do, task): task for task in tasks}
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                task = running.pop(future)
                if future.cancelled():
                    continue
                error = future.exception()
                if error is None:
                    yield task, future.result()
                else:
                    failed = failed or error
                    for other in running:
                        other.cancel()
        if failed is not None:
            raise failed
    finally:  # after Ctrl-C: what has not begun is not begun
        pool.shutdown(wait=False, cancel_futures=True)
