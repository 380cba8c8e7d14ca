"""Tasks on a Ray cluster: a core each, wherever one is free; a worker that dies has its task done again elsewhere.

Workers need quietq installed, in the same version. They send rows back, and the caller keeps them, so nothing but the
cluster has to be shared. The outcome is that of the local engine, because tasks depend on their configuration alone.
"""

from collections.abc import Iterator, Sequence

from quietq.experiments.task import Row, Task
from quietq.rewards.ray_cluster import cluster

RETRIES = 20
"""Workers that may die on one task before it is given up."""


def work(tasks: Sequence[Task]) -> Iterator[tuple[Task, list[Row]]]:
    """Rows as they come, in any order; on the Ray that is there (initialised, or at RAY_ADDRESS), else on one here."""
    import ray

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
    from quietq.experiments.engine import do

    return do(task)
