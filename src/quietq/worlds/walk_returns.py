"""The walk's exact returns: best, worst, random and any policy's; plans and scores.

Exact: the expectation over a uniform move is an integral of the value function, taken in closed form of its piecewise
linear interpolant on a grid, with the mass that is clipped at the ends. So there is no sampling error, and an error of
second order in the grid's step where values are continuous, of first order where a policy makes them jump.

Scores and returns under the true reward look at it: they are for the operator, and no part of a private release.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from quietq.privacy.checks import count
from quietq.privacy.errors import InvalidInput
from quietq.worlds.environment import RewardFunction, rewards_at
from quietq.worlds.walk import WALK, walk_reward

Policy = Callable[[np.ndarray], np.ndarray] | np.ndarray
"""Actions 0 and 1, shape (points,), or their probabilities, (points, 2), as a function of states or on the grid; an
array may have an axis in front for the step, first step first."""

CELLS = 2048


@dataclass(frozen=True, eq=False)
class Plan:
    """What is best for some reward: exactly, by the step (`actions`), and as one policy for every step (call it)."""

    actions: Int[np.ndarray, "steps points"]
    """The best action at each step, first step first, and each grid point."""
    expected: float
    """The return of `actions` under the reward that was planned for."""

    def __call__(self, states: np.ndarray) -> Int[np.ndarray, "..."]:
        """The stationary policy: at every step what is best with the whole episode to go, at the nearest point."""
        unit = (np.asarray(states, dtype=np.float64) - WALK.low) / (WALK.high - WALK.low)
        return np.asarray(self.actions[0][np.rint(unit * (self.actions.shape[1] - 1)).astype(np.int64)])


def plan(reward: RewardFunction, cells: int = CELLS) -> Plan:
    """The best policy for a reward, for instance a private one, to be scored under the true one.

    >>> round(score(plan(walk_reward).actions), 9), round(score(plan(lambda s: -walk_reward(s)).actions), 9)
    (1.0, 0.0)
    """
    rows: list[np.ndarray] = []

    def choose(_: int, q: np.ndarray) -> np.ndarray:
        rows.append((q[1] > q[0]).astype(np.int64))
        return q.max(axis=0)

    value = _backward(reward, cells, choose)
    return Plan(np.stack(rows[::-1]), value)


def best_return(reward: RewardFunction = walk_reward, cells: int = CELLS) -> float:
    """The largest expected sum of rewards of an episode that any policy reaches, from a uniform start.

    >>> round(best_return(), 2), round(worst_return(), 2)
    (20.71, 0.26)
    """
    return _backward(reward, cells, lambda _, q: q.max(axis=0))


def worst_return(reward: RewardFunction = walk_reward, cells: int = CELLS) -> float:
    """The smallest."""
    return _backward(reward, cells, lambda _, q: q.min(axis=0))


def random_return(reward: RewardFunction = walk_reward, cells: int = CELLS) -> float:
    """That of uniformly random actions."""
    return _backward(reward, cells, lambda _, q: q.mean(axis=0))


def policy_return(policy: Policy, reward: RewardFunction = walk_reward, cells: int = CELLS) -> float:
    """That of a policy: a function of states, or an array on the grid of `cells` + 1 points.

    A Stable-Baselines3 agent is `lambda states: agent.predict(states[:, None].astype("float32"))[0]`.

    >>> round(best_return() - policy_return(lambda states: states < 0.5), 9)
    0.0
    """
    chances = _chances(policy, _grid(cells))
    return _backward(reward, cells, lambda t, q: (chances[t % len(chances)] * q.T).sum(axis=-1))


def score(policy: Policy, reward: RewardFunction = walk_reward, cells: int = CELLS) -> float:
    """The policy's return, scaled so that the worst policy has 0 and the best 1.

    >>> round(score(lambda states: np.full((len(states), 2), 0.5)), 2)  # uniformly random
    0.52
    """
    worst, best = worst_return(reward, cells), best_return(reward, cells)
    if best - worst <= 1e-9 * max(abs(best), abs(worst)):
        raise InvalidInput("Under this reward all policies are alike, so there is nothing to score.")
    return (policy_return(policy, reward, cells) - worst) / (best - worst)


def _grid(cells: int) -> Float[np.ndarray, "points"]:
    if count("cells", cells, 4) % 4:
        raise InvalidInput(f"cells must be a multiple of 4, so that the longest move ends on the grid, not {cells}.")
    return np.linspace(WALK.low, WALK.high, cells + 1)


def _backward(reward: RewardFunction, cells: int, choose: Callable[[int, np.ndarray], np.ndarray]) -> float:
    """Backward induction; `choose` makes the value at a step of the two actions' values, shape (2, points)."""
    states = _grid(cells)
    rewards, value = rewards_at(states, reward), np.zeros(len(states))
    for step in reversed(range(WALK.steps)):
        value = choose(step, _after_move(rewards + value))
    return float(np.trapezoid(value, dx=1 / cells))


def _after_move(values: np.ndarray) -> Float[np.ndarray, "2 points"]:
    """The mean of `values` after a move to the left and to the right, from each grid point."""
    cells = len(values) - 1
    reach = round(cells * WALK.reach / (WALK.high - WALK.low))
    area = np.concatenate([[0.0], np.cumsum((values[1:] + values[:-1]) / 2)])
    here = np.arange(cells + 1)
    right, left = np.minimum(here + reach, cells), np.maximum(here - reach, 0)
    to_right = area[right] - area + (here + reach - right) * values[-1]
    to_left = area - area[left] + (left - here + reach) * values[0]
    return np.stack([to_left, to_right]) / reach


def _chances(policy: Policy, states: np.ndarray) -> Float[np.ndarray, "steps points 2"]:
    """The policy as probabilities, with one step for all or each step's own."""
    given = np.asarray(policy(states) if callable(policy) else policy)
    if given.shape[-1:] != (WALK.actions,) and np.isin(given, (0, 1)).all():
        given = np.stack([1 - given.astype(np.float64), given.astype(np.float64)], axis=-1)
    steps = given.shape[:-2] in ((), (WALK.steps,))
    if not steps or given.shape[-2:] != (len(states), WALK.actions) or not np.issubdtype(given.dtype, np.number):
        raise InvalidInput(
            f"policy must give an action, 0 or 1, or a row of two probabilities for each of {len(states)} states."
        )
    if not ((given >= 0).all() and np.allclose(given.sum(axis=-1), 1)):
        raise InvalidInput("policy must give probabilities: at least 0, and 1 in sum for each state.")
    return given.astype(np.float64).reshape(-1, len(states), WALK.actions)
