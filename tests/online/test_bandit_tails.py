"""The constants of bandits, by computing tails and not by quoting them."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, gamma, laplace, norm

from quietq import Budget
from quietq.online import Linear
from quietq.online.elimination import Epoch
from quietq.online.episodes import index
from quietq.online.linear import confidence


@pytest.mark.parametrize(
    "noise", [(0.02, math.inf), (0.3, math.inf), (5.0, math.inf), (math.inf, 0.1), (math.inf, 2.0)]
)
@pytest.mark.parametrize(("answers", "mean"), [(1, 0.6), (8, 0.1), (64, 0.5), (1024, 0.95)])
def test_an_index_is_below_the_mean_as_rarely_as_stated(noise: tuple[float, float], answers: int, mean: float) -> None:
    """P(index < q), summed over all binomial outcomes with the noise's own distribution function."""
    rate, mu = noise
    for level in (1.0, 5.0, 12.0):

        def above(x: float, level: float = level) -> float:
            return float(index(np.array([x]), np.array([answers]), level, rate, mu)[0]) - mean

        low = -1e6
        if above(low) > 0:
            continue  # it is never below
        x: Any = brentq(above, low, mean)
        ones = np.arange(answers + 1)
        below = laplace(scale=1 / rate).cdf if mu == math.inf else norm(scale=1 / mu).cdf
        wrong = float(binom.pmf(ones, answers, mean) @ below(answers * x - ones))
        assert wrong <= math.exp(-level) * (1 + 1e-9)
        assert level > 1 or wrong > 0.01 * math.exp(-level)  # and it is not far from it


def test_an_index_grows_with_the_mean_and_shrinks_with_answers() -> None:
    means, few, many = np.linspace(-1, 1, 9), np.full(9, 10), np.full(9, 1000)
    assert (np.diff(index(means, few, 3.0, 0.1)) > 0).all()
    assert (index(means, few, 3.0, 0.1) > index(means, many, 3.0, 0.1)).all()
    # without noise it is the index of KL-UCB: n kl(x, q) = level
    q = index(np.array([0.3]), np.array([50]), 2.0, math.inf)[0]
    assert 50 * (0.3 * math.log(0.3 / q) + 0.7 * math.log(0.7 / (1 - q))) == pytest.approx(2.0, rel=2e-3)


@pytest.mark.parametrize(("scale", "pure"), [(1.0, True), (200.0, True), (1.0, False), (200.0, False)])
def test_epochs_fail_as_rarely_as_stated(scale: float, pure: bool) -> None:
    """For a best arm at 1/2, whose binomial tails are the widest, by exact tails of answers and of noise."""
    wrong, total = 1e-4, 0.0
    for number in range(1, 9):
        epoch = Epoch.of(number, 5, wrong, scale, pure)
        assert epoch.sampling + epoch.noise <= 2.0**-number / 4
        far = math.floor(epoch.answers * (0.5 - epoch.sampling))
        beyond = epoch.answers * epoch.noise
        noise = laplace(scale=scale).cdf(-beyond) if pure else norm(scale=scale).cdf(-beyond)
        total += 5 * 2 * (binom.cdf(far, epoch.answers, 0.5) + noise)
    assert total <= wrong * (math.pi**2 / 12)
    assert math.pi**2 / 12 < 0.83


@pytest.mark.parametrize("nodes", [1, 2, 5, 20])
def test_sums_of_nodes_are_beyond_their_bound_as_rarely_as_stated(nodes: int) -> None:
    """A sum of Laplace numbers is the difference of two Gamma numbers: its tail by integrating over one of them."""
    for time in (2, 10, 1e3, 1e6):
        bound = math.sqrt(4 * nodes * math.log(time)) + math.log(time)
        places = np.linspace(0.0, 40.0 + 6 * nodes, 200_001)
        tail = float(np.trapezoid(gamma.pdf(places, nodes) * gamma.sf(places + bound, nodes), places))
        assert 0 < tail <= 1 / time


def test_true_values_are_within_the_theorems_widths_at_all_times() -> None:
    """At width 1, with noise that is larger than the data: 1/arrivals of all runs may fail, and none of ten does."""
    generator = np.random.default_rng(8)
    for seed in range(10):
        policy = Linear(2, Budget(2.0, 1e-5), dimension=2, arrivals=128, simulate=seed)
        true = generator.normal(size=2)
        true /= 2 * np.linalg.norm(true)
        for _ in range(128):
            rows = generator.normal(size=(2, 2))
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            arm = policy.choose(rows)
            estimate, inverse, width = policy._solved
            far = np.abs(rows @ (estimate - true)) / np.sqrt(np.einsum("ai,ij,aj->a", rows, inverse, rows))
            assert (far <= width).all()
            policy.learn(rows, arm, float(generator.random() < 0.5 + rows[arm] @ true))


def test_bounds_on_symmetric_noise_hold() -> None:
    """The spectral norm's mean is below sqrt(2 d), and its tails lighter than those that are used."""
    generator = np.random.default_rng(1)
    for d in (2, 10):
        drawn = generator.normal(size=(4000, d, d))
        drawn = (drawn + drawn.transpose(0, 2, 1)) / 2  # 1 on the diagonal, 1/sqrt(2) off it
        largest = np.linalg.eigvalsh(drawn)[:, -1]
        assert largest.mean() < math.sqrt(2 * d)
        for u in (0.5, 1.0, 2.0):
            assert (largest > math.sqrt(2 * d) + u).mean() <= math.exp(-(u**2) / 2)
        lengths = np.linalg.norm(generator.normal(size=(4000, d)), axis=1)
        assert (lengths > math.sqrt(d) + 1.0).mean() <= math.exp(-0.5)


def test_all_times_together_fail_as_rarely_as_stated() -> None:
    """3 tails of exp(-u^2/2) at each of all times, and a sixth of `wrong` for sampling."""
    steps = np.arange(1, 10**5)
    u = np.sqrt(2 * np.log(6 * steps**2 / 0.01))
    assert (3 * np.exp(-(u**2) / 2)).sum() + 0.01 / 6 < 0.01
    shift, width = confidence(5, 100, 10.0, 0.01, 0.5)
    assert shift > 20 * math.sqrt(10)
    assert width > confidence(5, 100, 0.0, 0.01, 0.5)[1]
