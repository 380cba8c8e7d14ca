"""Pure noise on the weights of features: its law, its promise, and the rule that chooses it."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from quietq import Accountant, Budget, BudgetExhausted, Certificate, FeatureKernel, InvalidInput, RkhsBall, privatise
from quietq.audit.frozen_release import frozen_release
from quietq.mechanisms.mechanism import Task
from quietq.mechanisms.privatise import choose
from quietq.noise import SeededEntropy
from quietq.noise.ball import Ball
from quietq.noise.ball_curve import epsilon_of_ball, loss_of_ball
from quietq.privacy import Cost

BUDGET = Budget(epsilon=1.0, delta=1e-5)
WEIGHTS = np.array([0.3, -0.1, 0.2])


def phi(points):
    return 2 * points - 1


def eight(points):
    return np.tile(points[:, :1], (1, 8))


def relation(actions=1):
    return RkhsBall.of_people(100, FeatureKernel(phi, rank=3, dimension=3), norm=1.0, actions=actions)


@pytest.mark.parametrize("numbers", [1, 3, 8])
def test_lengths_are_gamma_and_directions_uniform(numbers):
    drawn = Ball(numbers, {}).draws(25.0, SeededEntropy(1), 20_000)
    lengths = np.linalg.norm(drawn, axis=1)
    assert stats.kstest(lengths, stats.gamma(numbers, scale=0.04).cdf).pvalue > 1e-6
    assert drawn.std() == pytest.approx(Ball(numbers, {}).typical_noise(25.0), rel=0.03)
    if numbers > 1:  # a coordinate of a uniform direction, squared, is Beta
        squares = (drawn[:, 0] / lengths) ** 2
        assert stats.kstest(squares, stats.beta(0.5, (numbers - 1) / 2).cdf).pvalue > 1e-6


def test_neighbours_are_no_easier_to_tell_apart_than_epsilon_says():
    """The loss epsilon (|z + shift| - |z|)/radius is epsilon at the most, and is reached."""
    epsilon, radius = 0.7, 0.02
    drawn = Ball(3, {}).draws(epsilon / radius, SeededEntropy(2), 100_000)
    shift = np.array([radius, 0, 0])
    loss = epsilon * (np.linalg.norm(drawn + shift, axis=1) - np.linalg.norm(drawn, axis=1)) / radius
    assert np.abs(loss).max() <= epsilon * (1 + 1e-12)
    assert np.abs(loss).max() >= 0.999 * epsilon
    assert np.exp(-loss).mean() == pytest.approx(1, abs=0.02)  # densities integrate to one: the noise is what it says


def test_a_release_is_pure_and_the_rule_is_public():
    private = privatise(WEIGHTS, BUDGET, relation=relation(), domain=[(-1, 1)] * 3)
    certificate = private.certificate
    assert (certificate.method, certificate.standing) == ("reward/ball", "certified")
    assert (certificate.epsilon, certificate.delta, certificate.mu) == (1.0, 0.0, None)
    assert private([[0.0, 0.0, 0.0]]).shape == (1,)
    for rank in (12, 40):  # theory: less noise than Gaussian if a delta counts
        ball = RkhsBall.of_people(100, FeatureKernel(phi, rank=rank, dimension=3), norm=1.0)
        assert choose("auto", Task(ball, BUDGET)).name == "ball"
        assert choose("auto", Task(ball, BUDGET, gaussian=True)).name == "weights"
    gaussian = privatise(WEIGHTS, BUDGET, noise="weights", relation=relation(), domain=[(-1, 1)] * 3)
    assert gaussian.certificate.mu == BUDGET.mu
    assert certificate.sigma is not None
    assert gaussian.certificate.sigma is not None
    assert certificate.sigma < 0.6 * gaussian.certificate.sigma


@pytest.mark.parametrize(("numbers", "epsilon", "delta"), [(2, 0.9, 0.05), (3, 0.3, 0.01), (8, 2.0, 0.02)])
def test_the_curve_is_that_of_the_draws(numbers, epsilon, delta):
    loss = loss_of_ball(epsilon, numbers, delta)
    assert epsilon_of_ball(loss, numbers, delta) == pytest.approx(epsilon, rel=1e-6)
    drawn = Ball(numbers, {}).draws(loss, SeededEntropy(3), 200_000)
    shifted = drawn - np.eye(numbers)[0]
    lost = loss * (np.linalg.norm(shifted, axis=1) - np.linalg.norm(drawn, axis=1))
    terms = np.maximum(0, 1 - np.exp(epsilon - lost))
    assert abs(terms.mean() - delta) < 6 * terms.std() / math.sqrt(len(terms))


def test_the_curve_by_integrals_in_the_plane():
    """H = int [p - e^epsilon q]+ of two numbers, on a fine grid; a shorter shift is hidden better."""
    epsilon, loss = 0.9, 1.3
    axis = np.linspace(-12, 12, 801)
    x, y = np.meshgrid(axis, axis)
    weight = (axis[1] - axis[0]) ** 2 * loss**2 / (2 * math.pi)
    found = []
    for shift in (0.3, 0.7, 1.0):
        first, second = (np.exp(-loss * np.hypot(x - move, y)) for move in (0.0, shift))
        found.append(float(np.maximum(first - math.exp(epsilon) * second, 0).sum() * weight))
    assert found == sorted(found)
    assert epsilon_of_ball(loss, 2, found[-1]) == pytest.approx(epsilon, rel=3e-3)


def test_a_delta_saves_noise_where_it_is_worth_one():
    of_eight = RkhsBall.of_people(100, FeatureKernel(eight, rank=8, dimension=3), norm=1.0)
    saves = choose("ball", Task(of_eight, BUDGET))
    pure, gaussian = choose("ball", Task(of_eight, Budget(1.0, 0.0))), choose("weights", Task(of_eight, BUDGET))
    assert saves.cost == Cost.apart(1.0, 1e-5)
    assert pure.cost == choose("ball", Task(relation(), BUDGET)).cost == Cost.apart(1.0)  # 3 weights: hardly less
    assert saves.expected_error() == pytest.approx(0.9133 * pure.expected_error(), rel=1e-3)
    assert saves.expected_error() < 0.75 * gaussian.expected_error()
    move = frozen_release(saves)
    assert not move.exceeds
    assert move.share > 0.999
    certificate = privatise(np.zeros(8), BUDGET, noise="ball", relation=of_eight, domain=[(-1, 1)] * 3).certificate
    assert (certificate.epsilon, certificate.delta, certificate.sigma) == (1.0, 1e-5, None)
    record = certificate.to_dict()
    for change in ({"numbers": 9}, {"numbers": 16}, {"kernel": {**record["norm"]["kernel"], "rank": 9}}):
        with pytest.raises(InvalidInput):
            Certificate.from_dict({**record, "norm": {**record["norm"], **change}})
    for change in ({"delta": 0.0}, {"delta": 0.9e-5}, {"epsilon": 0.99}, {"scale": 0.99 * record["scale"]}):
        with pytest.raises(InvalidInput):
            Certificate.from_dict({**record, **change})


def test_a_calibrated_ball_is_loaded_with_its_own_kernel_only():
    of_eight = RkhsBall.of_people(100, FeatureKernel(eight, rank=8, dimension=3), norm=1.0)
    private = privatise(np.zeros(8), BUDGET, noise="ball", relation=of_eight, domain=[(-1, 1)] * 3)
    other = dataclasses.replace(private, kernel=FeatureKernel(lambda x: 2 * eight(x), rank=8, dimension=3))
    private.check_certificate(private.certificate)
    with pytest.raises(InvalidInput, match="its kernel must be"):
        other.check_certificate(private.certificate)


def test_several_actions_are_one_vector():
    both = np.stack([WEIGHTS, -WEIGHTS], axis=-1)
    draws = np.stack(
        [
            privatise(both, BUDGET, relation=relation(2), domain=[(-1, 1)] * 3, simulate=seed)([[1.0, 0.0, 0.0]])[0]
            for seed in range(200)
        ]
    )
    assert draws.shape == (200, 2)
    expected = Ball(6, {}).typical_noise(1 / (math.sqrt(2) * 0.02))
    np.testing.assert_allclose(draws.std(axis=0), expected, rtol=0.25)
    np.testing.assert_allclose(draws.mean(axis=0), [0.3, -0.3], atol=6 * expected / math.sqrt(200))


def test_what_cannot_be_is_refused():
    with pytest.raises(BudgetExhausted, match="nothing was set apart"):
        privatise(WEIGHTS, BUDGET, noise="ball", relation=relation(), domain=[(-1, 1)] * 3, account=Accountant(BUDGET))
    with pytest.raises(InvalidInput, match="as the relation says"):
        privatise(WEIGHTS, BUDGET, noise="ball", relation=relation(2), domain=[(-1, 1)] * 3)
    for weights in ([np.nan, 0.0, 0.0], [0.0, np.inf, 0.0], [1e15, 0.0, 0.0]):
        with pytest.raises(InvalidInput):
            privatise(np.array(weights), BUDGET, relation=relation(), domain=[(-1, 1)] * 3)
    with pytest.raises(InvalidInput, match="one dimension only"):
        privatise(WEIGHTS, BUDGET, noise="knots", relation=relation(), domain=[(-1, 1)] * 3)


def test_of_very_many_numbers_the_noise_is_pure():
    """With 100,000 numbers, integration would miss a part of 3e-5 of delta."""
    assert loss_of_ball(1.0, 100_000, 1e-4) == 1.0
    assert epsilon_of_ball(5.0, 100_000, 1e-4) == 5.0
    assert loss_of_ball(1.0, 10_000, 1e-4) > 30
