"""The frozen-noise check of people's ratings: one person's rows, all of them, replaced by whatever an adversary likes.

The rows go all the way: read, held to range and slope, averaged, made private with the noise of a seed. Nothing is
assumed of how a person becomes a function, so rows may contradict each other, leave the range and be any number.
"""

import numpy as np
from jaxtyping import Float

from quietq.audit.frozen_rewards import frozen_table
from quietq.audit.movement import Movement
from quietq.feedback.ratings import Ratings
from quietq.mechanisms.gaussian_process import GaussianProcessMechanism
from quietq.privacy.budget import Budget
from quietq.privacy.errors import MissingExtra
from quietq.privacy.relations import LipschitzBall

Rows = tuple[Float[np.ndarray, " rows"], Float[np.ndarray, " rows"]]
"""One person's states and ratings."""
_RANDOM = 12
_TURNS = 24


def frozen_people(
    budget: Budget,
    *,
    count: int = 50,
    low: float = 0.0,
    high: float = 0.5,
    slope: float = 1.0,
    levels: int = 6,
    mechanism: GaussianProcessMechanism | None = None,
    seed: int = 0,
) -> Movement:
    """Of the mean of so many people's rewards, in the kernel's norm on the released grid.

    `mechanism` is what makes the mean private, by default that of the people's own relation.

    >>> move = frozen_people(Budget(0.9, 1e-4), count=20, levels=5)
    >>> round(move.stated, 4), 0.95 < move.share < 1  # 0.5/20 times the root of 5
    (0.0559, True)
    """
    try:
        import polars
    except ImportError as error:
        raise MissingExtra.of("people", "Auditing people's ratings needs Polars") from error
    rng = np.random.default_rng(seed)
    others = [
        (np.full(4, person), rng.random(4), rng.uniform(low, high, 4)) for person in range(1, count)
    ]  # who they are does not matter: the mean is a sum
    fixed = [np.concatenate(column) for column in zip(*others, strict=True)]

    def everyone(rows: Rows) -> Ratings:
        columns = ("person", "state", "rating")
        mine = (np.zeros(len(rows[0]), np.int64), *rows)
        data = {name: np.concatenate(pair) for name, pair in zip(columns, zip(mine, fixed, strict=True), strict=True)}
        return Ratings.read(
            polars.DataFrame(data), box=(0, 1), low=low, high=high, slope=slope, count=count, levels=levels
        )

    first, second = _opposites(low, high, slope, levels)
    relation = everyone(first).relation
    assert isinstance(relation, LipschitzBall)
    if mechanism is None:
        mechanism = GaussianProcessMechanism.for_relation(relation, budget, levels=levels)
    frozen = frozen_table(mechanism, "reward, one of many people", seed)

    def moved(one: Rows, other: Rows) -> float:
        return frozen.moved(*(everyone(rows).functions()[0] for rows in (one, other)))

    found, by = moved(first, second), "zigzags"
    for number in rng.integers(1, 60, _RANDOM):
        one, other = (_anything(rng, int(number), low, high) for _ in range(2))
        if (distance := moved(one, other)) > found:
            found, by, first, second = distance, "random", one, other
    for turn in rng.integers(0, len(first[1]), _TURNS):  # greedy: a rating to the other end of the range
        ratings = first[1].copy()
        ratings[turn] = low + high - ratings[turn]
        if (distance := moved((first[0], ratings), second)) > found:
            found, by, first = distance, "greedy", (first[0], ratings)
    return Movement(frozen.name, frozen.stated, found, by, frozen.norm)


def _opposites(low: float, high: float, slope: float, levels: int) -> tuple[Rows, Rows]:
    """Two people who rate every state of the grid up and down at full slope, one near the top, one near the bottom."""
    states = np.linspace(0, 1, 2**levels + 1)
    tooth = slope / 2**levels * (np.arange(len(states)) % 2)
    return (states, high - tooth), (states, low + tooth)


def _anything(rng: np.random.Generator, number: int, low: float, high: float) -> Rows:
    """Rows that need not agree with each other or with the range."""
    states = rng.choice([0.0, 1.0, *rng.random(8)], number)
    extreme = rng.choice([low, high, low - 1e6, high + 1e6], number)
    return states, np.where(rng.random(number) < 0.5, extreme, rng.uniform(low, high, number))
