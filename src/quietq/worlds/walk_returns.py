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
from quietq.worlds.world import chances_of

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
        nearest = np.rint(np.asarray(states, dtype=np.float64) * (self.actions.shape[1] - 1))
        return np.asarray(self.actions[0][nearest.astype(np.int64)])


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
    return _backward(reward, cells, lambda _, q: q.min(axis=0))


def random_return(reward: RewardFunction = walk_reward, cells: int = CELLS) -> float:
    return _backward(reward, cells, lambda _, q: q.mean(axis=0))


def policy_return(policy: Policy, reward: RewardFunction = walk_reward, cells: int = CELLS) -> float:
    """That of a policy: a function of states, or an array on the grid of `cells` + 1 points.

    A Stable-Baselines3 agent is `lambda states: agent.predict(states[:, None].astype("float32"))[0]`.

    >>> round(best_return() - policy_return(lambda states: states < 0.5), 9)
    0.0
    """
    states = _grid(cells)
    chances = chances_of(policy(states) if callable(policy) else policy, len(states), WALK.actions, WALK.steps)
    by_step = np.broadcast_to(chances, (WALK.steps, *chances.shape[-2:]))
    return _backward(reward, cells, lambda step, q: (by_step[step] * q.T).sum(axis=-1))


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
    return np.linspace(0, 1, cells + 1)


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
    reach = round(cells * WALK.reach)
    area = np.concatenate([[0.0], np.cumsum((values[1:] + values[:-1]) / 2)])
    here = np.arange(cells + 1)
    right, left = np.minimum(here + reach, cells), np.maximum(here - reach, 0)
    to_right = area[right] - area + (here + reach - right) * values[-1]
    to_left = area - area[left] + (left - here + reach) * values[0]
    return np.stack([to_left, to_right]) / reach
