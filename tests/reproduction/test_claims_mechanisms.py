"""What the paper quotes and derives about Gaussian noise, against the exact curve in many digits."""

import math

import mpmath
import numpy as np
import pytest

from quietq.paper.theorem import paper_noise
from quietq.privacy.budget import mu_from_budget
from reproduction.claims import mechanisms

STATEMENTS = (
    mechanisms.VECTOR,
    mechanisms.FUNCTION,
    mechanisms.ANISOTROPIC,
    mechanisms.COMPOSITION,
    mechanisms.QUOTED,
    mechanisms.TAIL,
)


def exact_delta(epsilon: float, mu: float) -> float:
    """The curve itself, in 60 digits."""
    with mpmath.workdps(60):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return float(mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2))


@pytest.mark.parametrize("epsilon", [0.01, 0.45, 0.9, 0.999])
@pytest.mark.parametrize("delta", [1e-10, 1e-4, 0.3])
def test_the_classical_mechanism_keeps_its_promise(epsilon: float, delta: float) -> None:
    noise = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    assert mechanisms.printed_noise(epsilon, delta) == pytest.approx(noise)
    assert exact_delta(epsilon, 1 / noise) < delta


def test_sigma_must_not_enter_twice() -> None:
    """Claim 13 adds sigma M^(1/2) y with y ~ N(0, sigma^2 I): below sigma = 1 that is too little."""
    sensitivity, epsilon, delta = 0.01, 0.9, 1e-4
    sigma = mechanisms.printed_noise(epsilon, delta) * sensitivity
    assert exact_delta(epsilon, sensitivity / sigma**2) > 1000 * delta
    assert exact_delta(epsilon, sensitivity / sigma) < delta


def test_the_quoted_composition_is_not_the_best_known() -> None:
    exact = mu_from_budget(0.9, 1e-4)
    quoted, renyi = (noise(0.9, 1e-4) * exact for noise in (mechanisms.quoted_noise, mechanisms.renyi_noise))
    assert quoted == pytest.approx(math.sqrt(math.log(12_500)) * 1.36, rel=0.01)
    assert 1 < renyi < quoted / 2
    orders = np.linspace(1.01, 200, 100_000)
    spent = orders / (2 * mechanisms.renyi_noise(0.9, 1e-4) ** 2) + math.log(1e4) / (orders - 1)
    assert spent.min() == pytest.approx(0.9, rel=1e-6)


def test_where_the_composition_formula_stops_to_protect() -> None:
    crossing = mechanisms.crossing(paper_noise)
    assert 13 < crossing < 13.5
    for epsilon, enough in ((crossing * 0.99, True), (crossing * 1.01, False)):
        assert (exact_delta(epsilon, 1 / paper_noise(epsilon, 1e-4)) <= 1e-4) == enough


def test_the_tail_in_the_proof_is_a_bound() -> None:
    for mu in (0.05, 0.286, 2.0):
        for x in np.linspace(0.1, 8, 12):
            epsilon = mu * (x + mu / 2)
            assert exact_delta(epsilon, mu) <= math.exp(-x * x / 2) / (1 + x / mu)
        for delta in (1e-8, 1e-3):
            epsilon = mu**2 / 2 + mu * math.sqrt(2 * math.log(math.e + mu / delta))
            assert exact_delta(epsilon, mu) <= delta


def test_rows_agree_and_verdicts_follow_them() -> None:
    rows = mechanisms.measure(4000)
    verdicts = {statement.name: statement.claim(rows).verdict for statement in STATEMENTS}
    assert list(verdicts.values()) == ["holds", "holds", "in part", "in part", "in part", "holds"]
    mine = mechanisms.VECTOR.about(rows)
    noise = mechanisms.printed_noise(0.9, 1e-4)
    shares = mine.all(mechanisms.TRUE_OVER_ALLOWED, "delta = 0.0001")
    assert any(share == pytest.approx(exact_delta(0.9, 1 / noise) / 1e-4, rel=1e-6) for share in shares)
    broken = [row | {"measured": 1.01} if row["quantity"] == mechanisms.TRUE_OVER_ALLOWED else row for row in rows]
    assert mechanisms.VECTOR.claim(broken).verdict == "fails"
