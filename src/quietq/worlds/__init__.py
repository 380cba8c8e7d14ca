"""Worlds to act in; `import quietq` registers them with Gymnasium: `gymnasium.make("quietq/Walk-v0")`.

Their compiled form, which needs JAX, is in `jax_world` and `jax_rewards`.
"""

from quietq.worlds.bounded import BoundedObservation
from quietq.worlds.environment import Preference, WorldEnv, rewards_at
from quietq.worlds.navigation import NavigationWorld
from quietq.worlds.planning import GridPlan, LookAhead, look_ahead, plan_on_grid
from quietq.worlds.recommender import RecommenderWorld
from quietq.worlds.registry import WORLDS, find_place, find_world, world_env
from quietq.worlds.returns import (
    Reference,
    best_known,
    episode_returns,
    mean_return,
    normalise,
    reference,
    uniform_policy,
)
from quietq.worlds.tabular import Solution, Tabular, printed_value_error_bound, random_mdp, value_error_bound
from quietq.worlds.thermostat import ThermostatWorld
from quietq.worlds.walk import WALK, Walk, WalkWorld, walk_reward
from quietq.worlds.walk_returns import (
    Plan,
    Policy,
    best_return,
    plan,
    policy_return,
    random_return,
    score,
    worst_return,
)
from quietq.worlds.world import World

__all__ = [
    "WALK",
    "WORLDS",
    "BoundedObservation",
    "GridPlan",
    "LookAhead",
    "NavigationWorld",
    "Plan",
    "Policy",
    "Preference",
    "RecommenderWorld",
    "Reference",
    "Solution",
    "Tabular",
    "ThermostatWorld",
    "Walk",
    "WalkWorld",
    "World",
    "WorldEnv",
    "best_known",
    "best_return",
    "episode_returns",
    "find_place",
    "find_world",
    "look_ahead",
    "mean_return",
    "normalise",
    "plan",
    "plan_on_grid",
    "policy_return",
    "printed_value_error_bound",
    "random_mdp",
    "random_return",
    "reference",
    "rewards_at",
    "score",
    "uniform_policy",
    "value_error_bound",
    "walk_reward",
    "world_env",
    "worst_return",
]
