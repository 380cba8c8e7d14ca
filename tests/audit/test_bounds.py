"""Lower bounds hold at their confidence, by exact enumeration; they are as tight as they say; a peer's is not valid."""

import itertools
import math

import numpy as np
import pytest
from jax_privacy.auditing import CanaryScoreAuditor
from scipy.stats import binom, norm

from quietq.audit.bounds import Errors, epsilon_lower, mu_lower
from quietq.privacy import InvalidInput

RATES = (0.001, 0.02, 0.1, 0.25, 0.4, 0.5, 0.6, 0.8, 0.99)


def chance_of_total(total: np.ndarray | int, runs: int, first: float, second: float) -> np.ndarray:
    """P(Bin(runs, first) + Bin(runs, second) <= total), by convolution."""
    one, other = (np.asarray(binom.pmf(np.arange(runs + 1), runs, rate)) for rate in (first, second))
    return np.cumsum(np.convolve(one, other))[total]


def least_mu(first: float, second: float) -> float:
    """The smallest mu of a mechanism for which a test can have these error rates."""
    return max(0.0, -float(norm.ppf(first)) - float(norm.ppf(second)))


def test_hoeffding_two_coins_have_a_lighter_lower_tail_than_their_mean() -> None:
    for runs, first, second in itertools.product((1, 2, 7, 40), RATES, RATES):
        mean, total = (first + second) / 2, np.arange(2 * runs + 1)
        ours, binomial = chance_of_total(total, runs, first, second), binom.cdf(total, 2 * runs, mean)
        below = total <= 2 * runs * mean - 1
        assert (ours[below] <= binomial[below] + 1e-12).all()


@pytest.mark.parametrize("confidence", [0.55, 0.7, 0.95, 1 - 1e-6])
def test_mu_is_exceeded_no_more_often_than_stated(confidence: float) -> None:
    """Over all totals of errors, exactly, for any pair of error rates: not only those of a Gaussian midpoint test."""
    for runs in (1, 2, 5, 20, 100):
        counts = [Errors(k // 2, runs, k - k // 2, runs) for k in range(2 * runs + 1)]
        bounds = np.array([mu_lower(one, confidence) for one in counts])
        assert (np.diff(bounds) <= 0).all()
        for first, second in itertools.product(RATES, RATES):
            wrong = np.flatnonzero(bounds > least_mu(first, second) + 1e-12)
            if len(wrong):
                chance = chance_of_total(int(wrong.max()), runs, first, second)
                assert chance <= (1 - confidence) * (1 + 1e-6)


@pytest.mark.parametrize(("without", "with_"), [(7, 12), (30, 31), (12, 12)])
def test_both_bounds_hold_for_any_pair_of_rates(without: int, with_: int) -> None:
    """Exactly, over all pairs of counts; unequal runs take the other bound on mu."""
    confidence, delta = 0.9, 0.01
    pairs = list(itertools.product(range(without + 1), range(with_ + 1)))
    errors = [Errors(a, without, b, with_) for a, b in pairs]
    epsilons = np.array([epsilon_lower(one, delta, confidence) for one in errors])
    mus = np.array([mu_lower(one, confidence) for one in errors])
    for first, second in itertools.product(RATES, RATES):
        alarms = binom.pmf(np.arange(without + 1), without, first)
        mass = np.outer(alarms, binom.pmf(np.arange(with_ + 1), with_, second)).ravel()
        ratios = [(1 - second - delta) / first, (1 - first - delta) / second]
        epsilon = max(0.0, *(math.log(ratio) for ratio in ratios if ratio > 0), 0.0)
        assert mass[epsilons > epsilon + 1e-12].sum() <= 1 - confidence
        assert mass[mus > least_mu(first, second) + 1e-12].sum() <= 1 - confidence


@pytest.mark.parametrize("mu", [0.0, 0.3, 1.0, 3.0])
def test_the_stated_confidence_is_used_up_on_gaussians(mu: float) -> None:
    """For N(0, 1) against N(mu, 1), exactly: never more than 5 % too large, and not far fewer either."""
    runs = 500
    rate = float(norm.cdf(-mu / 2))
    bounds = np.array([mu_lower(Errors(k // 2, runs, k - k // 2, runs)) for k in range(2 * runs + 1)])
    exceeded = binom.pmf(np.arange(2 * runs + 1), 2 * runs, rate)[bounds > mu].sum()
    assert 0.03 < exceeded <= 0.05
    if mu == 0.3:
        typical = bounds[round(2 * runs * rate)]
        assert mu - typical == pytest.approx(2.92 / math.sqrt(runs), rel=0.05)
        apart = mu_lower(Errors(round(runs * rate), runs, round(runs * rate) + 1, runs + 1))
        assert typical > 0.15
        assert apart < 0.1


def test_known_values() -> None:
    none = Errors(0, 100, 0, 100)
    upper = 1 - 0.025 ** (1 / 100)
    assert epsilon_lower(none, 0.0) == pytest.approx(math.log((1 - upper) / upper), rel=1e-12)
    assert mu_lower(none) == pytest.approx(-2 * norm.ppf(1 - 0.05 ** (1 / 200)), rel=1e-12)
    assert epsilon_lower(Errors(100, 100, 100, 100), 0.0) == mu_lower(Errors(100, 100, 100, 100)) == 0
    assert epsilon_lower(Errors(0, 100, 100, 100), 0.0) == 0
    one_sided = Errors(0, 1000, 500, 1000)  # a sure sign, seen in half of the runs
    assert epsilon_lower(one_sided, 1e-4) > 4.5
    assert epsilon_lower(Errors(500, 1000, 0, 1000), 1e-4) == epsilon_lower(one_sided, 1e-4)
    extreme = mu_lower(Errors(0, 10**9, 0, 10**9), 1 - 1e-6)
    assert 11 < extreme < 12
    assert one_sided.accuracy == 0.75


def test_a_fixed_threshold_on_the_same_distribution_finds_nothing_where_a_peers_bound_finds_much() -> None:
    """epsilon_from_gdp of jax-privacy 2.0 takes the largest |mu|, so that a loose bound becomes a strong claim.

    Two hundred scores a world of one and the same distribution, significance 0.05, delta 1e-4: epsilon is 0, so at most
    one audit in twenty may report more. The peer's reports more nearly always, and typically 4 and up.
    """
    rng, audits = np.random.default_rng(7), 60
    theirs, ours = [], []
    for _ in range(audits):
        with_, without = rng.normal(size=(2, 200))
        theirs.append(CanaryScoreAuditor(with_, without).epsilon_from_gdp(significance=0.05, delta=1e-4))
        ours.append(mu_lower(Errors.at_threshold(without, with_, 0.0)))
    assert np.mean(np.array(theirs) > 1) > 0.9
    assert np.median(theirs) > 3.5
    assert np.max(theirs) > 5
    assert binom.sf(np.count_nonzero(ours) - 1, audits, 0.05) > 1e-6
    few = [CanaryScoreAuditor(*scores) for scores in rng.normal(size=(40, 2, 10))]
    peers = [audit.epsilon_from_gdp(significance=0.05, delta=1e-5) for audit in few]
    assert np.median(peers) > 8


def test_scores_are_counted_against_the_threshold() -> None:
    assert Errors.at_threshold([0.0, 0.5, 2.0], [0.5, 0.6], 0.5) == Errors(1, 3, 1, 2)
    assert Errors.at_threshold([-np.inf], [np.inf], 0.0) == Errors(0, 1, 0, 1)
    with pytest.raises(InvalidInput, match="NaN"):
        Errors.at_threshold([np.nan], [1.0], 0.0)


def test_wrong_input_is_refused_in_a_sentence() -> None:
    fine = Errors(1, 10, 1, 10)
    for confidence in (0.5, 1.0, 0.0, float("nan")):
        with pytest.raises(InvalidInput, match="confidence must be"):
            mu_lower(fine, confidence)
    for wrong in (Errors(11, 10, 1, 10), Errors(-1, 10, 1, 10)):
        with pytest.raises(InvalidInput, match="false_alarms must be"):
            epsilon_lower(wrong, 1e-4)
    with pytest.raises(InvalidInput, match="runs_with must be"):
        mu_lower(Errors(1, 10, 0, 0))
    with pytest.raises(InvalidInput, match="delta must be"):
        epsilon_lower(fine, 1.0)
