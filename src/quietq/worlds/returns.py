"""Returns of policies: in any world by Monte Carlo over many episodes at once, and exactly in the walk.

In the walk, the expectation over a uniform move is an integral of the value function, taken in closed form of its
piecewise linear interpolant on a grid, with the mass that is clipped at the ends. So there is no sampling error, and an
error of second order in the grid's step where values are continuous, of first order where a policy makes them jump.

Whatever is computed here from the true reward looks at it: it is for the operator, and no part of a private release.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from quietq.privacy.checks import count
from quietq.privacy.errors import InvalidInput
from quietq.worlds.environment import RewardFunction, rewards_at
from quietq.worlds.planning import MOST_ON_A_GRID, GridPlan, Policy, look_ahead, plan_on_grid
from quietq.worlds.walk import WALK, walk_reward
from quietq.worlds.world import World, chances_of

EPISODES = 2000
WalkPolicy = Callable[[np.ndarray], np.ndarray] | np.ndarray
"""Actions 0 and 1, shape (points,), or their probabilities, (points, 2), as a function of states or on the grid; an
array may have an axis in front for the step, first step first."""
CELLS = 2048


class Reference(NamedTuple):
    """Returns to measure others by; not private."""

    random: float
    """Of uniformly random actions."""
    best: float
    """Of the best policy that is known."""


def episode_returns(
    world: World, policy: Policy, reward: RewardFunction | None = None, episodes: int = EPISODES, seed: int = 0
) -> Float[np.ndarray, " episodes"]:
    """The sum of rewards of each of so many episodes, by default under the true reward: then not private.

    A `GridPlan` is followed by the step. The same seed gives every deterministic policy the same chance, so that two of
    them can be compared with little noise.
    """
    reward = world.reward_at if reward is None else reward
    rng, shape = np.random.default_rng(seed), (count("episodes", episodes), world.draws)
    states, total, here = world.start(rng.random(shape), np), np.zeros(episodes), np.ones(episodes, dtype=bool)
    choices = np.random.default_rng((seed, 1))  # of their own, so that they do not disturb the world's
    for step in range(world.steps):
        given = policy.at(step, states) if isinstance(policy, GridPlan) else policy(states)
        passed = chances_of(given, episodes, world.actions).cumsum(axis=-1)[:, :-1] <= choices.random(episodes)[:, None]
        states, ended = world.move(states, passed.sum(axis=-1), rng.random(shape), np)
        total += here * rewards_at(states, reward)
        here &= ~ended
    return total


def mean_return(world: World, policy: Policy, *arguments: Any, **options: Any) -> float:
    """The mean of `episode_returns`; under the true reward it is not private, and for the operator only."""
    return float(episode_returns(world, policy, *arguments, **options).mean())


def uniform_policy(world: World) -> Policy:
    return lambda states: np.full((len(states), world.actions), 1 / world.actions)


def best_known(world: World) -> Policy:
    """The best policy that is known for the true reward: by a grid, or by a look ahead; not private."""
    on_grid = max(world.box.dimension, world.draws) <= MOST_ON_A_GRID
    return plan_on_grid(world) if on_grid else look_ahead(world)


@functools.cache
def reference(world: World, episodes: int = EPISODES, seed: int = 0) -> Reference:
    """Returns of uniformly random actions and of the best known policy; exact for the walk. Not private."""
    if world == WALK:
        return Reference(random_return(), best_return())
    policies = uniform_policy(world), best_known(world)
    return Reference(*(mean_return(world, policy, episodes=episodes, seed=seed) for policy in policies))


def normalise(world: World, returned: float) -> float:
    """A return under the true reward, so that uniformly random actions have 0 and the best known 1; not private."""
    random, best = reference(world)
    if best - random <= 1e-9 * max(abs(best), abs(random)):
        raise InvalidInput(f"In this {world.name} all policies are alike, so there is nothing to score.")
    return (returned - random) / (best - random)


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
    """The best policy for a reward, for instance a private one, to be scored under the true one."""
    rows: list[np.ndarray] = []

    def choose(_: int, q: np.ndarray) -> np.ndarray:
        rows.append((q[1] > q[0]).astype(np.int64))
        return q.max(axis=0)

    value = _backward(reward, cells, choose)
    return Plan(np.stack(rows[::-1]), value)


def best_return(reward: RewardFunction = walk_reward, cells: int = CELLS) -> float:
    """The largest expected sum of rewards of an episode that any policy reaches, from a uniform start."""
    return _backward(reward, cells, lambda _, q: q.max(axis=0))


def worst_return(reward: RewardFunction = walk_reward, cells: int = CELLS) -> float:
    return _backward(reward, cells, lambda _, q: q.min(axis=0))


def random_return(reward: RewardFunction = walk_reward, cells: int = CELLS) -> float:
    return _backward(reward, cells, lambda _, q: q.mean(axis=0))


def policy_return(policy: WalkPolicy, reward: RewardFunction = walk_reward, cells: int = CELLS) -> float:
    """That of a policy: a function of states, or an array on the grid of `cells` + 1 points.

    A Stable-Baselines3 agent is `lambda states: agent.predict(states[:, None].astype("float32"))[0]`.
    """
    states = _grid(cells)
    chances = chances_of(policy(states) if callable(policy) else policy, len(states), WALK.actions, WALK.steps)
    by_step = np.broadcast_to(chances, (WALK.steps, *chances.shape[-2:]))
    return _backward(reward, cells, lambda step, q: (by_step[step] * q.T).sum(axis=-1))


def score(policy: WalkPolicy, reward: RewardFunction = walk_reward, cells: int = CELLS) -> float:
    """The policy's return, scaled so that the worst policy has 0 and the best 1."""
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
    rewards, value = rewards_at(states[:, None], reward), np.zeros(len(states))
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
