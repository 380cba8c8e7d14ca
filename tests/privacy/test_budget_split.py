"""Parts of a budget come to no more than the whole: by exact fractions, by every account, and by dp-accounting."""

from fractions import Fraction

import numpy as np
import pytest

from quietq import Accountant, Budget, BudgetExhausted, InvalidInput
from quietq.privacy import Cost

WHOLES = [Budget(1, 1e-5), Budget(0.01, 1e-9), Budget(30, 1e-3), Budget(2.5, 1e-2)]
SHARES = [(0.9, 0.1), (1 / 3,) * 3, (5 / 6, 1 / 6), (0.7, 0.2, 0.1), (1.0,), (0.1,) * 10]


def test_random_parts_of_random_budgets_never_exceed_the_whole():
    rng = np.random.default_rng(0)
    for _ in range(60):
        whole = Budget(float(10 ** rng.uniform(-2, 1.5)), float(10 ** rng.uniform(-9, -2)))
        shares = rng.dirichlet(np.full(int(rng.integers(1, 6)), 5.0)).tolist()
        parts = whole.split(*shares)
        assert sum(Fraction(one.mu) ** 2 for one in parts) <= Fraction(whole.mu) ** 2
        assert [(one.mu / whole.mu) ** 2 for one in parts] == pytest.approx(shares, rel=1e-8)
        assert all(one.delta == whole.delta for one in parts)
        pure = Budget(whole.epsilon, 0).split(*shares)
        assert sum(Fraction(repr(one.epsilon)) for one in pure) <= Fraction(repr(whole.epsilon))
        assert [one.epsilon / whole.epsilon for one in pure] == pytest.approx(shares)


@pytest.mark.parametrize("whole", WHOLES)
@pytest.mark.parametrize("shares", SHARES)
def test_an_account_of_the_whole_covers_all_parts_and_nothing_more(whole, shares):
    account = Accountant(whole)
    for part in whole.split(*shares):
        account.charge(Cost.gaussian(part.mu), None)
    assert account.spending.spent_mu == pytest.approx(whole.mu, rel=1e-9)
    with pytest.raises(BudgetExhausted):
        account.charge(Cost.gaussian(0.01 * whole.mu), None)


@pytest.mark.parametrize("whole", [Budget(0.3, 0), Budget(1, 1e-5)], ids=["pure", "gaussian"])
def test_a_ledger_covers_all_parts_and_nothing_more(whole, tmp_path):
    pytest.importorskip("sqlalchemy")
    from quietq import Ledger, people

    ledger, relation = Ledger.create(tmp_path / "books.db"), people(50, 0, 1, 1)
    ledger.open("people", *((None, whole) if whole.is_pure else (whole,)))
    account = ledger.account("people")

    def cost(part: Budget) -> Cost:
        return Cost.apart(part.epsilon) if part.is_pure else Cost.gaussian(part.mu)

    for part in whole.split(1 / 3, 1 / 3, 1 / 3):
        account.charge(cost(part), relation)
    with pytest.raises(BudgetExhausted):
        account.charge(cost(Budget(1e-3, whole.delta)), relation)


@pytest.mark.parametrize("whole", [Budget(1, 1e-5), Budget(30, 1e-3)])
def test_dp_accounting_finds_no_more_than_the_whole(whole):
    accounting = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import PLDAccountant

    events = [accounting.GaussianDpEvent(1 / part.mu) for part in whole.split(0.9, 0.1)]
    accountant = PLDAccountant(value_discretization_interval=2e-4 * whole.epsilon)
    accountant.compose(accounting.ComposedDpEvent(events))
    found = accountant.get_epsilon(whole.delta)
    assert found == pytest.approx(whole.epsilon, rel=2e-3)
    assert found <= whole.epsilon * (1 + 2e-3)  # which is how fine its grid is


@pytest.mark.parametrize("shares", [(), (0.9, 0.2), (0.5, 0.0), (-0.1, 0.5), (float("nan"),), (1.0, 1e-9)])
def test_shares_that_are_none_are_refused(shares):
    for whole in (Budget(1, 1e-5), Budget(1, 0)):
        with pytest.raises(InvalidInput, match="share"):
            whole.split(*shares)


def test_what_is_left_over_stays():
    (half,) = Budget(1, 1e-5).split(0.5)
    assert half.mu == pytest.approx(Budget(1, 1e-5).mu * 0.5**0.5)
    with pytest.raises(InvalidInput, match=r"A share of 1e-12 is too small"):
        Budget(1, 1e-5).split(0.5, 1e-12)


def test_an_account_refuses_parts_for_noise_that_has_no_mu():
    """Two such releases would come to more than the whole: their epsilons add up."""
    whole = Budget(1, 1e-5)
    parts = whole.split(0.5, 0.5)
    assert sum(one.epsilon for one in parts) > 1.3
    with pytest.raises(BudgetExhausted, match="has no mu"):
        Accountant(whole).charge(Cost.apart(parts[0].epsilon), None)


def test_an_account_of_a_pure_whole_covers_all_parts_and_nothing_more():
    whole = Budget(0.9, 0)
    account = Accountant(None, apart=whole)
    for part in whole.split(1 / 3, 1 / 3, 1 / 3):
        account.charge(Cost.apart(part.epsilon), None)
    with pytest.raises(BudgetExhausted):
        account.charge(Cost.apart(1e-3), None)
