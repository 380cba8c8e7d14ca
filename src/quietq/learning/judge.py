"""How good released policies are under the true reward: NOT private, for the operator only."""

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from quietq.privacy.checks import count
from quietq.privacy.errors import InvalidInput
from quietq.worlds import WALK, mean_return, normalise, policy_return, score
from quietq.worlds.world import World

CELLS = 2048


class NotPrivate(NamedTuple):
    """Returns and scores under the true reward, one a run. They look at it: never publish them beside a release."""

    returns: list[float]
    scores: list[float] | None
    """On the walk 0 is the worst and 1 the best policy; elsewhere 0 is random and 1 the best known; None if unknown."""


def evaluate(
    world: World | gymnasium.Env | VectorEnv,
    reward: object,
    q_values: Callable[[np.ndarray, int], np.ndarray],
    members: int,
    episodes: int,
    seed: int,
) -> NotPrivate:
    """Exact on the walk; by episodes of chance elsewhere."""
    if reward is not None and not callable(reward):
        raise InvalidInput("Under a reward that is not a function of states there is nothing to evaluate.")
    if isinstance(world, World) and world == WALK:
        grid = np.linspace(0, 1, CELLS + 1)
        policies = [q_values(grid[:, None], i).argmax(axis=-1) for i in range(members)]
        own: dict[str, Any] = {} if reward is None else {"reward": reward}
        return NotPrivate(
            [policy_return(policy, cells=CELLS, **own) for policy in policies],
            [score(policy, cells=CELLS, **own) for policy in policies],
        )
    if isinstance(world, World):
        own = {} if reward is None else {"reward": reward}
        returns = [
            mean_return(world, lambda s, i=i: q_values(s, i).argmax(axis=-1), episodes=episodes, seed=seed, **own)
            for i in range(members)
        ]
        return NotPrivate(returns, None if reward is not None else [normalise(world, one) for one in returns])
    if isinstance(world, VectorEnv):
        raise InvalidInput("evaluate needs a single environment: make an agent of one to evaluate it.")
    return NotPrivate([_played(world, q_values, i, count("episodes", episodes), seed) for i in range(members)], None)


def _played(env: gymnasium.Env, q_values: Any, member: int, episodes: int, seed: int) -> float:
    lowest, total = int(env.action_space.start), 0.0  # pyright: ignore[reportAttributeAccessIssue]
    for episode in range(episodes):
        observation, _ = env.reset(seed=seed + episode)
        over = False
        while not over:
            action = int(q_values(np.asarray(observation), member).argmax())
            observation, reward, terminated, truncated, _ = env.step(action + lowest)
            total += float(reward)
            over = terminated or truncated
    return total / episodes
