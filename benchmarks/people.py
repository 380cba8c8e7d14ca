"""Ten million ratings of a million people, as multiples of the time that Polars takes for a mean a person."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks import scale
from benchmarks.row import Row
from benchmarks.timing import ratio
from quietq.feedback.ratings import Ratings
from quietq.mechanisms.privatise import privatise

RATINGS, PEOPLE = 10_000_000, 1_000_000
DECLARED: dict[str, Any] = {"box": (0, 1), "low": 0.0, "high": 1.0, "slope": 2.0, "people": PEOPLE}


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
    ours = [scale.timed(lambda: Ratings.read(file, **DECLARED)) for _ in range(repeats)]
    theirs = [scale.timed(lambda: mean_rating(file)) for _ in range(repeats)]
    mine, peer = (min(took["processor seconds"] for _, took in one) for one in (ours, theirs))
    return mine / peer


def fit(folder: Path) -> float:
    """Seconds of processors, user and system, for each of two cores."""
    files = scale.write(folder, 1_000_000, 60_000)
    box, states = [(0, 1)] * scale.DIMENSION, [f"s{i}" for i in range(scale.DIMENSION)]

    def run() -> None:
        ratings = Ratings.read(files, box=box, state=states, low=0, high=1, people=60_000)
        privatise(ratings, scale.BUDGET, simulate=0)

    return scale.timed(run)[1]["processor seconds"] / 2


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
