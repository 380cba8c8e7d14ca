"""The optimal projection against the dense covariance matrix, and its promise against simulated paths."""

import numpy as np
import pytest
from scipy.stats import norm

from quietq.audit.projection import distance, mu_between, optimal_weights
from quietq.noise.entropy import SeededEntropy
from quietq.noise.grid_path import draw_grid
from quietq.noise.kernels import Exponential
from quietq.privacy import InvalidInput

GRID = np.linspace(0, 1, 65)
DIFFERENCES = {
    "kink": 0.5 - np.abs(GRID - 0.5),
    "constant": np.ones(65),
    "wave": np.sin(9 * GRID),
    "rough": np.random.default_rng(0).normal(size=65),
}


@pytest.mark.parametrize("name", DIFFERENCES)
@pytest.mark.parametrize("beta", [0.1, 1.0, 4.0, 200.0])
def test_weights_are_those_of_the_dense_matrix(name: str, beta: float) -> None:
    kernel, difference = Exponential(beta), DIFFERENCES[name]
    dense = np.linalg.solve(kernel.covariance(GRID, GRID), difference)
    weights = optimal_weights(kernel, difference)
    np.testing.assert_allclose(weights, dense, rtol=1e-9, atol=1e-9 * np.abs(dense).max())
    assert distance(kernel, difference) ** 2 == pytest.approx(float(difference @ dense), rel=1e-9)
    assert distance(kernel, difference) ** 2 == pytest.approx(float(difference @ weights), rel=1e-9)


@pytest.mark.parametrize("beta", [1e-3, 4.0])
def test_fine_grids_lose_no_digits(beta: float) -> None:
    """K w gives the difference back on the finest grid that mechanisms use, by the two recursions of the kernel."""
    points = 2**16 + 1
    kernel, difference = Exponential(beta), np.cos(7 * np.linspace(0, 1, points))
    weights = optimal_weights(kernel, difference)
    back = np.array([kernel.covariance(np.array([x]), np.linspace(0, 1, points))[0] @ weights for x in GRID[::8]])
    np.testing.assert_allclose(back, np.cos(7 * GRID[::8]), rtol=0, atol=1e-6)


def test_a_kernel_section_is_evaluation_at_its_point() -> None:
    weights = optimal_weights(Exponential(3.0), np.exp(-3.0 * np.abs(GRID - GRID[20])))
    np.testing.assert_allclose(weights, np.eye(65)[20], atol=1e-12)


def test_no_test_errs_less_on_simulated_releases() -> None:
    """Its error is Phi(-mu/2), within five standard deviations; plain evaluation and the mean err more."""
    kernel, sigma, runs = Exponential(4.0), 0.7, 20_000
    difference = DIFFERENCES["kink"]
    paths = sigma * draw_grid(kernel, 6, (runs,), SeededEntropy(3)).T
    mu = mu_between(kernel, difference, sigma)

    def errors(weights: np.ndarray) -> float:
        apart = float(weights @ difference)
        return float(np.mean(paths @ weights > apart / 2) + np.mean(paths @ weights <= -apart / 2)) / 2

    best = errors(optimal_weights(kernel, difference))
    expected = norm.cdf(-mu / 2)
    assert abs(best - expected) < 5 * np.sqrt(expected * (1 - expected) / (2 * runs))
    assert errors(np.eye(65)[32]) > best + 0.005
    assert errors(np.ones(65)) > best + 0.005


def test_wrong_input_is_refused_in_a_sentence() -> None:
    for wrong in (np.ones(1), np.ones((3, 3)), [0.0, np.nan], "text"):
        with pytest.raises(InvalidInput, match="difference must be"):
            optimal_weights(Exponential(1.0), wrong)
    with pytest.raises(InvalidInput, match="sigma"):
        mu_between(Exponential(1.0), np.ones(5), 0.0)
