"""Doing many tasks on the cores of this machine; what was done before comes from the cache."""

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from reproduction.experiment import Row, Task
from reproduction.results import Cache

Progress = Callable[[int, int, str], None]
"""Hears how many tasks of how many are done, and what was done last."""


def carry_out(tasks: Sequence[Task], cache: Cache, progress: Progress | None = None) -> dict[Task, list[Row]]:
    """The rows of every task, in the tasks' order. Each is kept as soon as it is there, so nothing is done twice."""
    wanted = list(dict.fromkeys(tasks))
    found = {task: rows for task in wanted if (rows := cache.get(task)) is not None}
    left = [task for task in wanted if task not in found]
    # The first task of each program before all others: two threads that meet would compile the same one twice.
    firsts = {task.program: task for task in reversed(left)}
    left.sort(key=lambda task: firsts[task.program] is not task)
    tell = progress or (lambda done, total, title: None)
    tell(len(found), len(wanted), "")
    for task, rows in _on_cores(left):
        try:
            cache.put(task, rows)
        except OSError as error:  # a full disk, say: what was found is still worth having
            warnings.warn(f"{task.title!r} could not be kept: {error.strerror}.", RuntimeWarning, stacklevel=2)
        found[task] = rows
        tell(len(found), len(wanted), task.title)
    return {task: found[task] for task in wanted}


def _on_cores(tasks: Sequence[Task]) -> Iterator[tuple[Task, list[Row]]]:
    """A thread a core: XLA and NumPy leave Python's lock while they work.

    After an error nothing more is begun, but what is under way is finished and given before the error is raised.
    """
    pool, failed = ThreadPoolExecutor(os.cpu_count() or 1), None
    try:
        running: dict[Future[list[Row]], Task] = {pool.submit(task.rows): task for task in tasks}
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
