"""Good policies for known worlds and rewards: backward induction on a grid in few dimensions, a look ahead in many.

A plan for the true reward looks at it and is for the operator; a plan for a released reward is post-processing.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from quietq.noise.box import Box
from quietq.privacy.checks import count
from quietq.privacy.errors import InvalidInput
from quietq.worlds.environment import RewardFunction, rewards_at
from quietq.worlds.world import World

Policy = Callable[[np.ndarray], np.ndarray]
"""Actions, shape (points,), or their probabilities, (points, actions), as a function of states (points, d)."""

MOST_ON_A_GRID = 2
"""Dimensions."""
_CELLS = {1: 512, 2: 40}
_NODES = {1: 64, 2: 12}
"""Of the midpoint rule, for each uniform draw."""


@dataclass(frozen=True, eq=False, repr=False)
class GridPlan:
    """What is best for some reward, by the step (`at`), and as one policy for every step (call it)."""

    box: Box
    values: Float[np.ndarray, "steps actions points"]
    """Of each action, first step first, at the grid's points."""
    cells: int

    def at(self, step: int, states: np.ndarray) -> Int[np.ndarray, " points"]:
        """The best actions at states (points, d), with `step` steps behind."""
        corners, shares = corners_of(self.box, self.cells, states)
        return np.asarray((self.values[step][:, corners] * shares).sum(axis=-1).argmax(axis=0))

    def __call__(self, states: np.ndarray) -> Int[np.ndarray, " points"]:
        """The stationary policy: at every step what is best with the whole episode to go."""
        return self.at(0, states)


def plan_on_grid(world: World, reward: RewardFunction | None = None, cells: int | None = None) -> GridPlan:
    """The best policy for a reward, by default the world's own, in one or two dimensions.

    Values are interpolated linearly between the grid's points, chance is integrated by the midpoint rule, and rewards
    after a step are exact at its nodes.
    """
    box = world.box
    if box.dimension > MOST_ON_A_GRID or world.draws > MOST_ON_A_GRID:
        raise InvalidInput(
            f"A grid is for at most {MOST_ON_A_GRID} dimensions and as many draws, but the {world.name} has "
            f"{box.dimension} and {world.draws}: use look_ahead."
        )
    reward = world.reward_at if reward is None else reward
    cells = _CELLS[box.dimension] if cells is None else count("cells", cells)
    axis = np.linspace(0, 1, cells + 1)
    mesh = np.meshgrid(*[axis] * box.dimension, indexing="ij")
    states = np.stack(mesh, axis=-1).reshape(-1, box.dimension) * box.width + box.low
    gains, moves = zip(*(after(world, reward, cells, states, action) for action in range(world.actions)), strict=True)
    value, rows = np.zeros(len(states)), []
    for _ in range(world.steps):
        rows.append(np.stack([gain + move @ value for gain, move in zip(gains, moves, strict=True)]))
        value = rows[-1].max(axis=0)
    return GridPlan(box, np.stack(rows[::-1]), cells)


def look_ahead(world: World, reward: RewardFunction | None = None, depth: int = 2) -> Policy:
    """A policy that tries all sequences of `depth` actions, as if chance took its middle, and begins the best."""
    function, depth = world.reward_at if reward is None else reward, count("depth", depth, most=5)

    def policy(states: np.ndarray) -> Int[np.ndarray, " points"]:
        ahead, total = states[None], np.zeros((1, len(states)))
        for _ in range(depth):  # sequences multiply by the number of actions, the first staying the slowest
            actions = np.tile(np.arange(world.actions), len(ahead))[:, None]
            ahead = np.repeat(ahead, world.actions, axis=0)
            ahead, _ = world.move(ahead, actions, np.full((*ahead.shape[:-1], world.draws), 0.5), np)
            total = np.repeat(total, world.actions, axis=0) + rewards_at(ahead, function)
        return np.asarray(total.argmax(axis=0) // world.actions ** (depth - 1))

    return policy


def after(
    world: World, reward: RewardFunction, cells: int, states: np.ndarray, action: int
) -> tuple[Float[np.ndarray, " points"], Any]:
    from scipy.sparse import csr_matrix  # slow to import

    middles = (np.arange(_NODES[world.draws]) + 0.5) / _NODES[world.draws]
    draws = np.stack(np.meshgrid(*[middles] * world.draws, indexing="ij"), axis=-1).reshape(-1, 1, world.draws)
    moved, ended = world.move(states, np.asarray(action), draws, np)  # (nodes, points, d)
    points = moved.reshape(-1, moved.shape[-1])
    gain = rewards_at(moved, reward).mean(axis=0)
    corners, shares = corners_of(world.box, cells, points)
    weights = shares * ~np.broadcast_to(ended, moved.shape[:-1]).reshape(-1, 1) / len(draws)
    rows = np.repeat(np.tile(np.arange(len(states)), len(draws)), corners.shape[1])
    return gain, csr_matrix((weights.ravel(), (rows, corners.ravel())), shape=(len(states),) * 2)


def corners_of(
    box: Box, cells: int, states: np.ndarray
) -> tuple[Int[np.ndarray, "points corners"], Float[np.ndarray, "points corners"]]:
    """The grid points around each state, and their shares in a linear interpolation."""
    place = np.clip((states - box.low) / box.width, 0, 1) * cells
    left = np.minimum(place, cells - 1).astype(np.int64)
    share = place - left
    corners, shares = [], []
    for sides in itertools.product((0, 1), repeat=box.dimension):
        index = np.zeros(len(states), dtype=np.int64)
        for column, side in enumerate(sides):
            index = index * (cells + 1) + left[:, column] + side
        corners.append(index)
        shares.append(np.where(np.array(sides) == 1, share, 1 - share).prod(axis=-1))
    return np.stack(corners, axis=-1), np.stack(shares, axis=-1)
