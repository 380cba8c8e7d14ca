"""Every path against the exact law: all betas, close and distant points, any order."""

from typing import Any

import numpy as np
import pytest
from laws import TAIL, grid_path, largest_covariance_error, p_value, sample

from quietq.noise import SeededEntropy
from quietq.noise.grid_path import draw_grid
from quietq.paper.sampler import SortedPath
from quietq.privacy import Exponential
from quietq.privacy.relations import whiten

BETAS = [1e-3, 1.0, 10.0, 1.6e4]
FINE = np.array([0, 1, 2, 2**10, 2**20, 2**20 + 1, 2**28, 2**29, 2**29 + 2**12, 2**30 - 7, 2**30]) / 2**30
COARSE = np.array([0, 1, 2, 3, 7, 64, 65, 100, 200, 255, 256]) / 256


def slow(value: Any) -> Any:
    """A case that others stand for, unless all is run."""
    return pytest.param(value, marks=pytest.mark.slow)


def check(kernel, points, samples):
    assert p_value(kernel, points, samples) > TAIL
    assert largest_covariance_error(kernel, points, samples) < 6


@pytest.mark.parametrize("beta", BETAS)
def test_sorted_path(beta):
    kernel = Exponential(beta)
    check(kernel, FINE, sample(lambda i: SortedPath(kernel, entropy=SeededEntropy(i)), FINE, 800))


@pytest.mark.parametrize("beta", BETAS)
def test_grid_path(beta):
    kernel = Exponential(beta)
    check(kernel, COARSE, sample(lambda i: grid_path(kernel, levels=8, entropy=SeededEntropy(i)), COARSE, 800))


@pytest.mark.parametrize("beta", BETAS)
def test_whole_grid(beta):
    """One fine grid is itself a large sample: its whitened increments are independent normals."""
    values = draw_grid(Exponential(beta), 16, (), SeededEntropy(7))
    points = np.arange(2**16 + 1) / 2**16
    from scipy.stats import kstest

    assert kstest(whiten(beta, points, values), "norm").pvalue > TAIL


@pytest.mark.parametrize("betas", [slow((1e-3, 1.0)), (10.0, 2.0), slow((1.6e4, 1.0)), (1.0, 2.0, 3.0)])
def test_product_paths(betas):
    kernel = Exponential(betas)
    rng = np.random.default_rng(3)
    points = rng.integers(0, 2**5 + 1, (8, len(betas))) / 2**5
    points[0], points[1] = 0.0, 1.0

    check(kernel, points, sample(lambda i: grid_path(kernel, levels=5, entropy=SeededEntropy(i)), points, 500))


def test_additive_path():
    kernel = Exponential((1.0, 10.0, 0.1), summed=True)
    points = np.random.default_rng(4).integers(0, 2**6 + 1, (8, 3)) / 2**6
    check(kernel, points, sample(lambda i: grid_path(kernel, levels=6, entropy=SeededEntropy(i)), points, 800))


def test_scale_and_domain():
    kernel = Exponential(4.0)
    points = COARSE * 30 - 10
    for make in (
        lambda i: SortedPath(kernel, 0.1, (-10, 20), SeededEntropy(i)),
        lambda i: grid_path(kernel, 8, 0.1, (-10, 20), SeededEntropy(i)),
    ):
        check(kernel, COARSE, sample(make, points, 800) / 0.1)


def test_expected_maximum():
    """Erratum 3: the true E max/sigma, against which the paper's 8.68 sqrt(beta) is 8 to 262 times too large.

    A grid misses the maximum between its points by 0.5826 sqrt(2 beta h) to first order (Chernoff 1965); by symmetry
    (max - min)/2 has the same mean and less spread. For small beta it tends to sqrt(4 beta/pi), its upper bound.
    """
    printed_over_true = []
    for beta, expected in ((0.1, 0.354), (1.0, 1.045), (10.0, 2.249), (100.0, 3.23), (1000.0, 3.96), (2e4, 4.69)):
        levels = 12 if beta < 50 else 17
        paths = 1000 if beta < 50 else 60
        entropy = SeededEntropy(5)
        ranges = [np.ptp(draw_grid(Exponential(beta), levels, (), entropy)) for _ in range(paths)]
        maxima = np.array(ranges) / 2
        mean = np.mean(maxima) + 0.5826 * np.sqrt(2 * beta * 2.0**-levels)
        error = np.std(maxima) / np.sqrt(paths)
        assert abs(mean - expected) < 6 * error + 0.003
        assert mean - 6 * error < np.sqrt(4 * beta / np.pi)
        printed_over_true.append(8.68 * np.sqrt(beta) / expected)
    assert min(printed_over_true) == pytest.approx(7.75, rel=0.01)
    assert max(printed_over_true) == pytest.approx(262, rel=0.01)
