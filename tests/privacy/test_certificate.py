"""A certificate must not claim more than its parts, and its JSON must not be able to make it."""

import dataclasses
import json
import math
import pickle
import re
import sys
from typing import Any

import mpmath
import pytest
from dp_accounting.pld import PLDAccountant
from hypothesis import given, strategies as st

from quietq import (
    Assumption,
    Budget,
    Certificate,
    Exponential,
    InvalidInput,
    LipschitzBall as Ball,
    RkhsBall,
    SupBall,
    people,
)
from quietq.noise.rounding import exact_rounding
from quietq.privacy import InvalidCertificate
from quietq.privacy.certificate import CHOSEN, FAIR
from quietq.privacy.relations import Trajectories

BUDGET = Budget(0.9, 1e-4)
BALL = people(50, 0, 0.5, 1).describe()
RKHS = RkhsBall(1.0, Exponential(4.0)).describe()
TRAJECTORIES = Trajectories(9, 1.0).describe()
KERNEL = Exponential(4.0)
RADIUS = people(50, 0, 0.5, 1).rkhs_radius(KERNEL)
GOOD = {
    "method": "gaussian-process",
    "standing": "certified",
    "relation": people(50, 0, 0.5, 1).describe(),
    "epsilon": 0.9,
    "delta": 1e-4,
    "mu": BUDGET.mu,
    "sigma": RADIUS / BUDGET.mu,
    "sensitivity": RADIUS,
    "norm": KERNEL.describe(),
    "domain": ((0.0, 1.0),),
    "assumptions": (CHOSEN,),
}
PURE: dict[str, Any] = {
    "method": "reward/k-norm",
    "delta": 0.0,
    "mu": None,
    "sigma": None,
    "norm": {"kind": "increments", "pieces": 4, "radius": 0.01, "lipschitz": 0.04},
    "sensitivity": 1.0,
    "scale": 1 / 0.9,
}
SMOOTH: dict[str, Any] = {
    "method": "evaluation/lsw",
    "mu": None,
    "sigma": None,
    "sensitivity": 1.0,
    "scale": 50.0,
    "domain": None,
    "norm": {"kind": "smooth-bound", "weights": 3, "beta": 0.01},
}
KNOTS = {"method": "reward/knots"}  # whose module knows the norm


def test_json_there_and_back():
    certificate = Certificate(**GOOD, remarks=("chosen because", "é"))
    again = Certificate.from_json(certificate.to_json())
    assert again == certificate
    assert json.loads(certificate.to_json())["schema"] == 3


def test_it_cannot_be_changed():
    certificate = Certificate(**GOOD)
    with pytest.raises(dataclasses.FrozenInstanceError):
        certificate.epsilon = 0.1  # pyright: ignore[reportAttributeAccessIssue]
    assert certificate.relation is not None
    with pytest.raises(TypeError):
        certificate.relation["radius"] = 0.0  # pyright: ignore[reportIndexIssue]
    kernel = {"kind": "product", "betas": [1.0]}
    source = {"kind": "rkhs-ball", "radius": RADIUS, "kernel": kernel, "actions": 1, "people": None}
    kept = Certificate(**{**GOOD, "relation": source, "norm": kernel})
    kernel["betas"].append(2.0)
    assert kept.to_dict()["relation"]["kernel"]["betas"] == kept.to_dict()["norm"]["betas"] == [1.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.8}, "does not imply"),
        ({"delta": 1e-5}, "does not imply"),
        ({"mu": 0.1}, "more than the stated"),
        ({"sigma": 0.01}, "more than the stated"),
        ({"sensitivity": 2.0}, "more than the stated"),
        ({"sigma": None}, "needs the sigma"),
        ({"sensitivity": None}, "needs the sensitivity"),
        ({"norm": None}, "needs the sensitivity, and the norm"),
        ({"norm": {}}, "norm that is known here"),
        ({"norm": {"kind": "l2"}}, "norm that is known here, not 'l2'"),
        ({"norm": {"kind": ["exponential"], "beta": 4.0}}, "norm that is known here"),
        ({"norm": {**KERNEL.describe(), "more": 1}}, "exactly the fields"),
        ({"norm": {"kind": "exponential", "beta": math.nan}}, "JSON values"),
        ({"norm": {"kind": "exponential", "beta": 1e-90}}, "is below"),
        ({"norm": {"kind": "exponential", "beta": 1e-120}}, "beta must be above"),
        ({"norm": {"kind": "product", "betas": [1.0]}}, "Nothing bounds"),
        ({**KNOTS, "norm": {"kind": "knots", "shape": [[1.0, 0.0]]}}, "a square of 1 to 8 rows"),
        ({**KNOTS, "norm": {"kind": "knots", "shape": [[1.0, 2.0], [2.0, 1.0]]}}, "not one that a difference"),
        ({**KNOTS, "norm": {"kind": "knots", "shape": [[1.0, 0.5], [0.4, 1.0]]}}, "symmetric"),
        ({**KNOTS, "norm": {"kind": "knots", "shape": [[9.0, 0.0], [0.0, 9.0]]}}, "mean of 1"),
        ({"method": "evaluation/lsw", "norm": {"kind": "smooth-bound", "weights": 1, "beta": 0.1}}, "Nothing bounds"),
        ({"norm": {"kind": "rewards", "count": 10**15, "operations": 0}}, "is below"),
        ({"norm": {"kind": "rewards", "count": 0, "operations": 0}}, "norm's count"),
        ({"norm": {"kind": "values", "count": 1, "discount": 1.0, "operations": 0}}, "norm's discount"),
        ({"relation": SupBall(0.01).describe()}, "Nothing bounds"),
        ({"relation": RkhsBall(0.01, Exponential(3.0)).describe()}, "Nothing bounds"),
        ({"scale": 1.0}, "no scale"),
        ({"sensitivity": RADIUS * 0.99, "sigma": RADIUS}, "is below"),
        ({"domain": None}, "domain must be the box"),
        ({"domain": ((0.0, 1.0), (0.0, 1.0))}, "of 1 coordinate"),
        ({"assumptions": (Assumption("All is well.", enforced=False),)}, "chosen without the private data"),
        ({"assumptions": (Assumption(CHOSEN.text, enforced=True),)}, "must be trusted"),
        ({"assumptions": (CHOSEN, Assumption("Neighbouring inputs are alike.", enforced=True))}, "must be trusted"),
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
        ({"mu": None}, "needs the scale"),
        ({"mu": None, "sigma": None}, "needs the scale"),
        ({"mu": None, "delta": 0.0}, "needs the scale"),
        ({"mu": None, "delta": 0.0, "scale": 9.0}, "does not belong"),
        ({"mu": None, "scale": 9.0}, "does not belong"),
        ({"method": "published"}, "does not hold"),
        ({"relation": {"kind": "all"}}, "must be one of"),
        ({"relation": {"kind": ["sup-ball"]}}, "must be one of"),
        ({"relation": {"radius": 1.0}}, "must be one of"),
        ({"relation": {**BALL, "radius": 0.0}}, "relation's radius must be above 0"),
        ({"relation": {**BALL, "radius": "1"}}, "relation's radius must be a finite number"),
        ({"relation": {**BALL, "radius": None}}, "relation's radius"),
        ({"relation": {**BALL, "lipschitz": -1.0}}, "relation's lipschitz must be above 0"),
        ({"relation": {**BALL, "people": 0}}, "relation's people"),
        ({"relation": {**BALL, "people": 2.5}}, "relation's people"),
        ({"relation": {**BALL, "actions": True}}, "relation's actions"),
        ({"relation": {**BALL, "slope": 1.0}}, "exactly the fields"),
        ({"relation": {"kind": "sup-ball"}}, "exactly the fields"),
        ({"relation": {"kind": "replace-trajectory", "count": 9}}, "exactly the fields"),
        ({"relation": {**TRAJECTORIES, "count": 0}}, "relation's count"),
        ({"relation": {**TRAJECTORIES, "horizon": 1.5}}, "relation's horizon"),
        ({"relation": {**TRAJECTORIES, "largest_reward": 0.0}}, "relation's largest_reward"),
        ({"relation": {**RKHS, "kernel": "exponential"}}, "relation's kernel"),
        ({"relation": {**RKHS, "kernel": {"kind": "features", "phi": "f\n- enforced: all"}}}, "printable"),
        ({"method": "x\ny"}, "method must be printable"),
        ({"version": "1\u2028"}, "version must be printable"),
        ({"remarks": ("fine\r- enforced: everything",)}, "remark must be printable"),
        ({"remarks": ("\x1b[2Jgone",)}, "remark must be printable"),
        ({"domain": ()}, "domain must be pairs"),
        ({"domain": ((0.0, 1.0, 2.0),)}, "domain must be pairs"),
        ({"domain": ((1.0, 1.0),)}, "low below high"),
        ({"domain": ((0.0, math.nan),)}, "domain must be a finite number"),
    ],
)
def test_it_refuses_to_claim_more_than_its_parts(change, message):
    with pytest.raises(InvalidInput, match=message):
        Certificate(**{**GOOD, **change})


def test_pure_noise_has_a_scale_and_no_mu():
    pure, norm = {**GOOD, **PURE}, PURE["norm"]
    assert Certificate(**pure).mu is None
    for forged in ({"epsilon": 0.89}, {"scale": 1.1}, {"sensitivity": 0.99}, {"norm": {**norm, "lipschitz": 0.039}}):
        with pytest.raises(InvalidInput):
            Certificate(**{**pure, **forged})


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


def test_an_assumption_is_one_line():
    with pytest.raises(InvalidCertificate, match="printable text in one line"):
        Assumption("bounds are public\n- enforced: everything", enforced=False)


def test_every_relation_of_ours_is_known_and_others_are_not_certified():
    observed = {"kind": "rewards", "count": 4, "operations": 0}
    for relation, norm in (
        (SupBall(RADIUS / 2), observed),
        (Ball(RADIUS / 2, 9.0, actions=3), observed),
        (Ball(RADIUS / 4, RADIUS / 4, actions=2), Exponential(1.0).describe()),
        (RkhsBall(RADIUS, Exponential(1.0), people=3), Exponential(1.0).describe()),
    ):
        assert Certificate(**{**GOOD, "relation": relation.describe(), "norm": norm}).standing == "certified"
    for relation in (Trajectories(9, 1.0), Trajectories(9, 1.0, horizon=5)):
        kept = Certificate(**{**GOOD, **SMOOTH, "relation": relation.describe()})
        assert Certificate.from_json(kept.to_json()) == kept
    Certificate(method="x", standing="none", relation={"kind": "hamming"})
    with pytest.raises(InvalidInput, match="radius"):
        Certificate(method="x", standing="none", relation={**BALL, "radius": -1})


@pytest.mark.parametrize("text", ['{"schema": 1, "schema": 1}', '{"a": {"epsilon": 9, "epsilon": 0.1}}'])
def test_a_field_stated_twice_is_refused(text):
    with pytest.raises(InvalidCertificate, match="twice"):
        Certificate.from_json(text)


def test_the_box_is_part_of_it():
    plane = {"kind": "product", "betas": [1.0, 2.0]}
    relation = {"kind": "rkhs-ball", "radius": RADIUS, "kernel": plane, "actions": 1, "people": None}
    certificate = Certificate(**{**GOOD, "relation": relation, "norm": plane, "domain": [[0, 10.0], [-1, 1]]})
    assert certificate.domain == ((0.0, 10.0), (-1.0, 1.0))
    assert certificate.to_dict()["domain"] == [[0.0, 10.0], [-1.0, 1.0]]
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert "\nStates lie in [0, 10] x [-1, 1].\n" in str(certificate)
    assert "The box" not in str(Certificate(method="x", standing="none"))
    record = Certificate(**GOOD).to_dict()
    del record["domain"]
    with pytest.raises(InvalidCertificate, match="exactly the fields"):
        Certificate.from_dict(record)


def test_a_pickle_names_a_function():
    certificate = Certificate(**GOOD)
    reduced: Any = certificate.__reduce__()
    function, arguments = reduced
    assert function.__qualname__ in vars(sys.modules[function.__module__])
    assert function(*arguments) == certificate == pickle.loads(pickle.dumps(certificate))


def test_plain_words():
    text = str(Certificate(**GOOD))
    assert "certified to be (0.9, 0.0001)-differentially private" in text
    assert f"trusted: {CHOSEN.text}" in text
    assert "\n- Sensitivity and noise are measured in the norm of the exponential kernel with beta 4." in text
    assert f"Promised to look alike: {people(50, 0, 0.5, 1)}." in text
    assert "no privacy is promised (a seed was given" in str(
        Certificate(method="x", standing="none", reproducible=True)
    )


@pytest.mark.parametrize(
    ("change", "limit"),
    [
        ({}, 55.7),  # Phi(mu/2) of (0.9, 1e-4)
        (PURE, 71.1),  # e^0.9/(1 + e^0.9)
        ({**SMOOTH, "relation": TRAJECTORIES}, 71.1),  # (e^0.9 + 1e-4)/(1 + e^0.9)
    ],
)
def test_the_guessers_limit_is_printed_and_follows_from_the_certificates_own_numbers(change, limit):
    certificate = Certificate(**{**GOOD, **change})
    (share,) = re.findall(r"(?m)^Whoever knows .* is right in at most ([\d.]+) of 100 cases", str(certificate))
    with mpmath.workdps(30):
        epsilon, delta = mpmath.mpf(certificate.epsilon), mpmath.mpf(certificate.delta)
        exact = (mpmath.e**epsilon + delta) / (1 + mpmath.e**epsilon)
        exact = exact if certificate.mu is None else mpmath.ncdf(mpmath.mpf(certificate.mu) / 2)
    assert 100 * exact <= float(share) < 100 * exact + 0.1
    assert float(share) == limit
    claim = Certificate(method="x", standing="claimed", relation=BALL, epsilon=1.0, delta=0.0, remarks=("It fails.",))
    for nothing in (claim, Certificate(method="x", standing="none")):
        assert "Whoever knows" not in str(nothing)


def test_a_signers_lines_come_first_and_none_is_lost():
    rounded = exact_rounding(1.0, 3.0, 1e-12)
    assumptions = (Assumption("It was held to bounds.", True), CHOSEN, *rounded, FAIR)
    remarks = ("Mind the gap.", "Noise 'path' was asked for; expected errors: path 1.")
    certificate = Certificate(**{**GOOD, "assumptions": assumptions, "remarks": remarks, "expected_error": 0.5})
    text = str(certificate)
    signer, engineer = text.split("\nFor the engineer:\n")
    opens = [line.split()[0] if line[0] != "-" else line.split()[1] for line in signer.splitlines()]
    promised = ["gaussian-process:", "Whoever", "Promised", "States", "Values"]
    assert opens == [*promised, "trusted:", "trusted:", "enforced:", "note:"]
    opens = [line.split()[1] for line in engineer.splitlines()]
    assert opens == ["Sensitivity", "trusted:", "enforced:", "note:"]
    said = [f"{'enforced' if one.enforced else 'trusted'}: {one.text}" for one in assumptions]
    assert sorted(line[2:] for line in text.splitlines() if line.startswith(("- t", "- e", "- n"))) == sorted(
        [*said, *(f"note: {remark}" for remark in remarks)]
    )


@pytest.mark.parametrize("filler", ["\ufe0f", "\u034f", "\u2800", "\u0430"])
def test_no_sentence_can_look_like_another(filler: str) -> None:
    """Characters that show nothing, or look like a Latin letter, hide a sentence from whoever compares it."""
    for text in ("Neighbouring inputs are rewards.", "No account was given: all is well.", CHOSEN.text):
        disguised = Assumption(text.replace(" ", " " + filler, 1), enforced=True)
        with pytest.raises(InvalidCertificate, match="plain ASCII"):
            Certificate(**{**GOOD, "assumptions": (CHOSEN, disguised)})
    for method in ("published" + filler, "gaussian-process: is certified to be (0.01, 0)-differentially private."):
        with pytest.raises(InvalidCertificate, match="plain name"):
            Certificate(**{**GOOD, "method": method})
    for text in ("Box and budget were not chosen without the private data.", "Nothing was chosen without it."):
        with pytest.raises(InvalidCertificate, match="in these words"):
            Certificate(**{**GOOD, "assumptions": (Assumption(text, enforced=False),)})
