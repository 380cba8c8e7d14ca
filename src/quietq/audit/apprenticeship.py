"""Apprenticeship learning by projection (Abbeel & Ng, 2004): the reward from where a policy goes.

A reward that is a sum of weights times features is worth, under a policy, the weights times the policy's *feature
expectations*: the discounted sums of features that it meets. The thief looks for weights by which the released policy
beats every other: the difference between its feature expectations and the nearest mixture of those of the policies
tried so far. Each round tries the policy that is best for these weights, and moves the mixture towards it; the length
of the difference, the margin, falls until nothing tells the released policy from the mixture.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from quietq.audit.discretised import Discretised, best_actions, mixed
from quietq.privacy.checks import count, positive, probability
from quietq.privacy.errors import InvalidInput

KNOTS = {1: 17, 2: 7}
"""Of the hat functions that features are, a coordinate."""
ROUNDS = 30
CLOSE = 1e-3
"""A margin below this part of the first is taken for none."""


@dataclass(frozen=True, eq=False)
class Apprentice:
    """What the rounds found."""

    weights: Float[np.ndarray, " features"]
    """Of the features, those whose best policy came nearest to the released one; up to scale and shift."""
    rewards: Float[np.ndarray, " n"]
    """The reward that they make, at the grid's points."""
    margins: tuple[float, ...]
    """By round: how far the released policy is from the mixture of those tried; it never grows."""
    distance: float
    """Between the feature expectations of the released policy and of the one that is best for `weights`."""


def apprenticeship(
    grid: Discretised, policy: np.ndarray, gamma: float, *, knots: int | None = None, rounds: int = ROUNDS,
    close: float = CLOSE,
) -> Apprentice:  # fmt: skip
    """Weights of hat functions for which a policy, the chances of actions at each state (n, m), is the best.

    >>> from quietq.audit.discretised import discretise
    >>> from quietq.worlds.walk import WALK
    >>> grid = discretise(WALK, points=17)
    >>> policy = mixed(best_actions(grid.best_values(WALK.reward(grid.states, np), gamma=0.9)))
    >>> found = apprenticeship(grid, policy, gamma=0.9, knots=9)
    >>> found.margins[-1] < found.margins[0]
    True
    """
    n, m = grid.transitions.shape[:2]
    policy, gamma = np.asarray(policy, dtype=np.float64), probability("gamma", gamma)
    if policy.shape != (n, m) or not ((policy >= 0).all() and np.allclose(policy.sum(axis=1), 1)):
        raise InvalidInput(f"policy must give {m} probabilities for each of {n} states.")
    default = min(KNOTS[grid.world.box.dimension], grid.points)
    features = grid.hats(default if knots is None else count("knots", knots, 2, grid.points))
    rounds, close = count("rounds", rounds), positive("close", close)
    goal = grid.visits(policy, gamma) @ features
    mixture = grid.visits(np.full((n, m), 1 / m), gamma) @ features
    margins: list[float] = []
    weights, nearest = np.zeros(features.shape[1]), np.inf
    for _ in range(rounds):
        difference = goal - mixture
        margins.append(float(np.linalg.norm(difference)))
        if margins[-1] <= close * margins[0]:
            break
        unit = difference / margins[-1]
        values = grid.best_values(features @ unit, gamma)
        tried = grid.visits(mixed(best_actions(values)), gamma) @ features
        if (distance := float(np.linalg.norm(tried - goal))) < nearest:
            weights, nearest = unit, distance
        step = tried - mixture
        length = float(step @ step)
        if length <= 1e-24:
            break
        mixture = mixture + np.clip(step @ difference / length, 0, 1) * step
    return Apprentice(weights, features @ weights, tuple(margins), nearest)
