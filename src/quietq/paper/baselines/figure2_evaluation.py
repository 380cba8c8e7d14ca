"""Balle, Gomrokchi & Precup's policy evaluation made to act, as the paper's figure 2 compares with it.

The paper says that "the value function is learned on a one-step MDP using a linear function approximator", and no more.
The rest is ours:

- Every step of the walk is a trajectory of length one. Its state is the position's cell and the action, its return the
  reward, between 0 and 0.5. There is a weight a cell, so the fit is linear. How many cells is not said, and matters
  most: it is run with 2, 3 and 4. Two flatter it, because their border is the reward's peak.
- In the first half of the samples all actions are random. Then DP-LSW (`quietq.paper.baselines.balle`, with its smooth
  sensitivity) releases the mean reward of all cells, once. In the second half the better action by what was released
  is taken, but for a share of random ones that is the authors' in the long run, 0.05.
- Why in halves: the noise follows the least visited cell. In ten walks of 1,000 random samples its standard deviation,
  with four cells, was 2.3 to 3.1 at epsilon 0.9, where two actions differ by 0.17; with 2,500 it was 0.10 to 0.26, and
  2.5 to 3.9 at epsilon 0.45. Later, greedy samples hardly visit some cells: releases from them would have more noise.

It is (epsilon, delta)-DP for another relation than the paper's: one step's reward is replaced, and each step enters one
release. If the reward *function* changes, all steps change together, and nothing is promised.
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from jaxtyping import Float, Int

from quietq.feedback.trajectories import Cells
from quietq.paper.baselines.balle import Evaluation
from quietq.privacy.budget import Budget
from quietq.privacy.relations import Trajectories
from quietq.worlds.walk import WALK

CELLS = (2, 3, 4)
"""Of the position, by reading; twice as many with the action."""
LARGEST_REWARD = 0.5
EXPLORE = 0.05


def walk_by_evaluation(budget: Budget, steps: int, seed: int, cells: int) -> Float[np.ndarray, " episodes"]:
    """The return of every episode of one simulated run.

    >>> walk_by_evaluation(Budget(0.9, 1e-4), steps=200, seed=0, cells=4).shape
    (4,)
    """
    generator = np.random.default_rng([seed, 0])
    first = steps // WALK.steps // 2 * WALK.steps
    states, actions, rewards = _walk(first, generator, lambda state: int(generator.random() < 0.5))
    relation = Trajectories(count=first, largest_reward=LARGEST_REWARD, horizon=1)
    numbered = Cells(cells * WALK.actions, partial(cell, cells=cells))
    evaluation = Evaluation(budget=budget, relation=relation, gamma=0.0, cells=numbered)
    data = [([pair], [reward]) for pair, reward in zip(np.stack([states, actions], axis=1), rewards, strict=True)]
    value = evaluation.release(data, simulate=seed)

    def greedy(state: float) -> int:
        if generator.random() < EXPLORE:
            return int(generator.random() < 0.5)
        return int(np.argmax(value(np.array([[state, action] for action in range(WALK.actions)]))))

    _, _, later = _walk(steps - first, generator, greedy)
    whole = np.concatenate([rewards, later])
    return whole[: len(whole) // WALK.steps * WALK.steps].reshape(-1, WALK.steps).sum(axis=1)


def cell(pairs: Float[np.ndarray, "pairs 2"], cells: int) -> Int[np.ndarray, " pairs"]:
    """The number of the cell of each position and action.

    >>> cell(np.array([[0.1, 0], [0.1, 1], [1.0, 1]]), cells=4)
    array([0, 4, 7])
    """
    position = np.clip(np.floor(pairs[:, 0] * cells), 0, cells - 1)
    return (cells * pairs[:, 1] + position).astype(np.int64)


def _walk(steps: int, generator: np.random.Generator, policy: Callable[[float], int]) -> tuple[np.ndarray, ...]:
    states, actions, rewards = np.empty(steps), np.empty(steps), np.empty(steps)
    state = np.full(1, math.nan)
    for step in range(steps):
        if step % WALK.steps == 0:
            state = np.asarray(WALK.start(generator.random(WALK.draws), np))
        action = policy(float(state[0]))
        states[step], actions[step] = state[0], action
        moved, _ = WALK.move(state, np.asarray(action), generator.random(WALK.draws), np)
        state = np.asarray(moved)
        rewards[step] = WALK.reward(state, np)
    return states, actions, rewards
