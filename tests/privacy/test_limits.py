"""Caps on any private algorithm: the theory's table, and a mechanism that meets one exactly."""

import math
import warnings

import numpy as np
import pytest
from scipy.stats import norm

from quietq import Budget, InvalidInput, PrivacyWarning, people, privatise
from quietq.privacy import cap_any_dp, cap_gdp, explain, people_needed, steps_between, steps_needed

AT = Budget(0.9, 1e-4)
TABLE = [
    # radius, cap for any DP at 0.9, for GDP at 0.9, for GDP at 0.45
    (1.0, 0.711, 0.557, 0.531),
    (0.5, 0.711, 0.557, 0.531),
    (0.25, 0.858, 0.613, 0.561),
    (0.1, 0.989, 0.763, 0.650),
    (0.05, 0.9999, 0.924, 0.780),
    (0.01, 1.0, 1.0, 0.9999),
]


@pytest.mark.parametrize(("radius", "any_dp", "gdp", "gdp_half"), TABLE)
def test_the_theorys_table(radius, any_dp, gdp, gdp_half):
    steps = steps_between(0.5, radius)
    assert cap_any_dp(AT, steps) == pytest.approx(any_dp, abs=5e-4)
    assert cap_gdp(AT.mu, steps) == pytest.approx(gdp, abs=5e-4)
    assert cap_gdp(Budget(0.45, 1e-4).mu, steps) == pytest.approx(gdp_half, abs=5e-4)


def test_the_gdp_cap_is_attained_by_the_gaussian_test():
    """Deciding by the sign of (r + noise) at the one place that matters gets exactly Phi(k mu/2) on both."""
    mu, steps = 0.3, 7
    rng = np.random.default_rng(0)
    right = np.mean(rng.standard_normal(400_000) + steps * mu / 2 > 0)
    assert right == pytest.approx(cap_gdp(mu, steps), abs=6 * 0.5 / math.sqrt(400_000))
    assert cap_gdp(mu, steps) == pytest.approx(norm.cdf(steps * mu / 2))


def test_any_dp_cap_solves_its_own_inequality():
    for steps in (1, 3, 10):
        p, e = cap_any_dp(AT, steps), math.exp(AT.epsilon * steps)
        slack = e * (1 - p) + AT.delta * (e - 1) / (math.exp(AT.epsilon) - 1) - p
        assert slack == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("score", [0.6, 0.9, 0.98, 0.9999])
@pytest.mark.parametrize("width", [0.5, 1.3])
def test_people_needed_is_the_inverse(score, gaussian, width):
    def cap(people):
        steps = steps_between(0.5, width / people)
        return cap_gdp(AT.mu, steps) if gaussian else cap_any_dp(AT, steps)

    needed = people_needed(score, AT, distance=0.5, width=width, gaussian=gaussian)
    assert cap(needed) >= score
    assert needed == 1 or cap(needed - 1) < score


def test_for_a_score_of_098_on_the_walk():
    assert people_needed(0.98, AT, distance=0.5, width=0.5, gaussian=True) == 15
    assert people_needed(0.98, AT, distance=0.5, width=0.5, gaussian=False) == 5


def test_rounding_of_a_ratio_does_not_add_a_step():
    assert steps_between(0.3, 0.1) == 3
    assert steps_between(0.7, 0.1) == 7


def test_huge_steps_do_not_overflow():
    assert cap_any_dp(Budget(100, 1e-5), 10**6) == 1
    assert steps_needed(0.9, Budget(1e-4, 1e-15), gaussian=False) > 10_000


@pytest.mark.parametrize("score", [0.0, 1.0, -1.0, math.nan])
def test_impossible_scores(score):
    with pytest.raises(InvalidInput, match="score"):
        steps_needed(score, AT, gaussian=True)


@pytest.mark.parametrize(("epsilon", "weak"), [(9.99, False), (10.0, True), (1000.0, True)])
def test_an_epsilon_that_hides_little_is_said_loudly(epsilon: float, weak: bool) -> None:
    """In a warning when it is released, and in the certificate and on the page, with what a guesser can do."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        released = privatise(lambda s: s, Budget(epsilon, 1e-6), relation=people(50, 0, 1, 1))
    words = [str(one.message) for one in told if issubclass(one.category, PrivacyWarning)]
    assert any("hides little" in one and "of 100 cases" in one for one in words) == weak
    assert ("WARNING: epsilon" in str(released.certificate)) == weak
    assert any(line.mark == "warning" for line in explain(released.certificate, "everybody")) == weak
