"""Gaussian noise and releases without a mu under one account: never below the truth, whatever the entries."""

import itertools
import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.pld.common import DifferentialPrivacyParameters

from quietq import InvalidInput
from quietq.privacy import Accountant, Budget, Cost, Spending, delta_from_mu
from quietq.privacy.budget import pure_epsilon

BUDGET = Budget(0.9, 1e-4)


def theirs(mu: float, apart: dict[float, int], delta: float) -> float:
    """By dp-accounting's privacy loss distributions, which err upwards too."""
    found = pld.from_gaussian_mechanism(1 / mu)
    for epsilon, number in apart.items():
        one = pld.from_privacy_parameters(DifferentialPrivacyParameters(epsilon, 0))
        found = found.compose(one.self_compose(number))
    return found.get_epsilon_for_delta(delta)


@pytest.mark.parametrize("apart", [{0.3: 1}, {0.1: 3}, {0.05: 10}, {0.3: 3, 0.05: 12}, {0.9: 1}])
def test_it_is_the_sum_which_privacy_losses_do_not_exceed(apart: dict[float, int]):
    spent = {Cost.gaussian(BUDGET.mu): 1} | {Cost.apart(epsilon): number for epsilon, number in apart.items()}
    ours = Spending(BUDGET, None, spent).get_epsilon(1e-4)
    assert ours == pytest.approx(0.9 + sum(epsilon * number for epsilon, number in apart.items()))
    assert 0.7 * ours < theirs(BUDGET.mu, apart, 1e-4) < ours


def test_it_is_never_below_the_truth_added_up_over_all_outcomes():
    """By brute force: every outcome of up to ten releases, with deltas."""
    rng = np.random.default_rng(0)
    for number in (1, 3, 9, 10):
        epsilons = rng.uniform(0.005, 0.4, number)
        mu, delta = rng.uniform(0.05, 1.5), 1e-6
        spent = {Cost.apart(float(epsilon), delta): 1 for epsilon in epsilons} | {Cost.gaussian(mu): 1}
        for asked in (2e-5, 1e-3, 0.1, 0.5):
            epsilon, truth = Spending(BUDGET, None, spent).get_epsilon(asked), 0.0
            for signs in itertools.product((1, -1), repeat=number):
                chance = np.prod(1 / (1 + np.exp(-np.array(signs) * epsilons)))
                away = epsilon - float(np.dot(signs, epsilons))
                swapped = -math.expm1(-abs(away)) + math.exp(-abs(away)) * delta_from_mu(mu, abs(away))
                truth += chance * (delta_from_mu(mu, away) if away >= 0 else swapped)
            truth = 1 - (1 - delta) ** number * (1 - truth)
            assert truth <= asked


def test_pure_noise_is_gaussian_enough_for_its_mu():
    """The trade-off of randomised response lies above the Gaussian one, and meets it in its corner."""
    for mu in (1e-3, 0.1, 1.0, 5.0):
        epsilon = pure_epsilon(mu)
        for level in np.linspace(0, 3 * epsilon, 50):
            pure = max(-math.expm1(level - epsilon), 0) / (1 + math.exp(-epsilon))
            assert pure <= delta_from_mu(mu, level) * (1 + 1e-9)
        assert math.tanh(epsilon / 2) == pytest.approx(math.erf(mu / math.sqrt(8)), rel=1e-9)


def test_more_is_never_less_and_no_order_matters():
    rng = np.random.default_rng(1)
    costs = [Cost.apart(float(epsilon)) for epsilon in rng.choice([1e-9, 0.003, 0.0157, 0.05, 0.31, 0.8], 20)]
    costs += [Cost.gaussian(float(mu)) for mu in rng.uniform(1e-6, 0.2, 5)] + [Cost.apart(0.2, 1e-7)] * 3
    costs = [costs[i] for i in rng.permutation(len(costs))]
    spent: dict[Cost, int] = {}
    before = 0.0
    for cost in costs:
        spent[cost] = spent.get(cost, 0) + 1
        spending = Spending(BUDGET, None, spent)
        now = spending.get_epsilon(1e-4)
        assert now >= before
        before = now
    backwards = Spending(BUDGET, None, dict(reversed(spent.items())))
    assert backwards.get_epsilon(1e-4) == before


def test_hostile_entries_give_no_more_than_they_are():
    alone = Spending(BUDGET, None, {Cost.gaussian(0.2): 1}).get_epsilon(1e-4)
    for cost in (Cost.apart(1e100), Cost.apart(1e-100), Cost.apart(700.0)):
        assert Spending(BUDGET, None, {cost: 3, Cost.gaussian(0.2): 1}).get_epsilon(1e-4) >= alone
    for cost in (Cost.apart(700.0, 0.5), Cost.apart(1e-9, 1 - 1e-16)):
        with pytest.raises(InvalidInput, match="which releases without a mu took"):
            Spending(BUDGET, None, {cost: 3, Cost.gaussian(0.2): 1}).get_epsilon(1e-4)
    assert Spending(BUDGET, None, {Cost.apart(1e100): 1}).get_epsilon(1e-4) == 1e100


def test_what_is_promised_covers_whatever_is_spent():
    accountant = Accountant(BUDGET, apart=Budget(0.3, 0))
    promised, delta = accountant.spending.promised
    assert (promised, delta) == (pytest.approx(1.2), 1e-4)
    assert accountant.spending.spent == (0, delta)
    accountant.charge(Cost.gaussian(BUDGET.mu))
    accountant.charge(Cost.apart(0.3))
    assert accountant.spending.spent == (pytest.approx(promised), delta)
    assert accountant.spending.spent[0] <= promised
    pure = Accountant(None, apart=Budget(0.3, 0))
    pure.charge(Cost.apart(0.2))
    assert pure.spending.spent == (0.2, 0)
    tight = Accountant(Budget(0.9, 1e-100), apart=Budget(0.3, 1e-3))
    tight.charge(Cost.apart(0.3, 1e-3))
    tight.charge(Cost.gaussian(1e-3))
    assert tight.spending.spent == tight.spending.promised


def test_large_numbers_add_up_too():
    costs = {Cost.gaussian(Budget(900, 1e-6).mu / 2): 1, Cost.apart(77777.7 / 3, 1e-7 / 3): 1}
    spending = Spending(Budget(900, 1e-6), Budget(77777.7, 1e-7), costs)
    assert 77777.7 / 3 < spending.spent[0] < spending.promised[0]
