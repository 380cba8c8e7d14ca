"""Sessions that are nobody's, to try private worlds on: people who push CartPole's cart at random, until it falls."""

import csv
import os

import gymnasium
import numpy as np

from quietq.privacy.checks import count

STATES = ("position", "velocity", "angle", "spin")
COLUMNS = ("person", "step", *STATES, *(f"next {name}" for name in STATES), "push", "reward", "fell")
PUSHES = ("left", "right")
STEPS = 100
"""After which nobody goes on; random pushes end after some 22."""


def write_made_up_sessions(path: str | os.PathLike[str], people: int = 500, seed: int = 0) -> int:
    """Writes a CSV file, one row per step, and gives the number of rows."""
    env, rng, rows = gymnasium.make("CartPole-v1", max_episode_steps=STEPS), np.random.default_rng(seed), []
    for person in range(count("people", people)):
        state, _ = env.reset(seed=int(rng.integers(2**31)))
        for step in range(STEPS):
            push = int(rng.integers(2))
            after, reward, fell, cut, _ = env.step(push)
            numbers = (f"{value:.6g}" for value in (*state, *after))
            rows.append((f"person {person}", step, *numbers, PUSHES[push], float(reward), int(fell)))
            state = after
            if fell or cut:
                break
    env.close()
    with open(path, "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        writer.writerows(rows)
    return len(rows)
