"""Learning curves of the paper's walk: how they are measured, and when a number is clear.

A verdict is `holds` where all numbers clearly agree with what is printed, `fails` where one clearly contradicts and
none agrees, and `in part` for the rest: some of it, or nothing clear. "The same" is never what merely could not be told
apart: it has to lie within a stated margin.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import stdtrit

from quietq.paper.agents.agent import Agent
from quietq.paper.agents.jax_world import JaxReward
from quietq.paper.agents.method import Method
from quietq.worlds.planning import best_return, random_return, worst_return
from quietq.worlds.walk import WALK
from reproduction.experiment import Row, Verdict

LATE = 5
"""The last fifth of the episodes, 20 of 100, is what a run ends with."""
MARGIN = 0.1
"""Scores that differ by no more than this are called similar, and a gain of no more is called none."""


@dataclass(frozen=True)
class Measure:
    """The mean over seeds, its standard error, and the degrees of freedom that this has: one fewer than seeds."""

    mean: float
    error: float = 0.0
    freedom: float = math.inf
    """Infinite for a number that is known exactly."""

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.error:.2f}"

    @property
    def margin(self) -> float:
        """Half of the 95 % interval; one seed says nothing.

        >>> round(Measure(0.5, 0.1, freedom=9).margin, 3), round(Measure(0.5, 0.1, freedom=2).margin, 3)
        (0.226, 0.43)
        """
        if self.error == 0 or not math.isfinite(self.error):
            return self.error
        # A difference is clear if 0 lies outside its interval, by Student's t, because seeds are few.
        return float(stdtrit(self.freedom, (1 + 0.95) / 2)) * self.error

    @property
    def low(self) -> float:
        return self.mean - self.margin

    @property
    def high(self) -> float:
        return self.mean + self.margin

    def minus(self, other: "Measure") -> "Measure":
        """The difference; runs are taken for independent, which is cautious where they share seeds."""
        return Measure(self.mean - other.mean, *together([self, other]))

    def above(self, other: "Measure") -> bool:
        return self.minus(other).low > 0

    def similar(self) -> bool:
        """Of a difference: whether its whole interval lies within the margin."""
        return self.low >= -MARGIN and self.high <= MARGIN

    def different(self) -> bool:
        """Whether its whole interval lies outside the margin."""
        return self.low > MARGIN or self.high < -MARGIN


def clear_verdict(agree: Sequence[bool], contrary: Sequence[bool]) -> Verdict:
    """On numbers that clearly agree, clearly contradict, or neither.

    >>> clear_verdict([True, True], [False, False]), clear_verdict([False], [False]), clear_verdict([False], [True])
    ('holds', 'in part', 'fails')
    """
    if agree and all(agree):
        return "holds"
    return "fails" if any(contrary) and not any(agree) else "in part"


def together(measures: Sequence[Measure]) -> tuple[float, float]:
    """The standard error of a sum, and its degrees of freedom by Welch and Satterthwaite."""
    squares = [one.error**2 for one in measures]
    if not 0 < sum(squares) < math.inf:
        return math.sqrt(sum(squares)), math.inf
    parts = (square**2 / one.freedom for square, one in zip(squares, measures, strict=True) if square > 0)
    return math.sqrt(sum(squares)), sum(squares) ** 2 / max(sum(parts), 1e-300)


def mean_of(measures: Sequence[Measure]) -> Measure:
    error, freedom = together(measures)
    return Measure(sum(one.mean for one in measures) / len(measures), error / len(measures), freedom)


def measure(values: np.ndarray) -> Measure:
    error = float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.inf
    return Measure(float(values.mean()), error, float(len(values) - 1))


def curve_rows(
    method: Method, steps: int, seeds: int, seed: int, columns: Row, reward: JaxReward | None = None
) -> list[Row]:
    """A row an episode and seed, of `seeds` simulated runs; the return is that under the true reward, or `reward`."""
    agent = Agent("walk", method, seed=seed, reward=reward).learn(steps, simulate=seeds)
    return rows_of(agent.not_private["episode_returns"], columns)


def rows_of(returns: Sequence[Sequence[float]], columns: Row) -> list[Row]:
    return [
        {**columns, "seed": seed, "episode": episode, "samples": episode * WALK.steps, "return": float(value)}
        for seed, episodes in enumerate(returns)
        for episode, value in enumerate(episodes, start=1)
    ]


def program_of(preset: str, resets: int | None, steps: int, seeds: int) -> str:
    """The name of the compiled program of the paper's algorithm; both figures use the same one."""
    return f"published/{preset}/{resets}/{steps}/{seeds}"


def returns_of(rows: Sequence[Row], column: str = "return") -> np.ndarray:
    """The returns of one setting, shape (seeds, episodes)."""
    seeds = 1 + max(row["seed"] for row in rows)
    ordered = sorted(rows, key=lambda row: (row["seed"], row["episode"]))
    return np.array([row[column] for row in ordered]).reshape(seeds, -1)


def scores_of(rows: Sequence[Row]) -> np.ndarray:
    """The same, scaled so that the worst policy has 0 and the best 1."""
    worst, best, _ = references()
    return (returns_of(rows) - worst) / (best - worst)


def last_part(scores: np.ndarray) -> np.ndarray:
    return scores[:, -max(scores.shape[1] // LATE, 1) :].mean(axis=1)


def late(rows: Sequence[Row]) -> Measure:
    return measure(last_part(scores_of(rows)))


def gain(rows: Sequence[Row]) -> Measure:
    """By how much the last fifth scores better than the first, seed by seed."""
    scores = scores_of(rows)
    return measure(last_part(scores) - scores[:, : max(scores.shape[1] // LATE, 1)].mean(axis=1))


def samples_to(rows: Sequence[Row], level: float, episodes: int = 5) -> float:
    """Samples after which the mean curve, over so many episodes in a row, first reaches a return; else infinite."""
    mean = returns_of(rows).mean(axis=0)
    episodes = min(episodes, len(mean))
    reached = np.flatnonzero(np.convolve(mean, np.full(episodes, 1 / episodes), "valid") >= level)
    return float((reached[0] + episodes) * WALK.steps) if len(reached) else math.inf


def size_of(rows: Sequence[Row]) -> str:
    seeds, episodes = returns_of(rows).shape
    last = max(episodes // LATE, 1)
    return f"{seeds} seeds of {episodes * WALK.steps:,} samples, scores of the last {last} episodes ± standard error"


@cache
def references() -> tuple[float, float, float]:
    """The exact returns of the worst policy, the best, and uniformly random actions.

    >>> [round(value, 2) for value in references()]
    [0.26, 20.71, 10.86]
    """
    return worst_return(), best_return(), random_return()


def chance() -> float:
    worst, best, random = references()
    return (random - worst) / (best - worst)
