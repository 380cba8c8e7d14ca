"""Sessions of people who push a point to the middle, the more skilled the oftener."""

from functools import partial
from typing import Any

import numpy as np
import polars as pl

from quietq import Sessions

STEPS, VISITS = 12, 2
RETURNS = (0.0, 12.0)


def logged(people: int, seed: int = 0) -> pl.DataFrame:
    """Two episodes each; rows have an action of a list (`push`), the same as a number (`force`), and a reward."""
    rng = np.random.default_rng(seed)
    skill = np.repeat(rng.random(people), VISITS)
    x, columns = rng.uniform(-1, 1, people * VISITS), []
    for step in range(STEPS):
        good = np.where(x > 0, -1.0, 1.0)
        force = np.where(rng.random(len(x)) < skill, good, rng.choice([-1.0, 1.0], len(x)))
        columns.append((np.full(len(x), step), x, force, 1 - np.abs(x)))
        x = np.clip(x + 0.2 * force + 0.02 * rng.standard_normal(len(x)), -1, 1)
    step, state, force, reward = (np.stack(one, axis=1).ravel() for one in zip(*columns, strict=True))
    whose = np.repeat(np.arange(people * VISITS), STEPS)
    push = np.where(force > 0, "right", "left")
    told: dict[str, Any] = {"who": whose // VISITS, "visit": whose % VISITS, "step": step, "x": state, "push": push}
    return pl.DataFrame(told | {"force": force, "reward": reward})


declared: dict[str, Any] = {
    "person": "who",
    "episode": "visit",
    "step": "step",
    "state": "x",
    "next_state": [],
    "reward": "reward",
    "box": (-1, 1),
}
read_listed = partial(Sessions.read, action="push", actions=["left", "right"], **declared)
read_numbers = partial(Sessions.read, action=["force"], actions=[(-2, 2)], **declared)
