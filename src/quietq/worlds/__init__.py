"""Worlds to act in; importing this room registers them: `gymnasium.make("quietq.worlds:quietq/Walk-v0")`."""

from quietq.worlds.environment import (
    WORLDS as WORLDS,
    RewardFunction as RewardFunction,
    WorldEnv as WorldEnv,
    find_world as find_world,
    register_worlds,
    rewards_at as rewards_at,
)
from quietq.worlds.navigation import NavigationWorld as NavigationWorld
from quietq.worlds.planning import (
    GridPlan as GridPlan,
    WalkPolicy as WalkPolicy,
    best_return as best_return,
    episode_returns as episode_returns,
    mean_return as mean_return,
    normalise as normalise,
    plan as plan,
    plan_linear as plan_linear,
    plan_on_grid as plan_on_grid,
    policy_return as policy_return,
    random_return as random_return,
    reference as reference,
    score as score,
    uniform_policy as uniform_policy,
    worst_return as worst_return,
)
from quietq.worlds.policy_check import CheckedPolicy as CheckedPolicy
from quietq.worlds.private_reward import PrivateReward as PrivateReward
from quietq.worlds.rehearse import Rehearsal as Rehearsal, rehearse as rehearse
from quietq.worlds.thermostat import ThermostatWorld as ThermostatWorld
from quietq.worlds.walk import WALK as WALK, WalkWorld as WalkWorld, walk_reward as walk_reward
from quietq.worlds.world import World as World

register_worlds()
