"""One person of many: the best attack stays below the ceiling, comes near it, and catches who was counted twice."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

from quietq import Budget
from quietq.audit.draws import BestTest
from quietq.audit.finding import Promise
from quietq.feedback import Ratings
from quietq.mechanisms.candidates import choose

SURE = 1 - 1e-6
PEOPLE = 40
READING: dict[str, Any] = {"box": (0, 1), "low": 0.0, "high": 1.0, "slope": 0.2, "people": PEOPLE}
HIGH = [(i / 16, 1 - 0.0125 * (i % 2)) for i in range(17)]
LOW = [(place, 1 - rating) for place, rating in HIGH]
"""To and fro as steeply as may be, close to either end: a path's noise hides sizes and slopes."""
MU_ONE = Budget.from_mu(1.0, 1e-4)


def table(*extremes: str) -> pl.DataFrame:
    """Forty people, some of whom rate everything as high as they can."""
    rng = np.random.default_rng(1)
    names = [*extremes, *(f"person {i}" for i in range(PEOPLE - len(extremes)))]
    rows = [(name, *row) for name in extremes for row in HIGH]
    rows += [(name, rng.random(), rng.random()) for name in names[len(extremes) :] for _ in range(4)]
    return pl.DataFrame(rows, schema=["person", "state", "rating"], orient="row")


def replaced(data: pl.DataFrame, person: str, rows: list[tuple[float, ...]]) -> pl.DataFrame:
    """With all rows of this person replaced."""
    others = data.filter(pl.col(data.columns[0]) != person)
    return pl.concat([others, pl.DataFrame([(person, *row) for row in rows], schema=data.schema, orient="row")])


def best_test(
    before: pl.DataFrame,
    after: pl.DataFrame,
    budget: Budget = MU_ONE,
    noise: str = "path",
    pieces: int | None = None,
    **reading: Any,
) -> BestTest:
    """Between releases of what was said, and of what was said with one person's rows replaced."""
    both = [Ratings.read(rows, **(READING | reading)) for rows in (before, after)]
    return BestTest(choose(noise, both[0], budget, pieces=pieces), *both)


def test_the_worst_person_is_nearly_as_easy_to_tell_as_promised_and_no_easier() -> None:
    strong = Budget.from_mu(2.0, 1e-4)
    test = best_test(table("ann"), replaced(table("ann"), "ann", LOW), strong)
    found = test.audit(220, confidence=SURE)
    assert found.verdict == "consistent"
    assert test.mu is not None
    assert 0.9 * strong.mu < test.mu <= strong.mu
    expected = float(norm.cdf(test.mu / 2))
    assert abs(found.by_mu.accuracy - expected) < 5 * np.sqrt(expected * (1 - expected) / (2 * found.runs))
    assert 0.5 * strong.mu < found.mu_lower < strong.mu  # at a confidence of 1 - 1e-6, from 440 releases
    assert 0 < found.epsilon_lower < strong.epsilon


def test_a_person_counted_twice_is_caught() -> None:
    """Under two names, of which the certificate covers one's rows only."""
    strong, both = Budget.from_mu(2.0, 1e-4), table("ann", "ann smith")
    found = best_test(both, replaced(replaced(both, "ann", LOW), "ann smith", LOW), strong).audit(220, confidence=SURE)
    assert found.verdict == "refuted"
    assert found.mu_lower > strong.mu
    assert found.by_mu.accuracy > found.promise.right_guesses + 0.05


def test_presence_is_harder_to_tell_than_the_opposite_opinion() -> None:
    here = best_test(table("ann"), replaced(table("ann"), "ann", []))
    turned = best_test(table("ann"), replaced(table("ann"), "ann", LOW))
    assert here.mu == pytest.approx((turned.mu or 0) / 2, rel=1e-6)
    assert here.audit(40, confidence=SURE).verdict == "consistent"


@pytest.mark.parametrize(("noise", "releases"), [("knots", 120), ("k-norm", 160)])
def test_noise_on_knots_keeps_its_promise(noise: Any, releases: int) -> None:
    """A person who likes what they disliked, on the way from 0 to 1."""
    data, budget = table("ann"), Budget(3.0, 1e-4)
    there, back = (replaced(data, "ann", [(0.0, end), (1.0, 1 - end)]) for end in (0.0, 1.0))
    test = best_test(there, back, budget, noise=noise, pieces=4, slope=1.0)
    found = test.audit(releases, confidence=SURE)
    assert found.verdict == "consistent"
    assert (found.promise.mu is None) == (noise == "k-norm") == (test.mu is None)
    assert 0.55 < found.by_mu.accuracy < found.promise.right_guesses + 0.05
    assert test.mu is None or 0.5 * budget.mu < test.mu <= budget.mu


def test_nothing_changes_nothing() -> None:
    same = best_test(table("ann"), replaced(table("ann"), "ann", HIGH))
    assert same.mu == pytest.approx(0, abs=1e-9)
    assert same.audit(40).mu_lower == 0


def test_most_right_guesses_follow_from_the_promise() -> None:
    assert Promise("certified", 0.9, 1e-4, 1.0).right_guesses == pytest.approx(norm.cdf(0.5))
    assert Promise("certified", 0.9, 0.0).right_guesses == pytest.approx(1 / (1 + np.exp(-0.9)))
