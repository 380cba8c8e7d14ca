"""Budgets by source: what adds up, what is refused, and what is told, in SQLite and PostgreSQL alike."""

import math

import pytest
from ledger_cases import BUDGET, FIFTY

from quietq import (
    Budget,
    BudgetExhausted,
    Exponential,
    InvalidInput,
    LipschitzBall,
    RkhsBall,
    SupBall,
    Trajectories,
    people,
)
from quietq.ledger import Ledger
from quietq.privacy import Cost


def test_squares_add_up_over_processes_lifetimes_and_no_further(ledger: Ledger, url: str):
    for _ in range(4):
        Ledger(url).account("ratings").charge(Cost.gaussian(BUDGET.mu / 2), FIFTY)
    balance = Ledger(url).balance("ratings")
    assert balance.spending.spent_mu == pytest.approx(BUDGET.mu)
    assert balance.spending.remaining_mu < 1e-6
    with pytest.raises(BudgetExhausted, match="nothing was booked"):
        Ledger(url).account("ratings").charge(Cost.gaussian(1e-3), FIFTY)
    assert len(Ledger(url).balance("ratings").bookings) == 4
    assert len(balance.without_release) == 4
    assert balance.spending.promised == (pytest.approx(1.2), pytest.approx(1.01e-4))


def test_what_remains_can_be_spent(ledger: Ledger):
    account = ledger.account("ratings")
    account.charge(Cost.gaussian(BUDGET.mu / math.sqrt(78), 77), FIFTY)
    account.charge(Cost.gaussian(account.spending.remaining_mu), FIFTY)
    assert account.spending.get_epsilon(1e-4) == pytest.approx(0.9)
    assert account.spending.get_epsilon(1e-4) <= 0.9


def test_what_has_no_mu_is_booked_apart_and_adds_up_as_decimal_numbers(ledger: Ledger):
    account = ledger.account("ratings")
    for _ in range(3):
        account.charge(Cost.apart(0.1), FIFTY)  # 0.1 + 0.1 + 0.1 > 0.3 in floating point
    balance = ledger.balance("ratings")
    assert balance.spending.spent_apart == (0.3, 0.0)
    assert balance.spending.remaining_apart == (0.0, 1e-6)
    assert balance.spending.remaining_mu == BUDGET.mu
    assert account.spending.get_epsilon(1e-5) == 0.3
    left = r"epsilon = 1e-09, delta = 0 is more than what is left, epsilon = 0 of 0.3 and delta = 1e-06 of 1e-06"
    with pytest.raises(BudgetExhausted, match=left):
        account.charge(Cost.apart(1e-9), FIFTY)
    account.charge(Cost.gaussian(0.2), FIFTY)
    assert account.spending.get_epsilon(1e-4) == pytest.approx(0.3 + 0.6016, abs=1e-4)


def test_deltas_add_up_too(ledger: Ledger):
    account = ledger.account("ratings")
    account.charge(Cost.apart(0.1, 6e-7), FIFTY)
    with pytest.raises(BudgetExhausted, match=r"left, .* delta = 4e-07 of 1e-06;"):
        account.charge(Cost.apart(0.1, 6e-7), FIFTY)
    account.charge(Cost.apart(*ledger.balance("ratings").spending.remaining_apart), FIFTY)
    assert ledger.balance("ratings").spending.remaining_apart == (0.0, 0.0)


def test_a_source_may_have_only_one_part(ledger: Ledger):
    ledger.open("gaussian", BUDGET)
    ledger.open("pure", None, Budget(1.0, 0))
    with pytest.raises(BudgetExhausted, match="nothing was set apart"):
        ledger.account("gaussian").charge(Cost.apart(0.1), FIFTY)
    with pytest.raises(BudgetExhausted, match="no budget for Gaussian noise"):
        ledger.account("pure").charge(Cost.gaussian(0.1), FIFTY)
    ledger.account("pure").charge(Cost.apart(1.0), FIFTY)
    assert ledger.balance("pure").spending.promised == (1.0, 0.0)
    assert ledger.account("pure").spending.spent_mu == 0 == ledger.account("pure").spending.remaining_mu


@pytest.mark.parametrize(
    ("source", "budget", "apart", "sentence"),
    [
        ("a", None, None, "must be a budget"),
        ("a", Budget(1, 0), None, "give a delta above 0, or give this amount as apart"),
        ("a", Budget(1, 0.6), Budget(1, 0.6), "below 1 together"),
        ("", BUDGET, None, "source must be one printable line"),
        (" a", BUDGET, None, "without spaces"),
        ("a\nb", BUDGET, None, "printable"),
        ("a" * 201, BUDGET, None, "1 to 200 letters"),
        ("ratings", BUDGET, None, "a budget is set once"),
    ],
)
def test_sources_that_cannot_be(
    ledger: Ledger, source: str, budget: Budget | None, apart: Budget | None, sentence: str
):
    with pytest.raises(InvalidInput, match=sentence):
        ledger.open(source, budget, apart)
    assert list(ledger.balances()) == ["ratings"]


def test_refusal_says_what_is_left_and_when_the_rest_was_spent(ledger: Ledger):
    with pytest.raises(BudgetExhausted, match=r"nothing was booked\.$"):
        ledger.account("ratings").charge(Cost.gaussian(1.0), FIFTY)
    for month in range(5):
        ledger.account("ratings", f"month {month}").charge(Cost.gaussian(0.1), FIFTY)
    last = ledger.balance("ratings").bookings[-1].reserved.at
    with pytest.raises(BudgetExhausted) as refused:
        ledger.account("ratings").charge(Cost.gaussian(0.25), FIFTY)
    assert str(refused.value) == (
        "Of source 'ratings', mu = 0.25 is more than what is left, mu = 0.178... of 0.28596 (epsilon 0.5285 at delta "
        f"0.0001); nothing was booked. 5 charges came before, the last at {last}."
    ).replace("0.178...", f"{ledger.balance('ratings').spending.remaining_mu:g}").replace("0.28596", f"{BUDGET.mu:g}")


def test_all_releases_of_a_source_protect_the_same_unit(ledger: Ledger):
    account = ledger.account("ratings")
    account.charge(Cost.gaussian(0.1), FIFTY)
    account.charge(Cost.gaussian(0.1), people(500, 0, 1, 2))  # one person is one person
    account.charge(Cost.apart(0.1), SupBall(0.01, people=70))
    for other, words in (
        (SupBall(0.01), "rewards that differ by at most 0.01 anywhere"),
        (Trajectories(50, 1.0, 10), "any one trajectory"),
    ):
        with pytest.raises(InvalidInput, match=f"protect any one person, and a sum with one that protects {words}"):
            account.charge(Cost.gaussian(0.01), other)
    assert len(ledger.balance("ratings").bookings) == 3


def test_radii_that_look_alike_are_not_the_same_unit(ledger: Ledger):
    account = ledger.account("ratings")
    account.charge(Cost.gaussian(0.1), LipschitzBall(0.01, 0.04))
    account.charge(Cost.gaussian(0.1), LipschitzBall(0.01, 0.04))
    with pytest.raises(InvalidInput, match="would mean nothing"):
        account.charge(Cost.gaussian(0.1), LipschitzBall(0.01 + 1e-9, 0.04))


def test_what_is_protected_must_be_said(ledger: Ledger):
    with pytest.raises(InvalidInput, match=r"relation must say what the release protects.*Nothing was booked"):
        ledger.account("ratings").charge(Cost.gaussian(0.1))
    assert ledger.balance("ratings").bookings == ()


def test_a_relation_in_any_kernel_is_kept(ledger: Ledger):
    ledger.account("ratings").charge(Cost.gaussian(0.1), RkhsBall(0.02, Exponential((1.0, 2.0)).norm))
    assert str(ledger.balance("ratings").unit).startswith("rewards whose difference has norm")


def test_names_that_are_not_there(ledger: Ledger):
    with pytest.raises(InvalidInput, match="no source 'votes'; it has: ratings"):
        ledger.account("votes")
    with pytest.raises(InvalidInput, match="no source 'votes'"):
        ledger.reserve("votes", Cost.gaussian(0.1), FIFTY)
    for mu, epsilon in ((None, None), (0.1, 0.1)):
        with pytest.raises(InvalidInput, match="either a mu or an epsilon"):
            Cost(mu, epsilon, 0.0)
