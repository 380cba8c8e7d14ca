"""The mechanism: its law against an optimal adversary, and what a private function is."""

import copy
import math
import pickle

import numpy as np
import pytest
from scipy.stats import chi2, kstest
from walk_mechanism import BUDGET, PEOPLE, mechanism_for, table, walk_reward

from quietq import Budget, Certificate, Exponential, GaussianProcessMechanism, InvalidInput
from quietq.noise import Box
from quietq.noise.box import grid_points
from quietq.noise.rounding import largest_value, round_release, rounding_step
from quietq.paper import BandLimited, FeatureKernel
from quietq.released import PrivateKnots


def test_calibration_is_the_theorys():
    mechanism = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET)
    assert mechanism.kernel == Exponential(4.0)
    assert mechanism.sensitivity == pytest.approx(0.01 * math.sqrt(5))
    assert mechanism.sigma == pytest.approx(0.0782, abs=5e-5)


@pytest.mark.parametrize("mu", [0.286, *(pytest.param(mu, marks=pytest.mark.slow) for mu in (1.0, 3.0))])
def test_the_optimal_test_sees_exactly_mu(mu):
    """Projection on K^-1 (f - f') is N(0, 1) under f' and N(d', 1) under f, with d' = |f - f'|_K/sigma <= mu."""
    kernel, levels, draws = Exponential(4.0), 6, 600
    budget = Budget.from_mu(mu, 1e-4)
    points = np.arange(2**levels + 1) / 2**levels
    difference = np.sin(7 * points) * 0.2 + 0.3
    distance = kernel.norm_on(points, difference)
    mechanism = GaussianProcessMechanism(kernel, distance, budget, levels=levels)
    direction = np.linalg.solve(kernel.covariance(points, points), difference) / distance
    base = walk_reward(points)
    without, moved = (
        np.array([(mechanism.simulate(f, seed)(points) - base) @ direction for seed in range(draws)]) / mechanism.sigma
        for f in (walk_reward, lambda s: walk_reward(s) + np.interp(s, points, difference))
    )
    assert kstest(without, "norm").pvalue > 1e-6
    assert kstest(moved - distance / mechanism.sigma, "norm").pvalue > 1e-6
    assert distance / mechanism.sigma == pytest.approx(mu, rel=1e-9)
    np.testing.assert_allclose(moved - without, mu, atol=1e-3)  # the same noise: but for rounding, d' itself


def test_a_real_release_has_the_same_law():
    """`apply` itself, with the operating system's noise: whitened, it is standard normal."""
    kernel = Exponential(4.0)
    mechanism = GaussianProcessMechanism(kernel, 0.1, BUDGET, levels=15)
    points = grid_points(mechanism.box, 15)
    noise = (mechanism.apply(walk_reward)(points) - walk_reward(points)) / mechanism.sigma
    from quietq.privacy.relations import whiten

    # rounding adds a step of sigma 2^-20 to increments of size sigma sqrt(2 beta h): invisible
    assert kstest(whiten(4.0, points, noise), "norm").pvalue > 1e-9


def test_a_private_function_is_consistent_shareable_and_read_only():
    private = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET).apply(walk_reward)
    states = np.random.default_rng(0).random(100)
    again = pickle.loads(pickle.dumps(private))
    np.testing.assert_array_equal(private(states), again(states[::-1])[::-1])
    np.testing.assert_array_equal(private(states), [float(private(s)) for s in states])
    with pytest.raises(ValueError, match="read-only"):
        table(private)[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        table(again)[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        table(copy.deepcopy(private))[0] = 0
    with pytest.raises(InvalidInput, match="within"):
        private(1.2)


def test_released_values_are_multiples_of_a_public_step():
    mechanism = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET)
    step = rounding_step(mechanism.sigma)
    for constant in (0.0, 1.0, 1 / 3):
        again = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET)
        multiples = table(again.apply(lambda s, c=constant: np.full(s.shape, c))) / step
        np.testing.assert_array_equal(multiples, np.rint(multiples))
        assert np.abs(multiples).max() < 2**44  # so that the last place of a float is 256 times finer
    assert mechanism.sigma * 2**-21 < step <= mechanism.sigma * 2**-20
    assert largest_value(mechanism.sigma) == step * 2**44


def test_zero_is_released_without_a_sign():
    zeros = round_release(np.array([0.0, -0.0]), np.array([-1e-9, 1e-9]), sigma=1.0)
    np.testing.assert_array_equal(zeros, 0.0)
    assert not np.signbit(zeros).any()


def test_low_bits_do_not_tell_zero_from_one():
    """Without rounding they do: 1 + g is always a multiple of 2^-53, g near 0 almost never."""
    mechanism = GaussianProcessMechanism(Exponential(1.0), 1.0, Budget.from_mu(20.0, 1e-4), levels=10)

    def share_of_coarse(values, unit):
        return np.mean(np.mod(values / unit, 1) == 0)

    noise = mechanism.sigma * np.random.default_rng(0).standard_normal(1000)
    assert share_of_coarse(1 + noise, 2.0**-53) > 0.9
    assert share_of_coarse(noise, 2.0**-53) < 0.6
    for seed, constant in enumerate((0.0, 1.0)):
        released = mechanism.simulate(lambda s, c=constant: np.full(s.shape, c), seed)(np.linspace(0, 1, 1000))
        assert share_of_coarse(released, rounding_step(mechanism.sigma)) == 1


def test_noise_of_every_kernel_has_the_scale_that_was_certified():
    """Over many simulations: variance sigma^2 K(x, x) at a point, for every form of release.

    The sum of squares sees a scale that is off by a third in 200 draws, where a test of the whole law would need more.
    """
    features = FeatureKernel(lambda x: np.stack([np.ones_like(x), x], axis=-1), rank=2)
    for kernel, zero, state in (
        (Exponential(2.0), lambda s: 0 * s, 0.3),
        (Exponential((1.0, 2.0)), lambda s: 0 * s[:, 0], [0.3, 0.9]),
        (Exponential((1.0, 2.0), summed=True), [lambda s: 0 * s] * 2, [0.3, 0.9]),
        (features, np.zeros(2), 0.3),
        (BandLimited(2.0), lambda s: 0 * s, 0.3),
    ):
        mechanism = mechanism_for(kernel)(kernel, 0.1, BUDGET, levels=4)
        values = np.array([float(mechanism.simulate(zero, seed)(state)) for seed in range(200)])
        on_a_grid = isinstance(kernel, Exponential)
        point = np.rint(np.atleast_2d(state) * 16) / 16 if on_a_grid else np.atleast_2d(state)
        point = point[0] if kernel.dimension == 1 else point
        expected = mechanism.sigma * math.sqrt(kernel.covariance(point, point)[0, 0])
        squares = float(np.sum((values / expected) ** 2))
        assert min(chi2.cdf(squares, 200), chi2.sf(squares, 200)) > 5e-7


def test_simulation_is_marked_and_spends_nothing():
    mechanism = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET, levels=8)
    one, same, other = (mechanism.simulate(walk_reward, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(table(one), table(same))
    assert not np.array_equal(table(one), table(other))
    assert one.certificate.standing == "none"
    assert one.certificate.reproducible
    assert one.certificate.epsilon is None
    mechanism.apply(walk_reward)


def test_knots_come_out_of_a_pickle_read_only():
    bare = Certificate(method="x", standing="none")
    knots = PrivateKnots(np.array([0.0, 1.0]), Box.of((0, 1)), bare)
    for again in (knots, copy.copy(knots), copy.deepcopy(knots), pickle.loads(pickle.dumps(knots))):
        with pytest.raises(ValueError, match="read-only"):
            again.values[0] = 1
