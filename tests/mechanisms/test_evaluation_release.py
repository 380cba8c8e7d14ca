"""What private policy evaluation releases, says of it, and refuses."""

import math

import numpy as np
import polars as pl
import pytest
from evaluation_chain import STATES, chain, evaluation

from quietq import Accountant, Budget, BudgetExhausted, Certificate, InvalidInput, PrivacyWarning, Sessions
from quietq.feedback.trajectories import Cells, Visits, largest_return
from quietq.paper.baselines.balle import visits_of
from quietq.privacy.relations import Trajectories
from quietq.privacy.smooth_sensitivity import Admissible


def test_a_release_is_certified_and_says_nothing_of_its_noise():
    data, method = chain(300), evaluation(300)
    value = method.release(data)
    certificate = value.certificate
    assert (certificate.standing, certificate.epsilon, certificate.delta) == ("certified", 1.0, 1e-6)
    (query,) = certificate.queries
    assert (certificate.mu, certificate.sigma, query.sensitivity) == (None, None, 1.0)
    assert query.size == pytest.approx(1 / Admissible.for_budget(method.budget, STATES).alpha, rel=2e-6)
    assert certificate.relation == method.relation
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert "differ in one" in str(certificate)
    assert "mu =" not in str(certificate)
    assert method.release(data).weights.tolist() != value.weights.tolist()
    with pytest.raises(InvalidInput, match="Only a certified Gaussian release"):
        certificate.to_event()
    with pytest.raises(ValueError, match="read-only"):
        value.weights[0] = 0.0


def test_nothing_but_the_weights_depends_on_the_data():
    """Neither the certificate nor the grid of the released numbers does, however the data vary the noise."""
    nobody = [([], [])] * 300
    method = evaluation(300)
    full, empty = method.release(chain(300)), method.release(nobody)
    assert full.certificate == empty.certificate
    least = method._fit().least(300) / Admissible.for_budget(method.budget, STATES).alpha
    step = 2.0 ** (math.floor(math.log2(least)) - 20)
    assert f"multiples of {step:g}" in str(full.certificate)
    for value in (full, empty):
        assert (value.weights % step == 0).all()


def test_a_seed_protects_nobody():
    data, method = chain(300), evaluation(300)
    one, two = (method.release(data, simulate=4) for _ in range(2))
    assert one.weights.tolist() == two.weights.tolist()
    assert (one.certificate.standing, one.certificate.reproducible) == ("none", True)
    assert one.certificate.sigma is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": Budget(1.0, 0)}, "delta must be above 0"),
        ({"kind": "lsl"}, "ridge must be given"),
        ({"ridge": 1.0}, "ridge must be given"),
        ({"kind": "lsl", "ridge": 0.0}, "ridge must be above 0"),
        ({"gamma": 1.5}, "gamma must lie between"),
        ({"gamma": 1.0, "relation": Trajectories(9, 1.0)}, "unless a horizon"),
        ({"features": np.zeros((5, 2))}, "features must be"),
        ({"features": np.ones((4, 2))}, "features must be"),
        ({"features": np.full((5, 2), np.nan)}, "features must be"),
        ({"importance": np.zeros(5)}, "importance must be"),
        ({"share": 1.0}, "share must lie"),
    ],
)
def test_wrong_declarations_are_refused(options, message):
    with pytest.raises(InvalidInput, match=message):
        evaluation(10, **options)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (([0], [math.nan]), "finite"),
        (([0], [math.inf]), "finite"),
        (([math.nan], [1.0]), "finite"),
        (([0, 1], [1.0]), "one reward for each"),
        ((["a"], [1.0]), "real numbers"),
        ((np.zeros((1, 2)), [1.0]), "one number for each state"),
    ],
)
def test_bad_trajectories_are_refused_before_anything_is_drawn(bad, message, monkeypatch):
    def drawn(*_):
        raise AssertionError("something was drawn")

    monkeypatch.setattr("quietq.noise.entropy.SystemEntropy.normals", drawn)
    with pytest.raises(InvalidInput, match=message):
        evaluation(10).release([*chain(9), bad])
    with pytest.raises(InvalidInput, match="10 trajectories were declared, but 9 given"):
        evaluation(10).release(chain(9))


def test_a_failing_rule_does_not_show_the_states():
    def rule(states):
        raise KeyError(float(states[0]))

    with pytest.raises(InvalidInput, match="failed with KeyError") as caught:
        evaluation(1, cells=Cells(5, rule)).release([([0.123], [1.0])])
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_large_delta_is_warned_of():
    with pytest.warns(PrivacyWarning, match="not below 1/people"):
        evaluation(10, budget=Budget(1.0, 0.1))


def as_sessions(data, count, extra=()):
    """A row for each step; `extra` are further episodes of the first person."""
    episodes = [(person, 0, *one) for person, one in enumerate(data)]
    episodes += [(0, number, *one) for number, one in enumerate(extra, 1)]
    lengths = [len(states) for _, _, states, _ in episodes]
    rows = pl.DataFrame({
        "person": np.repeat([one[0] for one in episodes], lengths), "go": 0,
        "t": np.concatenate([*map(np.arange, lengths)]), "visit": np.repeat([one[1] for one in episodes], lengths),
        "at": np.concatenate([one[2] for one in episodes]), "r": np.concatenate([one[3] for one in episodes]),
    })  # fmt: skip
    return Sessions.read(
        rows, episode="visit", step="t", state="at", box=(0, STATES - 1), next_state=[], action="go",
        actions=[0], reward="r", low=0, high=1, people=count,
    )  # fmt: skip


def test_sessions_are_evaluated_alike_and_once():
    """The same numbers from sessions as from trajectories, but for rounding; one episode of each counts."""
    data, method = chain(300), evaluation(300)
    sessions = as_sessions(data, 300)
    found, wanted = (method.release(one, simulate=4).weights for one in (sessions, data))
    assert found == pytest.approx(wanted, abs=1e-6)
    counts = visits_of(as_sessions(data, 300, extra=data[1:9]), method.cells, method.gamma, method.relation).counts
    assert np.abs(counts - Visits.of(data, method.cells, method.gamma, method.relation).counts).max() <= 1
    released = method.release(sessions)
    assert "one episode counted" in str(released.certificate)
    assert "gave one trajectory" not in str(released.certificate)
    with pytest.raises(BudgetExhausted, match="were released already"):
        method.release(sessions)
    account = Accountant(None, apart=Budget(2.0, 1e-5))
    method.release(as_sessions(data, 300), account=account)
    assert account.spending.spent_apart == (1.0, 1e-6)
    with pytest.raises(InvalidInput, match="sessions of 300 people"):
        method.release(as_sessions(data, 301))


def test_one_persons_sessions_move_each_count_by_one_at_most():
    data, method = chain(40), evaluation(40)
    own = {"cells": method.cells, "gamma": method.gamma, "relation": method.relation}
    before = visits_of(as_sessions(data, 40), **own)
    rng, largest = np.random.default_rng(0), largest_return(method.relation, method.gamma)
    worst = [(np.arange(STATES).repeat(6), np.ones(30)), (np.zeros(400), np.full(400, 9.0))]
    for states, rewards in [*worst, *((rng.integers(0, STATES, 50), rng.uniform(-9, 9, 50)) for _ in range(5))]:
        after = visits_of(as_sessions([(states, rewards), *data[1:]], 40, extra=[(states, rewards)] * 3), **own)
        assert np.abs(after.counts - before.counts).max() <= 1
        assert np.abs(after.sums - before.sums).max() <= 2 * largest
