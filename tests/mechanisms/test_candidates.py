"""The table of choice: which mechanisms there are for which feedback, before anything is built."""

import polars as pl
import pytest
from linear_people import read, rows_of

from quietq import Budget, Comparisons, InvalidInput, Ratings, people
from quietq.feedback.own_function import OwnFunction
from quietq.mechanisms.candidates import MECHANISMS, candidates

BUDGET, PURE = Budget(0.9, 1e-4), Budget(0.9, 0)
ROWS = pl.DataFrame(
    {"person": range(50), "x": [0.5] * 50, "y": [0.2] * 50, "rating": [1.0] * 50, "choice": ["left"] * 50}
)
CURVE = Ratings.read(ROWS, state="x", box=(0, 1), low=0, high=1, slope=1, people=50)
PLANE = Ratings.read(ROWS, state=["x", "y"], box=(0, 1), low=0, high=1, people=50)
CHOICES = Comparisons.read(ROWS, left="x", right="y", box=(0, 1), people=50)
SESSIONS = read(rows_of(20), 20)


@pytest.mark.parametrize(
    ("feedback", "budget", "names"),
    [
        (CURVE, BUDGET, {"path", "knots"}),
        (CURVE, PURE, {"k-norm"}),
        (OwnFunction(None, people(50, 0, 0.5, 1)), BUDGET, {"path"}),
        (OwnFunction(None, people(50, 0, 0.5, 1), slope=1.0), BUDGET, {"path", "knots"}),
        (PLANE, BUDGET, {"rounds"}),
        (CHOICES, BUDGET, {"rounds"}),
        (SESSIONS, BUDGET, {"moments"}),
    ],
)
def test_each_kind_of_feedback_has_its_row(feedback, budget, names):
    found = candidates(feedback, budget)
    assert {one.name for one in found} == names
    errors = [one.expected_error for one in found]
    assert errors == sorted(errors)
    assert all(one.relation == feedback.relation for one in found)
    assert {name for name, kind in MECHANISMS.items() if kind.is_for(feedback)} >= names


def test_a_path_tells_its_error_before_its_noise_is_built():
    for one in candidates(CURVE, BUDGET, "path"):
        assert one.expected_error > 0
        assert "law" not in vars(one)


@pytest.mark.parametrize("feedback", [PLANE, CHOICES, SESSIONS])
def test_models_of_rows_have_no_pure_noise(feedback):
    with pytest.raises(InvalidInput, match="delta must be above 0"):
        candidates(feedback, PURE)


def test_what_one_kind_refuses_another_may_do():
    """Values so inexact that a path would need more noise than what is to be hidden; a few knots do not."""
    rough = OwnFunction(None, people(50, 0, 0.5, 1), slope=1.0, accuracy=1e-3)
    assert {one.name for one in candidates(rough, BUDGET)} == {"knots"}
    with pytest.raises(InvalidInput, match="cannot be released with a sensitivity"):
        candidates(rough, BUDGET, "path")
    with pytest.raises(InvalidInput, match="cannot be released with a sensitivity"):
        candidates(OwnFunction(None, people(50, 0, 0.5, 1), slope=1.0, accuracy=1.0), BUDGET)
