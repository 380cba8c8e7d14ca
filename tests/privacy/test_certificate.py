"""A certificate must not claim more than its parts, and its JSON must not be able to make it."""

import contextlib
import copy
import json
import math
import pickle
import re
import sys
import time
from typing import Any

import dp_accounting as dpa
import mpmath
import msgspec
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from hypothesis import given, strategies as st

from quietq import Budget, Certificate, Exponential, InvalidInput, LipschitzBall as Ball, RkhsBall, SupBall, people
from quietq.privacy import AnsweredQuery, Code, InvalidCertificate
from quietq.privacy.certificate import certifying
from quietq.privacy.norms import (
    AnyNorm,
    EncodedMoments,
    IncrementGauge,
    MeanOfPeople,
    ObservedRewards,
    ShapedIncrements,
    SmoothBound,
    vertices,
)
from quietq.privacy.relations import AnyRelation, Arrivals, OnePerson, Trajectories

BUDGET = Budget(0.9, 1e-4)
BALL = people(50, 0, 0.5, 1)
KERNEL = Exponential((4.0,))
RADIUS = BALL.rkhs_radius(KERNEL)
CHOSEN, FAIR = Code.CHOSEN(), Code.FAIR()
STANDS_ON = (CHOSEN, FAIR, Code.NO_ACCOUNT(), Code.NEIGHBOURS(), Code.OWN_CODE(), Code.INDEPENDENT())
"""Of whatever relation and noise."""


def certified(
    relation: AnyRelation = BALL,
    norm: AnyNorm = KERNEL,
    family: Any = "gaussian",
    sensitivity: float = RADIUS,
    size: float = RADIUS / BUDGET.mu,
    method: str = "gaussian-process",
    budget: Budget = BUDGET,
    **more: Any,
) -> Certificate:
    """A certified promise, as a transcript would make it."""
    query = AnsweredQuery(norm, family, sensitivity, size)
    stated = {"domain": ((0.0, 1.0),), "assumptions": STANDS_ON, **more}
    with certifying():
        return Certificate(
            method=method, standing="certified", relation=relation, budget=budget, queries=(query,), **stated
        )


GOOD: dict[str, Any] = certified().to_dict()
PURE: dict[str, Any] = {
    "method": "reward/k-norm",
    "budget": Budget(0.9, 0.0),
    "norm": IncrementGauge(4, 0.01, 0.04),
    "family": "pure",
    "sensitivity": 1.0,
    "size": 1 / 0.9,
}
SMOOTH: dict[str, Any] = {
    "method": "evaluation/lsw",
    "relation": Trajectories(9, 1.0),
    "norm": SmoothBound(3, 0.01),
    "family": "smooth",
    "sensitivity": 1.0,
    "size": 50.0,
    "domain": None,
}


def changed(*changes: tuple[str, Any], record: dict[str, Any] = GOOD) -> dict[str, Any]:
    """A certificate's JSON with parts of it changed, each by its path."""
    forged = copy.deepcopy(record)
    for path, value in changes:
        *names, last = path.split(".")
        where: Any = forged
        for name in names:
            where = where[int(name) if name.isdigit() else name]
        where[int(last) if last.isdigit() else last] = value
    return forged


def test_json_there_and_back():
    certificate = certified(remarks=("chosen because", "\u00e9"))
    again = Certificate.from_json(certificate.to_json())
    assert again == certificate
    assert json.loads(certificate.to_json())["schema"] == 4


def test_it_cannot_be_changed():
    certificate = certified()
    for name in ("standing", "budget", "queries", "relation"):
        with pytest.raises(AttributeError):
            setattr(certificate, name, None)
    with pytest.raises(AttributeError):
        certificate.queries[0].size = 9.0  # pyright: ignore[reportAttributeAccessIssue]
    betas = [1.0]
    kept = certified(RkhsBall(RADIUS, Exponential(betas)), Exponential(betas))  # pyright: ignore[reportArgumentType]
    betas.append(2.0)
    stated = kept.to_dict()
    assert stated["relation"]["kernel"]["betas"] == stated["queries"][0]["norm"]["betas"] == [1.0]


def test_only_a_transcript_certifies():
    """Not a caller's constructor, not a copy with another standing, and not for longer than it takes."""
    parts = {name: getattr(certified(), name) for name in Certificate.__struct_fields__}
    with pytest.raises(InvalidCertificate, match="but by a Transcript"):
        Certificate(**parts)
    none = Certificate(method="gaussian-process", standing="none")
    with pytest.raises(InvalidCertificate, match="but by a Transcript"):
        msgspec.structs.replace(none, standing="certified", budget=BUDGET, relation=BALL)
    with pytest.raises(InvalidCertificate, match="but by a Transcript"):
        msgspec.structs.replace(certified(), budget=Budget(1.0, 1e-4))


NORM, QUERY = "queries.0.norm", "queries.0"
TRAJECTORIES = Trajectories(9, 1.0).to_dict()
RKHS = RkhsBall(1.0, Exponential(4.0)).to_dict()  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ([("budget.epsilon", 0.8)], "more than the"),
        ([("budget.delta", 1e-5)], "more than the"),
        ([("queries.0.size", 0.01)], "more than the"),
        ([("queries.0.sensitivity", 2.0)], "more than the"),
        ([("queries", [])], "needs the queries"),
        ([("queries", [GOOD["queries"][0]] * 2)], "more than the"),
        ([("queries", [GOOD["queries"][0]] * 501)], "length <= 500"),
        ([(f"{QUERY}.size", None)], "size"),
        ([(f"{QUERY}.size", 0.0)], "size must be above 0"),
        ([(f"{QUERY}.sensitivity", None)], "sensitivity"),
        ([(f"{QUERY}.family", "pure")], "No pure noise"),
        ([(f"{QUERY}.family", "smooth")], "No smooth noise"),
        ([(f"{QUERY}.family", "uniform")], "uniform"),
        ([(NORM, None)], "norm"),
        ([(NORM, {})], "kind"),
        ([(f"{NORM}.kind", "l2")], "l2"),
        ([(f"{NORM}.kind", ["exponential"])], "kind"),
        ([(f"{NORM}.more", 1)], "unknown field"),
        ([(f"{NORM}.betas", [math.nan])], "betas must be a finite number"),
        ([(f"{NORM}.betas", [1e-90])], "is below"),
        ([(f"{NORM}.betas", [1e-120])], "betas must be above"),
        ([(f"{NORM}.betas", [])], "number of betas must be a whole number of at least 1"),
        ([(f"{NORM}.betas", [1.0, 1.0])], "Nothing bounds"),
        ([(NORM, {"kind": "knots", "shape": [[1.0, 0.0]]})], "a square of 1 to 8 rows"),
        ([(NORM, {"kind": "knots", "shape": [[1.0, 2.0], [2.0, 1.0]]})], "Nothing bounds"),
        ([(NORM, {"kind": "knots", "shape": [[1.0, 0.5], [0.4, 1.0]]})], "symmetric"),
        ([(NORM, {"kind": "knots", "shape": [[9.0, 0.0], [0.0, 9.0]]})], "mean of 1"),
        ([("method", "evaluation/lsw"), (NORM, {"kind": "smooth-bound", "weights": 1, "beta": 0.1})], "Nothing bounds"),
        ([(NORM, {"kind": "rewards", "count": 10**15, "operations": 0})], "is below"),
        ([(NORM, {"kind": "rewards", "count": 0, "operations": 0})], "count must be"),
        ([(NORM, {"kind": "values", "count": 1, "discount": 1.0, "operations": 0})], "discount must be"),
        ([("relation", SupBall(0.01).to_dict())], "Nothing bounds"),
        ([("relation", RkhsBall(0.01, Exponential(3.0).norm).to_dict())], "Nothing bounds"),
        ([("queries.0.sensitivity", RADIUS * 0.99), ("queries.0.size", RADIUS)], "is below"),
        ([("domain", None)], "domain must be the box"),
        ([("domain", [[0.0, 1.0], [0.0, 1.0]])], "of 1 coordinate"),
        ([("assumptions", [FAIR.to_dict()])], "chosen without the private data"),
        ([("assumptions", [CHOSEN.to_dict()])], "random bits are fair"),
        ([("assumptions", [])], "must state this, or what takes its place"),
        ([("assumptions.0.enforced", True)], "unknown field"),
        ([("assumptions.0.text", "All is well.")], "unknown field"),
        ([("assumptions.0.code", "all-is-well")], "all-is-well"),
        ([("assumptions.0.values", [1])], "do not fit"),
        ([("budget.delta", 0.0)], "never pure"),
        ([("relation", None)], "relation"),
        ([("relation", {})], "kind"),
        ([("budget", None)], "needs a budget"),
        ([("budget.epsilon", None)], "epsilon"),
        ([("reproducible", True)], "not private"),
        ([("standing", "none")], "must not state"),
        ([("standing", "claimed")], "must remark"),
        ([("budget.epsilon", -1.0)], "epsilon"),
        ([("budget.epsilon", math.nan)], "epsilon"),
        ([("budget.delta", 1.0)], "delta"),
        ([("relation.radius", math.nan)], "radius"),
        ([("method", "published")], "proves nothing"),
        ([("method", "none")], "proves nothing"),
        ([("method", "reward/published")], "proves nothing"),
        ([("method", "value")], "is not measured in"),
        ([("relation.kind", "all")], "all"),
        ([("relation.kind", ["sup-ball"])], "kind"),
        ([("relation", {"radius": 1.0})], "kind"),
        ([("relation.radius", 0.0)], "radius must be above 0"),
        ([("relation.radius", "1")], "relation.radius"),
        ([("relation.radius", None)], "relation.radius"),
        ([("relation.lipschitz", -1.0)], "lipschitz must be above 0"),
        ([("relation.people", 0)], "people must be"),
        ([("relation.people", 2.5)], "relation.people"),
        ([("relation.actions", True)], "relation.actions"),
        ([("relation.slope", 1.0)], "unknown field"),
        ([("relation", {"kind": "sup-ball"})], "radius"),
        ([("relation", {name: one for name, one in GOOD["relation"].items() if name != "actions"})], "every field"),
        ([("relation", {"kind": "replace-trajectory", "count": 9})], "missing"),
        ([("relation", {**TRAJECTORIES, "count": 0})], "count must be"),
        ([("relation", {**TRAJECTORIES, "horizon": 1.5})], "relation.horizon"),
        ([("relation", {**TRAJECTORIES, "largest_reward": 0.0})], "largest_reward must be"),
        ([("relation", {**RKHS, "kernel": "exponential"})], "relation.kernel"),
        (
            [
                (
                    "relation",
                    {**RKHS, "kernel": {"kind": "features", "phi": "f\n- enforced: x", "rank": 1, "dimension": 1}},
                )
            ],
            "printable",
        ),
        ([("method", "x\ny")], "method must be printable"),
        ([("version", "1\u2028")], "version must be printable"),
        ([("remarks", ["fine\r- enforced: everything"])], "remarks must be printable"),
        ([("remarks", ["\x1b[2Jgone"])], "remarks must be printable"),
        ([("domain", [])], "length >= 1"),
        ([("domain", [[0.0, 1.0, 2.0]])], "domain"),
        ([("domain", [[1.0, 1.0]])], "low below high"),
        ([("domain", [[0.0, math.nan]])], "domain must be a finite number"),
        ([("schema", 3)], "schema"),
        ([("more", 3)], "unknown field"),
    ],
)
def test_it_refuses_to_claim_more_than_its_parts(change, message):
    with pytest.raises(InvalidCertificate, match=re.escape(message)):
        Certificate.from_dict(changed(*change))


@pytest.mark.parametrize("field", Certificate.__struct_fields__)
def test_no_field_may_be_left_out(field):
    record = dict(GOOD)
    del record[field]
    with pytest.raises(InvalidCertificate):
        Certificate.from_dict(record)


def test_pure_noise_has_a_scale_and_no_mu():
    pure = certified(**PURE)
    assert pure.mu is None
    assert pure.sigma is None
    record = pure.to_dict()
    for path, value in (
        ("budget.epsilon", 0.89),
        ("budget.delta", 1e-4),
        ("queries.0.size", 1.1),
        ("queries.0.sensitivity", 0.99),
        ("queries.0.norm.lipschitz", 0.039),
        ("queries.0.family", "gaussian"),
    ):
        with pytest.raises(InvalidCertificate):
            Certificate.from_dict(changed((path, value), record=record))


def test_queries_add_up():
    """Gaussian ones by squares, pure ones by sums; and the two are not mixed."""
    half = AnsweredQuery(KERNEL, "gaussian", RADIUS, RADIUS / BUDGET.mu * math.sqrt(2))
    with certifying():
        two = msgspec.structs.replace(certified(), queries=(half, half))
    assert two.mu == BUDGET.mu
    assert two.sigma is None
    record = two.to_dict()
    with pytest.raises(InvalidCertificate, match="mu"):
        Certificate.from_dict(changed(("queries.1.size", half.size * 0.99), record=record))
    with pytest.raises(InvalidCertificate):
        Certificate.from_dict(changed(("queries", [*record["queries"], record["queries"][0]]), record=record))
    pure = certified(**PURE).to_dict()["queries"][0]
    with pytest.raises(InvalidCertificate, match="one family"):
        Certificate.from_dict(changed(("queries", [record["queries"][0], pure]), record=record))
    smooth = certified(**SMOOTH).to_dict()
    with pytest.raises(InvalidCertificate, match="one query alone"):
        Certificate.from_dict(changed(("queries", smooth["queries"] * 2), record=smooth))


@pytest.mark.parametrize("field", Certificate.__struct_fields__)
@pytest.mark.parametrize("value", [None, True, [], {}, "x", -1, 1e400, [1], {"a": 1}, [{"code": 1, "values": 1}]])
def test_hostile_json_never_gets_further_than_invalid_certificate(field, value):
    record = {**GOOD, field: value}
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


def test_dp_accounting_finds_the_same_epsilon():
    mu = certified().mu
    assert mu is not None
    theirs = PLDAccountant().compose(dpa.GaussianDpEvent(1 / mu))
    assert theirs.get_epsilon(1e-4) == pytest.approx(0.9, rel=1e-3)


@pytest.mark.parametrize("text", ["", "a\n- enforced: everything", "\ufe0f", "\u0430ll", "x" * 501])
def test_an_assumptions_text_is_one_plain_line(text):
    with pytest.raises(InvalidInput, match="do not fit"):
        Code.KNOWN_PARTS(text)


def test_an_enforced_assumption_holds_no_text():
    """So that no file can put words into quietq's mouth."""
    for code in Code:
        assert "" not in code.fields or not code.enforced


def test_every_assumption_is_a_sentence_of_its_own():
    sentences = [code.sentence for code in Code]
    assert len(set(sentences)) == len(sentences)
    for sentence in sentences:
        assert sentence.isascii()
        assert sentence.isprintable()
        assert sentence.endswith((".", "{}"))


def test_every_relation_of_ours_is_known_and_others_are_not_certified():
    observed = ObservedRewards(4, 0)
    for relation, norm in (
        (SupBall(RADIUS / 2), observed),
        (Ball(RADIUS / 2, 9.0, actions=3), observed),
        (Ball(RADIUS / 4, RADIUS / 4, actions=2), Exponential((1.0,))),
        (RkhsBall(RADIUS, Exponential((1.0,)), people=3), Exponential((1.0,))),
    ):
        assert certified(relation, norm).standing == "certified"
    for relation in (Trajectories(9, 1.0), Trajectories(9, 1.0, horizon=5)):
        kept = certified(**{**SMOOTH, "relation": relation})
        assert Certificate.from_json(kept.to_json()) == kept
    record = Certificate(method="x", standing="none").to_dict()
    for wrong in ({"kind": "hamming"}, {**BALL.to_dict(), "radius": -1}):
        with pytest.raises(InvalidCertificate):
            Certificate.from_dict({**record, "relation": wrong})


@pytest.mark.parametrize("text", ['{"schema": 1, "schema": 1}', '{"a": {"epsilon": 9, "epsilon": 0.1}}'])
def test_a_field_stated_twice_is_refused(text):
    with pytest.raises(InvalidCertificate, match="twice"):
        Certificate.from_json(text)


def test_the_box_is_part_of_it():
    plane = Exponential((1.0, 2.0))
    certificate = certified(RkhsBall(RADIUS, plane), plane, domain=[[0, 10.0], [-1, 1]])
    assert certificate.domain == ((0.0, 10.0), (-1.0, 1.0))
    assert certificate.to_dict()["domain"] == [[0.0, 10.0], [-1.0, 1.0]]
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert "\nStates lie in [0, 10] x [-1, 1].\n" in str(certificate)
    assert "The box" not in str(Certificate(method="x", standing="none"))


def test_a_pickle_names_a_function():
    certificate = certified()
    reduced: Any = certificate.__reduce__()
    function, arguments = reduced
    assert function.__qualname__ in vars(sys.modules[function.__module__])
    assert function(*arguments) == certificate == pickle.loads(pickle.dumps(certificate)) == copy.deepcopy(certificate)


def test_plain_words():
    text = str(certified())
    assert "certified to be (0.9, 0.0001)-differentially private" in text
    assert f"trusted: {CHOSEN.text}" in text
    assert "Sensitivity and noise are measured in the norm of the exponential kernel with beta 4." in text
    assert f"Neighbouring inputs: {people(50, 0, 0.5, 1)}." in text
    assert "no privacy is promised (a seed was given" in str(
        Certificate(method="x", standing="none", reproducible=True)
    )


@pytest.mark.parametrize(
    ("change", "limit"),
    [
        ({}, 55.7),  # Phi(mu/2) of (0.9, 1e-4)
        (PURE, 71.1),  # e^0.9/(1 + e^0.9)
        (SMOOTH, 71.1),  # (e^0.9 + 1e-4)/(1 + e^0.9)
    ],
)
def test_the_guessers_limit_is_printed_and_follows_from_the_certificates_own_numbers(change, limit):
    certificate = certified(**change)
    (share,) = re.findall(r"(?m)^Whoever knows .* is right in at most ([\d.]+) of 100 cases", str(certificate))
    with mpmath.workdps(30):
        epsilon, delta = mpmath.mpf(certificate.epsilon), mpmath.mpf(certificate.delta)
        exact = (mpmath.e**epsilon + delta) / (1 + mpmath.e**epsilon)
        exact = exact if certificate.mu is None else mpmath.ncdf(mpmath.mpf(certificate.mu) / 2)
    assert 100 * exact <= float(share) < 100 * exact + 0.1
    assert float(share) == limit
    claim = Certificate(method="x", standing="claimed", relation=BALL, budget=Budget(1.0, 0.0), remarks=("It fails.",))
    for nothing in (claim, Certificate(method="x", standing="none")):
        assert "Whoever knows" not in str(nothing)


def test_a_signers_lines_come_first_and_none_is_lost():
    assumptions = (Code.REWARDS_CLIPPED(0.5), CHOSEN, Code.NUMBERS_BOUNDED(3.0, 1e-12), Code.EXACT_NOISE(0.5), FAIR)
    assumptions += (Code.NEIGHBOURS(), Code.NO_ACCOUNT())
    remarks = ("Mind the gap.", "Noise 'path' was asked for; expected errors: path 1.")
    certificate = certified(assumptions=assumptions, remarks=remarks, expected_error=0.5)
    text = str(certificate)
    signer, engineer = text.split("\nFor the engineer:\n")
    opens = [line.split()[0] if line[0] != "-" else line.split()[1] for line in signer.splitlines()]
    promised = ["gaussian-process:", "Whoever", "Neighbouring", "States", "The"]
    assert opens == [*promised, *["trusted:"] * 4, "enforced:", "note:", "note:"]
    assert [line.split()[1] for line in engineer.splitlines()] == ["note:", "trusted:", "enforced:"]
    said = [f"{'enforced' if one.enforced else 'trusted'}: {one.text}" for one in assumptions]
    measured = f"note: Sensitivity and noise are measured in {KERNEL}."
    assert sorted(line[2:] for line in text.splitlines() if line.startswith("- ")) == sorted(
        [*said, measured, *(f"note: {remark}" for remark in remarks)]
    )


@pytest.mark.parametrize("filler", ["\ufe0f", "\u034f", "\u2800", "\u0430"])
def test_no_method_can_look_like_another(filler: str) -> None:
    """Characters that show nothing, or look like a Latin letter, hide a name from whoever compares it."""
    for method in ("published" + filler, "gaussian-process: is certified to be (0.01, 0)-differentially private."):
        with pytest.raises(InvalidCertificate, match="plain name"):
            certified(method=method)


def test_no_certificate_takes_long_to_read() -> None:
    """The slowest that can be made, over an ordinary one of many queries: a ratio, in one run."""
    ordinary = {**GOOD, "method": "reward/rounds", "relation": OnePerson(100).to_dict(), "domain": None}
    mean = AnsweredQuery(MeanOfPeople(2.0), "gaussian", 0.02, 2.0).to_dict()
    ordinary["queries"] = [{**mean, "size": 10.0 + i} for i in range(30)]
    knots = AnsweredQuery(ShapedIncrements(tuple(map(tuple, np.eye(8).tolist()))), "gaussian", 1.0, 10.0).to_dict()
    arrivals = Arrivals(arrivals=10**15, contexts=True).to_dict()
    encoded = AnsweredQuery(EncodedMoments((0.5,) * 64, (0.5,) * 64, 1.0), "gaussian", 1e6, 1e9).to_dict()
    bandit = {**GOOD, "method": "bandit/linear-factors", "relation": arrivals, "domain": None}
    crafted = [
        {**ordinary, "queries": [{**mean, "size": 1000.0 + i} for i in range(2000)]},
        {**bandit, "queries": [{**encoded, "size": 1e9 + i} for i in range(2000)]},
        {**bandit, "queries": [encoded]},
        *({**GOOD, "relation": Ball(0.01, 0.01 * ratio).to_dict(), "queries": [knots]} for ratio in (3.9, 5.0, 8.0)),
    ]

    def seconds(record: dict[str, Any]) -> float:
        vertices.cache_clear()
        begin = time.process_time()
        with contextlib.suppress(InvalidCertificate):
            Certificate.from_dict(record)
        return time.process_time() - begin

    usual = min(seconds(ordinary) for _ in range(5))
    assert max(min(seconds(record) for _ in range(3)) for record in crafted) < 200 * usual


def test_a_lipschitz_ball_has_no_norm_in_a_kernel_of_several_coordinates() -> None:
    """It is of one, so a file that puts them together is refused, and nothing fails."""
    for norm in (Exponential((4.0, 4.0)), Exponential((4.0, 4.0), summed=True)):
        query = AnsweredQuery(norm, "gaussian", 1.0, 10.0).to_dict()
        with pytest.raises(InvalidCertificate):
            Certificate.from_dict({**GOOD, "relation": Ball(0.01, 0.04).to_dict(), "queries": [query]})
