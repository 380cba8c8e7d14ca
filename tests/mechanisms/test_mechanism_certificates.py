"""What the mechanism promises, and what it refuses to promise."""

import json
import math

import numpy as np
import pytest
from walk_mechanism import BUDGET, PEOPLE, walk_reward

from quietq import (
    Budget,
    Certificate,
    Exponential,
    GaussianProcessMechanism,
    InvalidInput,
    LipschitzBall,
    NoRkhsRadius,
    PrivacyWarning,
    RkhsBall,
    SupBall,
)
from quietq.paper import BandLimited, FeatureKernel, FiniteRankMechanism
from quietq.privacy import Code


def test_the_certificate_says_how_a_band_limited_function_was_read():
    kernel = BandLimited(2.0)
    projected = FiniteRankMechanism(kernel, 0.1, BUDGET).apply(np.sin).certificate
    given = FiniteRankMechanism(kernel, 0.1, BUDGET).apply(np.zeros(kernel.rank)).certificate
    assert any("evaluated at public points only, or given as weights" in a.text for a in projected.assumptions)
    assert given.assumptions == projected.assumptions  # what it says is true of both


def test_the_certificate_names_the_box_and_the_relation_whoever_vouches_for_it():
    vouched = Code.CALLER("everybody was held to the range and the slope.")
    mechanism = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET, domain=(-5, 10), levels=4, assumption=vouched)
    certificate = mechanism.apply(lambda s: 0 * s).certificate
    assert certificate.domain == ((-5.0, 10.0),)
    text = str(certificate)
    assert "States lie in [-5, 10]." in text
    assert "inputs: what 50 people gave, of whom one may have given anything else; in numbers, rewards that" in text
    assert "slope at most 0.04 per width of the box." in text
    assert "- trusted: The caller makes sure of the relation: everybody was held" in text


def test_the_certificate_says_which_norm_is_protected():
    additive = Exponential((1.0, 2.0), summed=True)
    mechanism = GaussianProcessMechanism(additive, 0.1, BUDGET, levels=4)
    text = str(mechanism.apply([np.sin, np.cos]).certificate)
    assert (
        "norm at most 0.1 in the additive kernel with beta 1 and 2 (the norms of the parts as given, squared and"
        in text
    )
    twice = FeatureKernel(lambda x: np.stack([x, x], axis=-1), rank=2)  # [1, 0] and [0, 1] are the same function
    text = str(FiniteRankMechanism(twice, 0.1, BUDGET).apply([1.0, 0.0]).certificate)
    assert "norm at most 0.1 in the kernel of 2 features" in text
    assert "the norm of the weights as given" in text


def test_certificate_of_a_release():
    private = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET).apply(walk_reward)
    certificate = private.certificate
    assert (certificate.standing, certificate.epsilon, certificate.delta) == ("certified", 0.9, 1e-4)
    (query,) = certificate.queries
    assert certificate.mu == pytest.approx(query.sensitivity / query.size)
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert json.loads(certificate.to_json())["relation"]["people"] == 50
    assert not certificate.assumptions[0].enforced  # nobody has checked the relation yet
    assert query.norm == Exponential((4.0,))


def test_a_sensitivity_below_the_relations_radius_is_refused():
    with pytest.raises(InvalidInput, match="below the relation's radius"):
        GaussianProcessMechanism(Exponential(4.0), 0.02, BUDGET, relation=PEOPLE)


@pytest.mark.parametrize("sensitivity", [math.nan, math.inf, 0.0, -1.0])
def test_impossible_sensitivities(sensitivity):
    for relation in (None, PEOPLE):
        with pytest.raises(InvalidInput, match="sensitivity"):
            GaussianProcessMechanism(Exponential(4.0), sensitivity, BUDGET, relation=relation)


def test_relations_without_a_radius_are_refused():
    with pytest.raises(NoRkhsRadius):
        GaussianProcessMechanism.for_relation(SupBall(1.0), BUDGET)
    with pytest.raises(NoRkhsRadius):
        GaussianProcessMechanism(Exponential((1.0, 1.0)), 1.0, BUDGET, relation=LipschitzBall(1.0, 1.0))


def test_a_pure_budget_is_refused():
    with pytest.raises(InvalidInput, match="pure budget"):
        GaussianProcessMechanism(Exponential(1.0), 1.0, Budget(1.0, 0))


def test_rkhs_relation_brings_its_kernel():
    kernel = FeatureKernel(lambda x: np.stack([x, 1 - x], axis=-1), rank=2)
    mechanism = FiniteRankMechanism.for_relation(RkhsBall(0.02, kernel.norm, people=100), BUDGET)
    assert mechanism.sensitivity == pytest.approx(0.02)


def test_a_large_delta_warns():
    with pytest.warns(PrivacyWarning, match="not below 1/people"):
        GaussianProcessMechanism.for_relation(PEOPLE, Budget(0.9, 0.05))


def test_repr_holds_no_values():
    mechanism = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET)
    private = mechanism.apply(lambda s: np.full(s.shape, 0.123456))
    assert "0.1234" not in repr(private) + repr(mechanism)
