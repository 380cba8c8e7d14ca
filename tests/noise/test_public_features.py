import json

import jax.numpy as jnp
import numpy as np
import pytest

from quietq import Box, Certificate, InvalidInput, InvalidRelease
from quietq.noise.feature_maps import (
    AnyFeatureMap,
    Categorical,
    Columns,
    FeatureMap,
    Fourier,
    Polynomials,
    smooth_prior,
)
from quietq.privacy.checks import read_record
from quietq.released.private_model import PrivateModel


def by_size(dimension: int, number: int) -> Polynomials:
    return Polynomials(dimension, tuple(sorted(smooth_prior(dimension)[0][:number], key=len)))


@pytest.mark.parametrize("dimension", [1, 3])
def test_polynomials_are_orthonormal(dimension):
    """By Gauss's rule, which is exact for them."""
    features = by_size(dimension, 60)
    nodes, weights = np.polynomial.legendre.leggauss(16)
    points = np.stack(np.meshgrid(*[(nodes + 1) / 2] * dimension, indexing="ij")).reshape(dimension, -1).T
    mass = np.prod(np.stack(np.meshgrid(*[weights / 2] * dimension)), axis=0).ravel()
    values = features(points)
    assert values.T @ (values * mass[:, None]) == pytest.approx(np.eye(features.rank), abs=1e-10)


def test_numpy_and_jax_agree():
    features, points = by_size(4, 100), np.random.default_rng(0).random((50, 4))
    assert np.abs(features(points) - np.asarray(features(jnp.asarray(points), jnp))).max() < 1e-4


def test_a_row_is_looked_at_alone():
    features, points = by_size(5, 200), np.random.default_rng(0).random((33, 5))
    together = features(points)
    for i in range(33):
        assert np.array_equal(features(points[i]), together[i])


def map_of(record: object) -> FeatureMap:
    return read_record(AnyFeatureMap, record)


def test_json_and_back():
    features = by_size(3, 40)
    assert map_of(features.to_dict()) == features


@pytest.mark.parametrize(
    "change",
    [{"terms": [[[0, 1.0]]]}, {"terms": [[[3, 1]]]}, {"terms": [[[1, 1], [0, 1]]]}, {"terms": [[[0, 13]]]},
     {"terms": [[[0, True]]]}, {"terms": "x"}, {"dimension": 0}, {"kind": "splines"}, {"more": 1},
     {"terms": [[[0, 1], [1, 1]], [[0, 1]]]}, {"terms": [[[0, 1]], [[0, 1]]]}],
)  # fmt: skip
def test_what_is_no_map_is_refused(change):
    with pytest.raises(InvalidInput):
        map_of(by_size(3, 5).to_dict() | change)


MAPS = {
    "polynomials": by_size(3, 40),
    "fourier": Fourier.draw(3, 20, width=0.3),
    "columns": Columns(dimension=3),
    "categorical": Categorical(tuple("abcde")),
}
maps = pytest.mark.parametrize("features", MAPS.values(), ids=MAPS)


@maps
def test_every_map_is_data(features):
    """It comes back from JSON, looks at one row alone, and says the same in NumPy and JAX."""
    points = np.random.default_rng(0).random((33, features.dimension))
    together = features(points)
    assert together.shape == (33, features.rank)
    assert map_of(json.loads(json.dumps(features.to_dict()))) == features
    assert all(np.array_equal(features(points[i]), together[i]) for i in range(33))
    assert np.abs(together - np.asarray(features(jnp.asarray(points), jnp))).max() < 1e-4


HOSTILE = [
    *({"kind": "columns", "prefix": "", "dimension": one} for one in (None, "", [], {}, -1, True, 1e3, 10**9)),
    {"kind": "polynomials", "dimension": 600, "terms": [[[i, 1] for i in range(600)]]},
    {"kind": "categorical", "items": ["a", "a"]},
    {"kind": "categorical", "items": ["a", "\ud800"]},
    {"kind": "fourier", "frequencies": [[1.0], [1.0, 2.0]]},
    {"kind": "fourier", "frequencies": []},
    {"kind": "radial", "centres": [[0.5]], "width": 1.0},
    {"kind": ["columns"]},
    [],
]


@pytest.mark.parametrize("record", HOSTILE, ids=str)
def test_hostile_maps_are_refused_at_once(record):
    with pytest.raises(InvalidInput):
        map_of(record)


def test_a_map_for_no_coordinates_is_in_no_release():
    features = Columns()
    box, knots, none = Box.of((0, 1)), np.array([[0.0, 1.0]]), Certificate(method="reward/rounds", standing="none")
    with pytest.raises(InvalidRelease, match="must fit"):
        PrivateModel(features, np.zeros(1), np.zeros(features.rank), knots, None, None, box, none).check()


def test_items_are_found_by_name():
    assert np.array_equal(Categorical(("tea", "milk")).numbers_of([["milk", "tea"]]), [[1, 0]])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="'mud' is none of them"):
        Categorical(("tea", "milk")).numbers_of("mud")


def test_items_have_whole_places():
    """What lies between two items is none of them, and is not rounded to one."""
    items = Categorical(("tea", "milk"))
    assert items.numbers_of([0, 1.0]) == [0, 1.0]
    with pytest.raises(InvalidInput, match=r"by their whole place in the list, from 0 on, not 0\.4"):
        items.numbers_of([[0.0], [0.4]])


@pytest.mark.parametrize("dimension", [1, 2, 8, 16])
def test_the_prior_is_a_share_of_one(dimension):
    terms, variances = smooth_prior(dimension)
    assert len(terms) == len(set(terms)) == len(variances)
    assert (np.diff(variances) <= 0).all()
    assert 0.7 < variances.sum() <= 1
