"""Gaussian noise and releases without a mu together: never below the truth, hardly above it, whatever the entries."""

import itertools
import math
import time

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.pld.common import DifferentialPrivacyParameters

from quietq.privacy import Accountant, Budget, Cost, Spending
from quietq.privacy.gaussian import delta_from_mu, deltas_from_mu
from quietq.privacy.together import FEW, MOST_EPSILON, SMALL, delta_together, epsilon_together, gaussian_mu

BUDGET = Budget(0.9, 1e-4)


def theirs(mu: float, apart: dict[float, int], delta: float) -> float:
    """By dp-accounting's privacy loss distributions, which err upwards too."""
    found = pld.from_gaussian_mechanism(1 / mu)
    for epsilon, number in apart.items():
        one = pld.from_privacy_parameters(DifferentialPrivacyParameters(epsilon, 0))
        found = found.compose(one.self_compose(number))
    return found.get_epsilon_for_delta(delta)


@pytest.mark.parametrize(
    ("apart", "gain"),
    [({0.3: 1}, 0.038), ({0.1: 3}, 0.122), ({0.05: 10}, 0.256), ({0.3: 3, 0.05: 12}, 0.248), ({0.9: 1}, 0.015)],
)
def test_it_is_what_dp_accounting_has_and_less_than_the_sum(apart: dict[float, int], gain: float):
    added = 0.9 + sum(epsilon * number for epsilon, number in apart.items())
    ours = epsilon_together(BUDGET.mu, apart, 0.0, 1e-4, added)
    assert ours == pytest.approx(theirs(BUDGET.mu, apart, 1e-4), rel=1e-4)
    assert 1 - ours / added == pytest.approx(gain, abs=6e-3)


def test_it_is_never_below_the_truth_added_up_over_all_outcomes():
    """By brute force: every outcome of up to ten releases, with deltas."""
    rng = np.random.default_rng(0)
    for number in (1, 3, FEW + 1, FEW + 2):
        epsilons = rng.uniform(0.005, 0.4, number)
        mu, delta = rng.uniform(0.05, 1.5), 1e-6
        apart = {float(epsilon): 1 for epsilon in epsilons}
        for epsilon in (0.0, 0.7):
            truth = 0.0
            for signs in itertools.product((1, -1), repeat=number):
                chance = np.prod(1 / (1 + np.exp(-np.array(signs) * epsilons)))
                away = epsilon - float(np.dot(signs, epsilons))
                swapped = -math.expm1(-abs(away)) + math.exp(-abs(away)) * delta_from_mu(mu, abs(away))
                truth += chance * (delta_from_mu(mu, away) if away >= 0 else swapped)
            truth = 1 - (1 - delta) ** number * (1 - truth)
            ours = delta_together(mu, apart, delta * number, epsilon)
            assert truth <= ours <= truth * (1.05 if min(epsilons) < SMALL else 1.001)


def test_pure_noise_is_gaussian_enough_for_its_mu():
    """The trade-off of randomised response lies above the Gaussian one, and meets it in its corner."""
    for epsilon in (1e-12, 1e-9, 1e-3, 0.1, 1.0, 5.0):
        mu = gaussian_mu(epsilon)
        levels = np.linspace(0, 3 * epsilon, 50)
        pure = np.maximum(-np.expm1(levels - epsilon), 0) / (1 + math.exp(-epsilon))
        if epsilon >= 1e-3:  # else lost to rounding
            assert np.all(pure <= deltas_from_mu(mu, levels) * (1 + 1e-9))
        assert math.tanh(epsilon / 2) <= math.erf(mu / math.sqrt(8)) * (1 + 1e-9)
        assert math.tanh(epsilon / 2) == pytest.approx(math.erf(mu / math.sqrt(8)), rel=1e-4)


def test_more_is_never_less_and_no_order_matters():
    """Entry by entry, from few to many, tiny and large, to where sums are all that is known."""
    rng = np.random.default_rng(1)
    costs = [Cost.apart(float(epsilon)) for epsilon in rng.choice([1e-9, 0.003, 0.0157, 0.05, 0.31, 0.8], 20)]
    costs += [Cost.gaussian(float(mu)) for mu in rng.uniform(1e-6, 0.2, 5)] + [Cost.apart(0.2, 1e-7)] * 3
    costs = [costs[i] for i in rng.permutation(len(costs))] + [Cost.apart(MOST_EPSILON)]
    spent: dict[Cost, int] = {}
    before = 0.0, 0.0
    for cost in costs:
        spent[cost] = spent.get(cost, 0) + 1
        spending = Spending(BUDGET, None, spent)
        now = spending.get_epsilon(1e-4), spending.get_delta(0.5)
        assert now[0] >= before[0] - 1e-11
        assert now[1] >= before[1] * (1 - 1e-8)
        before = now
    backwards = Spending(BUDGET, None, dict(reversed(spent.items())))
    assert backwards.get_epsilon(1e-4) == before[0]


def test_many_tiny_entries_count_for_what_they_are():
    thousand = Spending(BUDGET, None, {Cost.apart(1e-4 + 1e-9 * i): 1 for i in range(1000)} | {Cost.gaussian(0.2): 1})
    assert thousand.spent_apart[0] == pytest.approx(0.1, rel=1e-2)
    assert 0.6016 < thousand.get_epsilon(1e-4) < 0.61
    wide = Spending(BUDGET, None, {Cost.apart(0.0157 + 1e-6 * i): 1 for i in range(500)})  # no two alike, on the grid
    started = time.perf_counter()
    assert wide.get_epsilon(1e-4) < 0.25 * wide.spent_apart[0]
    first = time.perf_counter() - started
    assert first < 20  # a fraction of a second; machines may be busy


def test_hostile_entries_give_no_more_than_they_are():
    for cost in (Cost.apart(1e100), Cost.apart(1e-100), Cost.apart(700.0, 0.5), Cost.apart(1e-9, 1 - 1e-16)):
        spending = Spending(BUDGET, None, {cost: 3, Cost.gaussian(0.2): 1})
        assert spending.get_delta(0.5) >= Spending(BUDGET, None, {Cost.gaussian(0.2): 1}).get_delta(0.5) * (1 - 1e-9)
    assert Spending(BUDGET, None, {Cost.apart(1e100): 1}).get_epsilon(1e-4) == 1e100
    assert Spending(BUDGET, None, {Cost.gaussian(9000.0): 1, Cost.apart(0.5): 1}).get_delta(1.0) == pytest.approx(1)


def test_what_is_promised_covers_whatever_is_spent():
    accountant = Accountant(BUDGET, apart=Budget(0.3, 0))
    promised, delta = accountant.spending.promised
    assert accountant.spending.spent == (0, delta)
    accountant.charge(Cost.gaussian(BUDGET.mu))
    accountant.charge(Cost.apart(0.3))
    assert accountant.spending.spent == (pytest.approx(promised), delta)
    assert accountant.spending.spent[0] <= promised < 1.2
    assert accountant.get_delta(promised) == pytest.approx(1e-4)
    pure = Accountant(None, apart=Budget(0.3, 0))
    pure.charge(Cost.apart(0.2))
    assert pure.spending.spent == (0.2, 0)
    tight = Accountant(Budget(0.9, 1e-100), apart=Budget(0.3, 1e-3))
    tight.charge(Cost.apart(0.3, 1e-3))
    tight.charge(Cost.gaussian(1e-3))
    assert tight.spending.spent == tight.spending.promised


def test_large_numbers_are_found_too():
    """Where a step of 1e-12 is lost in rounding, the search still ends."""
    costs = {Cost.gaussian(Budget(900, 1e-6).mu / 2): 1, Cost.apart(77777.7 / 3, 1e-7 / 3): 1}
    spending = Spending(Budget(900, 1e-6), Budget(77777.7, 1e-7), costs)
    assert 77777.7 / 3 < spending.spent[0] < spending.promised[0]


def test_the_mu_of_a_small_epsilon_is_not_rounded_down():
    """mu = epsilon sqrt(pi/2) (1 - (1 - pi/4) epsilon^2/6 + ...), from the series of erf and tanh."""
    for epsilon in (1e-12, 1.1e-8, 3.3e-8, 1e-6):
        least = epsilon * math.sqrt(math.pi / 2)
        assert least * (1 - epsilon**2) <= gaussian_mu(epsilon) <= least * (1 + 1e-12)
