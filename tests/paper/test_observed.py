"""Observed rewards: fitted as a dense Gaussian process would be, and refused by what was declared, uncharged."""

import contextlib
import math

import numpy as np
import pytest

from quietq import Accountant, Box, Budget, InvalidInput, SupBall
from quietq.paper.observed import KNOTS, fit_knots, observe, prior_covariance
from quietq.worlds import WALK, find_world, plan, score, walk_reward

BUDGET = Budget(0.9, 1e-4)
LINE = Box((0.0,), (1.0,))


def hats_at(points):
    knots = np.linspace(0, 1, KNOTS)
    return np.stack([np.interp(points, knots, row) for row in np.eye(KNOTS)], axis=1)


def test_the_prior_is_the_textbooks():
    covariance = prior_covariance(-1.0, 3.0)
    assert np.diag(covariance) == pytest.approx(4.0)
    assert covariance[3, 5] == pytest.approx(4 * math.exp(-((2 / 12 / 0.2) ** 2) / 2))  # knots 2/12 apart


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.5), (-1.0, 3.0)])
def test_the_fit_is_the_dense_posterior(low, high):
    """The textbook: condition a Gaussian process whose covariance is the hats' on noisy values."""
    rng = np.random.default_rng(1)
    points, values, sigma = rng.uniform(0, 1, 7), rng.normal(size=7), 0.3
    prior, middle, hats = prior_covariance(low, high), (low + high) / 2, hats_at(points)
    gain = np.linalg.solve(hats @ prior @ hats.T + sigma**2 * np.eye(7), hats @ prior).T
    expected = middle + gain @ (values - middle)
    assert fit_knots(LINE, points, values, sigma, low, high) == pytest.approx(expected, abs=1e-9)
    wide = Box((-10.0,), (10.0,))
    assert fit_knots(wide, 20 * points - 10, values, sigma, low, high) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("radius", "least"), [(0.01, 0.96), (0.02, 0.83)])
def test_planning_on_noised_rewards(radius, least):
    """Independent noise rho sqrt(n)/mu on each of n = 5,000 rewards; 0.98 and 0.91 in the mean of many."""
    scores = []
    for seed in range(40):
        fitted = observe(WALK, SupBall(radius), BUDGET, low=0.0, high=0.5, seed=seed, simulate=seed)
        scores.append(score(plan(fitted, cells=256), cells=256))
    assert np.mean(scores) > least


def charged(reward, **options) -> float:
    """What was spent; the declared range is far too large for the noise, whatever the rewards are."""
    accountant = Accountant(BUDGET)
    with contextlib.suppress(InvalidInput):
        observe(WALK, SupBall(1e-6), BUDGET, rewards=100, reward=reward, account=accountant, **options)
    return accountant.spending.spent_mu


@pytest.mark.parametrize("value", [0.0, 900.0])
def test_a_refusal_depends_on_what_was_declared_alone(value):
    with pytest.raises(InvalidInput, match="too large for noise"):
        observe(
            WALK, SupBall(1e-6), BUDGET, low=0.0, high=1000.0, rewards=100,
            reward=lambda states: np.full(len(states), value),
        )  # fmt: skip


def test_what_cannot_be_released_is_refused_before_the_charge():
    constant = lambda states: np.zeros(len(states))  # noqa: E731
    assert charged(constant, low=0.0, high=1000.0) == 0
    assert charged(constant, low=0.5, high=0.5) == 0
    assert charged(constant, low=0.0, high=0.5) > 0


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: observe(WALK, SupBall(0.01), BUDGET, low=1, high=1), "high must be above low"),
        (lambda: observe(WALK, SupBall(0.01), BUDGET, low=0, high=math.inf), "high must be a finite number"),
        (lambda: observe(WALK, SupBall(0.01), Budget(0.9, 0.0), low=0, high=1), "delta must be above 0"),
        (lambda: observe(find_world("navigation"), SupBall(0.01), BUDGET, low=0, high=1), "in one coordinate"),
    ],
)
def test_wrong_arguments_get_one_clear_sentence(wrong, sentence):
    with pytest.raises(InvalidInput, match=sentence) as caught:
        wrong()
    assert "\n" not in str(caught.value)


def test_a_certified_one_is_knots_with_the_certificate_of_its_noise():
    private = observe(WALK, SupBall(0.01), BUDGET, low=0.0, high=0.5, rewards=100)
    assert private.certificate.standing == "certified"
    assert private([0.1, 0.5]).shape == (2,)
    assert np.abs(private.values - walk_reward(np.linspace(0, 1, KNOTS))).max() < 0.5
