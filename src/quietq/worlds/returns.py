"""Returns of policies in any world, by Monte Carlo over many episodes at once.

Whatever is computed here from the true reward looks at it: it is for the operator, and no part of a private
release. The walk's exact returns are in `walk_returns`.
"""

import functools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from quietq.privacy.checks import count
from quietq.privacy.errors import InvalidInput
from quietq.worlds import walk_returns
from quietq.worlds.environment import RewardFunction, rewards_of, world_reward
from quietq.worlds.planning import MOST_ON_A_GRID, GridPlan, Policy, look_ahead, plan_on_grid
from quietq.worlds.walk import WALK
from quietq.worlds.world import World, chances_of

EPISODES = 2000


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
    reward = world_reward(world) if reward is None else reward
    rng, shape = np.random.default_rng(seed), (count("episodes", episodes), world.draws)
    states, total, here = world.start(rng.random(shape), np), np.zeros(episodes), np.ones(episodes, dtype=bool)
    choices = np.random.default_rng((seed, 1))  # of their own, so that they do not disturb the world's
    for step in range(world.steps):
        given = policy.at(step, states) if isinstance(policy, GridPlan) else policy(states)
        passed = chances_of(given, episodes, world.actions).cumsum(axis=-1)[:, :-1] <= choices.random(episodes)[:, None]
        states, ended = world.move(states, passed.sum(axis=-1), rng.random(shape), np)
        total += here * rewards_of(states, reward)
        here &= ~ended
    return total


def mean_return(
    world: World, policy: Policy, reward: RewardFunction | None = None, episodes: int = EPISODES, seed: int = 0
) -> float:
    """The mean of `episode_returns`; under the true reward it is not private, and for the operator only.

    >>> from quietq.worlds.thermostat import ThermostatWorld
    >>> round(mean_return(ThermostatWorld(), lambda states: (states[:, 0] < 23.5) * 2, episodes=100))
    40
    """
    return float(episode_returns(world, policy, reward, episodes, seed).mean())


def uniform_policy(world: World) -> Policy:
    return lambda states: np.full((len(states), world.actions), 1 / world.actions)


def best_known(world: World) -> Policy:
    """The best policy that is known for the true reward: by a grid, or by a look ahead; not private."""
    on_grid = max(world.box.dimension, world.draws) <= MOST_ON_A_GRID
    return plan_on_grid(world) if on_grid else look_ahead(world)


@functools.cache
def reference(world: World, episodes: int = EPISODES, seed: int = 0) -> Reference:
    """Returns of uniformly random actions and of the best known policy; exact for the walk. Not private.

    >>> from quietq.worlds.walk import WalkWorld
    >>> tuple(round(value, 2) for value in reference(WalkWorld()))
    (10.86, 20.71)
    """
    if world == WALK:
        return Reference(walk_returns.random_return(), walk_returns.best_return())
    random, best = (
        mean_return(world, policy, episodes=episodes, seed=seed)
        for policy in (uniform_policy(world), best_known(world))
    )
    return Reference(random, best)


def normalise(world: World, returned: float) -> float:
    """A return under the true reward, so that uniformly random actions have 0 and the best known 1; not private."""
    random, best = reference(world)
    if best - random <= 1e-9 * max(abs(best), abs(random)):
        raise InvalidInput(f"In this {world.name} all policies are alike, so there is nothing to score.")
    return (returned - random) / (best - random)
