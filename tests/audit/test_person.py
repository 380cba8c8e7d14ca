"""One person of many: the best attack stays below the ceiling, comes near it, and catches who was counted twice."""

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

from quietq import Budget, InvalidInput
from quietq.audit.bounds import Errors, mu_lower
from quietq.audit.draws import BestTest
from quietq.audit.finding import Attack, Finding, Promise
from quietq.audit.person import PersonAttack, attack_person, replace_person
from quietq.feedback import Ratings
from quietq.mechanisms.mechanism import Task
from quietq.mechanisms.privatise import choose
from quietq.noise.feature_maps import Splines

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


def attack(*names: str, **changes: Any) -> PersonAttack:
    settings: dict[str, Any] = {
        "target": names[0],
        "instead": LOW,
        "budget": MU_ONE,
        "releases": 220,
        "confidence": SURE,
        "noise": "path",
    }
    return attack_person(table(*names), **(settings | READING | changes))


def test_the_worst_person_is_nearly_as_easy_to_tell_as_promised_and_no_easier() -> None:
    strong = Budget.from_mu(2.0, 1e-4)
    found = attack("ann", budget=strong)
    assert not found.broken
    assert found.exact_mu is not None
    assert 0.9 * strong.mu < found.exact_mu <= strong.mu
    expected = float(norm.cdf(found.exact_mu / 2))
    assert abs(found.accuracy - expected) < 5 * np.sqrt(expected * (1 - expected) / (2 * found.finding.runs))
    assert 0.5 * strong.mu < found.finding.mu_lower < strong.mu  # at a confidence of 1 - 1e-6, from 440 releases
    assert 0 < found.finding.epsilon_lower < strong.epsilon


def test_a_person_counted_twice_is_caught() -> None:
    """Under two names, of which the certificate covers one's rows only."""
    strong = Budget.from_mu(2.0, 1e-4)
    ratings = table("ann", "ann smith")
    others = replace_person(replace_person(ratings, "ann", LOW), "ann smith", LOW)
    before, after = (Ratings.read(rows, **READING) for rows in (ratings, others))
    test = BestTest(choose("path", Task.of(before, strong)), before, after)
    finding = test.audit(220, Attack("reward", "none", "", "rating", "", ""), confidence=SURE)
    found = PersonAttack(finding, test.mu)
    assert found.broken
    assert found.finding.mu_lower > strong.mu
    assert found.accuracy > found.ceiling + 0.05
    assert "BROKEN" in found.verdict


@pytest.mark.parametrize("pure", [False, True])
def test_one_rule_breaks_a_promise(pure: bool) -> None:
    """With 79 errors of 200 each, mu alone at 0.95 would refute what epsilon and mu together, at 0.95, do not."""
    edge = Errors(79, 200, 79, 200)
    budget = Budget.from_mu((mu_lower(edge, 0.95) + mu_lower(edge, 0.975)) / 2, 1e-4)
    promise = (
        Promise("certified", budget.epsilon, 0.0)
        if pure
        else Promise("certified", budget.epsilon, budget.delta, budget.mu)
    )
    outcomes = set()
    for wrong in (10, 40, 70, 79, 100):
        errors = Errors(wrong, 200, wrong, 200)
        finding = Finding(Attack("", "", "", "rating", "", ""), promise, 200, errors, errors)
        found = PersonAttack(finding, promise.mu)
        assert found.broken == (finding.verdict == "refuted") == ("BROKEN" in found.verdict)
        outcomes.add(found.broken)
        assert errors != edge or not found.broken
    assert outcomes == {True, False}


def test_presence_is_harder_to_tell_than_the_opposite_opinion() -> None:
    found = attack("ann", instead=[], releases=40)
    assert found.kind == "presence"
    assert found.exact_mu == pytest.approx((attack("ann", releases=1).exact_mu or 0) / 2, rel=1e-6)
    assert not found.broken


@pytest.mark.parametrize(("noise", "releases"), [("knots", 120), ("k-norm", 40)])
def test_noise_on_knots_keeps_its_promise(noise: Any, releases: int) -> None:
    """A person who likes what they disliked, on the way from 0 to 1."""
    data = pl.concat([table("x").filter(pl.col("person") != "x"), rows_of("ann", [(0.0, 0.0), (1.0, 1.0)])])
    budget, reading = Budget(3.0, 1e-4), READING | {"slope": 1.0, "noise": noise, "pieces": 4}
    turned = [(0.0, 1.0), (1.0, 0.0)]
    found = attack_person(data, "ann", turned, budget, releases=releases, confidence=SURE, **reading)
    assert not found.broken
    assert (found.finding.promise.mu is None) == (noise == "k-norm") == (found.exact_mu is None)
    assert 0.55 < found.accuracy < found.ceiling + 0.05
    assert found.exact_mu is None or 0.5 * budget.mu < found.exact_mu <= budget.mu


def test_two_coordinates_are_one_release() -> None:
    rng = np.random.default_rng(4)
    data = pl.DataFrame({"who": np.arange(20), "x": rng.random(20), "y": rng.random(20), "mark": rng.random(20)})
    reading = {"box": [(0, 1), (0, 1)], "low": 0, "high": 1, "slope": 0.2, "people": 20}
    reading["features"] = Splines(additive=True)
    names = {"person": "who", "state": ["x", "y"], "rating": "mark"}
    marked = replace_person(data, 3, [(0.5, 0.5, 1.0)], **names)
    found = attack_person(marked, 3, [(0.5, 0.5, 0.0)], MU_ONE, releases=40, confidence=SURE, **reading, **names)
    assert found.exact_mu is not None
    assert 0.7 * MU_ONE.mu < found.exact_mu <= MU_ONE.mu
    assert found.accuracy > 0.55
    assert not found.broken


def test_nothing_changes_nothing() -> None:
    found = attack("ann", instead=HIGH, releases=20)
    assert found.exact_mu == pytest.approx(0, abs=1e-9)
    assert found.finding.mu_lower == 0


def test_the_record_keeps_what_is_not_private_apart() -> None:
    record = attack("ann", releases=5).to_dict()
    assert json.loads(json.dumps(record)) == record
    assert set(record) == {"kind", "releases", "confidence", "promised", "not_private"}
    assert record["promised"]["accuracy"] == pytest.approx(norm.cdf(0.5))
    assert record["not_private"]["errors"]["runs_with"] == 5


def test_a_person_goes_by_every_spelling_of_the_name() -> None:
    data = pl.DataFrame({"person": ["007", "7", "Bob", "eve"], "state": [0.1] * 4, "rating": [1.0] * 4})
    assert pl.concat(replace_person(data, 7, [])).rows() == [("Bob", 0.1, 1.0), ("eve", 0.1, 1.0)]
    assert pl.concat(replace_person(data, " BOB", [(0.2, 0.0)]))["rating"].to_list() == [1.0, 1.0, 1.0, 0.0]


def test_wrong_input_is_refused_in_a_sentence() -> None:
    with pytest.raises(InvalidInput, match="target must be somebody"):
        replace_person(table("ann"), "nobody", [])
    with pytest.raises(InvalidInput, match="instead must hold rows"):
        replace_person(table("ann"), "ann", [(0.5,)])
    with pytest.raises(InvalidInput, match="releases must be"):
        attack("ann", releases=0)


@pytest.mark.parametrize(
    "instead", [[("secret", 0)], 3, [3], [(0.5, 10**400)], [(0.5, None)], [(0.5, float("nan"))], [(0.5,), (1, 2)], "ab"]
)
def test_rows_that_are_none_are_refused_without_showing_them(instead: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        attack("ann", instead=instead)
    assert str(refused.value) == "instead must hold rows (state, rating), 2 finite numbers each, or none."


@pytest.mark.parametrize(
    "target",
    [[], "secret", ["ann", "secret"], 10**400, [10**5000], [None], "", b"ann", True, float("nan"), "\ud800", [[]]],
)
def test_names_of_nobody_are_refused_without_showing_them(target: Any) -> None:
    with pytest.raises(InvalidInput, match="target must be ") as refused:
        attack("ann", target=target)
    message = str(refused.value)
    assert "secret" not in message
    assert "000" not in message
    assert message.count(".") == 1


def rows_of(name: str, rows: list[tuple[float, float]]) -> pl.DataFrame:
    return pl.DataFrame([(name, *row) for row in rows], schema=["person", "state", "rating"], orient="row")
