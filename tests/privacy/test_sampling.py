"""What rounds of a random part of the people cost, against integrals and sums of our own."""

import math

import numpy as np
import pytest

from quietq import Budget, InvalidInput
from quietq.privacy import SampledRounds

pytest.importorskip("dp_accounting")
GRID = np.linspace(-12.0, 12.0, 100_001)


def pair(fraction: float, mu: float) -> list[np.ndarray]:
    """The probabilities of both sides around the points of the grid."""
    nobody, *both = (
        np.exp(-((GRID - shift) ** 2) / 2) / math.sqrt(2 * math.pi) * (GRID[1] - GRID[0])
        for shift in (0, mu / 2, -mu / 2)
    )
    return [(1 - fraction) * nobody + fraction * one for one in both]


@pytest.mark.parametrize(("fraction", "mu", "epsilon"), [(0.05, 1.0, 0.02), (0.3, 0.5, 0.1), (0.01, 3.0, 1.0)])
def test_one_round(fraction: float, mu: float, epsilon: float) -> None:
    one, other = pair(fraction, mu)
    expected = np.maximum(one - math.exp(epsilon) * other, 0).sum()
    found = SampledRounds(fraction, 1, mu, 0.0).delta(epsilon)
    assert expected * (1 - 1e-6) <= found <= expected * 1.002


def losses(fraction: float, mu: float, step: float, up: bool) -> np.ndarray:
    """How likely each loss is, rounded to steps; the middle one is 0."""
    one, other = pair(fraction, mu)
    whole = (np.ceil if up else np.floor)(np.log(one / other) / step).astype(int)
    return np.bincount(whole + 20_000, one, 40_001)


@pytest.mark.parametrize("up", [False, True])
def test_rounds_and_looks_add_up(up: bool) -> None:
    """By a sum of our own, in which losses are rounded all down, or all up."""
    fraction, mu, looks, epsilon, step, rounds = 0.1, 1.5, 0.3, 0.8, 1e-3, 3
    drawn, asked = (losses(*one, step, up) for one in ((fraction, mu), (1.0, looks)))
    size = 2**18
    total = np.fft.irfft(np.fft.rfft(drawn, size) ** rounds * np.fft.rfft(asked, size), size)
    values = step * (np.arange(size) - 20_000 * (rounds + 1))
    expected = np.sum(total * np.maximum(-np.expm1(epsilon - values), 0))
    found = SampledRounds(fraction, rounds, mu, looks).delta(epsilon)
    assert found < expected if up else found > expected
    assert found == pytest.approx(expected, rel=0.03)


def test_opposite_people_are_the_worst() -> None:
    """In the plane, for vectors of any length and angle."""
    grid, rng = np.linspace(-7, 7, 281), np.random.default_rng(0)
    across, along = np.meshgrid(grid, grid)

    def normal(length: float, angle: float) -> np.ndarray:
        away = (across - length * math.cos(angle)) ** 2 + (along - length * math.sin(angle)) ** 2
        return np.exp(-away / 2) / (2 * math.pi) * (grid[1] - grid[0]) ** 2

    for fraction, longest, ratio in ((0.05, 1.5, 1.05), (0.3, 0.5, 1.2), (0.3, 1.5, 1.0)):

        def apart(one: np.ndarray, other: np.ndarray, q: float = fraction, ratio: float = ratio) -> float:
            nobody = (1 - q) * (1 - ratio) * normal(0, 0)
            return float(np.maximum(nobody + q * (one - ratio * other), 0).sum())

        worst = apart(normal(longest, 0), normal(longest, math.pi))
        for length in (longest, *longest * rng.random(4)):
            one, other = normal(longest, 0), normal(length, rng.uniform(0, 2 * math.pi))
            assert max(apart(one, other), apart(other, one)) <= worst + 1e-12


def test_noise_is_as_little_as_the_budget_allows() -> None:
    budget = Budget(1.0, 1e-5)
    found = SampledRounds.for_budget(budget, 0.05, 24, 0.1)
    assert 0.97 * budget.delta < found.delta(1.0) <= 0.99 * budget.delta
    assert found.epsilon(1e-5) <= 1.0
    assert 0.05 * found.each * math.sqrt(24) == pytest.approx(math.sqrt(budget.mu**2 - 0.1**2), rel=0.05)


def test_what_is_covered() -> None:
    plan = SampledRounds(0.1, 2, 1.0, 0.5)
    assert plan.covers([(1, 0.3), (1, 0.4), (0.1, 1.0), (0.1, 1.0)])
    for more in ([(1, 0.3), (1, 0.41)], [(0.1, 1.01)], [(0.1, 1.0)] * 3, [(0.2, 0.5)]):
        assert not plan.covers(more)


@pytest.mark.parametrize("fraction", [0, 1, 1.5, -0.1, 1e-4, math.nan, True])
def test_fractions_that_are_none(fraction: float) -> None:
    with pytest.raises(InvalidInput, match="fraction must be"):
        SampledRounds(fraction, 24, 1.0, 0.0)


def test_a_delta_that_is_too_small_is_refused() -> None:
    with pytest.raises(InvalidInput, match="delta must be at least 1e-10 where people are sampled, not 1e-11"):
        SampledRounds(0.1, 2, 1.0, 0.5).epsilon(1e-11)
