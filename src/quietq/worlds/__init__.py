"""Worlds to act in, registered with Gymnasium: `gymnasium.make("quietq/Walk-v0")`."""

import gymnasium

from quietq.worlds.walk import (
    WALK,
    Plan,
    Policy,
    Preference,
    Walk,
    WalkConstants,
    best_return,
    plan,
    policy_return,
    random_return,
    score,
    walk_reward,
    worst_return,
)

if "quietq/Walk-v0" not in gymnasium.registry:
    gymnasium.register(id="quietq/Walk-v0", entry_point="quietq.worlds.walk:Walk")  # truncates by itself

__all__ = [
    "WALK",
    "Plan",
    "Policy",
    "Preference",
    "Walk",
    "WalkConstants",
    "best_return",
    "plan",
    "policy_return",
    "random_return",
    "score",
    "walk_reward",
    "worst_return",
]
