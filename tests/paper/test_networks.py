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
from quietq.paper.agents.networks import DeepQNetwork, LinearQ, hat_functions, in_unit_box, make_network
from quietq.paper.baselines.abadi import GradientNoise
from quietq.paper.baselines.venkitasubramaniam import InputNoise

BOXES = [Box((0.0,), (1.0,)), Box((-2.0, 10.0), (3.0, 11.0)), Box((0.0,) * 4, (1.0,) * 4)]


@pytest.mark.parametrize(("box", "actions"), list(zip(BOXES, (2, 5, 3), strict=True)), ids=str)
@pytest.mark.parametrize("kind", ["mlp", "splines"])
def test_shapes(kind, box: Box, actions: int) -> None:
    network = make_network(kind, box, actions, (8,), 3, jax.random.key(0))
    values = network(jnp.asarray(box.low, jnp.float32))
    assert values.shape == (actions,)
    assert np.isfinite(values).all()
    if kind != "mlp":
        assert isinstance(network, LinearQ)
        assert not network.weights.any()
        assert network.weights.shape[1] == 3**box.dimension


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
    features = np.asarray(hat_functions(jnp.array(point, jnp.float32), knots))
    assert features.shape == (knots ** len(point),)
    assert (features >= 0).all()
    assert features.sum() == pytest.approx(1, abs=1e-5)
    assert (features > 0).sum() <= 2 ** len(point)


def test_hats_reproduce_what_is_linear_in_each_coordinate() -> None:
    knots = np.stack(np.meshgrid(*[np.linspace(0, 1, 5)] * 2, indexing="ij"), axis=-1).reshape(-1, 2)
    point = jnp.array([0.37, 0.81])
    values = 1 + knots @ [2.0, -3.0]
    assert float(hat_functions(point, 5) @ values) == pytest.approx(1 + 2 * 0.37 - 3 * 0.81, abs=1e-5)


def test_states_are_scaled_by_the_public_box() -> None:
    assert np.allclose(in_unit_box(BOXES[1], jnp.array([0.5, 10.25])), [0.5, 0.25])


def test_refusals() -> None:
    def splines(knots: int, dimension: int) -> None:
        make_network("splines", Box((0.0,) * dimension, (1.0,) * dimension), 2, (), knots, jax.random.key(0))

    with pytest.raises(InvalidInput, match="makes 1000000 in 6 dimensions, more than 4096"):
        splines(10, 6)
    with pytest.raises(InvalidInput, match=r"use features=4, or fewer, or use network='mlp'\.$"):
        splines(10, 6)
    splines(4, 6)
    with pytest.raises(InvalidInput, match=r"more than 4096: use network='mlp'\.$"):
        splines(2, 13)
    with pytest.raises(InvalidInput, match="features must be"):
        splines(1, 1)
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
