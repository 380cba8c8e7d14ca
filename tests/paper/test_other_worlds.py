"""`reward` against its non-private twin in the worlds beyond the walk, at epsilon 1, delta 1e-5, with 100 people."""

import numpy as np
import pytest

from quietq import Budget, privatise
from quietq.paper.agents import Agent, NoNoise, RewardNoise
from quietq.worlds import NavigationWorld, ThermostatWorld

BUDGET = Budget(epsilon=1.0, delta=1e-5)


def kept(world, steps, draws):
    """The share of the twin's mean return that is left."""
    twin = Agent(world, NoNoise(), seed=0).learn(steps, seeds=4).evaluate(episodes=500)
    privates = [
        privatise(world.mean_reward(), BUDGET, relation=world.relation(100), domain=world.box, simulate=seed)
        for seed in range(draws)
    ]
    private = Agent(world, RewardNoise(private=privates), seed=0).learn(steps).evaluate(episodes=500)
    return np.mean(private.returns) / np.mean(twin.returns)


@pytest.mark.slow
def test_the_thermostat():
    assert kept(ThermostatWorld(), 5000, draws=4) >= 0.95


@pytest.mark.slow
def test_the_thermostat_over_more_draws():
    assert kept(ThermostatWorld(), 10_000, draws=24) >= 0.95


@pytest.mark.slow
def test_navigation():
    assert kept(NavigationWorld(), 20_000, draws=24) >= 0.95
