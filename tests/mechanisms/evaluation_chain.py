"""A ring of states whose values are known, its private evaluation, and the exact delta of its noise."""

import math

import numpy as np
from scipy.stats import ncx2

from quietq import Budget
from quietq.feedback.cells import Cells
from quietq.paper.baselines.balle import Evaluation
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


def divergence(epsilon: float, d: int, shift: float, growth: float) -> float:
    """The exact delta of N(0, I) against N(a, e^(2 growth) I): what lies inside or outside a sphere."""
    variance = math.exp(2 * growth)
    centre, bend = shift / (1 - variance), 1 / variance - 1
    square = (2 * (epsilon - d * growth) + shift**2 / (1 - variance)) / bend
    if square <= 0:
        return 0.0 if bend < 0 else 1 - math.exp(epsilon)
    side = ncx2.sf if bend > 0 else ncx2.cdf
    other = math.exp(epsilon) * float(side(square / variance, d, (shift - centre) ** 2 / variance))
    return float(side(square, d, centre**2)) - other
