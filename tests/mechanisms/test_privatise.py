"""The one draw, for people and for functions, with each kind of noise."""

import pickle

import numpy as np
import polars as pl
import pytest
from scipy.stats import kstest

from quietq import Accountant, Budget, BudgetExhausted, InvalidInput, LipschitzBall, people
from quietq.feedback import Ratings
from quietq.feedback.own_function import OwnFunction
from quietq.mechanisms import privatise
from quietq.mechanisms.candidates import choose
from quietq.mechanisms.knots import least_shape
from quietq.mechanisms.release import simulate
from quietq.released import PrivateKnots, PrivateTable

BUDGET = Budget(0.9, 1e-4)
RELATION = people(28, low=0, high=0.5, slope=1)


def crowd(count=28, seed=0):
    rng = np.random.default_rng(seed)
    ideal = rng.normal(0.5, 0.1, count).clip(0, 1)
    states = np.linspace(0, 1, 7)
    return Ratings.read(
        pl.DataFrame(
            {
                "person": np.repeat(np.arange(count), 7),
                "state": np.tile(states, count),
                "rating": (0.5 - np.abs(states[None] - ideal[:, None])).clip(0, 0.5).ravel(),
            }
        ),
        box=(0, 1),
        low=0,
        high=0.5,
        slope=1,
        people=count,
    )


@pytest.mark.parametrize(("noise", "form"), [("path", PrivateTable), ("k-norm", PrivateKnots), ("knots", PrivateKnots)])
def test_kinds(noise, form):
    private = privatise(crowd(), BUDGET, noise=noise)
    assert isinstance(private, form)
    certificate = private.certificate
    assert certificate.standing == "certified"
    assert certificate.assumptions[0].enforced
    assert (certificate.epsilon, certificate.delta) == (0.9, 0.0 if noise == "k-norm" else 1e-4)
    assert (certificate.mu is None) == (noise == "k-norm")
    assert any("asked for" in remark for remark in certificate.remarks)
    again = pickle.loads(pickle.dumps(private))
    states = np.linspace(0, 1, 50)
    np.testing.assert_array_equal(private(states), again(states))


def test_auto_says_which_and_why_and_does_not_look_at_the_data():
    one, other = privatise(crowd(seed=1), BUDGET), privatise(crowd(seed=2), BUDGET)
    assert one.certificate.method == other.certificate.method == "reward/knots"
    assert one.certificate.remarks == other.certificate.remarks
    assert "chosen by declared bounds and budget, not by the data" in one.certificate.remarks[-1]


def test_noise_is_gaussian_where_delta_is_above_0_with_an_account_or_without_one():
    for account in (None, Accountant(Budget(9, 1e-4), apart=Budget(9, 0))):
        found = privatise(crowd(), BUDGET, account=account).certificate
        assert (found.method, found.mu) == ("reward/knots", BUDGET.mu)
        pure = privatise(crowd(), Budget(0.9, 0), account=account).certificate
        assert (pure.method, pure.mu) == ("reward/k-norm", None)
        assert not any("guesser" in remark for one in (found, pure) for remark in one.remarks)


@pytest.mark.parametrize("account", [None, Accountant(BUDGET, apart=Budget(0.9, 0))])
def test_pure_noise_that_was_asked_for_says_what_a_guesser_gains(account):
    certificate = privatise(crowd(), BUDGET, noise="k-norm", account=account).certificate
    assert (certificate.delta, certificate.mu) == (0.0, None)
    told = "a guesser is right in at most 71.1 of 100 cases, with Gaussian noise in 55.7."
    (remark,) = [one for one in certificate.remarks if "guesser" in one]
    assert remark.endswith(told)
    assert "right in at most 71.1 of 100" in str(certificate).splitlines()[1]
    printed = str(certificate)
    assert printed.index(told) < printed.index("For the engineer:")  # whoever signs it sees it


def test_every_draw_is_fresh():
    for noise in ("path", "k-norm", "knots"):
        first, second = (privatise(crowd(), BUDGET, noise=noise)(np.linspace(0, 1, 9)) for _ in range(2))
        assert np.abs(first - second).max() > 1e-6


def test_pure_budgets():
    private = privatise(crowd(), Budget(0.9, 0))
    assert (private.certificate.method, private.certificate.delta) == ("reward/k-norm", 0.0)
    with pytest.raises(InvalidInput, match="delta must be above 0"):
        privatise(crowd(), Budget(0.9, 0), noise="path")


def test_the_noise_has_the_stated_law():
    """Simulated draws of a known function: shaped Gaussian noise whitens to standard normals."""
    wider = LipschitzBall(RELATION.radius * (1 + 1e-6), RELATION.lipschitz * (1 + 1e-6))
    root = np.linalg.cholesky(least_shape(wider, 6))
    knots = np.linspace(0, 1, 7)
    mechanism, own = choose("knots", OwnFunction(None, RELATION), BUDGET, pieces=6), OwnFunction(np.sin, RELATION)
    draws = np.array([np.diff(simulate(mechanism, own, seed)(knots) - np.sin(knots)) for seed in range(400)])
    white = np.linalg.solve(root, draws.T) * BUDGET.mu
    assert kstest(white.ravel(), "norm").pvalue > 1e-6


def test_k_norm_keeps_the_shape_and_drops_the_constant():
    knots = np.linspace(0, 1, 7)
    budget = Budget(1e4, 0)  # hardly any noise
    private = privatise(lambda s: 3 + s**2, budget, relation=RELATION, noise="k-norm", pieces=6)(knots)
    np.testing.assert_allclose(private, knots**2 - np.mean(knots**2), atol=1e-3)


def test_a_ledger_is_charged_before_the_draw():
    ledger = Accountant(BUDGET)
    privatise(crowd(), BUDGET, noise="knots", account=ledger)
    for noise in ("knots", "path"):
        with pytest.raises(BudgetExhausted):
            privatise(crowd(), BUDGET, noise=noise, account=ledger)
    with pytest.raises(BudgetExhausted, match="nothing was set apart"):
        privatise(crowd(), BUDGET, noise="k-norm", account=Accountant(BUDGET))
    both = Accountant(BUDGET, apart=Budget(0.9, 0))
    assert privatise(crowd(), BUDGET, noise="k-norm", account=both).certificate.delta == 0


def test_simulations_are_marked_reproducible_and_free():
    ledger = Accountant(BUDGET)
    for noise in ("path", "k-norm", "knots"):
        one, same = (privatise(crowd(), BUDGET, noise=noise, account=ledger, simulate=3) for _ in range(2))
        assert one.certificate.standing == "none"
        assert one.certificate.reproducible
        np.testing.assert_array_equal(one(np.linspace(0, 1, 5)), same(np.linspace(0, 1, 5)))
    assert ledger.spending.spent_mu == 0


def test_functions_of_your_own():
    private = privatise(np.sin, BUDGET, relation=RELATION, domain=(0, 2))
    assert not private.certificate.assumptions[0].enforced
    assert private([0.0, 2.0]).shape == (2,)
    with pytest.raises(InvalidInput, match="needs a relation"):
        privatise(np.sin, BUDGET)
    for wrong in ("", b""):  # others that are neither are refused by the same line
        with pytest.raises(InvalidInput, match="takes what people gave, as Ratings"):
            privatise(wrong, BUDGET)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInput, match="leave relation and domain out"):
        privatise(crowd(), BUDGET, relation=RELATION)


@pytest.mark.parametrize("noise", ["path", "k-norm", "knots"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30])
def test_values_that_cannot_be_released_are_refused_unquoted(noise, bad):
    ledger = Accountant(BUDGET) if noise != "k-norm" else None
    with pytest.raises(InvalidInput) as caught:
        privatise(lambda s: np.full(s.shape, bad), BUDGET, relation=RELATION, noise=noise, account=ledger)
    assert "1e+30" not in str(caught.value)
    assert ledger is None or ledger.spending.spent_mu == 0


def test_released_numbers_are_rounded_to_a_public_step():
    from quietq.noise.rounding import rounding_step

    private = privatise(crowd(), BUDGET, noise="knots")
    assert isinstance(private, PrivateKnots)
    assert private.certificate.sigma is not None
    multiples = np.diff(private.values) / rounding_step(private.certificate.sigma)
    np.testing.assert_allclose(multiples, np.rint(multiples), atol=1e-6)  # of increments, summed up again


@pytest.mark.parametrize("noise", ["path", "k-norm", "knots"])
def test_a_refusal_does_not_depend_on_the_ratings(noise):
    """A declared range too large for the noise is refused whatever the ratings are."""
    for rating in (1023.5, 1024.5):
        data = pl.DataFrame({"person": ["a"], "state": [0.5], "rating": [rating]})
        group = Ratings.read(data, box=(0, 1), low=1023.5, high=1024.5, slope=1, people=3_000_000)
        with pytest.raises(InvalidInput, match="too large for noise"):
            privatise(group, Budget(0.9, 1e-7), noise=noise)


def test_certificates_name_the_box_and_what_is_trusted():
    for noise in ("path", "k-norm", "knots"):
        certificate = privatise(crowd(), BUDGET, noise=noise).certificate
        assert certificate.to_dict()["domain"] == [[0.0, 1.0]]
        assert any("two names" in a.text and not a.enforced for a in certificate.assumptions)


@pytest.mark.parametrize("rows", [np.zeros((3, 3)), [1.0, 0.5, 1.0]])
def test_rows_are_read_before_they_are_made_private(rows):
    with pytest.raises(InvalidInput, match=r"by Ratings\.read, Comparisons\.read or Sessions\.read first"):
        privatise(rows, BUDGET)
