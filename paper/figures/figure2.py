"""The paper's figure 2: its algorithm beside three others "where they target the same (epsilon, delta)".

They do not promise the same. The paper's own is a claim, which does not hold; the two that put noise on rewards and on
gradients have a theorem, for what their noise is really worth (column `worth_epsilon`), and no certificate, because
they are simulations; policy evaluation protects something else. Each row says so in `standing`. Policy evaluation has
several readings, by the number of cells of the position (column `cells`).
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from paper.experiment import Claim, Experiment, Tables
from paper.figures.baselines import InputPerturbation
from paper.figures.comparison_claims import (
    baselines_stand_still,
    evaluation_is_similar,
    keeps_its_target,
    outperforms,
)
from paper.figures.curves import curve_rows, rows_of
from paper.figures.evaluation import CELLS, walk_by_evaluation
from paper.figures.figure1 import program_of
from paper.figures.gradient_baseline import GradientPerturbation
from paper.task import Row, Task
from quietq.learning.method import Method
from quietq.learning.published import Published
from quietq.privacy.budget import Budget
from quietq.worlds.jax_rewards import WorldReward
from quietq.worlds.walk import WALK, walk_reward
from quietq.worlds.walk_returns import best_return, worst_return

TARGETS = (0.9, 0.45)
DELTA = 1e-4
SIGMAS = {0.9: 0.32, 0.45: 0.74}
"""What the paper's appendix states for its own algorithm."""
Compared = Literal["no noise", "published", "input", "gradient", "evaluation"]


@dataclass(frozen=True)
class Comparison(Task):
    """One method at one target; without noise there is no target."""

    table: ClassVar[str] = "figure2"
    method: Compared
    epsilon: float | None
    steps: int = 5000
    seeds: int = 10
    seed: int = 1
    cells: int | None = None
    """Of policy evaluation only."""

    @property
    def title(self) -> str:
        """For the bar."""
        cells = "" if self.cells is None else f", {self.cells} cells"
        return f"Figure 2: {self.method}{cells}" + ("" if self.epsilon is None else f", epsilon {self.epsilon:g}")

    @property
    def program(self) -> str:
        """The noise's size is an argument; the paper's algorithm without any is the same program."""
        if self.method in ("no noise", "published"):
            return program_of("code", None, self.steps, self.seeds)
        return f"figure2/{self.method}"

    def rows(self) -> list[Row]:
        """A row an episode and seed."""
        if self.epsilon is None:
            return self._learned(Published.code(0.0), 0.0, "none", None)
        if self.method == "published":
            sigma = SIGMAS[self.epsilon]
            return self._learned(Published.code(sigma), sigma, "claimed", None)
        if self.cells is not None:
            budget, seeds = Budget(self.epsilon, DELTA), range(1000 * self.seed, 1000 * self.seed + self.seeds)
            returns = [walk_by_evaluation(budget, self.steps, seed, self.cells).tolist() for seed in seeds]
            return rows_of(returns, self._columns(None, "other relation", None))
        kind = InputPerturbation if self.method == "input" else GradientPerturbation
        baseline = kind.of(self.epsilon, DELTA)
        return self._learned(baseline, baseline.sigma(self.steps), "theorem", baseline.worth(self.steps))

    def _learned(self, method: Method, sigma: float, standing: str, worth: float | None) -> list[Row]:
        return curve_rows(method, self.steps, self.seeds, self.seed, self._columns(sigma, standing, worth))

    def _columns(self, sigma: float | None, standing: str, worth: float | None) -> Row:
        return {
            "method": self.method, "target_epsilon": self.epsilon, "delta": None if self.epsilon is None else DELTA,
            "sigma": sigma, "standing": standing, "worth_epsilon": worth, "cells": self.cells,
        }  # fmt: skip


@dataclass(frozen=True)
class Opposite(Task):
    """The paper's algorithm under the opposite reward, 0.5 - r: what is possible at all is a bound on the pair."""

    table: ClassVar[str] = "figure2_opposite"
    epsilon: float
    steps: int = 5000
    seeds: int = 10
    seed: int = 2

    @property
    def title(self) -> str:
        """For the bar."""
        return f"Figure 2: the opposite reward, epsilon {self.epsilon:g}"

    @property
    def program(self) -> str:
        """The reward is an argument of the same program."""
        return program_of("code", None, self.steps, self.seeds)

    def rows(self) -> list[Row]:
        """A row an episode and seed; the score is 1 for the policy that is best under the opposite reward."""
        sigma = SIGMAS[self.epsilon]
        worst, best = worst_return(opposite), best_return(opposite)
        columns: Row = {"method": "published", "target_epsilon": self.epsilon, "delta": DELTA, "sigma": sigma}
        reward = WorldReward(WALK, scale=-1.0, shift=0.5)
        rows = curve_rows(Published.code(sigma), self.steps, self.seeds, self.seed, columns, reward)
        return [{**row, "score": (float(row["return"] or 0.0) - worst) / (best - worst)} for row in rows]


def opposite(states: np.ndarray) -> np.ndarray:
    """The reward that prefers what the walk's likes least."""
    return 0.5 - walk_reward(states)


class Figure2(Experiment):
    """The paper's algorithm looks best, because its promise is not kept."""

    name: ClassVar[str] = "figure2"
    title: ClassVar[str] = "Figure 2: comparison at two budgets"

    def tasks(self, quick: bool) -> list[Task]:
        """All methods at both targets, one curve without noise, and the paper's under the opposite reward."""
        size = (1000, 3) if quick else (5000, 10)
        methods: tuple[Compared, ...] = ("published", "input", "gradient")
        tasks = [Comparison(method, epsilon, *size) for epsilon in TARGETS for method in methods]
        tasks += [Comparison("evaluation", epsilon, *size, cells=cells) for epsilon in TARGETS for cells in CELLS]
        return [Comparison("no noise", None, *size), *tasks, *(Opposite(epsilon, *size) for epsilon in TARGETS)]

    def claims(self, tables: Tables) -> list[Claim]:
        """What the curves say about the paper's words."""
        rows = tables["figure2"]
        return [
            outperforms(rows),
            baselines_stand_still(rows),
            evaluation_is_similar(rows),
            keeps_its_target(rows, tables["figure2_opposite"]),
        ]
