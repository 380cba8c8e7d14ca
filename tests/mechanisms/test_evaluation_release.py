"""What private policy evaluation releases, says of it, and refuses."""

import math

import numpy as np
import pytest
from evaluation_chain import STATES, chain, evaluation

from quietq import Budget, Certificate, InvalidInput, PrivacyWarning
from quietq.feedback.cells import Cells
from quietq.paper.baselines.balle import Admissible
from quietq.privacy.relations import Trajectories


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
