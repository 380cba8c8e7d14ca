"""The paper's kernels of finite rank: a mechanism of their own, to which everything else points."""

import copy
import pickle

import numpy as np
import pytest

from quietq import Budget, GaussianProcessMechanism, InvalidInput, RkhsBall, privatise, publish
from quietq.noise.rounding import rounding_step
from quietq.paper.kernels import BandLimited, FeatureKernel, FiniteRankMechanism, PrivateWeights

BUDGET = Budget(0.9, 1e-4)
LINES = FeatureKernel(lambda x: np.stack([np.ones_like(x), x], axis=-1), rank=2)
BALL = RkhsBall(0.1, LINES.norm)
DECLARED = r"^There is no exact path for the kernel of 2 features .*: use quietq\.paper\.FiniteRankMechanism with it\.$"


def tent(states):
    return 0.5 - np.abs(states - 0.5)


@pytest.mark.parametrize("noise", ["auto", "path"])
def test_privatise_says_where_noise_on_weights_is(noise):
    with pytest.raises(InvalidInput, match=DECLARED):
        privatise([0.1, 0.2], BUDGET, noise=noise, relation=BALL)


def test_the_mechanism_of_paths_points_to_that_of_weights_and_the_advice_works():
    words = (
        r"^There is no exact path for the kernel of 2 features .*: use quietq\.paper\.FiniteRankMechanism with it\.$"
    )
    with pytest.raises(InvalidInput, match=words):
        GaussianProcessMechanism(LINES, 0.1, BUDGET)
    with pytest.raises(InvalidInput, match=DECLARED):
        GaussianProcessMechanism.for_relation(BALL, BUDGET)
    private = FiniteRankMechanism.for_relation(BALL, BUDGET).apply([0.1, 0.2])
    assert (private.certificate.standing, private.certificate.method) == ("certified", "reward/weights")


@pytest.mark.parametrize(("kernel", "given"), [(LINES, [0.1, 0.2]), (BandLimited(2.0), tent)])
def test_released_weights_are_evaluated_anywhere_and_read_only(kernel, given):
    mechanism = FiniteRankMechanism(kernel, 0.02, BUDGET, domain=(-1, 3))
    private, states = mechanism.apply(given), np.linspace(-1, 3, 7)
    assert isinstance(private, PrivateWeights)
    assert private.weights.shape == (kernel.rank,)
    multiples = private.weights / rounding_step(mechanism.sigma)
    np.testing.assert_array_equal(multiples, np.rint(multiples))
    np.testing.assert_allclose(private(states), kernel.features((states + 1) / 4) @ private.weights)
    for one in (private, copy.deepcopy(private)):
        np.testing.assert_array_equal(one(states), private(states))
        with pytest.raises(ValueError, match="read-only"):
            one.weights[0] = 0
    with pytest.raises(InvalidInput, match="within"):
        private(4.0)
    again = pickle.loads(pickle.dumps(FiniteRankMechanism(BandLimited(2.0), 0.02, BUDGET).apply(tent)))
    assert again(0.5).shape == ()


def test_weights_are_not_published(tmp_path):
    private = FiniteRankMechanism(LINES, 0.02, BUDGET).apply([0.1, 0.2])
    with pytest.raises(InvalidInput, match="A PrivateWeights cannot be published"):
        publish(private, tmp_path / "weights.qq")
    assert not list(tmp_path.iterdir())
