"""Tasks on a Ray cluster: a core each, wherever one is free; a worker that dies has its task done again elsewhere.

Workers need quietq installed, in the same version; this folder is sent to them. They send rows back, and the caller
keeps them, so nothing but the cluster has to be shared. The outcome is that of the local engine, because tasks depend
on their configuration alone.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from paper.task import Row, Task
from quietq.privacy.errors import MissingExtra

try:
    import ray
except ImportError as error:
    raise MissingExtra("The Ray engine needs Ray: pip install 'quietq[ray]'.") from error

RETRIES = 20
"""Workers that may die on one task before it is given up."""


@contextmanager
def cluster() -> Iterator[None]:
    """Already initialised, or at RAY_ADDRESS, else started here; both are sent this folder."""
    if ray.is_initialized():
        yield
        return
    sent = {"py_modules": [str(Path(__file__).parent)]}
    ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR, runtime_env=sent)
    try:
        yield
    finally:
        ray.shutdown()


def work(tasks: Sequence[Task]) -> Iterator[tuple[Task, list[Row]]]:
    """Rows as they come, in any order; on the Ray that is there (initialised, or at RAY_ADDRESS), else on one here."""
    with cluster():
        doing = ray.remote(num_cpus=1, max_retries=RETRIES)(_do)
        running = {doing.remote(task): task for task in tasks if not task.at_home}
        try:
            for task in tasks:
                if task.at_home:
                    yield task, _do(task)
            while running:
                ready, _ = ray.wait(list(running), num_returns=1)
                for reference in ready:
                    yield running.pop(reference), ray.get(reference)
        finally:  # after an error or Ctrl-C nobody waits for the others
            for reference in running:
                ray.cancel(reference)


def _do(task: Task) -> list[Row]:
    from paper.engine import do

    return do(task)
