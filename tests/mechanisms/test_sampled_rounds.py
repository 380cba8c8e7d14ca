"""Rounds that each look at a random part of the people: what is promised, who is drawn, and what one person can do."""

import copy
import math
import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from one_person import ADVERSARIES, with_one

from quietq import Accountant, Budget, BudgetExhausted, InvalidInput, MissingExtra, Ratings, load, privatise, publish
from quietq.audit.worst_rows import worst_rows
from quietq.feedback.draw import Draw
from quietq.feedback.feedback import Drawn
from quietq.feedback.statistic import Vector
from quietq.mechanisms import rounds
from quietq.mechanisms.laws import Gaussian
from quietq.mechanisms.mechanism import Query, Task
from quietq.mechanisms.people_mean import mean_of_people
from quietq.mechanisms.release import release, simulate
from quietq.mechanisms.rounds import Rounds
from quietq.mechanisms.weights import Independent
from quietq.noise.entropy import SeededEntropy
from quietq.privacy import Certificate, Cost, SampledRounds, sampling

pytest.importorskip("dp_accounting")
BUDGET, SAMPLE, ROUNDS, PEOPLE = Budget(1.0, 1e-5), 0.3, 6, 50


@pytest.fixture(autouse=True)
def _few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "ROUNDS", ROUNDS)


def plan(people: Ratings, kind: type[Rounds] = Rounds) -> Rounds:
    return kind(replace(Task.of(people, BUDGET), sample=SAMPLE))


def read(people: int = 2000) -> Ratings:
    rng = np.random.default_rng(3)
    states = rng.random((people * 5, 2))
    rating = np.exp(-4 * ((states - 0.3) ** 2).sum(axis=-1)) + 0.1 * rng.normal(size=len(states))
    rows = pl.DataFrame({"person": np.repeat(np.arange(people), 5), "a": states[:, 0], "b": states[:, 1]})
    box = [(0.0, 1.0), (0.0, 1.0)]
    return Ratings.read(rows.with_columns(rating=rating), box=box, low=0, high=1, people=people, state=["a", "b"])


def test_a_release(tmp_path, monkeypatch):
    people, account = read(), Accountant(BUDGET, apart=Budget(1.5, 1e-4))
    private = privatise(people, BUDGET, sample=SAMPLE, account=account)
    certificate, states = private.certificate, np.random.default_rng(0).random((500, 2))
    assert np.corrcoef(private(states), np.exp(-4 * ((states - 0.3) ** 2).sum(axis=-1)))[0, 1] > 0.95
    promised = (certificate.standing, certificate.epsilon, certificate.delta, certificate.mu)
    assert promised == ("certified", 1.0, 1e-5, None)
    assert "each of a random 0.3 of the people, drawn in secret and anew" in str(certificate)
    assert (account.spent_mu, account.spending.spent_apart) == (0.0, (1.0, 1e-5))
    publish(private, tmp_path / "reward.qq")
    assert load(tmp_path / "reward.qq").certificate == certificate
    with monkeypatch.context() as patch:  # where dp-accounting is not installed, nobody can tell whether it is valid
        patch.setitem(sys.modules, "dp_accounting", None)
        sampling._composed.cache_clear()
        with pytest.raises(MissingExtra, match=r"A sample of people needs dp-accounting: .*accounting\]"):
            load(tmp_path / "reward.qq")
    for what, forged in forgeries(certificate.to_dict()):
        with pytest.raises(InvalidInput):
            raise AssertionError(f"{what} was taken: {Certificate.from_dict(forged)}")
    boxless: Any = replace(private, certificate=Certificate.from_dict(certificate.to_dict() | {"domain": None}))
    with pytest.raises(InvalidInput, match="must name its box"):
        publish(boxless, tmp_path / "other.qq")


def test_a_table_is_not_what_sampled_rounds_released(tmp_path):
    norm: dict = {"kind": "sampled-queries", "fraction": SAMPLE, "rounds": 2, "each": 0.1, "looks": 0.0, "of": []}
    rows = pl.DataFrame({"person": [1], "state": [0.5], "rating": [1.0]})
    table: Any = privatise(Ratings.read(rows, box=(0, 1), low=0, high=1, slope=1, people=50), BUDGET, noise="path")
    record = table.certificate.to_dict() | {"mu": None, "sigma": None, "sensitivity": 1.0}
    record["relation"] = {"kind": "one-person", "people": 50}
    record["norm"] = norm | {"drawn": 2 * [{"bound": 1.0, "size": 2 / 50 / SAMPLE / 0.1 * 1.01}]}
    with pytest.raises(InvalidInput, match="its noise must be that of"):
        publish(replace(table, certificate=Certificate.from_dict(record)), tmp_path / "table.qq")


def forgeries(record):
    norm, relation = record["norm"], record["relation"]
    for where, to in {
        ("epsilon",): 0.99,
        ("delta",): 0.9e-5,
        ("mu",): BUDGET.mu,
        ("scale",): 0.99,
        ("sensitivity",): 0.99,
        ("relation", "people"): relation["people"] - 30,
        ("norm", "fraction"): 1.02 * norm["fraction"],
        ("norm", "rounds"): ROUNDS + 1,
        ("norm", "each"): 0.99 * norm["each"],
        ("norm", "looks"): 0.99 * norm["looks"],
        ("norm", "of", 0, "size"): 0.98 * norm["of"][0]["size"],
        ("norm", "drawn", 0, "size"): 0.98 * norm["drawn"][0]["size"],
        ("norm", "drawn", 0, "bound"): 1.02 * norm["drawn"][0]["bound"],
        ("norm", "drawn"): norm["drawn"] * 2,
    }.items():
        forged = copy.deepcopy(record)
        inner = forged
        for name in where[:-1]:
            inner = inner[name]
        inner[where[-1]] = to
        yield f"{where} -> {to}", forged


def test_an_account_that_sets_nothing_apart_refuses():
    account, people = Accountant(BUDGET), with_one([])
    with pytest.raises(BudgetExhausted, match=r"epsilon = 1, delta = 1e-05 has no mu, and nothing was set apart"):
        privatise(people, BUDGET, sample=SAMPLE, account=account)
    assert account.spending.costs == {}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sample": 1.0}, r"sample must be at least 0\.001 and below 1, .* not 1\.0"),
        ({"sample": math.nan}, "sample must be a finite number"),
        ({"sample": 0.1, "noise": "fits"}, "noise must be 'auto' or one of 'rounds', not 'fits'"),
        ({"sample": 0.1, "noise": "network"}, "noise must be 'auto' or one of 'rounds', not 'network'"),
    ],
)
def test_refusals(options, words):
    with pytest.raises(InvalidInput, match=words):
        privatise(with_one([]), BUDGET, **options)


def test_an_audit_says_that_it_cannot():
    people = with_one([])
    with pytest.raises(InvalidInput, match="audit the same noise without sample"):
        worst_rows(lambda source: people, None, BUDGET, mechanism=plan(people))


# Who is drawn


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """Who was drawn in each round, as rounds go on."""
    found, who = list[np.ndarray](), Draw.who
    monkeypatch.setattr(Draw, "who", lambda self, people: found.append(who(self, people)) or found[-1])
    return found


def spread(drawn: list[np.ndarray]) -> float:
    """The variance over people of how often each was drawn, in units of what it is if every round draws anew."""
    assert len(drawn) == ROUNDS
    often = np.sum(drawn, axis=0)
    assert abs(often.mean() - ROUNDS * SAMPLE) < 6 * math.sqrt(ROUNDS * SAMPLE * (1 - SAMPLE) / len(often))
    return float(often.var() / (ROUNDS * SAMPLE * (1 - SAMPLE)))


def test_every_round_draws_anew_from_the_operating_system(drawn, monkeypatch):
    people = with_one([], people=301)  # of whom one has no row
    monkeypatch.setattr("quietq.feedback.draw.SeededEntropy", None)
    release(plan(people), people)
    assert spread(drawn) < 1.7


def test_a_copy_that_draws_once_is_found(drawn, monkeypatch):
    people, once = with_one([], people=301), Draw(SAMPLE, (1,))
    monkeypatch.setattr(Draw, "now", lambda fraction, entropy: once)
    simulate(plan(people), people, 0)
    assert spread(drawn) > 4


def test_a_seed_gives_the_same_bits():
    one, other, third = (simulate(plan(with_one([])), with_one([]), seed) for seed in (1, 1, 2))
    assert np.array_equal(one.weights, other.weights)
    assert not np.array_equal(one.weights, third.weights)


# What one person can do


def sampled_queries(people: Ratings) -> list[Query]:
    mechanism, entropy, found = plan(people), SeededEntropy(0), []
    steps = mechanism.run()
    query = next(steps)
    while True:
        found.append(query)
        try:
            query = steps.send(query.law.add(query.look(people, entropy), entropy))
        except StopIteration:
            return [query for query in found if query.fraction != 1]


def shares(one: Ratings, other: Ratings) -> np.ndarray:
    """How far apart two are in rounds whose draws are frozen, as part of what is stated."""
    found, queries = [], sampled_queries(one)
    for seed in range(20):
        query = queries[seed % len(queries)]
        here, there = (query.look(people, SeededEntropy(seed)) for people in (one, other))
        found.append(query.law.distance(here - there) / query.sensitivity)
    return np.array(found)


OPPOSITE = [(1.0, 1.0, 0.0)]


@pytest.mark.parametrize("name", ["opposite", "beyond", "many"])
def test_one_person_moves_the_rounds_that_draw_them_by_no_more_than_stated(name):
    found = shares(with_one(OPPOSITE), with_one(ADVERSARIES[name]))
    assert found.max() <= 1
    assert 0 < np.count_nonzero(found) < 20
    assert found.max() > (0.9 if name == "opposite" else 0.3)


def test_a_copy_that_divides_by_those_drawn_is_found(monkeypatch):
    def mean(self, statistic):
        tally = self.everybody.sums.total(statistic, Draw.now(self.fraction, self.entropy))
        return statistic.mean(tally, max(tally.people, 1))

    monkeypatch.setattr(Drawn, "mean", mean)
    assert shares(with_one(OPPOSITE), with_one(ADVERSARIES["opposite"])).max() > 1.1


def too_little(statistic, people, mu, fraction=1.0):
    """Takes whoever is drawn for one of all people."""
    return mean_of_people(statistic, people, mu)._replace(fraction=fraction)


def more(statistic, people, mu, fraction=1.0):
    """More people in a round than was planned."""
    return mean_of_people(statistic, people, mu, min(1.01 * fraction, 1.0))


class TooMany(Rounds):
    """One round more than was planned."""

    def __init__(self, task):
        super().__init__(task)
        self.rounds += 1


class Unplanned(Rounds):
    sampled = property(lambda self: None, lambda self, value: vars(self).update(hidden=value))  # type: ignore[assignment]

    def __init__(self, task):
        super().__init__(task)
        self._fraction = SAMPLE


@pytest.mark.parametrize("kind", [too_little, TooMany, more, Unplanned])
def test_copies_that_ask_for_more_are_refused(monkeypatch, kind):
    people = with_one([])
    if kind in (too_little, more):
        monkeypatch.setattr(rounds, "mean_of_people", kind)
        kind = Rounds
    mechanism = kind(replace(Task.of(people, BUDGET), sample=None if kind is Unplanned else SAMPLE))
    with pytest.raises(InvalidInput, match=r"sensitivity 1\.0 is below|more than the .* that is charged"):
        release(mechanism, people)


def test_a_schedule_is_fixed_before_the_first_answer():
    people = with_one([])

    class Changing(Rounds):
        def run(self) -> Any:
            yield from self._look_at_states()
            self.sampled = SampledRounds(SAMPLE, 200, 1e-3, 0.1)
            for _ in range(30):
                yield mean_of_people(Sides(), people.people, self._each, SAMPLE)

    with pytest.raises(InvalidInput, match="that is charged"):
        release(plan(people, Changing), people)


def test_less_is_charged_than_the_rounds_cost():
    people = with_one([])

    class Cheap(Rounds):
        @property
        def cost(self) -> Cost:
            return Cost.apart(0.9, 1e-5)

    with pytest.raises(InvalidInput, match=r"more than the epsilon = 0\.9, delta = 1e-05 that is charged"):
        release(plan(people, Cheap), people)


# One round, from rows to the noisy answer, told apart by the likelihood ratio


@dataclass(frozen=True)
class Sides(Vector):
    """A number for each person, by the first coordinate of their first row: on which side their rating is."""

    size = 1000
    bound = 1.0

    def of_people(self, starts, columns):
        which = (columns["x0"][starts] * self.size).astype(int)
        return np.eye(self.size)[which] * np.sign(2 * columns["rating"][starts] - 1)[:, None]


@pytest.mark.slow
def test_a_round_gives_away_what_it_says(monkeypatch):
    """The worst two people, with nobody beside them, come up to delta; if everybody were drawn they would go beyond.

    A thousand of either stand side by side, each in a coordinate of their own, where they are alone with their noise.
    """
    sample, mu, epsilon, looks, count = 0.3, 2.0, 0.3, 100, Sides.size
    law, entropy = Gaussian(2 / sample / count / mu, Independent({})), SeededEntropy(0)
    query = Query(lambda feedback: feedback.mean(Sides()), mu * law.sigma, law, sample)
    place = (np.arange(count) + 0.5) / count

    def taken_for_the_first(rating: float) -> float:
        """How often, by the likelihood ratio."""
        rows = pl.DataFrame({"person": np.arange(count), "a": place, "b": place, "rating": np.full(count, rating)})
        people = Ratings.read(rows, box=[(0, 1), (0, 1)], low=0, high=1, people=count, state=["a", "b"])
        seen = np.array([law.add(query.look(people, entropy), entropy) for _ in range(looks)]) / law.sigma
        one, other = (1 - sample + sample * np.exp(sign * mu / 2 * seen - mu**2 / 8) for sign in (1, -1))
        return float(np.mean(one > math.exp(epsilon) * other))

    def given_away() -> float:
        return taken_for_the_first(1.0) - math.exp(epsilon) * taken_for_the_first(0.0)

    delta = SampledRounds(sample, 1, mu, 0.0).delta(epsilon)
    deviation = math.sqrt((1 + math.exp(2 * epsilon)) / 4 / (looks * count))
    assert given_away() == pytest.approx(delta, abs=5 * deviation)
    monkeypatch.setattr(Draw, "who", lambda self, people: np.full(people, True))
    assert given_away() > 2 * delta > 20 * deviation
