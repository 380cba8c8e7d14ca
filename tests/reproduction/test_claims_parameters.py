"""The arithmetic of appendix E.3, done again."""

import math

import pytest

from reproduction.claims import parameters, statements_of
from reproduction.claims.statement import PaperStatement


def measured(statement: PaperStatement, setting: str = "") -> list[float]:
    rows = [row for row in parameters.measure() if row["claim"] == statement.name]
    return [float(row["measured"] or 0) for row in rows if row["setting"] == setting or not setting]


def test_the_derivation_of_the_parameters() -> None:
    """8.6 is 26.1; the margin is not 3.5 but the 5.34 that solves exp(-x^2/2) = 1 - (1 - 5e-5)^(1/78)."""
    noise = math.sqrt(2 * 5000 / 64 * math.log(0.9 / 5e-5)) * 16 / 0.9  # sigma/v

    def v(k: float) -> float:
        return 4 * 3e-4 * (k + 1) / 64

    for k in (2.3, 23.0):
        coefficient = 8.68 * noise * v(k) / math.sqrt(v(k)) / math.sqrt(k + 1)
        assert measured(parameters.COEFFICIENT) == [pytest.approx(coefficient)]
        assert coefficient > 3 * 8.6
    (margin,) = measured(parameters.MARGIN)
    assert 78 * math.exp(-(margin**2) / 2) == pytest.approx(5e-5, rel=1e-3)
    assert margin > 3.5 * 1.5
    assert 46 - 8.6 * math.sqrt(24) < margin  # so k = 23 would not do even with the printed 8.6
    assert noise * v(23.0) == pytest.approx(0.313, abs=5e-4)
    assert measured(parameters.SIGMA, "v of k = 23") == [pytest.approx(noise * v(23.0))]
    assert measured(parameters.V, "k = 2.3") == [pytest.approx(6.19e-5, rel=1e-3)]
    assert measured(parameters.V, "k = 23") == [pytest.approx(4.5e-4)]


def test_two_betas_are_printed() -> None:
    v = 4 * 3e-4 * 3.3 / 64
    theorem, proof = 1 / v, 4 * 3e-4 * 4 * 3.3 / 64
    assert theorem / proof > 1e7
    assert parameters.BETA.claim(parameters.measure()).verdict == "fails"


def test_verdicts_on_the_parameters() -> None:
    rows = parameters.measure()
    verdicts = [statement.claim(rows).verdict for statement in statements_of(parameters)]
    assert verdicts == ["fails"] * 7 + ["in part"] + ["fails"] * 2
    met = [row | {"measured": 1e4} if row["quantity"] == parameters.LEFT else row for row in rows]
    assert parameters.SMALL_K.claim(met).verdict == "holds"
