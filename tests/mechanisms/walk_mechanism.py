"""A reward of fifty people and the budget it is made private with."""

import numpy as np

from quietq import Budget, Exponential, GaussianProcessMechanism, people
from quietq.paper import FiniteRank, FiniteRankMechanism
from quietq.released import PrivateTable

BUDGET = Budget(0.9, 1e-4)
PEOPLE = people(50, low=0, high=0.5, slope=1)


def walk_reward(s):
    return 0.5 - np.abs(s - 0.5)


def table(private):
    assert isinstance(private, PrivateTable)
    return private.values


def mechanism_for(kernel: Exponential | FiniteRank) -> type[GaussianProcessMechanism]:
    return FiniteRankMechanism if isinstance(kernel, FiniteRank) else GaussianProcessMechanism
