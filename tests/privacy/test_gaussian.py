"""The exact curve: against 60-digit arithmetic, against dp-accounting, and its own order."""

import math
from typing import Any

import mpmath
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, strategies as st

from quietq import Budget, InvalidInput
from quietq.paper.theorem import paper_noise
from quietq.privacy import delta_from_mu, epsilon_from_mu, mu_from_budget
from quietq.privacy.budget import log_delta

EPSILONS = [1e-4, 1e-2, 0.1, 0.45, 0.9, 3.0, 10.0, 30.0, 100.0]
DELTAS = [1e-15, 1e-10, 1e-6, 1e-4, 1e-2, 0.1, 0.5]

epsilons = st.floats(math.log(1e-4), math.log(100)).map(math.exp)
deltas = st.floats(math.log(1e-15), math.log(0.5)).map(math.exp)


def reference_log_delta(epsilon: float, mu: float) -> float:
    with mpmath.workdps(60):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return float(mpmath.log(mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_mu_solves_the_curve_in_sixty_digits(epsilon, delta):
    mu = mu_from_budget(epsilon, delta)
    exact = math.exp(reference_log_delta(epsilon, mu) - math.log(delta))
    assert exact == pytest.approx(1, rel=1e-8)
    assert exact <= 1  # rounded towards safety: never more delta than promised
    assert log_delta(epsilon, mu) == pytest.approx(reference_log_delta(epsilon, mu), abs=1e-10)
    assert delta_from_mu(epsilon=epsilon_from_mu(mu, delta), mu=mu) <= delta * (1 + 1e-12)


@pytest.mark.parametrize(("epsilon", "mu"), [(0.9, 0.28596), (0.45, 0.15449)])
def test_the_papers_two_budgets(epsilon, mu):
    assert Budget(epsilon, 1e-4).mu == pytest.approx(mu, abs=5e-6)


def slow_but(kept: list[float], values: list[float]) -> list[Any]:
    """The values, all of which are slow tests but those that are kept."""
    return [value if value in kept else pytest.param(value, marks=pytest.mark.slow) for value in values]


@pytest.mark.parametrize("epsilon", slow_but([0.05, 0.45, 0.9, 3.0], [0.05, 0.1, 0.3, 0.45, 0.9, 1.5, 3.0, 6.0]))
@pytest.mark.parametrize("delta", slow_but([1e-9, 1e-4, 1e-2], [1e-9, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2]))
def test_agrees_with_dp_accounting(epsilon, delta):
    """56 points: the PLD of a Gaussian of deviation 1/mu, pessimistic and optimistic, encloses our epsilon."""
    mu = mu_from_budget(epsilon, delta)
    above, below = (
        pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-4, pessimistic_estimate=pessimistic)
        for pessimistic in (True, False)
    )
    assert below.get_epsilon_for_delta(delta) <= epsilon <= above.get_epsilon_for_delta(delta) + 1e-9
    assert above.get_epsilon_for_delta(delta) == pytest.approx(epsilon, rel=1e-3, abs=2e-4)


@given(epsilons, deltas, st.floats(1e-9, 10))
def test_more_budget_allows_more(epsilon, delta, factor):
    mu = mu_from_budget(epsilon, delta)
    assert mu_from_budget(epsilon * (1 + factor), delta) > mu * (1 - 1e-11)
    assert mu_from_budget(epsilon, min(delta * (1 + factor), 0.999)) > mu * (1 - 1e-11)


@given(epsilons, deltas)
def test_there_and_back(epsilon, delta):
    mu = mu_from_budget(epsilon, delta)
    assert delta_from_mu(mu, epsilon) == pytest.approx(delta, rel=1e-8)
    # where delta hardly depends on epsilon, epsilon hardly matters: compare what it is good for
    assert mu_from_budget(max(epsilon_from_mu(mu, delta), 1e-12), delta) == pytest.approx(mu, rel=1e-7)


@given(st.floats(1e-5, 30), deltas)
def test_epsilon_never_understates(mu, delta):
    epsilon = epsilon_from_mu(mu, delta)
    assert reference_log_delta(epsilon, mu) <= math.log(delta) + 1e-12


def test_extremes_do_not_overflow():
    assert 0 < mu_from_budget(1e-4, 1e-15) < 1e-4
    assert mu_from_budget(100, 0.5) == pytest.approx(math.sqrt(200), rel=0.01)
    assert epsilon_from_mu(0.01, 0.5) == 0
    assert delta_from_mu(1e-3, 50) == 0
    assert delta_from_mu(60, 1) == pytest.approx(1)


def test_a_pure_budget_has_no_mu():
    pure = Budget(0.9, 0)
    assert pure.is_pure
    with pytest.raises(InvalidInput, match="pure budget has no finite mu"):
        _ = pure.mu


@pytest.mark.parametrize(
    ("epsilon", "delta", "field"),
    [
        (0.0, 0.1, "epsilon"),
        (-1.0, 0.1, "epsilon"),
        (math.nan, 0.1, "epsilon"),
        (math.inf, 0.1, "epsilon"),
        (1.0, 1.0, "delta"),
        (1.0, -1e-9, "delta"),
        (1.0, math.nan, "delta"),
    ],
)
def test_impossible_budgets_are_refused(epsilon, delta, field):
    with pytest.raises(InvalidInput, match=f"^{field} must be"):
        Budget(epsilon, delta)


def test_the_papers_formula_costs_more_and_then_too_little():
    """theory: 1.36 and 1.41 times the exact noise at its two budgets, and no longer conservative beyond 13."""
    for epsilon, ratio in ((0.9, 1.36), (0.45, 1.41)):
        assert paper_noise(epsilon, 1e-4) * mu_from_budget(epsilon, 1e-4) == pytest.approx(ratio, abs=0.005)
    assert paper_noise(12, 1e-4) * mu_from_budget(12, 1e-4) > 1
    assert paper_noise(14, 1e-4) * mu_from_budget(14, 1e-4) < 1


def test_budget_from_mu():
    budget = Budget.from_mu(1.0, 1e-5)
    assert budget.epsilon == pytest.approx(
        pld.from_gaussian_mechanism(1.0, value_discretization_interval=1e-4).get_epsilon_for_delta(1e-5), abs=1e-4
    )
