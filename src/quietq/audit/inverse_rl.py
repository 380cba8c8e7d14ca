"""Linear-programming inverse reinforcement learning (Ng & Russell, 2000): the reward from a policy alone.

A policy pi is optimal for the reward r of the state that a step leads to if and only if, for every action a,

    (P_pi - P_a) (I - gamma P_pi)^-1 r >= 0

(with V the values, r + gamma V = (I - gamma P_pi)^-1 r, and P_a of that is what action a is worth). Of all such rewards
within [-1, 1], the one is taken by which the best action is ahead of the next best by most, summed over states, less
`size` times the sum of |r|. A policy tells nothing of scale and shift, so neither does this.
"""

import numpy as np
from jaxtyping import Float

from quietq.audit.discretised import Discretised, mixed
from quietq.privacy.checks import not_negative, positive, probability
from quietq.privacy.errors import InvalidInput, QuietqError

SIZE = 0.5
"""Small against what a point of reward can add to the lead; from about 10 on nothing but 0 is left in our worlds."""
WRONG = 2.0
"""What Ng & Russell charge for a state in which the policy is not the best."""


def inverse_rl(
    grid: Discretised, best: np.ndarray, gamma: float, *, size: float = SIZE, wrong: float | None = None
) -> Float[np.ndarray, " n"]:
    """A reward that makes a policy optimal; up to scale and shift. Zero if no other is worth its size.

    `best` says which actions the policy takes for best at each state, (n, m). Where there are several, all of them have
    to be, and the state adds to the lead only if some action is left out. `wrong` is for policies that are not quite
    optimal for any reward, such as noised ones: the policy need not be optimal, but a lead below zero counts so many
    times.

    >>> from quietq.audit.discretised import best_actions, discretise
    >>> from quietq.worlds.walk import WALK
    >>> grid = discretise(WALK, points=9)
    >>> best = best_actions(grid.best_values(WALK.reward(grid.states, np), gamma=0.9))
    >>> found = inverse_rl(grid, best, gamma=0.9)
    >>> bool(found[4] == found.max() > found[[0, 8]].max())  # the middle of nine, against the ends
    True
    """
    from scipy.optimize import linprog  # slow to import

    n, m = grid.transitions.shape[:2]
    best = np.asarray(best)
    if best.shape != (n, m) or best.dtype != bool or not best.any(axis=1).all():
        raise InvalidInput(f"best must be true or false for each of {n} states and {m} actions, and true once a state.")
    size, gamma = not_negative("size", size), probability("gamma", gamma)
    if wrong is not None and positive("wrong", wrong) < 1:
        raise InvalidInput(f"wrong must be at least 1, not {wrong!r}.")
    moves = grid.moves(mixed(best))
    ahead = np.linalg.inv(np.eye(n) - gamma * moves)
    leads = ((moves[:, None] - grid.transitions) @ ahead).reshape(n * m, n)  # of the mixture, over each action
    left_out = np.flatnonzero(~best.ravel())
    marks = np.eye(n)[left_out // m]  # whose lead it is
    none, one = np.zeros((len(left_out), n)), np.eye(n)
    # Unknowns: the reward, the least lead of each state, and the reward's size.
    rows = [np.hstack([-leads[left_out], marks, none])]
    rows += [np.hstack([sign * one, 0 * one, -one]) for sign in (1, -1)]
    if wrong is None:
        # The mixture is no worse than any action, so those that it is made of are alike.
        rows.append(np.hstack([-leads, np.zeros((n * m, 2 * n))]))
    else:
        rows.append(np.hstack([-wrong * leads[left_out], marks, none]))
    counts = ~best.all(axis=1)
    goal = np.concatenate([np.zeros(n), -counts.astype(np.float64), np.full(n, size)])
    open_ended = np.where(counts, np.inf, 0.0)
    low = np.concatenate([-np.ones(n), -open_ended, np.zeros(n)])
    high = np.concatenate([np.ones(n), open_ended, np.ones(n)])
    bounds = np.stack([low, high], axis=1)
    table = np.vstack(rows)
    found = linprog(goal, A_ub=table, b_ub=np.zeros(len(table)), bounds=bounds, method="highs")
    if not found.success:
        raise QuietqError(f"HiGHS found no reward for this policy ({found.status}).")
    return np.asarray(found.x[:n])
