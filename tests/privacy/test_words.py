"""Relations and kernels in plain English."""

import numpy as np
import pytest

from quietq import Additive, BandLimited, Exponential, FeatureKernel, Product, RkhsBall, SupBall, people
from quietq.privacy.norms import kernel_in_words
from quietq.privacy.relations import Trajectories, relation_in_words


@pytest.mark.parametrize(
    ("kernel", "words", "norm"),
    [
        (Exponential(4.0), "the exponential kernel with beta 4", ""),
        (
            Additive((Exponential(4.0), Exponential(2.5))),
            "the additive kernel with beta 4 and 2.5",
            " (the parts' own norms, squared and summed)",
        ),
        (Product((1.0, 2.0, 3.0)), "the product kernel with beta 1, 2 and 3", ""),
        (FeatureKernel(np.cos, rank=1), "the kernel of 1 feature (cos)", " (the norm of the weights)"),
        (BandLimited(20.0, 1e-12), "the band-limited kernel with half-width 20 (84 terms)", ""),
    ],
)
def test_kernels(kernel, words, norm):
    assert kernel_in_words(kernel.describe()) == words
    ball = RkhsBall(0.1, kernel, people=7, actions=3)
    assert str(ball) == (
        f"rewards whose difference has norm at most 0.1{norm} in {words} for each of 3 actions "
        "(replacing any one of 7 people)"
    )


def test_relations():
    assert str(SupBall(1.0, people=1)) == "rewards that differ by at most 1 anywhere (replacing the one person)"
    ball = people(50, low=0, high=0.5, slope=1)
    assert relation_in_words(ball.describe()) == str(ball)
    words = "sets of 9 trajectories that differ in one, of which any state and reward may differ (rewards within 2 of 0"
    assert str(Trajectories(9, 2.0)) == f"{words})"
    assert str(Trajectories(9, 2.0, horizon=1)) == f"{words}, at most 1 step each)"


@pytest.mark.parametrize(
    "record",
    [
        {"kind": "lipschitz-ball", "radius": "wide"},
        {"kind": "rkhs-ball", "radius": 1.0, "kernel": 3, "actions": 1},
        {"kind": "sup-ball", "radius": 1.0, "people": "many"},
        {"kind": "replace-trajectory", "count": "many", "horizon": 1.5},
        {"kind": ["a"]},
        {"nested": {"a": (1, 2.0)}, "none": None},
    ],
)
def test_unknown_json_is_spelled_out(record):
    words = relation_in_words(record)
    assert words
    assert not set(words) & set("{}'")
