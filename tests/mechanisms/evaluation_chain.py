"""A ring of states whose values are known, and its private evaluation."""

import numpy as np

from quietq import Budget
from quietq.feedback.trajectories import Cells
from quietq.mechanisms.evaluation import Evaluation
from quietq.privacy.relations import Trajectories

STATES, GAMMA, STEPS = 5, 0.8, 30


def chain(people: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """A ring of 5 states: one step on with probability 0.7; state 4 pays 1."""
    rng = np.random.default_rng(people)
    path = np.cumsum(np.c_[rng.integers(0, STATES, people), rng.random((people, STEPS - 1)) < 0.7], axis=1) % STATES
    return list(zip(path, (path == STATES - 1).astype(float), strict=True))


def chain_values() -> np.ndarray:
    step = 0.3 * np.eye(STATES) + 0.7 * np.roll(np.eye(STATES), 1, axis=1)
    return np.linalg.solve(np.eye(STATES) - GAMMA * step, np.arange(STATES) == STATES - 1)


def evaluation(people: int, **options) -> Evaluation:
    settings = {"budget": Budget(1.0, 1e-6), "gamma": GAMMA, "cells": Cells.states(STATES)}
    return Evaluation(**{**settings, "relation": Trajectories(people, 1.0, STEPS), **options})


def error(value) -> float:
    return float(np.sqrt(np.mean((value(np.arange(STATES)) - chain_values()) ** 2)))
