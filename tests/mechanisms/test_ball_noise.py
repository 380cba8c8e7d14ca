"""Pure noise on the weights of features: its law, its promise, and the rule that chooses it."""

import math

import numpy as np
import pytest
from scipy import stats

from quietq import Accountant, Budget, BudgetExhausted, FeatureKernel, InvalidInput, RkhsBall, privatise
from quietq.mechanisms.mechanism import Task
from quietq.mechanisms.privatise import choose
from quietq.noise import SeededEntropy
from quietq.noise.ball import Ball

BUDGET = Budget(epsilon=1.0, delta=1e-5)
WEIGHTS = np.array([0.3, -0.1, 0.2])


def phi(points):
    return 2 * points - 1


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
    for rank in (12, 40):  # theory: less noise than Gaussian while d + 1 < (epsilon/mu)^2
        ball = RkhsBall.of_people(100, FeatureKernel(phi, rank=rank, dimension=3), norm=1.0)
        assert choose("auto", Task(ball, BUDGET)).name == ("ball" if (1 / BUDGET.mu) ** 2 > rank + 1 else "weights")
    gaussian = privatise(WEIGHTS, BUDGET, noise="weights", relation=relation(), domain=[(-1, 1)] * 3)
    assert gaussian.certificate.mu == BUDGET.mu
    assert certificate.sigma is not None
    assert gaussian.certificate.sigma is not None
    assert certificate.sigma < 0.6 * gaussian.certificate.sigma


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
