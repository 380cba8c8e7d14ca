"""Worlds to act in; `import quietq` registers them with Gymnasium: `gymnasium.make("quietq/Walk-v0")`."""

from quietq.worlds.walk import WALK, Preference, Walk, WalkConstants, walk_reward
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
