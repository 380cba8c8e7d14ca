"""Methods, budgets and questions that the tests of agents share.

Most of their time is compilation, and a program is compiled once for a method, a number of steps and of runs: so
trainings are all of `STEPS` steps, unless a test is about something else.
"""

from typing import Any

import numpy as np

from quietq import Budget, people, privatise
from quietq.paper import GradientNoise, InputNoise, OutputNoise, ValueNoise
from quietq.worlds import walk_reward

BUDGET = Budget(epsilon=0.9, delta=1e-4)
FIFTY = people(50, low=0, high=0.5, slope=1)
POINTS = np.linspace(0, 1, 9)[:, None]
SMALL: dict[str, Any] = {"network": "splines", "features": 5, "start": 32, "batch": 16}
STEPS = 200
SPENDERS = {
    "value": lambda: ValueNoise(relation=FIFTY, budget=BUDGET, round_steps=100),
    "input": lambda: InputNoise(relation=FIFTY, budget=BUDGET),
    "output": lambda: OutputNoise(relation=FIFTY, budget=BUDGET),
    "gradient": lambda: GradientNoise(relation=FIFTY, budget=BUDGET, start=50, batch=32, train_every=50),
}


def private(seed=None):
    return privatise(walk_reward, BUDGET, relation=FIFTY, simulate=seed)


def answers(agent):
    return np.stack([agent.q_values(POINTS, i) for i in range(agent.members)])
