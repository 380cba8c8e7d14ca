"""Numbers at the edge of what a machine can hold: an answer or one sentence, never a traceback."""

import itertools
import math
from typing import Any

import mpmath
import pytest
from scipy.special import erfinv

from quietq import Accountant, Budget, InvalidInput, LipschitzBall, people
from quietq.privacy import delta_from_mu, epsilon_from_mu, people_needed, steps_between, steps_needed
from quietq.privacy.budget import weak_delta
from quietq.privacy.checks import count, positive, probability, real, shown

EPSILONS = [1e-100, 1e-50, 1e-8, 1e-3, 0.01, 0.1, 0.9, 5.0, 50.0, 1e4, 1e6]
DELTAS = [1e-100, 1e-20, 1e-15, 1e-10, 1e-3, 0.01, 0.05, 0.5, 0.999999]


@pytest.mark.parametrize("value", [10**400, 10**5000, 1e300, -(10**400), 1e-320, 1e-300], ids=range(6))
def test_absurd_numbers(value):
    for check in (
        lambda: positive("slope", value),
        lambda: Budget(value, 0.1),
        lambda: Budget(1.0, value),
        lambda: people(10, low=0, high=value, slope=1),
        lambda: people(10, low=0, high=1, slope=value),
        lambda: LipschitzBall(value, 1.0),
        lambda: steps_between(value, 1.0),
        lambda: steps_between(1.0, value),
    ):
        with pytest.raises(InvalidInput) as caught:
            check()
        assert len(str(caught.value)) < 200
    if isinstance(value, int):
        for check in (real, count):
            with pytest.raises(InvalidInput, match=r"^people must be"):
                check("people", value)


def test_derived_numbers_are_refused_in_the_words_of_what_was_given():
    for arguments, words in (
        ({"n": 10**15, "low": 0, "high": 1e-90, "slope": 1}, r"\(high - low\)/people"),
        ({"n": 10**15, "low": 0, "high": 1e-80, "slope": 1e-90}, "2 slope/people"),
        ({"n": 1, "low": 0, "high": 1e-80, "slope": 1e80}, r"2 slope/\(high - low\)"),
        ({"n": 1, "low": -1e100, "high": 1e100, "slope": 1}, "high - low"),
    ):
        with pytest.raises(InvalidInput, match=words):
            people(**arguments)
    with pytest.raises(InvalidInput, match=r"distance .* is more than 1e"):
        steps_between(1e50, 1e-50)
    with pytest.raises(InvalidInput, match="lipschitz/radius"):
        LipschitzBall(1e-80, 1e80).best_beta()
    with pytest.raises(InvalidInput, match="people of width"):
        people_needed(0.9, Budget(0.9, 1e-4), distance=1e-50, width=1e50, gaussian=True)


def test_steps_of_extreme_budgets():
    for epsilon, delta, score, gaussian in itertools.product(EPSILONS, DELTAS, [1e-9, 0.9, 1 - 1e-16], [True, False]):
        budget = Budget(epsilon, delta)
        if epsilon < 1e-16 and delta < (1e-14 if gaussian else 1e-15) and score > 0.5:
            with pytest.raises(InvalidInput, match=r"needs more than 1e\+15 steps"):
                steps_needed(score, budget, gaussian=gaussian)
        else:
            assert steps_needed(score, budget, gaussian=gaussian) >= 1


def test_the_curve_does_not_overflow():
    assert delta_from_mu(1e-100, 1.0) == 0
    assert delta_from_mu(1e-100, 1e100) == 0
    assert delta_from_mu(1.0, 1e100) == 0
    assert delta_from_mu(1e100, 1.0) == 1
    assert delta_from_mu(1.0, 1e17) == 0
    for absurd in (
        lambda: epsilon_from_mu(1e150, 0.1),
        lambda: epsilon_from_mu(1e50, 0.1),
        lambda: Budget(5e-324, 0.1),
    ):
        with pytest.raises(InvalidInput):
            absurd()
    with pytest.raises(InvalidInput, match="epsilon must be at most 1e"):
        _ = Budget(1e50, 1e-4).mu
    with pytest.raises(InvalidInput, match="mu must be at most 10000"):
        Budget.from_mu(1e50, 1e-4)


def grid_of_deltas() -> list[float]:
    """From the least that is accepted to the float below 1."""
    small = [10.0**-power for power in (100, 99, 50, 16, 5, 2)]
    return [*small, 0.1, 0.5, 0.7, *(1 - 10.0**-power for power in range(1, 16)), 1 - 2**-53]


def mus_about(delta: float) -> list[float]:
    """All sizes, and those about where epsilon becomes 0, delta(0) = erf(mu / sqrt 8), to the last digit."""
    least = 2 * math.sqrt(2) * float(erfinv(delta))
    near = [least * (1 + sign * 2.0**-digits) for digits in range(2, 54, 3) for sign in (-1, 1)]
    return [*near, least, 1e-100, 1e-50, 1e-8, 1e-3, 0.1, 1, 5, 8.3, 11.5, 17, 40, 1e3, 1e4]


@pytest.mark.parametrize("delta", grid_of_deltas())
def test_epsilon_for_every_mu_and_delta(delta):
    """It is safe in 250 digits, and no larger than it must be; a budget of it has that mu, or none is made."""
    with mpmath.workdps(250):
        for mu in mus_about(delta):
            epsilon = epsilon_from_mu(mu, delta)

            def exact(epsilon: float, m: Any = mpmath.mpf(mu)) -> Any:  # noqa: B008
                e = mpmath.mpf(epsilon)
                head, tail = (mpmath.erfc((e / m + sign * m / 2) / mpmath.sqrt(2)) / 2 for sign in (-1, 1))
                return head - mpmath.exp(e) * tail

            most = mpmath.mpf(delta) * (1 + mpmath.mpf(10) ** -15)
            assert exact(epsilon) <= most
            if epsilon > 0:
                assert exact(max(epsilon * (1 - 1e-9) - 1e-13 * (mu + mu * mu), 0.0)) >= mpmath.mpf(delta) * (1 - 1e-9)
            if 1e-100 <= epsilon <= 1e6:
                assert Budget.from_mu(mu, delta).mu == pytest.approx(mu, rel=1e-6)
            elif epsilon <= 1e6:
                with pytest.raises(InvalidInput, match=r"give a smaller delta|epsilon must be above 1e-100"):
                    Budget.from_mu(mu, delta)


@pytest.mark.parametrize("delta", grid_of_deltas())
def test_mu_and_parts_for_every_epsilon_and_delta(delta):
    """A number that leads back, or one sentence; nothing else."""
    assert weak_delta(delta, 1) is None
    assert (weak_delta(delta, 10) is None) == (delta < 0.1)
    for epsilon in (1e-100, 1e-50, 1e-16, 1e-5, 0.1, 1.0, 40.0, 700.0, 1e4, 1e6, 1e7, 1e100):
        budget = Budget(epsilon, delta)
        if epsilon > 1e6:
            with pytest.raises(InvalidInput, match=r"epsilon must be at most 1e\+06 for Gaussian noise"):
                _ = budget.mu
            continue
        assert str(budget).endswith(f"mu = {budget.mu:.5g}")
        assert delta_from_mu(budget.mu, epsilon) <= delta
        assert delta_from_mu(budget.mu * (1 + 1e-7), epsilon) >= delta * (1 - 1e-12)
        assert 0 <= epsilon_from_mu(budget.mu, delta) <= epsilon * (1 + 1e-9) + 1e-11 * (budget.mu + budget.mu**2)
        if epsilon < 1e-90:  # parts would be below the least number that is accepted
            continue
        if epsilon_from_mu(budget.mu * math.sqrt(0.1), delta) == 0:
            with pytest.raises(InvalidInput, match=r"A share of 0\.\d is too small: its epsilon would be 0"):
                budget.split(0.9, 0.1)
        else:
            assert math.hypot(*(part.mu for part in budget.split(0.9, 0.1))) <= budget.mu


def test_an_account_checks_its_questions_even_when_nothing_is_booked():
    with pytest.raises(InvalidInput, match="delta must be at least 0 and below 1, not -1"):
        Accountant(Budget(0.9, 1e-4)).spending.get_epsilon(-1.0)
    with pytest.raises(InvalidInput, match="people must be a whole number of at least 1, not 0"):
        weak_delta(0.1, 0)
    with pytest.raises(InvalidInput, match="delta must be at least 0 and below 1"):
        weak_delta(2.0, 10)


def test_values_are_shown_in_a_few_words():
    assert shown(10**5000) == "a number of thousands of digits"
    assert len(shown("x" * 1000)) == 60
    with pytest.raises(InvalidInput, match=r"delta must be 0 or above 1e-100, not 1e-320\."):
        probability("delta", 1e-320)
