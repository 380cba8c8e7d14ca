"""How ratings or sessions of many people are read and asked, on one machine or on Ray: time, bytes and memory.

`python -m benchmarks.scale --rows 10000000 --engine ray` makes that many rows in a temporary folder, reads them, asks
the queries of a release and prints what each took, as JSON. Seconds of processors (user and system, of this process and
of Ray's) hold on a machine that is shared, too; seconds of the clock do not.

With `--feedback sessions` they are steps of a hundredth as many people, in no order, which are read and asked for
values of two policies twice, beside a plain sum of the same columns by person with Polars.
"""

import argparse
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from quietq.feedback.feedback import Feedback
from quietq.feedback.ratings import Ratings
from quietq.feedback.returns import Returns
from quietq.feedback.sessions import Sessions
from quietq.mechanisms.mechanism import Task
from quietq.mechanisms.privatise import choose
from quietq.noise.box import Box
from quietq.noise.entropy import SeededEntropy
from quietq.privacy import Budget, Certificate

DIMENSION = 8
ROWS_EACH = 1_000_000 / 60_000
ROWS_A_FILE = 2_000_000
BUDGET = Budget(1.0, 1e-5)
STATES = [f"x{i}" for i in range(4)]
STEPS, EPISODES = 25, 4


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--feedback", choices=("ratings", "sessions"), default="ratings")
    parser.add_argument("--people", type=int, help="16.7 rows each by default")
    parser.add_argument("--engine", choices=("local", "ray"), default="local")
    parser.add_argument("--queries", type=int, default=1000, help="at the most; all of a release by default")
    parser.add_argument("--workers", type=int, default=2, help="of Ray")
    parser.add_argument("--store", type=float, default=4.0, help="gigabytes of Ray's object store; beyond it, disk")
    parser.add_argument("--folder", type=Path, help="where the temporary folder is made")
    options = vars(parser.parse_args())
    sessions = options.pop("feedback") == "sessions"
    found = measure_sessions(options["rows"], options["engine"]) if sessions else measure(**options)
    for name, value in found:
        print(json.dumps({name: value}), flush=True)


def measure(
    rows: int,
    engine: Any = "local",
    queries: int = 1000,
    workers: int = 2,
    store: float = 4.0,
    folder: Path | None = None,
    people: int | None = None,
) -> Iterator[tuple[str, Any]]:
    """What is printed, as it is found."""
    people = people or round(rows / ROWS_EACH)
    yield from {"rows": rows, "people": people, "engine": engine}.items()
    with ExitStack() as stack:
        made = stack.enter_context(tempfile.TemporaryDirectory(dir=folder))
        files = write(Path(made), rows, people)
        yield "bytes of files", sum(file.stat().st_size for file in files)
        if engine == "ray":
            from quietq.feedback.own_ray import ray_session

            stack.enter_context(ray_session(num_cpus=workers, object_store_memory=int(store * 1e9)))
        states = [f"s{i}" for i in range(DIMENSION)]
        declared: dict[str, Any] = {"box": [(0, 1)] * DIMENSION, "low": 0, "high": 1, "people": people, "state": states}
        feedback, took = timed(lambda: Ratings.read(files, **declared, engine=engine))
        yield "read", took
        yield "bytes held", bytes_held(feedback)
        for took in islice(ask(feedback), queries):
            yield "query", took
        yield "peak memory of this process", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def write(folder: Path, rows: int, people: int) -> list[Path]:
    """A peak and noise, people in no order, so that everybody's rows lie in many files."""
    rng, files = np.random.default_rng(0), []
    for first in range(0, rows, ROWS_A_FILE):
        count = min(ROWS_A_FILE, rows - first)
        states = rng.random((DIMENSION, count), dtype=np.float32)
        ratings = peak(states) + 0.1 * rng.standard_normal(count, dtype=np.float32)
        columns = {"person": rng.integers(people, size=count), **{f"s{i}": one for i, one in enumerate(states)}}
        files.append(folder / f"{first}.parquet")
        pl.DataFrame(columns | {"rating": ratings}).write_parquet(files[-1], compression="uncompressed")
    return files


def peak(states: np.ndarray) -> np.ndarray:
    return np.exp(-2 * ((states - 0.5) ** 2).sum(axis=0))


def ask(feedback: Feedback) -> Iterator[dict[str, float]]:
    """The queries of a simulated release, and what each took; in the end, how near the truth it is."""
    mechanism, entropy = choose("auto", Task.of(feedback, BUDGET)), SeededEntropy(0)
    steps = mechanism.run()
    query = next(steps)
    while True:
        numbers, took = timed(lambda query=query: query.numbers(feedback))
        yield took | {"numbers": len(numbers)}
        try:
            query = steps.send(query.law.add(numbers, entropy))
        except StopIteration as last:
            model = mechanism.result(last.value, Certificate(method="reward/rounds", standing="none"))
            states = np.random.default_rng(1).random((DIMENSION, 10_000))
            yield {"correlation": float(np.corrcoef(model(states.T), peak(states))[0, 1])}
            return


def bytes_held(feedback: Any) -> int:
    """Of everybody's rows, in memory or in files."""
    return sum(
        one.stat().st_size
        if isinstance(one, Path)
        else one.starts.nbytes + sum(column.nbytes for column in one.columns.values())
        for one in feedback.sums.buckets
    )


def write_sessions(folder: Path, rows: int) -> list[Path]:
    rng, files = np.random.default_rng(0), []
    place = rng.permutation(rows)
    for first in range(0, rows, ROWS_A_FILE):
        here = place[first : first + ROWS_A_FILE]
        step = here % STEPS
        columns = {"who": here // (STEPS * EPISODES), "visit": here // STEPS % EPISODES, "t": step}
        columns |= {name: rng.random(len(here)) for name in STATES}
        columns |= {"go": rng.integers(0, 3, len(here)), "r": rng.random(len(here)), "end": step == STEPS - 2}
        files.append(folder / f"{first}.parquet")
        pl.DataFrame(columns).write_parquet(files[-1])
    return files


def _uniform(states: np.ndarray) -> np.ndarray:
    return np.full((len(states), 3), 1 / 3)


def _first(states: np.ndarray) -> np.ndarray:
    return np.tile([0.8, 0.1, 0.1], (len(states), 1))


def measure_sessions(rows: int, engine: Any = "local") -> Iterator[tuple[str, Any]]:
    """What is printed, as it is found."""
    people = rows // (STEPS * EPISODES)
    yield from {"rows": rows, "people": people, "engine": engine}.items()
    box = Box.of([(0, 1)] * len(STATES))
    values = Returns((_first, _uniform), _uniform, None, box, 3, (0.0, 1.0), (0.0, 50.0), 0.9, False)
    with tempfile.TemporaryDirectory() as folder:
        files = write_sessions(Path(folder), rows)
        plain = min(
            (timed(lambda: pl.scan_parquet(files).group_by("who").agg(pl.all().sum()).collect())[1] for _ in range(3)),
            key=lambda took: took["processor seconds"],
        )
        yield "plain sum by person", plain
        sessions, read = timed(
            lambda: Sessions.read(
                files,
                person="who",
                episode="visit",
                step="t",
                state=STATES,
                action="go",
                actions=[0, 1, 2],
                reward="r",
                end="end",
                box=box,
                people=people,
                engine=engine,
            )
        )
        yield "read", read
        rounds = [timed(lambda: sessions.mean(values))[1] for _ in range(2)]
        yield "rounds", rounds
        for unit in plain:
            yield f"ratio of {unit}", round((read[unit] + rounds[0][unit]) / plain[unit], 1)


def timed(run: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """What comes out, and seconds by the clock and of processors."""
    clock, used = time.perf_counter(), processor_seconds()
    result = run()
    return result, {
        "seconds": round(time.perf_counter() - clock, 2),
        "processor seconds": round(processor_seconds() - used, 2),
    }


def processor_seconds() -> float:
    """Used so far by this process and all that came from it, Ray's workers among them (Linux)."""
    parents, used = dict[int, int](), dict[int, float]()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            _, _, fields = path.read_text().rpartition(")")
        except OSError:  # it has ended
            continue
        _, parent, *rest = fields.split()
        process = int(path.parent.name)
        parents[process] = int(parent)
        used[process] = sum(map(int, rest[9:13])) / os.sysconf("SC_CLK_TCK")  # its own, and that of ended children
    return sum(seconds for process, seconds in used.items() if _descends(process, parents))


def _descends(process: int, parents: dict[int, int]) -> bool:
    while process in parents and process != os.getpid():
        process = parents[process]
    return process == os.getpid()


if __name__ == "__main__":
    main()
