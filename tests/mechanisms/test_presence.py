"""The weaker promise: one person against the neutral middle. Half the noise, and labelled wherever it is shown."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from quietq import Accountant, Budget, Comparisons, InvalidInput, Ratings, privatise, publish
from quietq.audit import frozen_release
from quietq.feedback.own_function import OwnFunction
from quietq.ledger import Ledger
from quietq.mechanisms.mechanism import Mechanism, Task
from quietq.mechanisms.privatise import choose
from quietq.noise.feature_maps import Splines
from quietq.noise.kernels import FeatureKernel
from quietq.privacy import Cost, LipschitzPresence, RkhsPresence, people
from quietq.privacy.relations import OnePerson, Relation, unit_of

BUDGET, PURE, COUNT = Budget(0.9, 1e-4), Budget(0.9, 0), 20
WEAKER = "PRESENCE ONLY, the weaker promise: any one of 20 people against the neutral middle in their place"
CURVE = {"box": (0, 1), "low": -0.2, "high": 0.8, "slope": 2.0, "levels": 5}
PLANE = {
    "box": [(0, 1), (0, 1)], "low": 0.0, "high": 1.0, "slope": 1.0, "state": ["state", "other"],
    "features": Splines(additive=True), "levels": 5,
}  # fmt: skip
LINES = FeatureKernel(lambda x: np.stack([x, 1 - x]).T, 2)
WEIGHTS = {"box": (0, 1), "low": -1.0, "high": 1.0, "norm": 0.7, "features": LINES}
CASES = [("path", CURVE, BUDGET), ("knots", CURVE, BUDGET), ("k-norm", CURVE, PURE), ("path", PLANE, BUDGET),
         ("weights", WEIGHTS, BUDGET), ("ball", WEIGHTS, PURE)]  # fmt: skip
NAMES = ("path", "knots", "k-norm", "additive", "weights", "ball")


def read(rows: np.ndarray, reading: dict, presence: bool = True) -> Ratings:
    """Of one person with these rows (state, other, rating), beside nineteen others."""
    rng = np.random.default_rng(0)
    others = np.column_stack([np.repeat(np.arange(1, COUNT), 3), rng.random((3 * (COUNT - 1), 3))])
    table = np.concatenate([np.column_stack([np.zeros(len(rows)), rows]), others])
    frame = pl.DataFrame(table, schema=["person", "state", "other", "rating"]).with_columns(pl.col("person").cast(int))
    return Ratings.read(frame, **reading, people=COUNT, presence=presence)


def worst_people(reading: dict) -> list[np.ndarray]:
    """At the top, in zigzags and ramps of full slope, and anything."""
    rng, states = np.random.default_rng(1), np.linspace(0, 1, 33)
    low, high = reading["low"], reading["high"]
    tooth = reading.get("slope", 0.0) / 32 * (np.arange(33) % 2)
    ramp = np.clip(low + reading.get("slope", 0.0) * states, low, high)
    curves = [np.full(33, high), high - tooth, low + tooth, ramp, ramp[::-1]]
    found = [np.column_stack([states, rng.permutation(states), curve]) for curve in curves]
    return [*found, *(np.column_stack([rng.random((9, 2)), rng.uniform(-9, 9, 9)]) for _ in range(2))]


def asked(name: str, reading: dict, budget: Budget, presence: bool = True) -> Mechanism:
    task = Task.of(read(np.zeros((0, 3)), reading, presence), budget)
    return choose(name, replace(task, pieces=4 if name in ("knots", "k-norm") else None))


@pytest.mark.parametrize(("name", "reading", "budget"), CASES, ids=NAMES)
def test_a_person_against_nobody_moves_a_release_by_no_more_than_stated(name: str, reading: dict, budget: Budget):
    """From rows to numbers; replacing them by others is beyond it, as it should be."""
    mechanism, nobody = asked(name, reading, budget), read(np.zeros((0, 3)), reading)
    query = next(mechanism.run())
    numbers = [query.numbers(read(rows, reading)) for rows in worst_people(reading)]
    moved = [query.law.distance(one - query.numbers(nobody)) / query.sensitivity for one in numbers]
    assert 0.6 < max(moved) <= 1
    assert 1.2 < max(query.law.distance(one - other) for one in numbers for other in numbers) / query.sensitivity <= 2


@pytest.mark.parametrize(("name", "reading", "budget"), CASES, ids=NAMES)
def test_the_whole_ball_is_covered_and_half_the_people_do(name: str, reading: dict, budget: Budget):
    mechanism, replaced = asked(name, reading, budget), asked(name, reading, budget, presence=False)
    move = frozen_release(mechanism)
    assert not move.exceeds
    assert move.share > 0.9
    assert mechanism.sigma == pytest.approx(replaced.sigma / 2, rel=1e-3)  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("noise", ["k-norm", "knots"])
def test_less_noise_may_pay_for_more_knots(noise: str):
    """Of the same pieces it is half, by the ball alone; by a rule there are more of them, for less error in all."""
    bodies = [people(100, 0, 0.5, 4.0, presence=presence) for presence in (True, False)]
    tasks = [Task(ball, BUDGET, slope=4.0) for ball in bodies]
    for pieces in (4, 6, 8):
        here, replaced = (choose(noise, replace(task, pieces=pieces)) for task in tasks)
        assert here.sigma == replaced.sigma / 2  # pyright: ignore[reportAttributeAccessIssue]
    here, replaced = (choose(noise, task) for task in tasks)
    assert here.pieces > replaced.pieces  # pyright: ignore[reportAttributeAccessIssue]
    assert 0.55 < here.sigma / replaced.sigma < 0.65  # pyright: ignore[reportAttributeAccessIssue]
    as_many = choose(noise, replace(tasks[0], pieces=replaced.pieces))  # pyright: ignore[reportAttributeAccessIssue]
    assert here.expected_error() < as_many.expected_error()


def test_it_is_said_wherever_it_is_shown(tmp_path):
    ratings = read(worst_people(CURVE)[0], CURVE)
    private = privatise(ratings, BUDGET)
    assert isinstance(ratings.relation, LipschitzPresence)
    assert WEAKER in str(private.certificate)
    assert "may give away twice as much" in str(ratings.relation)
    assert private.certificate.relation["kind"] == "lipschitz-presence"
    from quietq.mechanisms.release_file import open_release
    from quietq.publishing.server.plain_words import explain

    publish(private, tmp_path / "presence.qq")
    told = explain(open_release(tmp_path / "presence.qq"))
    assert "Protected is whether any one of 20 people took part." in told["plain"]
    assert any("weaker of two promises" in sentence for sentence in told["plain"])
    assert any("everything but whether one person took part" in sentence for sentence in told["plain"])


def test_a_certificate_is_held_to_its_own_kind():
    """Half the sensitivity is not enough for the stronger promise, and presence has people."""
    private = privatise(read(worst_people(CURVE)[0], CURVE), BUDGET, noise="path")
    record = private.certificate.to_dict()
    stronger = people(COUNT, -0.2, 0.8, 2.0).describe()
    with pytest.raises(InvalidInput, match=r"sensitivity .* is below"):
        type(private.certificate).from_dict({**record, "relation": stronger})
    with pytest.raises(InvalidInput):
        type(private.certificate).from_dict({**record, "relation": {**record["relation"], "people": None}})
    with pytest.raises(InvalidInput, match="people"):
        LipschitzPresence(0.1, 0.1)


def test_the_two_promises_are_not_added_up(tmp_path):
    here, replaced = people(COUNT, 0, 1, 1, presence=True), people(COUNT, 0, 1, 1)
    assert here != replaced
    accountant = Accountant(BUDGET)
    accountant.charge(Cost.gaussian(0.1), replaced)
    with pytest.raises(InvalidInput, match="would mean nothing"):
        accountant.charge(Cost.gaussian(0.1), here)
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.open("ratings", BUDGET)
    account = ledger.account("ratings")
    account.charge(Cost.gaussian(0.1), here)
    others: list[Relation] = [replaced, OnePerson(COUNT), people(30, 0, 1, 1)]
    for other in others:
        with pytest.raises(
            InvalidInput, match=r"any one person's presence, which is a weaker promise.*nothing was booked"
        ):
            account.charge(Cost.gaussian(0.1), other)
    account.charge(Cost.gaussian(0.1), people(30, 0, 1, 1, presence=True))  # however many there are this time
    assert unit_of(here.describe()) == ledger.balance("ratings").unit


def test_what_has_no_middle_refuses_in_a_sentence():
    table = pl.DataFrame({"person": [1], "x": [0.5], "y": [0.5], "rating": [1.0]})
    with pytest.raises(InvalidInput, match="presence is for ratings of one coordinate"):
        Ratings.read(table, state=["x", "y"], box=[(0, 1)] * 2, low=0, high=1, people=9, presence=True)
    with pytest.raises(TypeError):
        Comparisons.read(table, left="x", right="y", box=(0, 1), people=9, presence=True)  # type: ignore[call-arg]


def test_a_function_of_ones_own_may_promise_it_too():
    private = privatise(lambda x: x / 2, BUDGET, relation=people(COUNT, 0, 1, 1, presence=True), noise="path")
    assert WEAKER in str(private.certificate)
    ball = RkhsPresence.of_people(COUNT, LINES, 1.0, presence=True)
    assert (type(ball), ball.radius) == (RkhsPresence, 1 / COUNT)
    assert (
        OwnFunction(lambda x: x, ball)
        .assumptions[0]
        .text.startswith(f"Neighbouring inputs are what 20 people gave ({WEAKER}")
    )
