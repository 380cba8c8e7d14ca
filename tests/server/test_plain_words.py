"""A certificate in plain words: right for every kind of relation and every standing."""

import math
import re
from statistics import NormalDist

import msgspec
import numpy as np
import pytest

from quietq import Box, Budget, Certificate, Exponential, GaussianProcessMechanism, RkhsBall, people
from quietq.privacy import AnsweredQuery, Code, explain
from quietq.privacy.certificate import certifying
from quietq.privacy.explain import guess
from quietq.privacy.norms import IncrementGauge, ObservedRewards, SmoothBound
from quietq.privacy.relations import LipschitzBall, SupBall, Trajectories
from quietq.released import OpenedFile, PrivateNetwork
from quietq.released.private_network import Output

BUDGET = Budget(0.9, 1e-4)
BUDGETS = (BUDGET, Budget(1e-6, 1e-9), Budget(50.0, 1e-4))


STATED = (Code.CHOSEN(), Code.FAIR(), Code.NEIGHBOURS(), Code.OWN_CODE(), Code.NO_ACCOUNT())


def stated(relation, budget: Budget = BUDGET) -> Certificate:
    """A certified promise for any relation: pure, Gaussian, or with noise that follows the data."""
    if isinstance(relation, Trajectories):
        method, query = "evaluation/lsw", AnsweredQuery(SmoothBound(1, 1e-9), "smooth", 1.0, 1e12)
    elif budget.is_pure:
        gauge = IncrementGauge(2, relation.radius, relation.lipschitz)
        method, query = "reward/k-norm", AnsweredQuery(gauge, "pure", 1.0, 1 / budget.epsilon)
    else:
        sensitivity = relation.sup_radius
        method, query = "m", AnsweredQuery(ObservedRewards(1, 0), "gaussian", sensitivity, sensitivity / budget.mu)
    with certifying():
        return Certificate(
            method=method,
            standing="certified",
            relation=relation,
            budget=budget,
            queries=(query,),
            domain=((0.0, 1.0),) if budget.is_pure else None,
            assumptions=(
                Code.CHOSEN(),
                Code.FAIR(),
                Code.PUBLIC_POINTS(),
                Code.NEIGHBOURS(),
                Code.OWN_CODE(),
                Code.NO_ACCOUNT(),
            ),
        )


def promise_in_words(opened: OpenedFile) -> list[str]:
    return [*map(str, explain(opened.certificate, "everybody")), *opened.function.in_words()]


def release(certificate: Certificate, output: Output = "values") -> OpenedFile:
    network = PrivateNetwork("splines", 2, (np.zeros((1, 2, 2)),), (), output, Box.of((0, 1)), certificate)
    return OpenedFile("0" * 64, network, certificate, "0")


def words(certificate: Certificate) -> str:
    return " ".join(promise_in_words(release(certificate)))


@pytest.mark.parametrize(
    ("relation", "who", "secret"),
    [
        (SupBall(0.1, people=7), "any one of 7 people.", "one person's data"),
        (SupBall(0.1, people=1), "the one person behind it.", "one person's data"),
        (SupBall(0.1), "the difference between two rewards.", "the reward"),
        (LipschitzBall(0.1, 0.2, people=7), "any one of 7 people.", "one person's data"),
        (LipschitzBall(0.1, 0.2), "the difference between two rewards.", "the reward"),
        (RkhsBall(0.1, Exponential(2.0).norm, people=7), "any one of 7 people.", "one person's data"),
        (RkhsBall(0.1, Exponential(2.0).norm), "the difference between two rewards.", "the reward"),
        (Trajectories(300, 1.0, 50), "any one of 300 trajectories.", "one trajectory"),
    ],
)
def test_who_is_protected(relation, who, secret):
    told = promise_in_words(release(stated(relation)))
    assert told[0] == f"Protected is {who}"
    text = " ".join(told)
    assert f"knows everything but {secret}," in text
    assert f"Neighbouring inputs, which it compares: {relation}." in text
    assert "epsilon = 0.9 and delta = 0.0001" in text
    assert "NOT PRIVATE" not in text


@pytest.mark.parametrize(
    ("relation", "budget"),
    [
        (LipschitzBall(1.0, 1.0), Budget(math.log(3), 0)),
        *((relation, budget) for relation in (SupBall(1.0), Trajectories(300, 1.0)) for budget in BUDGETS),
    ],
)
def test_the_share_of_right_guesses_is_never_understated(relation, budget):
    certificate = stated(relation, budget)
    share = float(re.findall(r"in at most ([\d.]+) of 100", words(certificate))[0]) / 100
    expected = guess(certificate)
    assert expected - 1e-12 <= share <= expected + 0.0011
    if certificate.mu is not None:
        assert expected == pytest.approx(NormalDist().cdf(budget.mu / 2))


def test_a_real_release_is_explained():
    mechanism = GaussianProcessMechanism.for_relation(people(50, 0, 0.5, 1), BUDGET, levels=4)
    told = promise_in_words(release(mechanism.apply(lambda s: s).certificate))
    assert told[0] == "Protected is any one of 50 people."


def test_what_is_not_certified_is_not_private_and_says_why():
    claimed = msgspec.structs.replace(
        stated(SupBall(1.0, people=3)), standing="claimed", queries=(), remarks=("It fails.",)
    )
    simulated = Certificate(method="m", standing="none", reproducible=True)
    nothing = Certificate(method="m", standing="none")
    for certificate, why in ((claimed, "the claim is not proven"), (simulated, "from a seed"), (nothing, "No noise")):
        told = promise_in_words(release(certificate))
        assert told[0].startswith("NOT PRIVATE: ")
        assert why in " ".join(told)
        assert "Protected" not in " ".join(told)


def test_trust_is_asked_for():
    assert "vouch" in words(stated(SupBall(1.0)))


def test_log_probabilities_are_called_what_they_are():
    told = promise_in_words(release(stated(SupBall(1.0)), output="log-probabilities"))
    assert "logarithms of the probabilities" in told[-1]
