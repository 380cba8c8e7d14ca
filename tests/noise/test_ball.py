"""Pure noise of uniform direction and Gamma length: its law, and what it hides."""

import numpy as np
import pytest
from scipy import stats

from quietq.noise import SeededEntropy
from quietq.noise.laws import BallNoise
from quietq.privacy.norms import Answers


@pytest.mark.parametrize("numbers", [1, 3, 8])
def test_lengths_are_gamma_and_directions_uniform(numbers):
    drawn = BallNoise(25.0, numbers, Answers()).draws(SeededEntropy(1), 20_000)
    lengths = np.linalg.norm(drawn, axis=1)
    assert stats.kstest(lengths, stats.gamma(numbers, scale=0.04).cdf).pvalue > 1e-6
    assert drawn.std() == pytest.approx(BallNoise(25.0, numbers, Answers()).sigma, rel=0.03)
    if numbers > 1:  # a coordinate of a uniform direction, squared, is Beta
        squares = (drawn[:, 0] / lengths) ** 2
        assert stats.kstest(squares, stats.beta(0.5, (numbers - 1) / 2).cdf).pvalue > 1e-6


def test_neighbours_are_no_easier_to_tell_apart_than_epsilon_says():
    """The loss epsilon (|z + shift| - |z|)/radius is epsilon at the most, and is reached."""
    epsilon, radius = 0.7, 0.02
    drawn = BallNoise(epsilon / radius, 3, Answers()).draws(SeededEntropy(2), 100_000)
    shift = np.array([radius, 0, 0])
    loss = epsilon * (np.linalg.norm(drawn + shift, axis=1) - np.linalg.norm(drawn, axis=1)) / radius
    assert np.abs(loss).max() <= epsilon * (1 + 1e-12)
    assert np.abs(loss).max() >= 0.999 * epsilon
    assert np.exp(-loss).mean() == pytest.approx(1, abs=0.02)  # densities integrate to one: the noise is what it says
