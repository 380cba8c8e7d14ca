"""A part of a budget that has a delta is good for Gaussian noise only: all else refuses it, and charges nothing."""

import copy
import pickle

import numpy as np
import polars
import pytest

from quietq import Accountant, Budget, InvalidInput, Ratings, Sessions, Trajectories, privatise
from quietq.feedback.cells import Cells
from quietq.feedback.own_function import OwnFunction
from quietq.mechanisms import evaluate_policies
from quietq.mechanisms.candidates import choose
from quietq.paper import Evaluation
from quietq.privacy import Cost, people

WHOLE = Budget(1, 1e-5)
HALF, OTHER = WHOLE.split(0.5, 0.5)
ONLY = "good for Gaussian noise only"


def ratings() -> Ratings:
    rows = polars.DataFrame({"person": range(30), "state": np.linspace(0, 1, 30), "rating": [0.5, 1.0] * 15})
    return Ratings.read(rows, box=(0, 1), low=0, high=1, slope=1, people=30)


def test_parts_say_what_they_are_and_stay_that():
    assert repr(HALF).startswith("GaussianBudget(")
    quarters = HALF.split(0.5, 0.5)
    for part in (*quarters, copy.copy(HALF), pickle.loads(pickle.dumps(HALF))):
        assert part.gaussian
    assert not any(one.gaussian for one in (WHOLE, *Budget(1, 0).split(0.5, 0.5)))


def test_auto_takes_gaussian_noise_for_parts_without_an_account():
    parts = [privatise(ratings(), part).certificate for part in (HALF, OTHER)]
    assert sum(one.mu**2 for one in parts) <= WHOLE.mu**2


def test_parts_of_a_pure_budget_are_for_pure_noise():
    parts = [privatise(ratings(), part).certificate for part in Budget(1, 0).split(0.5, 0.5)]
    assert all(one.mu is None and one.delta == 0 for one in parts)
    assert sum(one.epsilon for one in parts) <= 1


@pytest.mark.parametrize("seed", [None, 1])
def test_pure_noise_by_name_is_refused_and_nothing_is_charged(seed):
    account = Accountant(WHOLE, apart=Budget(10, 0.1))
    with pytest.raises(InvalidInput, match=f"{ONLY}.*'k-norm' has no mu"):
        privatise(ratings(), HALF, noise="k-norm", account=account, simulate=seed)
    assert not account.spending.costs


def test_values_of_policies_take_a_part():
    rows = polars.DataFrame({"person": range(400), "x": [0.5] * 400, "go": [0, 1] * 200, "y": [0.0, 1.0] * 200})
    sessions = Sessions.read(
        rows, state="x", next_state=[], action="go", actions=[0, 1], reward="y", box=(0, 1), people=400
    )
    account = Accountant(WHOLE, apart=Budget(10, 0.1))
    asked = {"returns": (-2, 2), "behaviour": lambda states: [[0.5, 0.5]] * len(states), "account": account}
    evaluate_policies(sessions, {"go": "1", "stay": "0"}, HALF, **asked)
    assert account.spending.spent_mu == pytest.approx(HALF.mu)


def test_noise_that_follows_the_data_is_refused():
    everyone = Trajectories(count=3000, largest_reward=1.0, horizon=3)
    with pytest.raises(InvalidInput, match=f"{ONLY}.*follows the data has no mu"):
        Evaluation(budget=HALF, relation=everyone, gamma=0.5, cells=Cells.states(3))


def test_nothing_is_set_apart_by_a_part():
    with pytest.raises(InvalidInput, match=f"{ONLY}.*what is set apart has no mu"):
        Accountant(None, apart=HALF)
    Accountant(HALF).charge(Cost.gaussian(HALF.mu))


def test_a_mechanism_that_was_chosen_by_hand_keeps_to_it():

    declared = OwnFunction(None, people(28, 0, 0.5, 1), slope=1.0)
    assert choose("auto", declared, HALF).cost.mu == HALF.mu
    with pytest.raises(InvalidInput, match=f"{ONLY}.*'k-norm' has no mu"):
        choose("k-norm", declared, HALF)
