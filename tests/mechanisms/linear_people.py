"""People who act in a synthetic linear system: for tests of private worlds."""

import numpy as np
import polars as pl

from quietq import Sessions

BOX = [(-2.0, 2.0), (-2.0, 2.0)]
MATRIX, PUSH = np.array([[1.0, 0.1], [-0.1, 0.95]]), np.array([0.0, 0.2])


def rows_of(people: int, steps: int = 12, seed: int = 0, numbers: bool = False) -> pl.DataFrame:
    """Random actions; a reward of x + 1 over 3, and an end beyond 1.5."""
    rng, rows = np.random.default_rng(seed), []
    for person in range(people):
        state = rng.normal(size=2) * 0.5
        for step in range(steps):
            action = rng.uniform(-1, 1) if numbers else int(rng.integers(2))
            push = action if numbers else 2 * action - 1
            after = np.clip(MATRIX @ state + PUSH * push + 0.01 * rng.normal(size=2), -2, 2)
            ended = int(abs(after[0]) > 1.5)
            rows.append((person, step, *state, *after, action, np.clip((state[0] + 1) / 3, 0, 1), ended))
            state = after
            if ended:
                break
    names = ["who", "step", "x", "y", "next x", "next y", "push", "reward", "end"]
    return pl.DataFrame(rows, schema=names, orient="row")


def read(rows: object, people: int, numbers: bool = False, **options) -> Sessions:
    acts: dict = {"actions": [(-1, 1)]} if numbers else {"actions": [0, 1]}
    given: dict = {"reward": "reward", "end": "end", "next_state": ["next x", "next y"], "box": BOX, **acts, **options}
    return Sessions.read(
        rows, person="who", step="step", state=["x", "y"], action=["push"] if numbers else "push",
        people=people, **given,
    )  # fmt: skip
