"""How long reading many people's sessions takes, and asking them, beside a plain sum of the same columns by person.

`python -m benchmarks.session_scale --rows 10000000` makes so many steps of a hundredth as many people in a temporary
folder, in no order, sums the columns by person with Polars, reads them as `Sessions`, asks for values of two policies
twice, and prints what each took, as JSON. Seconds of processors hold on a machine that is shared, too.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.scale import timed
from quietq.feedback.returns import Returns
from quietq.feedback.sessions import Sessions
from quietq.noise.box import Box

STATES = [f"x{i}" for i in range(4)]
STEPS, EPISODES = 25, 4
ROWS_A_FILE = 2_000_000
LIMIT = 8.0
"""Reading and the first round may take so many times what the plain sum takes."""


def write(folder: Path, rows: int) -> list[Path]:
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


def uniform(states: np.ndarray) -> np.ndarray:
    return np.full((len(states), 3), 1 / 3)


def first(states: np.ndarray) -> np.ndarray:
    return np.tile([0.8, 0.1, 0.1], (len(states), 1))


def measure(rows: int, engine: Any = "local") -> Iterator[tuple[str, Any]]:
    """What is printed, as it is found."""
    people = rows // (STEPS * EPISODES)
    yield from {"rows": rows, "people": people, "engine": engine}.items()
    box = Box.of([(0, 1)] * len(STATES))
    values = Returns((first, uniform), uniform, None, box, 3, (0.0, 1.0), (0.0, 50.0), 0.9, False)
    with tempfile.TemporaryDirectory() as folder:
        files = write(Path(folder), rows)
        plain = min(
            (timed(lambda: pl.scan_parquet(files).group_by("who").agg(pl.all().sum()).collect())[1] for _ in range(3)),
            key=lambda took: took["processor seconds"],
        )
        yield "plain sum by person", plain
        sessions, read = timed(lambda: Sessions.read(
            files, person="who", episode="visit", step="t", state=STATES, action="go", actions=[0, 1, 2], reward="r",
            end="end", box=box, people=people, engine=engine,
        ))  # fmt: skip
        yield "read", read
        rounds = [timed(lambda: sessions.mean(values))[1] for _ in range(2)]
        yield "rounds", rounds
        for unit in plain:
            yield f"ratio of {unit}", round((read[unit] + rounds[0][unit]) / plain[unit], 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--engine", choices=("local", "ray"), default="local")
    for name, value in measure(**vars(parser.parse_args())):
        print(json.dumps({name: value}), flush=True)


if __name__ == "__main__":
    main()
