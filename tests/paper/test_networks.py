"""Value networks: shapes, features that are what they say, and refusals."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from quietq import Budget, InvalidInput, SupBall
from quietq.noise.box import Box
from quietq.paper.agents.deep_q import DeepQ, NoNoise
from quietq.paper.agents.method import EnvironmentSpaces
from quietq.paper.agents.networks import DeepQNetwork, Features, LinearQ, Scaled, make_features, make_network
from quietq.paper.baselines.abadi import GradientNoise
from quietq.paper.baselines.venkitasubramaniam import InputNoise

BOXES = [Box((0.0,), (1.0,)), Box((-2.0, 10.0), (3.0, 11.0)), Box((0.0,) * 4, (1.0,) * 4)]


@pytest.mark.parametrize(("box", "actions"), list(zip(BOXES, (2, 5, 3), strict=True)), ids=str)
@pytest.mark.parametrize("kind", ["mlp", "splines", "fourier", "random"])
def test_shapes(kind, box: Box, actions: int) -> None:
    network = make_network(kind, box, actions, (8,), 3, jax.random.key(0))
    values = network(jnp.asarray(box.low, jnp.float32))
    assert values.shape == (actions,)
    assert np.isfinite(values).all()
    if kind != "mlp":
        assert isinstance(network, LinearQ)
        assert not network.weights.any()
        assert network.weights.shape[1] == {"splines": 3**box.dimension, "fourier": 3**box.dimension, "random": 3}[kind]


@pytest.mark.parametrize("widths", [(), (1,), (7, 3, 5, 2)])
def test_any_widths(widths: tuple[int, ...]) -> None:
    network = make_network("mlp", BOXES[1], 3, widths, 2, jax.random.key(0))
    assert isinstance(network, DeepQNetwork)
    assert [layer.weight.shape for layer in network.layers] == list(zip((*widths, 3), (2, *widths), strict=True))
    assert network(jnp.array([0.0, 10.5])).shape == (3,)
    other = NoNoise(widths=widths).make_network(EnvironmentSpaces(BOXES[1], 3, 10), jax.random.key(0))
    assert jax.tree.structure(other) == jax.tree.structure(network)


@given(st.sampled_from([2, 3, 9]), st.lists(st.floats(0, 1, width=32), min_size=1, max_size=3))
@settings(max_examples=30)
def test_hats_are_a_partition_of_unity(knots: int, point: list[float]) -> None:
    features = np.asarray(Features("splines", knots)(jnp.array(point, jnp.float32)))
    assert features.shape == (knots ** len(point),)
    assert (features >= 0).all()
    assert features.sum() == pytest.approx(1, abs=1e-5)
    assert (features > 0).sum() <= 2 ** len(point)


def test_hats_reproduce_what_is_linear_in_each_coordinate() -> None:
    knots = np.stack(np.meshgrid(*[np.linspace(0, 1, 5)] * 2, indexing="ij"), axis=-1).reshape(-1, 2)
    point = jnp.array([0.37, 0.81])
    assert float(Features("splines", 5)(point) @ (1 + knots @ [2.0, -3.0])) == pytest.approx(
        1 + 2 * 0.37 - 3 * 0.81, abs=1e-5
    )


def test_states_are_scaled_by_the_public_box() -> None:
    assert np.allclose(Scaled(BOXES[1].low, BOXES[1].high)(jnp.array([0.5, 10.25])), [0.5, 0.25])


@pytest.mark.parametrize("kind", ["fourier", "random"])
def test_features_are_fixed_and_bounded(kind) -> None:
    points = np.random.default_rng(0).random((200, 2)).astype(np.float32)
    once, again = (np.asarray(jax.vmap(make_features(kind, 8, 2))(jnp.asarray(points))) for _ in range(2))
    assert np.array_equal(once, again)
    assert np.linalg.norm(once, axis=1).max() < 3
    assert np.linalg.matrix_rank(once) > 5
    ones, others = (make_network(kind, BOXES[0], 2, (), 8, jax.random.key(i)) for i in range(2))
    assert isinstance(ones, LinearQ)
    assert isinstance(others, LinearQ)
    assert np.array_equal(ones.features(jnp.array([0.3])), others.features(jnp.array([0.3])))


def test_cosines_have_length_at_most_one() -> None:
    points = jnp.asarray(np.random.default_rng(0).random((100, 2)), jnp.float32)
    assert np.linalg.norm(jax.vmap(Features("fourier", 5))(points), axis=1).max() <= 1 + 1e-6
    assert np.linalg.norm(Features("fourier", 5)(jnp.zeros(2))) == pytest.approx(1)


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match="makes 1000000 in 6 dimensions, more than 4096"):
        make_features("splines", 10, 6)
    with pytest.raises(InvalidInput, match=r"use features=4, or fewer, or use network='mlp' or 'random'\.$"):
        make_features("splines", 10, 6)
    make_features("splines", 4, 6)
    with pytest.raises(InvalidInput, match=r"more than 4096: use network='mlp' or 'random'\.$"):
        make_features("fourier", 2, 13)
    with pytest.raises(InvalidInput, match=r"more than 4096: use features=4096, or fewer\.$"):
        make_features("random", 4097, 2)
    make_features("random", 4096, 100)
    with pytest.raises(InvalidInput, match="features must be"):
        make_features("fourier", 1, 1)
    with pytest.raises(InvalidInput, match="widths must be"):
        NoNoise(widths=(0,))
    with pytest.raises(InvalidInput, match="optimiser must be"):
        NoNoise(optimiser="no such thing")
    with pytest.raises(InvalidInput, match="gamma must lie"):
        GradientNoise(gamma=1.5)
    assert issubclass(GradientNoise, DeepQ)


def test_too_many_knots_are_refused_in_the_methods_own_words() -> None:
    """Methods that average at knots have `knots`, and neither `features` nor `network`."""
    spaces = EnvironmentSpaces(Box.of([(0, 1)] * 3), 2, 10)
    method = InputNoise(budget=Budget(0.9, 1e-4), relation=SupBall(0.01), knots=17)
    with pytest.raises(InvalidInput, match=r"^knots=17 makes 4913 in 3 dimensions, more than 4096: use knots=16"):
        method.check(spaces, 1000)
    replace(method, knots=16).check(spaces, 1000)
