"""Policies of every kind, small ones, and people who arrive."""

from typing import Any

import numpy as np

from quietq import Budget
from quietq.online import Elimination, Episodes, Linear, LocalUCB, PrivateBandit, TreeUCB

PURE, GAUSSIAN = Budget(1.0, 0.0), Budget(1.0, 1e-5)
MAKE: dict[str, Any] = {
    "elimination": lambda **more: Elimination(3, PURE, arrivals=300, **more),
    "episodes": lambda **more: Episodes(3, PURE, **more),
    "gaussian": lambda **more: Episodes(3, GAUSSIAN, **more),
    "tree": lambda **more: TreeUCB(3, PURE, arrivals=300, **more),
    "local": lambda **more: LocalUCB(3, PURE, **more),
    "linear": lambda **more: Linear(3, GAUSSIAN, dimension=2, arrivals=300, **more),
}
CONTEXT = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]


def step(policy: PrivateBandit, generator: np.random.Generator) -> int:
    arm = policy.choose(CONTEXT if policy.contexts else None)
    reward: Any = float(generator.random() < (0.8, 0.5, 0.2)[arm])
    policy.learn(CONTEXT, arm, policy.report(reward) if isinstance(policy, LocalUCB) else reward)
    return arm
