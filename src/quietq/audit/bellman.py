"""The Bellman equation turned round: the reward from released values.

Values that solve r(s, a) = Q(s, a) - gamma sum_s' P(s'|s, a) max_a' Q(s', a') give the reward away, scale and shift
included. That is the mean reward of a step; the reward of the state that it leads to follows from

    r(s, a) = sum_s' P(s'|s, a) r(s')

by least squares. Chance blurs what it averages over, and undoing that blows errors up, so steep rewards are charged
for: by generalised cross-validation, and at least so much that the reward is no steeper than was publicly declared.
(Errors of neighbouring states are alike, which cross-validation alone takes for signal.) All of it comes from the
release and from what is public.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from quietq.audit.discretised import Discretised
from quietq.privacy.checks import not_negative, numbers, probability
from quietq.privacy.errors import InvalidInput

_CHARGES = np.logspace(-12, 8, 81)
"""What is tried, relative to the scale of the equations; with the last, nothing but a constant is left."""
_TOO_STEEP = 1.01  # slopes that exceed the declared one by less are rounding


@dataclass(frozen=True, eq=False)
class Inversion:
    expected: Float[np.ndarray, "n m"]  # the mean reward of each state and action
    rewards: Float[np.ndarray, " n"]  # the reward of the state that a step leads to
    charge: float  # on steep rewards, as it was chosen
    residual: float  # root mean square of what of `expected` no reward of the next state explains


def implied_rewards(grid: Discretised, values: np.ndarray, gamma: float) -> Float[np.ndarray, "n m"]:
    """Mean rewards of each state and action that make these the values, (n, m), of the best policy."""
    given, shape = numbers("values", values), grid.transitions.shape[:2]
    if given.shape != shape or not np.isfinite(given).all():
        raise InvalidInput(f"values must be {shape[1]} finite numbers for each of {shape[0]} states.")
    return given - probability("gamma", gamma) * grid.transitions @ given.max(axis=1)


def invert(grid: Discretised, values: np.ndarray, gamma: float, steepest: float | None = None) -> Inversion:
    """The reward of the state that a step leads to, from values of all actions, (n, m).

    `steepest` is the most that the reward is known to change between neighbouring points, if anything is.
    """
    expected = implied_rewards(grid, values, gamma)
    most = np.inf if steepest is None else _TOO_STEEP * not_negative("steepest", steepest)
    equations, goal = grid.transitions.reshape(expected.size, -1), expected.ravel()
    normal, steep, right = equations.T @ equations, grid.slopes.T @ grid.slopes, equations.T @ goal
    least, rewards, charge = np.inf, np.full(len(normal), goal.mean()), np.inf
    for tried in _CHARGES * np.trace(normal) / np.trace(steep):
        inverse = np.linalg.inv(normal + tried * steep)
        found = inverse @ right
        freedom = expected.size - np.trace(inverse @ normal)
        score = np.square(equations @ found - goal).sum() / freedom**2
        if score < least and np.abs(grid.slopes @ found).max() <= most:
            least, rewards, charge = score, found, float(tried)
    residual = float(np.sqrt(np.square(equations @ rewards - goal).mean()))
    return Inversion(expected, rewards, charge, residual)
