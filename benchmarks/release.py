"""Queries to a release that was loaded, without JAX: nanoseconds a state, in batches of a million."""

import itertools
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.measuring import Row, seconds
from quietq import Budget, GaussianProcessMechanism, people
from quietq.noise.box import Box
from quietq.privacy import Certificate
from quietq.publishing import publish
from quietq.released import PrivateFunction, PrivateNetwork, load

MANY = 10**6
NOBODY = Certificate(method="benchmark", standing="none")
UNIT = "ns"


def rows() -> list[Row]:
    """Every measurement of this module; the limits are 1e7 a second from a table and 1e6 from a network."""
    mechanism = GaussianProcessMechanism.for_relation(people(50, low=0, high=0.5, slope=1), Budget(0.9, 1e-4))
    table = mechanism.apply(lambda s: 0.5 - abs(s - 0.5))
    two = GaussianProcessMechanism.for_relation(people(50, low=0, high=0.5, slope=1, actions=2), Budget(0.9, 1e-4))
    pair = two.apply(lambda s: np.stack([s / 2, 0.5 - s / 2], axis=-1))
    return [
        Row("table of 65,537 values", _each(table), UNIT, limit=100),
        Row("table of 65,537 values of two actions", _each(pair), UNIT, limit=100),
        Row("network, hidden layers 32 and 32 (the default)", _each(_network()), UNIT, limit=1000),
    ]


def _each(private: PrivateFunction) -> float:
    """After a round trip through a file; the best of some runs, because others use the machine too."""
    with tempfile.TemporaryDirectory() as folder:
        publish(private, Path(folder) / "release.qq", not_private=True)
        loaded = load(Path(folder) / "release.qq")
    states = np.random.default_rng(0).random(MANY)
    return min(seconds(lambda: loaded(states)) for _ in range(7)) / MANY * 1e9


def _network() -> PrivateNetwork:
    rng, sizes = np.random.default_rng(0), (1, 32, 32, 2)
    weights = tuple(rng.normal(size=(1, out, inputs)) for inputs, out in itertools.pairwise(sizes))
    biases = tuple(rng.normal(size=(1, out)) for out in sizes[1:])
    return PrivateNetwork("mlp", 0, weights, biases, "values", Box((0.0,), (1.0,)), NOBODY)
