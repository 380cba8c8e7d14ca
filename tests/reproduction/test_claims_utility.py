"""Proposition 10 and the steps that lead to it."""

import math

import numpy as np
import pytest

from quietq.paper.discrete import Tabular, random_mdp, solve
from reproduction.claims import statements_of, utility
from reproduction.claims.statement import power


@pytest.mark.parametrize("n", [12, 60])
def test_the_optimum_is_that_of_the_linear_program(n: int) -> None:
    world = random_mdp(n, 3, 0.9, 0)
    np.testing.assert_allclose(utility.optimum(world), solve(world).values, atol=1e-8)


def test_the_loss_does_not_vanish_with_many_states() -> None:
    """From 10 to 100 states the printed bound falls by the root of ten; the error hardly does."""
    errors = []
    for n in (10, 30, 90):
        pairs = [(random_mdp(n, 2, 0.9, seed), seed) for seed in range(25)]
        gaps = [np.abs(utility.optimum(utility.with_noise(w, 0.3, s)) - utility.optimum(w)).mean() for w, s in pairs]
        errors.append((n, float(np.mean(gaps))))
    assert power(errors) > -0.35


def test_the_duals_policy_is_worth_what_it_says() -> None:
    world = random_mdp(8, 3, 0.8, 1)
    other = solve(utility.with_noise(world, 0.5, 1))
    worth = world.evaluate(other.occupancy / other.occupancy.sum(axis=1, keepdims=True))  # as a stochastic policy
    assert (other.occupancy * world.rewards).sum() == pytest.approx(worth.sum())


def test_bellmans_inequality_does_not_make_a_value_optimal() -> None:
    world = random_mdp(6, 2, 0.9, 2)
    above = utility.optimum(world) + 3.0
    for action in range(2):
        assert (above >= world.gamma * world.transitions[:, action] @ above + world.rewards[:, action]).all()


def test_many_actions_lose_more_than_the_lemma_allows() -> None:
    """One state, gamma 0: 5,000 actions, the first of which is better by 2.2. A choice by noised rewards misses it."""
    rewards = np.zeros((1, 5000))
    rewards[0, 0] = 2.2
    world = Tabular(np.ones((1, 5000, 1)), rewards, 0.0)
    chosen = [utility.with_noise(world, 1.0, seed).greedy(np.zeros(1))[0] for seed in range(60)]
    lost = 2.2 - rewards[0, chosen]
    assert lost.mean() > 2 * math.sqrt(2 / math.pi)  # 2.05 in the mean, with a standard error of 0.07, against 1.6


def test_one_world_is_enough_against_a_lemma_about_all() -> None:
    for few, many, verdict in ((0.1, 0.9, "holds"), (0.1, 1.1, "fails"), (1.1, 1.1, "fails")):
        rows = [
            utility.DUAL.row("lost over the bound", few, 1, setting="2 actions"),
            utility.DUAL.row("lost over the bound", many, 1, setting="1,000 actions"),
        ]
        assert utility.DUAL.claim(rows).verdict == verdict


def test_noised_optima_lie_above_in_the_mean() -> None:
    world = random_mdp(10, 4, 0.9, 3)
    gaps = np.array(
        [utility.optimum(utility.with_noise(world, 0.3, seed)) - utility.optimum(world) for seed in range(60)]
    )
    assert gaps.mean() > 5 * gaps.mean(axis=1).std() / math.sqrt(60)


def test_verdicts_on_the_utility() -> None:
    rows = [*utility.measure(8, (10, 40)), *utility.measure_programs(2, 400)]
    assert utility.CORRECTED.claim(rows).verdict == "holds"
    verdicts = [statement.claim(rows).verdict for statement in statements_of(utility)[3:]]
    assert verdicts == ["holds"] * 4 + ["fails"] * 4
    worse = [row | {"measured": 1.1} if str(row["quantity"]).endswith("over its bound") else row for row in rows]
    assert utility.CORRECTED.claim(worse).verdict == "fails"


def test_the_limit_is_judged_by_how_errors_fall() -> None:
    for slope, verdict in ((-0.5, "holds"), (0.0, "fails")):
        rows = [utility.LIMIT.row(utility.MEAN, n**slope, x=n) for n in (10, 100, 300)]
        assert utility.LIMIT.claim(rows).verdict == verdict


def test_the_printed_bound_is_judged_by_what_exceeds_it() -> None:
    for mean, single, verdict in ((0.4, 4.0, "holds"), (0.7, 4.0, "fails"), (0.4, 5.6, "fails"), (0.7, 5.6, "fails")):
        rows = [
            utility.UTILITY.row(utility.MEAN, mean, 0.479, x=100),
            utility.UTILITY.row("its standard error", 0.02, x=100),
            utility.UTILITY.row("E |v' - v*|, one state, 20 actions", single, 4.79),
        ]
        assert utility.UTILITY.claim(rows).verdict == verdict
