"""Kernels and outputs of every kind: as many as the relation declares, and no more."""

import math

import numpy as np
import pytest
from walk_mechanism import BUDGET, PEOPLE, mechanism_for, walk_reward

from quietq import Accountant, Exponential, GaussianProcessMechanism, InvalidInput, RkhsBall, people
from quietq.paper import BandLimited, FeatureKernel, FiniteRankMechanism


def test_several_outputs_share_one_release():
    relation = people(50, low=0, high=0.5, slope=1, actions=2)
    mechanism = GaussianProcessMechanism.for_relation(relation, BUDGET, levels=10)
    assert mechanism.sensitivity == pytest.approx(0.01 * math.sqrt(10))
    private = mechanism.apply(lambda s: np.stack([walk_reward(s), -walk_reward(s)], axis=-1))
    assert private([0.1, 0.2, 0.3]).shape == (3, 2)
    noise = private(0.5) - [0.5, -0.5]
    assert noise[0] != noise[1]


def test_more_outputs_than_the_relation_lets_change_are_refused():
    mechanism = GaussianProcessMechanism.for_relation(PEOPLE, BUDGET, levels=4)
    with pytest.raises(InvalidInput, match="2 outputs, but the relation lets 1 change"):
        mechanism.apply(lambda s: np.stack([s, s], axis=-1))


@pytest.mark.parametrize(
    ("kernel", "f"),
    [
        (Exponential(4.0), lambda s: np.stack([s, s], axis=-1)),
        (Exponential((1.0, 1.0)), lambda s: s**2),  # elementwise, where one value a row was meant
        (FeatureKernel(lambda x: np.stack([x, 1 - x], axis=-1), rank=2), np.ones((2, 2))),
        (FeatureKernel(lambda x: x, rank=2, dimension=2), np.ones((2, 2))),
        (BandLimited(2.0), lambda s: np.stack([s, s], axis=-1)),
        (Exponential((1.0,) * 2, summed=True), [lambda s: np.stack([s, s], axis=-1)] * 2),
    ],
)
def test_an_rkhs_ball_is_for_as_many_outputs_as_it_declares(kernel, f):
    accountant, kind = Accountant(BUDGET), mechanism_for(kernel)
    mechanism = kind(kernel, 0.1, BUDGET, levels=4, account=accountant)
    with pytest.raises(InvalidInput, match="2 outputs, but the relation lets 1 change: declare `actions=2`"):
        mechanism.apply(f)
    assert accountant.spending.spent_mu == 0
    two = RkhsBall(0.1, kernel.norm, actions=2)
    with pytest.raises(InvalidInput, match="below the relation's radius"):
        kind(kernel, 0.1, BUDGET, relation=two)
    mechanism = kind.for_relation(two, BUDGET, levels=4)
    assert mechanism.sensitivity == pytest.approx(0.1 * math.sqrt(2), rel=1e-4)
    state = np.full((3, kernel.dimension), 0.5) if kernel.dimension > 1 else np.full(3, 0.5)
    assert mechanism.apply(f)(state).shape == (3, 2)


def test_a_table_too_large_for_its_outputs_is_refused_before_anything_is_spent(monkeypatch):
    monkeypatch.setattr(
        "quietq.noise.grid_path.MOST_POINTS", 2**20
    )  # of the real size the function alone takes a gigabyte
    accountant = Accountant(BUDGET)
    relation = people(50, low=0, high=0.5, slope=1, actions=2**7)
    mechanism = GaussianProcessMechanism.for_relation(relation, BUDGET, levels=14, account=accountant)
    with pytest.raises(InvalidInput, match="use fewer levels"):
        mechanism.apply(lambda s: np.zeros((len(s), 2**7)))
    assert accountant.spending.spent_mu == 0


def test_parts_with_different_outputs_are_refused_before_anything_is_spent():
    kernel, accountant = Exponential((1.0,) * 2, summed=True), Accountant(BUDGET)
    relation = RkhsBall(0.1, kernel.norm, actions=2)
    mechanism = GaussianProcessMechanism.for_relation(relation, BUDGET, levels=4, account=accountant)
    for other in (lambda s: s[:, None], lambda s: np.stack([s, s], axis=-1)):
        with pytest.raises(InvalidInput, match="All parts must have the same outputs"):
            mechanism.apply([lambda s: s, other])
    assert accountant.spending.spent_mu == 0


@pytest.mark.parametrize("dimension", [1, 2, 3, 7])
def test_additive_tables_are_fine_in_any_dimension(dimension):
    kernel = Exponential((1.0,) * dimension, summed=True)
    assert GaussianProcessMechanism(kernel, 0.1, BUDGET).levels == 16


@pytest.mark.parametrize("weights", [np.array(["1", "2"]), np.array([1j, 2.0]), np.array([None, 1.0])])
def test_weights_that_are_no_numbers(weights):
    kernel = FeatureKernel(lambda x: np.stack([x, 1 - x], axis=-1), rank=2)
    with pytest.raises(InvalidInput, match="weights must be real numbers") as caught:
        FiniteRankMechanism(kernel, 0.1, BUDGET).simulate(weights, seed=0)
    assert caught.value.__context__ is None


def test_product_additive_features_and_band_limited():
    two = [(0, 1), (0, 2)]
    product = Exponential((1.0, 2.0))
    private = GaussianProcessMechanism(product, 0.1, BUDGET, domain=two).apply(lambda s: s[:, 0] * s[:, 1])
    assert private([[0.1, 0.2], [1, 2]]).shape == (2,)

    additive = Exponential((1.0, 2.0), summed=True)
    mechanism = GaussianProcessMechanism(additive, 0.1, BUDGET, domain=two)
    private = mechanism.apply([np.sin, np.cos])
    assert private([[0.1, 0.2], [1, 2]]).shape == (2,)
    with pytest.raises(InvalidInput, match="one function per coordinate"):
        GaussianProcessMechanism(additive, 0.1, BUDGET, domain=two).apply(lambda s: s)

    features = FeatureKernel(lambda x: np.stack([np.ones_like(x), x, x**2], axis=-1), rank=3)
    private = FiniteRankMechanism(features, 0.1, BUDGET).apply([1.0, 2.0, 3.0])
    assert private([0.0, 0.5]).shape == (2,)
    with pytest.raises(InvalidInput, match="takes the function's weights"):
        FiniteRankMechanism(features, 0.1, BUDGET).apply(np.sin)
    with pytest.raises(InvalidInput, match="weights must have 3 rows"):
        FiniteRankMechanism(features, 0.1, BUDGET).apply([1.0])

    band = FiniteRankMechanism(BandLimited(2.0), 0.1, BUDGET, domain=(0, 10))
    private = band.apply(lambda s: np.sin(s))
    assert private([0.0, 10.0]).shape == (2,)
    assert band.sensitivity >= 0.1
