"""Composition under a cap, against dp-accounting."""

import copy
import math
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import dp_accounting as dpa
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, strategies as st

from quietq import Accountant, Budget, BudgetExhausted, InvalidInput, people
from quietq.privacy import Cost, delta_from_mu
from quietq.privacy.relations import OnePerson, Trajectories

BUDGET = Budget(0.9, 1e-4)


@given(st.lists(st.floats(1e-4, 0.2), max_size=30))
def test_squares_add_up_to_the_cap_and_no_further(mus):
    accountant = Accountant(BUDGET)
    accepted = []
    for mu in mus:
        try:
            accountant.charge(Cost.gaussian(mu))
            accepted.append(mu)
        except BudgetExhausted:
            assert math.hypot(*accepted, mu) > BUDGET.mu
    assert accountant.spending.spent_mu == pytest.approx(math.hypot(*accepted) if accepted else 0.0)
    assert accountant.spending.spent_mu <= BUDGET.mu * (1 + 1e-12)
    assert math.hypot(accountant.spending.spent_mu, accountant.spending.remaining_mu) == pytest.approx(BUDGET.mu)


def test_what_remains_can_be_spent_and_then_nothing():
    accountant = Accountant(BUDGET)
    accountant.charge(Cost.gaussian(BUDGET.mu / math.sqrt(78), 77))
    accountant.charge(Cost.gaussian(accountant.spending.remaining_mu))
    with pytest.raises(BudgetExhausted, match="nothing was booked"):
        accountant.charge(Cost.gaussian(1e-3))
    assert accountant.spending.get_epsilon(1e-4) == pytest.approx(0.9)
    assert accountant.spending.get_epsilon(1e-4) <= 0.9


def test_nothing_booked_costs_nothing():
    assert Accountant(BUDGET).spending.get_epsilon(1e-6) == 0


def test_threads_cannot_overspend():
    accountant = Accountant(BUDGET)
    share = BUDGET.mu / 10  # one hundred of these fit

    def charge(_):
        try:
            accountant.charge(Cost.gaussian(share))
            return 1
        except BudgetExhausted:
            return 0

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(charge, range(400))) == 100


@pytest.mark.parametrize("rounds", [{0.2: 1}, {0.02: 100, 0.1: 2}, {0.5: 4}])
def test_dp_accounting_finds_the_same_epsilon(rounds):
    """With its default relation, for which an event's sensitivity is 1: our mu is relative to it already."""
    accountant = Accountant(Budget(10, 1e-5))
    for mu, n in rounds.items():
        accountant.charge(Cost.gaussian(mu, n))
    event = dpa.ComposedDpEvent([dpa.SelfComposedDpEvent(dpa.GaussianDpEvent(1 / mu), n) for mu, n in rounds.items()])
    theirs = PLDAccountant(value_discretization_interval=1e-4).compose(event)
    assert theirs.get_epsilon(1e-5) == pytest.approx(accountant.spending.get_epsilon(1e-5), rel=2e-3)
    assert theirs.get_delta(0.5) == pytest.approx(delta_from_mu(accountant.spending.spent_mu, 0.5), rel=5e-3)
    renyi = RdpAccountant().compose(event)
    assert 1 < renyi.get_epsilon(1e-5) / accountant.spending.get_epsilon(1e-5) < 1.3


def test_releases_of_the_same_people_add_up_whatever_of_them_is_released():
    accountant = Accountant(BUDGET)
    every = [people(50, 0, 0.5, 1), people(50, 0, 1, 3), OnePerson(50), people(60, 0, 0.5, 1)]
    for relation in every:
        accountant.charge(Cost.gaussian(0.1), relation)
    assert accountant.spending.spent_mu == pytest.approx(0.2)
    with pytest.raises(BudgetExhausted):
        accountant.charge(Cost.gaussian(0.21), every[2])
    with pytest.raises(InvalidInput, match="give relations that protect any one person, which add up"):
        accountant.charge(Cost.gaussian(0.01), Trajectories(50, 1.0))
    assert accountant.spending.spent_mu == pytest.approx(0.2)


def test_one_relation_an_account():
    first, other = people(50, 0, 0.5, 1), Trajectories(50, 1.0)
    bound = Accountant(BUDGET, first)
    with pytest.raises(InvalidInput, match=r"what 50 people gave, of whom.*50 trajectories.* would mean nothing"):
        bound.charge(Cost.gaussian(0.1), other)
    assert bound.spending.spent_mu == 0

    accountant = Accountant(BUDGET)
    accountant.charge(Cost.gaussian(0.01))  # names none
    with pytest.raises(BudgetExhausted):
        accountant.charge(Cost.gaussian(1.0), other)
    accountant.charge(Cost.gaussian(0.1), first)  # what was refused binds nothing
    accountant.charge(Cost.gaussian(0.1), people(50, 0, 0.5, 1))
    accountant.charge(Cost.gaussian(0.1))
    spent = accountant.spending.spent_mu
    with pytest.raises(InvalidInput, match=r"nothing was booked\. For other people use an Accountant of its own"):
        accountant.charge(Cost.gaussian(0.01), other)
    assert accountant.spending.spent_mu == spent


def test_what_has_no_mu_is_added_up_apart():
    accountant = Accountant(BUDGET)
    for delta in (0.0, 1e-6):
        with pytest.raises(BudgetExhausted, match=r"nothing was set apart for that.*nothing was booked"):
            accountant.charge(Cost.apart(0.1, delta), people(50, 0, 0.5, 1))
    assert accountant.spending.spent_mu == 0
    with pytest.raises(BudgetExhausted, match='by a budget with a delta above 0, or noise="path" or "knots"'):
        accountant.charge(Cost.apart(0.1))
    both = Accountant(BUDGET, apart=Budget(0.3, 0))
    for _ in range(3):
        both.charge(Cost.apart(0.1))  # 0.1 + 0.1 + 0.1 > 0.3 in floating point
    with pytest.raises(BudgetExhausted, match=r"epsilon = 0 of 0\.3"):
        both.charge(Cost.apart(1e-9))
    both.charge(Cost.gaussian(0.2))
    assert both.spending.get_epsilon(1e-4) == pytest.approx(0.3 + 0.6016, abs=1e-4)
    assert both.spending.promised == (pytest.approx(1.2), pytest.approx(1e-4))
    with pytest.raises(BudgetExhausted, match="no budget for Gaussian noise"):
        Accountant(None, apart=Budget(0.3, 0)).charge(Cost.gaussian(0.1))


def test_an_account_is_not_duplicated(monkeypatch):
    accountant = Accountant(BUDGET)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="guards one budget"):
            duplicate(accountant)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(BudgetExhausted, match="belongs to another process"):
        accountant.charge(Cost.gaussian(0.1))
    assert accountant.spending.spent_mu == 0


FORK = """
import os
from quietq import *
from quietq.paper import SortedPath
budget = Budget(0.9, 1e-4)
accountant, path = Accountant(budget), SortedPath(Exponential(4.0))
mechanism = GaussianProcessMechanism(Exponential(4.0), 0.1, budget, levels=4)
child = os.fork()
if child:
    os.waitpid(child, 0)  # one after the other, so that their lines do not mix
for use in (lambda: accountant.charge(Cost.gaussian(0.1)), lambda: mechanism.apply(abs), lambda: path(0.5)):
    try:
        use()
        print("child" if child == 0 else "parent", "went on", flush=True)
    except BudgetExhausted as error:
        print("child" if child == 0 else "parent", "refused:", error, flush=True)
"""


def test_a_fork_spends_nothing():
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines.count("parent went on") == 3
    refused = [line for line in lines if line.startswith("child refused: ")]
    assert len(refused) == 3
    for what in ("Accountant", "mechanism", "SortedPath"):
        assert any(f"This {what} belongs to another process" in line for line in refused)


def test_an_account_is_not_begun_anew():
    """What was spent would be forgotten, by whoever was handed the account."""
    accountant = Accountant(BUDGET)
    accountant.charge(Cost.gaussian(BUDGET.mu))
    for budget in (BUDGET, Budget(100.0, 1e-4)):
        with pytest.raises(InvalidInput, match="counts already"):
            accountant.__init__(budget)
    assert accountant.spending.budget == BUDGET
    with pytest.raises(BudgetExhausted):
        accountant.charge(Cost.gaussian(BUDGET.mu))
