"""What each method reaches on the walk, over eight noise draws and more at epsilon 0.9, delta 1e-4.

Scores: the worst policy has 0, the best 1, a uniformly random one 0.52.
"""

import numpy as np
import pytest

from quietq import Budget, SupBall, people, privatise
from quietq.paper import GradientNoise, InputNoise, OutputNoise, ValueNoise
from quietq.paper.agents import Agent, NoNoise, RewardNoise
from quietq.paper.observed import observe
from quietq.worlds import WALK, walk_reward

BUDGET = Budget(epsilon=0.9, delta=1e-4)
STEPS = 5000
FEWER = 2500  # enough for deep Q-learning


def scores(method, steps=STEPS, **learn):
    return np.array(Agent("walk", method, seed=0).learn(steps, **learn).evaluate().scores)


@pytest.mark.slow  # the same learner reaches almost as much from a private reward, below
def test_without_noise_the_walk_is_learned():
    assert scores(NoNoise(), FEWER, seeds=4).mean() >= 0.99


@pytest.mark.parametrize(("number", "least"), [(50, 0.96), pytest.param(100, 0.99, marks=pytest.mark.slow)])
def test_on_a_reward_made_private_as_a_path(number, least):
    draws = [
        privatise(walk_reward, BUDGET, noise="path", relation=people(number, 0, 0.5, 1), simulate=seed)
        for seed in range(8)
    ]
    assert scores(RewardNoise(private=draws), FEWER).mean() >= least


@pytest.mark.slow
def test_on_a_reward_with_pure_noise_and_few_people():
    draws = [
        privatise(walk_reward, Budget(0.9, 0.0), pieces=6, relation=people(28, 0, 0.5, 1), simulate=seed)
        for seed in range(20)
    ]
    assert scores(RewardNoise(private=draws)).mean() >= 0.97


@pytest.mark.slow
def test_on_a_model_of_noised_rewards_that_need_not_be_smooth():
    draws = [
        observe(WALK, SupBall(0.01), BUDGET, low=0.0, high=0.5, rewards=STEPS, simulate=seed, seed=seed)
        for seed in range(20)
    ]
    assert scores(RewardNoise(private=draws)).mean() >= 0.95


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        (ValueNoise, 50),
        pytest.param(InputNoise, 50, marks=pytest.mark.slow),
        pytest.param(GradientNoise, 2000, marks=pytest.mark.slow),
        pytest.param(OutputNoise, 100, marks=pytest.mark.slow),
    ],
)
def test_methods_that_noise_as_they_go_need_this_many_people_for_nine_tenths(kind, number):
    assert scores(kind(relation=people(number, 0, 0.5, 1), budget=BUDGET), simulate=8).mean() >= 0.9
