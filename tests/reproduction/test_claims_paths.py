"""Lemmas about sample paths: how high they reach, their likelihood ratios, how rough they are."""

import math

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

from quietq.noise import SeededEntropy
from quietq.noise.grid_path import draw_grid
from quietq.privacy import Exponential
from reproduction.claims import paths


def test_the_tail_of_the_maximum_needs_sigma() -> None:
    """Exact: max f >= f(0), which is N(0, sigma^2). Where sigma is at most 1, the printed tail is true (Borell)."""
    beta, sigma = 1e-3, 3.0
    for u in (4.0, 8.0):
        assert norm.sf((8.68 * math.sqrt(beta) * sigma + u) / sigma) > 10 * math.exp(-u * u / 2)
    maxima = draw_grid(Exponential(beta), 6, (2000,), SeededEntropy(0)).max(axis=0)
    for u in (1.0, 2.0):
        assert (0.5 * maxima >= 8.68 * math.sqrt(beta) * 0.5 + u).mean() <= math.exp(-u * u / 2)


def test_the_constant_of_the_lemma_is_the_sum_of_its_series() -> None:
    """Nearly: 8.6838, which is not below 8.68."""
    terms = mpmath.nsum(
        lambda i: (mpmath.sqrt(i) + 1 + mpmath.exp(-mpmath.sqrt(i) - 1)) * mpmath.mpf(2) ** (-i / 2), [0, 300]
    )
    total = float(terms + 1 / mpmath.sqrt(mpmath.pi))
    assert 8.68 < total < 8.69
    assert paths._series()["measured"] == pytest.approx(total)


def test_moments_of_the_likelihood_ratio() -> None:
    """Exact for two points: quadrature of the ratio's density, whose logarithm is N(-mu^2/2, mu^2) under P0."""
    mu, nodes = 0.7, np.polynomial.hermite_e.hermegauss(80)
    for order in (0.5, 1.0, 2.0, 3.0):
        logs = mu * nodes[0] - mu**2 / 2
        moment = float(nodes[1] @ np.exp(order * logs)) / math.sqrt(2 * math.pi)
        assert math.log(moment) == pytest.approx((order**2 - order) * mu**2 / 2)
        under_one = float(nodes[1] @ np.exp(order * (logs + mu**2))) / math.sqrt(2 * math.pi)
        assert math.log(under_one) == pytest.approx((order**2 + order) * mu**2 / 2)
    rows = [row for row in paths.measure_moments(40_000) if row["claim"] == paths.MOMENTS.name]
    square = next(float(row["measured"] or 0) for row in rows if row["quantity"] == "mu squared")
    for row in rows[1:]:
        order, sign = float(row["x"] or 0), -1 if row["quantity"] == "exponent under P0" else 1
        assert row["measured"] == pytest.approx((order**2 + sign * order) * square / 2, abs=0.06)


def test_a_true_bound_holds_although_it_is_loose() -> None:
    """lambda^2 - lambda keeps to the printed lambda^2 + lambda; what is above it does not."""
    square, orders = 0.5, (0.5, 1.0, 2.0)
    for exponent, verdict in (
        (lambda x: x * x - x, "holds"),
        (lambda x: x * x + x, "holds"),
        (lambda x: x * x + 2 * x, "fails"),
    ):
        rows = [paths.MOMENTS.row("mu squared", square)]
        for words in ("exponent under P0", "exponent under P1"):
            rows += [paths.MOMENTS.row(words, exponent(x) * square / 2, x=x) for x in orders]
        assert paths.MOMENTS.claim(rows).verdict == verdict


def test_the_last_line_of_the_moment_lemma() -> None:
    beta, grid = 0.1, np.linspace(0, 1, 9)
    true = np.ones(9) @ np.linalg.solve(Exponential(beta).covariance(grid, grid), np.ones(9))
    assert true == pytest.approx(1 + beta / 2)
    assert beta**2 + 1 < true


def test_paths_are_not_in_the_space() -> None:
    beta, sigma = 3.0, 2.0
    path = sigma * draw_grid(Exponential(beta), 16, (), SeededEntropy(3))
    variation = (np.diff(path) ** 2).sum()  # of 65,536 squares: a relative error of 0.006
    assert variation == pytest.approx(2 * beta * sigma**2, rel=0.04)
    norms = [Exponential(beta).norm_on(np.linspace(0, 1, len(p)), p) ** 2 for p in (path[::256], path[::16], path)]
    assert norms[0] < norms[1] / 8 < norms[2] / 100


def test_the_matrices_are_right() -> None:
    """Claim 12 against inverses by elimination."""
    n, beta = 7, 2.0
    kernel, step = Exponential(beta), beta / (2 * n)
    even, odd = np.arange(0, 2 * n + 1, 2) / (2 * n), np.arange(1, 2 * n, 2) / (2 * n)
    weights = kernel.covariance(odd, even) @ np.linalg.inv(kernel.covariance(even, even))
    printed = math.exp(-step) / (1 + math.exp(-2 * step)) * (np.eye(n, n + 1) + np.eye(n, n + 1, k=1))
    np.testing.assert_allclose(weights, printed, atol=1e-12)
    left = kernel.covariance(odd, odd) - weights @ kernel.covariance(odd, even).T
    np.testing.assert_allclose(left, (1 - math.exp(-2 * step)) / (1 + math.exp(-2 * step)) * np.eye(n), atol=1e-12)
    rows = paths.measure_moments(2000)
    assert paths.MATRICES.claim(rows).verdict == "holds"
    assert [paths.ROUGH.claim(rows).verdict, paths.LAST_LINE.claim(rows).verdict] == ["fails", "fails"]


def test_verdicts_on_the_maximum() -> None:
    rows = paths.measure(100)
    assert [statement.claim(rows).verdict for statement in (paths.MAXIMUM, paths.TAIL, paths.SUM)] == [
        "holds",
        "in part",
        "fails",
    ]
    higher = [row | {"measured": 1e3} if row["quantity"] == paths.MEAN else row for row in rows]
    assert paths.MAXIMUM.claim(higher).verdict == "fails"
