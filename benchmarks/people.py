"""Ten million ratings of a million people, as multiples of the time that Polars takes for a mean a person.

`python -m benchmarks.people --rows 10000000 --engine ray` makes that many ratings in eight dimensions in a temporary
folder, reads them, asks the queries of a release and prints what each took, as JSON. With `--feedback sessions` they
are steps of a hundredth as many people, in no order, which are read and asked for values of two policies, beside a
plain sum of the same columns by person with Polars.
"""

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Literal, TypedDict, TypeVar

import numpy as np
import polars as pl

from benchmarks.measuring import Row, ratio
from quietq.feedback.ratings import Ratings
from quietq.feedback.returns import Returns
from quietq.feedback.sessions import Sessions
from quietq.mechanisms.candidates import choose, privatise
from quietq.noise.box import Box
from quietq.noise.entropy import SeededEntropy
from quietq.privacy import Budget, Certificate

RATINGS, PEOPLE = 10_000_000, 1_000_000
DIMENSION = 8
BUDGET = Budget(1.0, 1e-5)
Result = TypeVar("Result")
Took = dict[str, float]
"""Seconds by the clock, and of processors: user and system, of this process and of Ray's."""


class Declared(TypedDict):
    box: tuple[float, float]
    low: float
    high: float
    slope: float
    people: int


DECLARED: Declared = {"box": (0, 1), "low": 0.0, "high": 1.0, "slope": 2.0, "people": PEOPLE}


def rows() -> list[Row]:
    """Every measurement of this module."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ratings.parquet"
        write(file)
        return [
            Row(
                "Ratings.read, 1e7 ratings of 1e6 people",
                ratio(lambda: Ratings.read(file, **DECLARED), lambda: mean_rating(file), repeats=3),
                "x group_by",
                limit=5,
                aim=3,
            ),
            Row("  the same, in seconds of processors", processor_ratio(file), "x group_by"),
            Row("Ratings.read, 1e7 ratings, peak memory of the process", gigabytes(file), "GB", limit=1.5),
            Row("read and privatise, 1e6 ratings of 60,000 people in 8-d", fit(Path(folder)), "s a core", 20, aim=10),
        ]


def write(file: Path) -> None:
    """Uniform states and ratings, people in no order."""
    generator = np.random.default_rng(0)
    person = generator.integers(PEOPLE, size=RATINGS)
    state, rating = generator.random((2, RATINGS))
    pl.DataFrame({"person": person, "state": state, "rating": rating}).write_parquet(file)


def mean_rating(file: Path) -> pl.DataFrame:
    """What it is compared with: it also reads everything and brings each person's rows together."""
    people = pl.scan_parquet(file).group_by("person").agg(pl.col("rating").mean())
    return people.collect(engine="streaming")


def processor_ratio(file: Path, repeats: int = 3) -> float:
    """The least of some runs of each: others on the machine take time from both, but not of the processors."""
    ours = [timed(lambda: Ratings.read(file, **DECLARED)) for _ in range(repeats)]
    theirs = [timed(lambda: mean_rating(file)) for _ in range(repeats)]
    mine, peer = (min(took["processor seconds"] for _, took in one) for one in (ours, theirs))
    return mine / peer


def fit(folder: Path) -> float:
    """Seconds of processors, user and system, for each of two cores."""
    files = write_in_8d(folder, 1_000_000, 60_000)
    return timed(lambda: privatise(read(files, 60_000), BUDGET, simulate=0))[1]["processor seconds"] / 2


def gigabytes(file: Path) -> float:
    """The most memory that a fresh process held that did nothing else (Linux).

    Not what `resource` says, which counts what its parent held before.
    """
    code = (
        "from pathlib import Path; from quietq.feedback.ratings import Ratings; "
        f"Ratings.read({str(file)!r}, **{DECLARED!r}); print(Path('/proc/self/status').read_text())"
    )
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    (peak,) = (line.split()[1] for line in result.stdout.splitlines() if line.startswith("VmHWM"))
    return int(peak) * 1024 / 1e9


# By number of rows, on one machine or on Ray.


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.people", description="What reading and asking take.")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of as many people that each has 16.7 ratings")
    parser.add_argument("--feedback", choices=("ratings", "sessions"), default="ratings")
    parser.add_argument("--engine", choices=("local", "ray"), default="local")
    parser.add_argument("--queries", type=int, default=1000, help="of ratings; all of a release by default")
    asked = parser.parse_args()
    ratings = asked.feedback == "ratings"
    found = measure(asked.rows, asked.engine, asked.queries) if ratings else measure_sessions(asked.rows, asked.engine)
    for name, value in found:
        print(json.dumps({name: value}), flush=True)


def measure(
    rows: int, engine: Literal["local", "ray"], queries: int
) -> Iterator[tuple[str, float | Took | dict[str, float | str]]]:
    """What is printed, as it is found."""
    people = rows * 60_000 // 1_000_000
    yield "rows", rows
    yield "people", people
    with ExitStack() as stack:
        files = write_in_8d(Path(stack.enter_context(tempfile.TemporaryDirectory())), rows, people)
        yield "bytes of files", sum(file.stat().st_size for file in files)
        if engine == "ray":
            from quietq.feedback.ray_engine import ray_session

            stack.enter_context(ray_session(num_cpus=2, object_store_memory=4 * 10**9))
        feedback, took = timed(lambda: read(files, people, engine))
        yield "read", took
        for took in islice(ask(feedback), queries):
            yield "query", took
        yield "peak memory of this process", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def read(files: list[Path], people: int, engine: Literal["local", "ray"] = "local") -> Ratings:
    box, states = [(0, 1)] * DIMENSION, [f"s{i}" for i in range(DIMENSION)]
    return Ratings.read(files, box=box, state=states, low=0, high=1, people=people, engine=engine)


def write_in_8d(folder: Path, rows: int, people: int) -> list[Path]:
    """A peak and noise, people in no order, so that everybody's rows lie in many files."""
    rng, files, most = np.random.default_rng(0), [], 2_000_000
    for first in range(0, rows, most):
        count = min(most, rows - first)
        states = rng.random((DIMENSION, count), dtype=np.float32)
        ratings = peak(states) + 0.1 * rng.standard_normal(count, dtype=np.float32)
        columns = {"person": rng.integers(people, size=count), **{f"s{i}": one for i, one in enumerate(states)}}
        files.append(folder / f"{first}.parquet")
        pl.DataFrame(columns | {"rating": ratings}).write_parquet(files[-1], compression="uncompressed")
    return files


def peak(states: np.ndarray) -> np.ndarray:
    return np.exp(-2 * ((states - 0.5) ** 2).sum(axis=0))


def ask(feedback: Ratings) -> Iterator[dict[str, float | str]]:
    """The queries of a simulated release, and what each took; in the end, how near the truth it is.

    Both engines have the same sums, to the bit, if digests are the same.
    """
    mechanism, entropy = choose("auto", feedback, BUDGET), SeededEntropy(0)
    steps = mechanism.run()
    query = next(steps)
    while True:
        numbers, took = timed(lambda query=query: query.numbers(feedback))
        digest = hashlib.sha256(np.ascontiguousarray(numbers).tobytes()).hexdigest()
        yield took | {"numbers": len(numbers), "sha256 of the sums": digest[:16]}
        try:
            query = steps.send(query.law.add(numbers, entropy))
        except StopIteration as last:
            model = mechanism.result(last.value, Certificate(method="reward/rounds", standing="none"))
            states = np.random.default_rng(1).random((DIMENSION, 10_000))
            yield {"correlation": float(np.corrcoef(model(states.T), peak(states))[0, 1])}
            return


CLOCK = 0.01
"""Seconds, the least that is told from none."""
STATES = [f"x{i}" for i in range(4)]
STEPS, EPISODES = 25, 4
"""Of an episode, and of a person."""


def measure_sessions(rows: int, engine: Literal["local", "ray"]) -> Iterator[tuple[str, float | Took]]:
    """What is printed, as it is found."""
    people, box = rows // (STEPS * EPISODES), Box.of([(0, 1)] * len(STATES))
    yield "rows", rows
    yield "people", people

    def uniform(states: np.ndarray) -> np.ndarray:
        return np.full((len(states), 3), 1 / 3)

    def mostly_first(states: np.ndarray) -> np.ndarray:
        return np.tile([0.8, 0.1, 0.1], (len(states), 1))

    values = Returns((mostly_first, uniform), uniform, box, 3, (0.0, 1.0), (0.0, 50.0), 0.9, False)
    with tempfile.TemporaryDirectory() as folder:
        files = write_sessions(Path(folder), rows)
        by_person = pl.scan_parquet(files).group_by("who").agg(pl.all().sum())
        plain = min((timed(by_person.collect)[1] for _ in range(3)), key=lambda took: took["processor seconds"])
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
        once = timed(lambda: sessions.mean(values))[1]
        yield "a round", once
        for unit in plain:  # which is below what the clock can tell, for few rows
            over = (read[unit] + once[unit]) / max(plain[unit], CLOCK)
            yield f"read and round over the plain sum, {unit}", round(over, 1)


def write_sessions(folder: Path, rows: int) -> list[Path]:
    rng, files, most = np.random.default_rng(0), [], 2_000_000
    place = rng.permutation(rows)
    for first in range(0, rows, most):
        here = place[first : first + most]
        step = here % STEPS
        columns = {"who": here // (STEPS * EPISODES), "visit": here // STEPS % EPISODES, "t": step}
        columns |= {name: rng.random(len(here)) for name in STATES}
        columns |= {"go": rng.integers(0, 3, len(here)), "r": rng.random(len(here)), "end": step == STEPS - 2}
        files.append(folder / f"{first}.parquet")
        pl.DataFrame(columns).write_parquet(files[-1])
    return files


def timed(run: Callable[[], Result]) -> tuple[Result, Took]:
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
