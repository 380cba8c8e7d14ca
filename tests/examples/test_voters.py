"""The voters of the demo and of a notebook: they are all there, and little is lost on them."""

import importlib.util

import numpy as np
import pytest

import quietq as qq
from quietq.feedback.voters import POSITIONS, ratings, read
from quietq.worlds import best_return, plan, policy_return, worst_return

for package in ("statsmodels", "polars", "gymnasium"):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed", allow_module_level=True)


def test_mean_reward_is_the_respondents():
    rows = ratings()
    people = read(rows)
    assert people.not_private["people_present"] == 944
    assert people.not_private["used_rows"] == rows.height == 944 * 7
    assert people.not_private["clipped_ratings"] == 0
    means = rows.group_by("state").mean().sort("state")["rating"].to_numpy()
    assert np.allclose(people.functions()[0](POSITIONS), means, atol=1e-5)


def test_little_is_lost_and_less_with_more_budget():
    people, means = read(ratings()), []
    true = people.functions()[0]
    best, worst = best_return(true), worst_return(true)
    account = qq.Accountant(qq.Budget(1.25, 1e-5))  # all are of the same people
    for epsilon in (0.1, 0.5, 1.0):
        drawn = [qq.privatise(people, qq.Budget(epsilon, 1e-5), account=account, simulate=seed) for seed in range(20)]
        lost = [(best - policy_return(plan(reward), true)) / (best - worst) for reward in drawn]
        means.append(np.mean(lost))
    assert means == sorted(means, reverse=True)
    assert max(lost) < 0.01  # at epsilon = 1; seeded, so always the same
