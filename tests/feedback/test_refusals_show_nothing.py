"""A refusal keeps private values to itself: in its words, in its causes and in its traceback."""

import functools

import numpy as np
import polars as pl
import pytest
from people_data import OK

from quietq import Accountant, Budget, InvalidInput
from quietq.feedback import Ratings
from quietq.mechanisms import GaussianProcessMechanism, privatise
from quietq.paper import FeatureKernel, FiniteRankMechanism
from quietq.privacy import people as people_relation
from quietq.privacy.errors import QuietqError
from quietq.privacy.relations import Exponential, RkhsBall

BUDGET = Budget(0.9, 1e-4)
READING = {**OK, "people": 50}
RATINGS = pl.DataFrame({"person": range(50), "state": [0.5] * 50, "other": [0.5] * 50, "rating": [1.0] * 50})
FEATURES = FeatureKernel(lambda x: np.stack([np.ones_like(x), x], axis=-1), rank=2)


def arrays_in(error: BaseException | None) -> list[str]:
    """Local variables of all frames but the test's own that are or hold an array, or a function that holds one."""
    found = []
    while error is not None:
        traceback = error.__traceback__
        while traceback := traceback and traceback.tb_next:
            for name, value in traceback.tb_frame.f_locals.items():
                held = [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
                if "beartype" not in traceback.tb_frame.f_code.co_filename:  # the tests' own checks of types
                    found += [name for each in (value, *held) if isinstance(each, np.ndarray)]
        error = error.__cause__ or error.__context__
    return found


def broke() -> Accountant:
    return Accountant(Budget(0.1, 1e-4))


@pytest.mark.parametrize("noise", ["path", "knots", "k-norm"])
def test_a_refused_charge_for_people(noise) -> None:
    people = Ratings.read(RATINGS, **READING)
    with pytest.raises(QuietqError) as caught:
        privatise(people, BUDGET, noise=noise, account=broke())
    assert not arrays_in(caught.value)


def test_a_refused_charge_for_weights() -> None:
    weights = {"charge": np.array([0.5, 0.5]), "numbers": np.array([0.5, np.nan])}
    for wrong, given in weights.items():
        mechanism = FiniteRankMechanism(FEATURES, 0.1, BUDGET, account=broke() if wrong == "charge" else None)
        with pytest.raises(QuietqError) as caught:
            mechanism.apply(given)
        assert not arrays_in(caught.value)


def test_a_refused_charge_in_two_dimensions() -> None:
    people = Ratings.read(RATINGS, **{**READING, "box": [(0, 1), (0, 1)], "slope": None}, state=["state", "other"])
    with pytest.raises(QuietqError) as caught:
        privatise(people, BUDGET, account=broke())
    assert not arrays_in(caught.value)


class Unheard(Exception):
    pass


@pytest.mark.parametrize(
    "error", [KeyError, InvalidInput, RuntimeError, ZeroDivisionError, TypeError, Unheard, OSError, AssertionError]
)
def test_an_error_of_the_callers_function_is_named_and_not_quoted(error: type[Exception]) -> None:
    def fails(states: np.ndarray) -> np.ndarray:
        raise error("Ann rated 0.73")

    relation = people_relation(50, 0, 1, 2)
    mechanism = GaussianProcessMechanism.for_relation(relation, BUDGET, levels=4)
    kernel = Exponential((1.0,) * 2, summed=True)
    several = GaussianProcessMechanism.for_relation(RkhsBall(0.1, kernel.norm), BUDGET, levels=4)
    tries = [lambda: mechanism.apply(fails), lambda: mechanism.simulate(fails, 0)]
    tries.append(lambda: several.apply([fails, fails]))
    tries += [functools.partial(privatise, fails, BUDGET, noise=n, relation=relation) for n in ("knots", "k-norm")]
    for release in tries:
        with pytest.raises(InvalidInput, match=f"The function failed with {error.__name__} on an array") as caught:
            release()
        assert "Ann" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
