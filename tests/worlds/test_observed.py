"""A reward that is observed: what is refused goes by what was declared, and before anything is charged."""

import contextlib

import numpy as np
import pytest

from quietq import Accountant, Budget, InvalidInput, SupBall
from quietq.mechanisms import RewardModel
from quietq.worlds import WALK
from quietq.worlds.observed import observe

BUDGET = Budget(0.9, 1e-4)


def charged(reward, **options) -> float:
    """What was spent; the declared range is far too large for the noise, whatever the rewards are."""
    accountant = Accountant(BUDGET)
    with contextlib.suppress(InvalidInput):
        observe(WALK, SupBall(1e-6), BUDGET, rewards=100, reward=reward, account=accountant, **options)
    return accountant.spent_mu


@pytest.mark.parametrize("value", [0.0, 900.0])
def test_a_refusal_depends_on_what_was_declared_alone(value):
    with pytest.raises(InvalidInput, match="too large for noise"):
        observe(
            WALK, SupBall(1e-6), BUDGET, low=0.0, high=1000.0, rewards=100,
            reward=lambda states: np.full(len(states), value),
        )  # fmt: skip


def test_what_the_model_cannot_use_is_refused_before_the_charge():
    constant = lambda states: np.zeros(len(states))  # noqa: E731
    wide = RewardModel(low=0.0, high=1e6, domain=WALK.box)
    assert charged(constant, low=0.0, high=1000.0) == 0
    assert charged(constant, low=0.0, high=0.5, model=wide) == 0
    assert charged(constant, low=0.0, high=0.5) > 0
