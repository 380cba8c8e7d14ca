"""Relations and kernels in plain English."""

import numpy as np
import pytest

from quietq import Exponential, RkhsBall, SupBall, people
from quietq.paper import BandLimited, FeatureKernel
from quietq.privacy.checks import read_record
from quietq.privacy.relations import AnyRelation, Arrivals, OnePerson, Trajectories


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (Exponential(4.0), "the exponential kernel with beta 4"),
        (
            Exponential((4.0, 2.5), summed=True),
            "the additive kernel with beta 4 and 2.5 (the norms of the parts as given, squared and summed)",
        ),
        (Exponential((1.0, 2.0, 3.0)), "the product kernel with beta 1, 2 and 3"),
        (FeatureKernel(np.cos, rank=1), "the kernel of 1 feature (cos; the norm of the weights as given)"),
        (BandLimited(20.0, 1e-12), "the band-limited kernel with half-width 20 (84 terms)"),
    ],
)
def test_kernels(kernel, words):
    assert kernel.norm.in_words() == words
    ball = RkhsBall(0.1, kernel, people=7, actions=3)
    assert str(ball) == (
        "what 7 people gave, of whom one may have given anything else; in numbers, rewards whose difference has norm "
        f"at most 0.1 in {words} for each of 3 actions"
    )


def test_relations():
    alone = "what one person gave, which may have been anything else"
    assert str(SupBall(1.0, people=1)) == f"{alone}; in numbers, rewards that differ by at most 1 anywhere"
    assert str(OnePerson(1)) == alone
    ball = people(50, low=0, high=0.5, slope=1)
    assert read_record(AnyRelation, ball.to_dict()) == ball
    words = "sets of 9 trajectories that differ in one, of which any state and reward may differ (rewards within 2 of 0"
    assert str(Trajectories(9, 2.0)) == f"{words})"
    assert str(Trajectories(9, 2.0, horizon=1)) == f"{words}, at most 1 step each)"


@pytest.mark.parametrize(
    ("relation", "words"),
    [
        (OnePerson(9), "which of two equally likely versions of one person was there"),
        (SupBall(1.0, people=7), "which of two equally likely versions of one person was there"),
        (SupBall(1.0), "which of two equally likely versions of the reward, as far apart as is promised, was there"),
        (Trajectories(9, 2.0), "which of two equally likely versions of one trajectory was there"),
        (Arrivals(), "which of two equally likely versions of one person was there"),
        (
            Arrivals(contexts=True),
            "from what all others are shown which of two equally likely versions of one person was there",
        ),
    ],
)
def test_what_would_have_to_be_guessed(relation, words):
    assert relation.guessed() == words
