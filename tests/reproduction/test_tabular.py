"""Tabular worlds: both linear programs against value iteration and each other, and the paper's Proposition 10."""

import math
from dataclasses import replace

import numpy as np
import pytest

from quietq import InvalidInput
from quietq.paper.discrete import Tabular, printed_value_error_bound, random_mdp, solve, value_error_bound


def value_iteration(world, digits=17):
    values, chances = np.zeros(world.states), world.transitions.reshape(-1, world.states)
    for _ in range(round(2.3 * digits / (1 - world.gamma))):
        values = (world.rewards + world.gamma * (chances @ values).reshape(world.rewards.shape)).max(axis=1)
    return values


@pytest.mark.parametrize(("n", "m", "gamma"), [(1, 1, 0.5), (1, 5, 0.9), (8, 2, 0.0), (30, 4, 0.9), (50, 3, 0.99)])
def test_the_programs_find_the_optimum(n, m, gamma):
    world = random_mdp(n, m, gamma, seed=n)
    solution = solve(world)
    assert np.abs(solution.values - value_iteration(world)).max() < 1e-7 / (1 - gamma)
    assert solution.gap < 1e-9
    # the policy of the dual is the greedy one of the primal, and is worth the optimum
    assert (solution.policy == world.greedy(solution.values)).all()
    assert np.allclose(world.evaluate(solution.policy), solution.values, atol=1e-7)
    # the dual is a flow: n starts, discounted visits n/(1 - gamma) in all, and only best actions
    assert solution.occupancy.min() >= -1e-12
    assert solution.occupancy.sum() == pytest.approx(n / (1 - gamma))
    inflow = 1 + gamma * np.einsum("sa,sat->t", solution.occupancy, world.transitions)
    assert np.allclose(solution.occupancy.sum(axis=1), inflow)
    assert (solution.occupancy * world.rewards).sum() == pytest.approx(solution.values.sum())


def test_policies_are_evaluated_exactly():
    world, rng = random_mdp(6, 3, 0.8, seed=1), np.random.default_rng(2)
    chances = rng.dirichlet(np.ones(3), size=6)
    values = world.evaluate(chances)
    assert np.allclose(values, (chances * world.q(values)).sum(axis=1))  # Bellman's equation
    actions = rng.integers(3, size=6)
    assert np.allclose(world.evaluate(actions), world.evaluate(np.eye(3)[actions]))
    assert (world.evaluate(actions) <= solve(world).values + 1e-9).all()


def noised(world, sigma, seed):
    noise = sigma * np.random.default_rng((7, seed)).normal(size=world.rewards.shape)
    return replace(world, rewards=world.rewards + noise)


def errors(world, sigma, seeds):
    """|v' - v*| for noised rewards."""
    best = value_iteration(world, digits=6)
    return np.array([np.abs(value_iteration(noised(world, sigma, seed), digits=6) - best) for seed in seeds])


@pytest.mark.parametrize(("n", "m", "sigma", "gamma"), [(20, 2, 0.3, 0.9), (10, 10, 1.0, 0.5), (40, 3, 0.05, 0.95)])
def test_the_bound_holds(n, m, sigma, gamma):
    world = random_mdp(n, m, gamma, seed=3)
    assert errors(world, sigma, range(20)).max(axis=1).mean() < value_error_bound(n, m, sigma, gamma)
    solutions = [solve(noised(world, sigma, seed)) for seed in range(10)]
    lost = np.array([solve(world).values - world.evaluate(solution.policy) for solution in solutions])
    assert lost.min() > -1e-7
    assert lost.max(axis=1).mean() < value_error_bound(n, m, sigma, gamma, greedy=True)


def test_the_bound_is_of_the_right_order():
    # One state, equal rewards: v' - v* is the largest of m Gaussians over 1 - gamma, about sqrt(2 ln m).
    world = Tabular(np.ones((1, 1000, 1)), np.zeros((1, 1000)), 0.9)
    assert 0.8 < errors(world, 1.0, range(20)).mean() / value_error_bound(1, 1000, 1.0, 0.9) < 1


def test_the_printed_bound_fails():
    """The paper's Proposition 10: 100 states, 2 actions, sigma 0.3, gamma 0.9."""
    means = [errors(random_mdp(100, 2, 0.9, seed), 0.3, [seed]).mean() for seed in range(100)]
    printed = printed_value_error_bound(100, 0.3, 0.9)
    assert printed == pytest.approx(0.479, abs=5e-4)
    assert np.mean(means) == pytest.approx(0.71, abs=0.15)
    assert np.mean(means) - 5.5 * np.std(means) / math.sqrt(100) > printed


def test_the_printed_bound_fails_even_without_the_root_of_n():
    world = Tabular(np.ones((1, 20, 1)), np.zeros((1, 20)), 0.9)
    assert (
        errors(world, 0.3, range(200)).mean() > printed_value_error_bound(1, 0.3, 0.9) * 1.1
    )  # 1.867 against 1.596 times sigma/(1 - gamma)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: Tabular(np.ones((2, 1, 2)), np.zeros((2, 1)), 0.9), "2 x 1 rows of 2 chances"),
        (lambda: Tabular(np.ones((1, 1, 1)), np.full((1, 1), np.nan), 0.9), "rewards must be finite"),
        (lambda: random_mdp(3, 2, 1.0, 0), "gamma must be"),
        (lambda: random_mdp(0, 2, 0.9, 0), "n must be"),
        (lambda: random_mdp(3, 2, 0.9, 0).evaluate(np.array([0, 1, 2])), "0 to 1, or a row of 2 probabilities"),
        (lambda: value_error_bound(3, 2, 0.0, 0.9), "sigma must be above 0"),
    ],
)
def test_wrong_arguments_get_one_clear_sentence(wrong, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        wrong()
