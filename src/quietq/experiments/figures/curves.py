"""Learning curves of the paper's walk: how they are measured, and the numbers that claims are judged by."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from quietq.experiments.task import Row, Value
from quietq.learning.agent import Agent
from quietq.learning.method import Method
from quietq.worlds.jax_rewards import WorldReward
from quietq.worlds.walk import WALK
from quietq.worlds.walk_returns import best_return, random_return, worst_return

LATE = 5
"""The last fifth of the episodes, 20 of 100, is what a run ends with."""
CLEAR = 2.0
"""A difference of so many standard errors is called one."""


@dataclass(frozen=True)
class Measure:
    """The mean over seeds, and its standard error."""

    mean: float
    error: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.error:.2f}"

    def above(self, other: "Measure") -> bool:
        """Whether it is clearly larger; runs are taken for independent, which is cautious where they share seeds."""
        return self.mean - other.mean > CLEAR * math.hypot(self.error, other.error)


def curve_rows(
    method: Method, steps: int, seeds: int, seed: int, columns: Row, reward: WorldReward | None = None
) -> list[Row]:
    """A row an episode and seed, of `seeds` simulated runs; the return is that under the true reward, or `reward`."""
    agent = Agent("walk", method, seed=seed, reward=reward).learn(steps, simulate=seeds)
    return rows_of(agent.not_private["episode_returns"], columns)


def rows_of(returns: Sequence[Sequence[float]], columns: Row) -> list[Row]:
    """A row an episode and seed, from the returns of each seed's episodes."""
    return [
        {**columns, "seed": seed, "episode": episode, "samples": episode * WALK.steps, "return": float(value)}
        for seed, episodes in enumerate(returns)
        for episode, value in enumerate(episodes, start=1)
    ]


def where(rows: Iterable[Row], **values: Value) -> list[Row]:
    """The rows that have these values.

    >>> where([{"sigma": 0.2}, {"sigma": 0.4}], sigma=0.4)
    [{'sigma': 0.4}]
    """
    return [row for row in rows if all(row[name] == value for name, value in values.items())]


def returns_of(rows: Sequence[Row]) -> np.ndarray:
    """The returns of one setting, shape (seeds, episodes)."""
    seeds = 1 + max(int(row["seed"] or 0) for row in rows)
    ordered = sorted(rows, key=lambda row: (int(row["seed"] or 0), int(row["episode"] or 0)))
    return np.array([float(row["return"] or 0.0) for row in ordered]).reshape(seeds, -1)


def scores_of(rows: Sequence[Row]) -> np.ndarray:
    """The same, scaled so that the worst policy has 0 and the best 1."""
    worst, best, _ = references()
    return (returns_of(rows) - worst) / (best - worst)


def late(rows: Sequence[Row]) -> Measure:
    """The score that runs end with."""
    return measure(late_scores(rows))


def late_scores(rows: Sequence[Row]) -> np.ndarray:
    """The score that each seed ends with."""
    scores = scores_of(rows)
    return scores[:, -max(scores.shape[1] // LATE, 1) :].mean(axis=1)


def measure(values: np.ndarray) -> Measure:
    """Mean and standard error of one number a seed."""
    error = float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.inf
    return Measure(float(values.mean()), error)


def gained(rows: Sequence[Row]) -> Measure:
    """By how much the last fifth scores better than the first, seed by seed."""
    scores = scores_of(rows)
    part = max(scores.shape[1] // LATE, 1)
    return measure(scores[:, -part:].mean(axis=1) - scores[:, :part].mean(axis=1))


def samples_to(rows: Sequence[Row], level: float, together: int = 5) -> float:
    """Samples after which the mean curve, over so many episodes in a row, first reaches a return; else infinite."""
    mean = returns_of(rows).mean(axis=0)
    smooth = np.convolve(mean, np.full(min(together, len(mean)), 1 / min(together, len(mean))), "valid")
    reached = np.flatnonzero(smooth >= level)
    return float((reached[0] + min(together, len(mean))) * WALK.steps) if len(reached) else math.inf


def size_of(rows: Sequence[Row]) -> str:
    """How much was run, in words."""
    seeds, episodes = returns_of(rows).shape
    return f"{seeds} seeds of {episodes * WALK.steps:,} samples, scores of the last {max(episodes // LATE, 1)} episodes"


@cache
def references() -> tuple[float, float, float]:
    """The exact returns of the worst policy, the best, and uniformly random actions.

    >>> [round(value, 2) for value in references()]
    [0.26, 20.71, 10.86]
    """
    return worst_return(), best_return(), random_return()
