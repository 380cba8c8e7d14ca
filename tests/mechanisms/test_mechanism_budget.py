"""The mechanism's budget: one release, charged before the draw, and nothing spent or shown when it fails."""

import copy
import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from walk_mechanism import BUDGET, PEOPLE, walk_reward

from quietq import (
    Accountant,
    Budget,
    BudgetExhausted,
    GaussianProcessMechanism,
    InvalidInput,
    LipschitzBall,
)
from quietq.paper import FeatureKernel, FiniteRankMechanism
from quietq.privacy.checks import numbers


def test_one_release_and_no_more():
    mechanism = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET)
    mechanism.apply(walk_reward)
    with pytest.raises(BudgetExhausted, match="one release"):
        mechanism.apply(walk_reward)


def test_a_second_release_does_not_look_at_the_function_nor_carry_it_along():
    looked = []

    def spy(states):
        looked.append(len(states))
        return walk_reward(states)

    spent = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET, levels=4)
    spent.apply(spy)
    broke = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET, levels=4, account=Accountant(Budget(0.1, 1e-4)))
    for mechanism, looks in ((spent, 1), (broke, 2)):
        with pytest.raises(BudgetExhausted) as caught:
            mechanism.apply(spy)
        assert len(looked) == looks
        frame = caught.value.__traceback__
        while frame := frame and frame.tb_next:
            assert not {"f", "values"} & set(frame.tb_frame.f_locals)


def test_threads_get_one_release_between_them():
    mechanism = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET, levels=4)

    def release(_):
        try:
            mechanism.apply(walk_reward)
            return 1
        except BudgetExhausted:
            return 0

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(release, range(64))) == 1


def test_it_cannot_be_copied_into_a_second_release():
    mechanism = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="spends its budget once"):
            duplicate(mechanism)


def test_an_accountant_is_charged_before_the_draw():
    accountant = Accountant(BUDGET)
    half = Budget.from_mu(BUDGET.mu / math.sqrt(2), 1e-4)
    for _ in range(2):
        GaussianProcessMechanism.for_relation(PEOPLE, half, account=accountant).apply(walk_reward)
    third = GaussianProcessMechanism.for_relation(PEOPLE, half, account=accountant)
    with pytest.raises(BudgetExhausted, match="nothing was booked"):
        third.apply(walk_reward)


def test_an_accountant_adds_up_one_relation():
    accountant = Accountant(BUDGET)
    small = Budget.from_mu(0.05, 1e-6)
    GaussianProcessMechanism.for_relation(PEOPLE, small, account=accountant, levels=4).apply(walk_reward)
    other = GaussianProcessMechanism.for_relation(LipschitzBall(0.1, 0.1), small, account=accountant, levels=4)
    with pytest.raises(InvalidInput, match="would mean nothing; nothing was booked"):
        other.apply(walk_reward)


def test_masked_values_are_not_released():
    hidden = np.ma.masked_array(np.array([3.0, 4.0]), np.array([True, False]))
    with pytest.raises(InvalidInput, match="weights must be real numbers"):
        FiniteRankMechanism(FeatureKernel(lambda x: np.stack([x, 1 - x], axis=-1), 2), 0.1, BUDGET).apply(hidden)
    mechanism = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET, levels=4)
    with pytest.raises(InvalidInput, match="values must be real numbers"):
        mechanism.apply(lambda s: np.ma.masked_array(s, s > 0.5))
    with pytest.raises(InvalidInput, match="rows must be real numbers"):
        numbers("rows", [[0.0, 0.0], hidden])


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda s: np.full(s.shape, np.nan), "finite"),
        (lambda s: np.where(s > 0.9, np.inf, 0.0), "finite"),
        (lambda s: np.full(s.shape, 1e9), "must stay below"),
        (lambda s: 1.0, "one value"),
        (lambda s: s[:-1], "one value"),
        (np.zeros(3), "function of states"),
        (lambda s: ["1000000000"] * len(s), "real numbers"),
        (lambda s: [[1e9], [1e9, 2]], "real numbers"),
        (lambda s: {"secret": 1e9}, "real numbers"),
        (lambda s: s * 1j, "real numbers"),
        (lambda s: None, "real numbers"),
        (lambda s: 0.0 if s > 0.5 else 1.0, "ValueError on an array .* numpy.vectorize"),
        (lambda s: float(s), "TypeError on an array .* numpy.vectorize"),
        (lambda s: float("secret 1000000000"), "ValueError"),
    ],
)
def test_wrong_functions_spend_nothing_and_are_not_quoted(f, message):
    accountant = Accountant(BUDGET)
    mechanism = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET, account=accountant)
    with pytest.raises(InvalidInput, match=message) as caught:
        mechanism.apply(f)
    assert "1000000000" not in str(caught.value)
    assert "1e+09" not in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None  # an exception that comes along would show its text in a traceback
    assert accountant.spending.spent_mu == 0
    mechanism.apply(walk_reward)  # still there to be used


def test_f_is_looked_at_on_the_grid_only_and_then_let_go():
    seen = []

    def spy(states):
        seen.append(states)
        return walk_reward(states)

    private = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET, levels=6, domain=(-1, 1)).apply(spy)
    private(np.random.default_rng(0).uniform(-1, 1, 1000))
    assert len(seen) == 1
    np.testing.assert_array_equal(seen[0], np.linspace(-1, 1, 65))
