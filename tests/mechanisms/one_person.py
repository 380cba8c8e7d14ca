"""One person's rows, replaced by whatever an adversary likes, and how far that moves the queries of a mechanism."""

import numpy as np
import polars as pl

from quietq import Ratings
from quietq.mechanisms.release import Mechanism
from quietq.noise.entropy import SeededEntropy

ADVERSARIES = {
    "opposite": [(1.0, 1.0, 1.0)],
    "many": [(1.0, 0.0, 1.0)] * 500,
    "beyond": [(0.0, 0.0, 1e9), (0.5, 0.5, -1e9)],
    "nobody": [],
    "anything": [(float(a), float(b), float(c)) for a, b, c in np.random.default_rng(5).random((40, 3))],
}


def with_one(rows: list[tuple[float, float, float]], people: int = 50) -> Ratings:
    """Ratings in the plane: of one person these, and five of everybody else."""
    rng = np.random.default_rng(0)
    others = [(str(i), *rng.random(3)) for i in range(people - 1) for _ in range(5)]
    table = pl.DataFrame([("one", *row) for row in rows] + others, schema=["person", "a", "b", "rating"], orient="row")
    return Ratings.read(table, box=[(0, 1), (0, 1)], low=0, high=1, people=people, state=["a", "b"])


def replay(mechanism: Mechanism, one: Ratings, other: Ratings) -> list[float]:
    """One transcript, answered from the first; how far the other's numbers are from it, query by query, in noise."""
    entropy, steps, found = SeededEntropy(0), mechanism.run(), []
    query = next(steps)
    while True:
        here, there = query.numbers(one), query.numbers(other)
        found.append(query.law.distance(here - there) / query.sensitivity)
        try:
            query = steps.send(query.law.add(here, entropy))
        except StopIteration:
            return found
