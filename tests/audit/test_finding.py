"""What an audit says: keys that were promised, verdicts that follow, bounds that are tight and hold, one table."""

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from quietq import Budget, InvalidInput, SupBall
from quietq.audit.bounds import Errors, epsilon_lower, mu_lower
from quietq.audit.distinguisher import Seen, Thresholds
from quietq.audit.draws import audit_mechanism
from quietq.audit.finding import Attack, Finding, Promise, Unprotected, count_errors
from quietq.mechanisms.path import GaussianProcessMechanism
from quietq.paper import InputNoise
from quietq.paper.agents import NoNoise
from quietq.paper.agents.trainer import spaces_of
from quietq.paper.algorithm import Published
from quietq.privacy.budget import epsilon_from_mu
from quietq.worlds import WALK

SURE = 1 - 1e-6
ATTACK = Attack("value", "walk", "rewards that differ", "shift", "released values, 9 numbers", "mean")
FEW, MANY = Errors(3, 200, 5, 200), Errors(80, 200, 90, 200)
CERTIFIED, CLAIMED = Promise("certified", 0.9, 1e-4, 0.286), Promise("claimed", 0.9, 1e-4)


def finding(promise: Promise, by_epsilon: Errors = MANY, by_mu: Errors = MANY) -> Finding:
    return Finding(ATTACK, promise, 250, by_epsilon, by_mu)


@pytest.mark.parametrize("promise", [CERTIFIED, CLAIMED], ids=["certified", "claimed"])
def test_a_record_has_all_that_is_known_in_json(promise: Promise) -> None:
    one = finding(promise, FEW)
    record = one.to_dict()
    assert json.loads(json.dumps(record)) == record
    assert (record["standing"], record["epsilon"], record["mu"]) == (promise.standing, 0.9, promise.mu)
    expected = {
        "delta": 1e-4, "confidence": 0.95, "verdict": "refuted", "runs": 250, "judged": 200, "method": "value",
        "world": "walk", "move": "shift", "score": "mean",
    }  # fmt: skip
    assert expected.items() <= record.items()
    assert record["epsilon_lower"] == one.epsilon_lower > 2.5
    assert record["mu_lower"] == one.mu_lower
    assert record["errors"] == {"epsilon": FEW._asdict(), "mu": MANY._asdict()}


def test_either_bound_refutes_and_each_has_its_share_of_what_may_go_wrong() -> None:
    assert finding(CERTIFIED).verdict == "consistent"
    assert finding(CERTIFIED, by_epsilon=FEW).verdict == "refuted"
    assert finding(CERTIFIED, by_mu=FEW).verdict == "refuted"
    assert finding(CERTIFIED, by_mu=FEW).epsilon_lower == epsilon_lower(MANY, 1e-4, 0.975)
    assert finding(CERTIFIED, by_mu=FEW).mu_lower == mu_lower(FEW, 0.975)
    # Where mu is not promised, it refutes nothing, but is stated all the same, and so has its share.
    assert finding(CLAIMED, by_mu=FEW).verdict == "consistent"
    assert finding(CLAIMED, by_epsilon=FEW).epsilon_lower == epsilon_lower(FEW, 1e-4, 0.975)


def test_what_one_bound_alone_would_refute_both_together_may_not() -> None:
    """With 79 errors of 200 each, mu alone at 0.95 would refute what epsilon and mu together, at 0.95, do not."""
    edge = Errors(79, 200, 79, 200)
    budget = Budget.from_mu((mu_lower(edge, 0.95) + mu_lower(edge, 0.975)) / 2, 1e-4)
    promise = Promise("certified", budget.epsilon, budget.delta, budget.mu)
    assert finding(promise, edge, edge).verdict == "consistent"
    assert {finding(promise, one, one).verdict for one in (Errors(10, 200, 10, 200), MANY)} == {"refuted", "consistent"}


def test_a_bound_that_is_just_reached_refutes_nothing() -> None:
    bound = finding(CERTIFIED).mu_lower
    assert finding(Promise("certified", 9.0, 1e-4, bound)).verdict == "consistent"
    assert finding(Promise("certified", 9.0, 1e-4, bound * (1 - 1e-12))).verdict == "refuted"
    bound = finding(CLAIMED, FEW).epsilon_lower
    assert finding(Promise("claimed", bound, 1e-4), FEW).verdict == "consistent"
    assert finding(Promise("claimed", bound * (1 - 1e-12), 1e-4), FEW).verdict == "refuted"


def test_more_confidence_finds_less() -> None:
    one = finding(CERTIFIED, FEW, FEW)
    sure = one.at(SURE)
    assert (sure.confidence, sure.by_mu, sure.runs) == (SURE, FEW, 250)
    assert 0 < sure.mu_lower < one.mu_lower
    assert 0 < sure.epsilon_lower < one.epsilon_lower
    assert sure.at(0.95) == one
    weak = finding(Promise("certified", 2.5, 1e-4, 3.0), FEW, FEW)
    assert (weak.verdict, weak.at(SURE).verdict) == ("refuted", "consistent")


def test_errors_are_counted_at_each_threshold() -> None:
    scores = Seen(np.array([0.0, 1.0, 2.0]), np.array([1.5, 2.5, 3.5]))
    found = count_errors(scores, Thresholds(epsilon=1.0, mu=2.0), ATTACK, CERTIFIED, learned_on=4)
    assert (found.by_epsilon, found.by_mu, found.runs) == (Errors(1, 3, 0, 3), Errors(0, 3, 1, 3), 7)


def test_a_promise_is_what_the_certificate_says() -> None:
    budget, spaces = Budget(0.9, 1e-4), spaces_of(WALK)
    certified = Promise.of(InputNoise(relation=SupBall(0.1), budget=budget).certificate(spaces, 100))
    assert certified == Promise("certified", 0.9, 1e-4, budget.mu)
    claimed = Promise.of(Published.code(0.32).certificate(spaces, 5000))
    assert claimed.standing == "claimed"
    assert claimed.epsilon == pytest.approx(0.9, abs=0.02)
    with pytest.raises(InvalidInput, match="nothing to audit"):
        Promise.of(NoNoise().certificate(spaces, 100))


@pytest.mark.parametrize(("mu", "runs"), [(0.286, 500_000), (1.0, 100_000), (3.0, 50_000)])
def test_the_audit_of_the_mechanism_itself_is_tight(mu: float, runs: int) -> None:
    """The bound is expected 1.7 %, 1.2 % and 0.8 % below mu, 1.96 SE of its own: 5 % are another 3.8, 6 and 10 SE."""
    found = audit_mechanism(mu, runs)
    assert found.promise.mu == pytest.approx(mu, rel=1e-6)
    assert 0.95 * mu < found.mu_lower
    assert found.verdict == found.at(SURE).verdict == "consistent"
    assert 0.9 * mu < found.at(SURE).mu_lower <= mu
    assert found.at(SURE).epsilon_lower <= epsilon_from_mu(mu, 1e-4)
    assert found.runs == found.by_mu.runs_with == runs


def test_real_releases_keep_the_promise_too() -> None:
    finding = audit_mechanism(1.0, 40_000, levels=3, seed=None).at(1 - 1e-6)
    assert "the operating system's noise" in finding.attack.view
    assert finding.verdict == "consistent"
    assert finding.mu_lower > 0.9  # 0.954 is expected of a promise of 1, give or take 0.009


class Shared(GaussianProcessMechanism):
    """One path for all outputs."""

    def simulate(self, f: Any, seed: int) -> Any:
        sound: Any = super().simulate(f, seed)
        noise = sound.values - f(None)
        return dataclasses.replace(sound, values=f(None) + noise[:, :1])


def test_outputs_that_share_their_noise_are_no_releases_of_their_own() -> None:
    with pytest.raises(Unprotected, match="share their noise"):
        audit_mechanism(1.0, 4000, kind=Shared)
