"""Made-up rows of learning curves, for tests of claims and pictures."""

import numpy as np

from reproduction.experiment import Row
from reproduction.figures.curves import references, rows_of

EPISODES, SEEDS = 20, 4


def curve(first: float, last: float, columns: Row, spread: float = 0.01) -> list[Row]:
    """Curves that rise straight from one score to another, and seeds that differ a little."""
    worst, best, _ = references()
    scores = np.linspace(first, last, EPISODES) + spread * (np.arange(SEEDS)[:, None] - (SEEDS - 1) / 2)
    return rows_of((worst + (best - worst) * scores).tolist(), columns)


def level(preset: str, sigma: float, noise: str, first: float, last: float) -> list[Row]:
    """A noise level of figure 1."""
    resets = {"one path": 1, "10 paths": 10}.get(noise)
    return curve(first, last, {"preset": preset, "sigma": sigma, "noise": noise, "resets": resets})


def compared(
    method: str,
    epsilon: float | None,
    last: float,
    worth: float | None = None,
    cells: int | None = None,
    spread: float = 0.01,
) -> list[Row]:
    """A method of figure 2, from random actions on."""
    standing = {"no noise": "none", "published": "claimed", "evaluation": "other relation"}.get(method, "theorem")
    delta = None if epsilon is None else 1e-4
    return curve(
        0.5,
        last,
        {
            "method": method,
            "target_epsilon": epsilon,
            "delta": delta,
            "sigma": 1.0,
            "standing": standing,
            "worth_epsilon": worth,
            "cells": cells,
        },
        spread,
    )


def opposite(epsilon: float, last: float) -> list[Row]:
    """The paper's algorithm under the opposite reward."""
    rows = curve(last, last, {"method": "published", "target_epsilon": epsilon, "delta": 1e-4, "sigma": 1.0})
    worst, best, _ = references()
    return [{**row, "score": (row["return"] - worst) / (best - worst)} for row in rows]


def figure1(noised: float = 0.6, fewer: float = 0.3, printed: float = 0.1) -> list[Row]:
    """All of figure 1: the program's score with noise, with fewer draws of it, and that of the listing."""
    rows = level("code", 0.0, "none", 0.5, 1.0) + level("text", 0.0, "none", 0.1, printed)
    for preset, every in (("code", "each episode"), ("text", "each round")):
        for sigma in (0.2, 0.4):
            for noise in (every, "10 paths", "one path"):
                last = printed if preset == "text" else noised if noise == every else fewer
                rows += level(preset, sigma, noise, 0.1 if preset == "text" else 0.5, last - 0.1 * sigma)
    return rows


def figure2(
    ours: float = 0.9,
    others: float = 0.5,
    evaluation: tuple[float, float, float] = (0.9, 0.9, 0.9),
    gradient_worth: float = 1.5,
    spread: float = 0.01,
) -> list[Row]:
    """All of figure 2, by the score that methods end with, policy evaluation with 2, 3 and 4 cells."""
    rows = compared("no noise", None, 1.0)
    for epsilon in (0.9, 0.45):
        rows += compared("published", epsilon, ours, spread=spread)
        for cells, score in zip((2, 3, 4), evaluation, strict=True):
            rows += compared("evaluation", epsilon, score, cells=cells, spread=spread)
        rows += compared("input", epsilon, others, epsilon / 5, spread=spread)
        rows += compared("gradient", epsilon, others, gradient_worth * epsilon, spread=spread)
    return rows
