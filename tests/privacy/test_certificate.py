"""A certificate must not claim more than its parts, and its JSON must not be able to make it."""

import dataclasses
import json
import math

import pytest
from dp_accounting.pld import PLDAccountant
from hypothesis import given
from hypothesis import strategies as st

from quietq import Assumption, Budget, Certificate, InvalidInput, people
from quietq.privacy import InvalidCertificate

BUDGET = Budget(0.9, 1e-4)
GOOD = {
    "method": "gaussian-process",
    "standing": "certified",
    "relation": people(50, 0, 0.5, 1).describe(),
    "epsilon": 0.9,
    "delta": 1e-4,
    "mu": BUDGET.mu,
    "sigma": 1 / BUDGET.mu,
    "sensitivity": 1.0,
    "assumptions": (Assumption("bounds are public", enforced=False),),
}


def test_json_there_and_back():
    certificate = Certificate(**GOOD, remarks=("chosen because", "é"))
    again = Certificate.from_json(certificate.to_json())
    assert again == certificate
    assert json.loads(certificate.to_json())["schema"] == 1


def test_it_cannot_be_changed():
    certificate = Certificate(**GOOD)
    with pytest.raises(dataclasses.FrozenInstanceError):
        certificate.epsilon = 0.1  # pyright: ignore[reportAttributeAccessIssue]
    assert certificate.relation is not None
    with pytest.raises(TypeError):
        certificate.relation["radius"] = 0.0  # pyright: ignore[reportIndexIssue]
    source = {"kind": "sup-ball", "nested": {"a": [1]}}
    kept = Certificate(**{**GOOD, "relation": source})
    source["nested"]["a"].append(2)
    assert kept.to_dict()["relation"]["nested"]["a"] == [1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.8}, "does not imply"),
        ({"delta": 1e-5}, "does not imply"),
        ({"mu": 0.1}, "more than the stated"),
        ({"sigma": 1.0}, "more than the stated"),
        ({"sensitivity": 2.0}, "more than the stated"),
        ({"sigma": None}, "needs the sigma"),
        ({"sensitivity": None}, "needs the sigma"),
        ({"delta": 0.0}, "never pure"),
        ({"relation": None}, "relation"),
        ({"relation": {}}, "relation"),
        ({"epsilon": None}, "needs epsilon"),
        ({"delta": None}, "needs epsilon"),
        ({"assumptions": ()}, "must state what it assumes"),
        ({"reproducible": True}, "not private"),
        ({"standing": "none"}, "must not state"),
        ({"standing": "claimed"}, "must remark"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"mu": math.inf}, "mu"),
        ({"relation": {"radius": math.nan}}, "JSON values"),
    ],
)
def test_it_refuses_to_claim_more_than_its_parts(change, message):
    with pytest.raises(InvalidInput, match=message):
        Certificate(**{**GOOD, **change})


def test_pure_and_other_epsilon_delta_guarantees_have_no_mu():
    pure = Certificate(**{**GOOD, "delta": 0.0, "mu": None, "sigma": None, "sensitivity": None})
    assert pure.mu is None


@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(Certificate)])
@pytest.mark.parametrize("value", [None, True, [], {}, "x", -1, 1e400, [1], {"a": 1}, [{"text": 1, "enforced": 1}]])
def test_hostile_json_never_gets_further_than_invalid_certificate(field, value):
    record = {**Certificate(**GOOD).to_dict(), field: value}
    try:
        loaded = Certificate.from_json(json.dumps(record))
    except InvalidCertificate:
        return
    assert loaded.to_dict()[field] == value  # what is accepted is what was said


@given(st.text(max_size=50) | st.binary(max_size=50).map(lambda b: b.decode("latin1")))
def test_garbage_is_not_a_certificate(text):
    with pytest.raises(InvalidCertificate):
        Certificate.from_json(text)


def test_deep_json_is_refused():
    with pytest.raises(InvalidCertificate):
        Certificate.from_json("[" * 100_000)


def test_event_gives_back_the_same_epsilon():
    event = Certificate(**GOOD).to_event()
    theirs = PLDAccountant().compose(event)
    assert theirs.get_epsilon(1e-4) == pytest.approx(0.9, rel=1e-3)
    with pytest.raises(InvalidInput, match="Only a certified"):
        Certificate(method="x", standing="none").to_event()


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_assumption_is_none(text):
    with pytest.raises(InvalidCertificate, match="must be a sentence"):
        Assumption(text, enforced=True)


def test_plain_words():
    text = str(Certificate(**GOOD))
    assert "certified to be (0.9, 0.0001)-differentially private" in text
    assert "trusted: bounds are public" in text
    assert f"Promised to look alike: {people(50, 0, 0.5, 1)}." in text
    assert "no privacy is promised (a seed was given" in str(
        Certificate(method="x", standing="none", reproducible=True)
    )
