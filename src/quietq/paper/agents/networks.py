"""Value networks: one number an action, from a state scaled to the unit box.

A multilayer perceptron of any width, with PyTorch's initialisation (Equinox's is the same: uniform within
1/sqrt(inputs), weights and biases); or linear weights on fixed, public hat functions (splines of degree one).
"""

import itertools
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from quietq.noise import Box
from quietq.privacy import Certificate, InvalidInput
from quietq.privacy.checks import count, one_of
from quietq.released.private_network import MOST_FEATURES, Output, PrivateNetwork

NetworkName = Literal["mlp", "splines"]


def in_unit_box(box: Box, state: Float[Array, " d"]) -> Float[Array, " d"]:
    """Maps a state of the box to the unit box."""
    low, high = np.array(box.low, np.float32), np.array(box.high, np.float32)
    return (state - low) / (high - low)


def hat_functions(unit: Float[Array, " d"], knots: int) -> Float[Array, " features"]:
    """Products of hat functions on a regular grid of knots: non-negative, and 1 in sum at each state."""
    each = jax.nn.relu(1 - jnp.abs(unit[:, None] * (knots - 1) - np.arange(knots, dtype=np.float32)))
    features = each[0]
    for more in each[1:]:
        features = (features[:, None] * more[None, :]).reshape(-1)
    return features


class LinearQ(eqx.Module):
    """Linear weights on hat functions, one row an action: the values at so many knots a coordinate."""

    weights: Float[Array, "*runs actions features"]
    box: Box = eqx.field(static=True)
    knots: int = eqx.field(static=True)

    def features_of(self, state: Float[Array, " d"]) -> Float[Array, " features"]:
        return hat_functions(in_unit_box(self.box, state), self.knots)

    def __call__(self, state: Float[Array, " d"]) -> Float[Array, " actions"]:
        return self.weights @ self.features_of(state)

    def to_private(self, output: Output, box: Box, certificate: Certificate) -> PrivateNetwork:
        weights = np.asarray(self.weights, np.float64)
        return PrivateNetwork("splines", self.knots, (weights,), (), output, box, certificate)


class DeepQNetwork(eqx.Module):
    """A multilayer perceptron."""

    layers: tuple[eqx.nn.Linear, ...]
    box: Box = eqx.field(static=True)

    def __call__(self, state: Float[Array, " d"]) -> Float[Array, " actions"]:
        hidden = in_unit_box(self.box, state)
        for layer in self.layers[:-1]:
            hidden = jax.nn.relu(layer(hidden))
        return self.layers[-1](hidden)

    def to_private(self, output: Output, box: Box, certificate: Certificate) -> PrivateNetwork:
        weights = tuple(np.asarray(layer.weight, np.float64) for layer in self.layers)
        biases = tuple(np.asarray(layer.bias, np.float64) for layer in self.layers)
        return PrivateNetwork("mlp", 0, weights, biases, output, box, certificate)


Network = LinearQ | DeepQNetwork


def from_private(private: PrivateNetwork) -> Network:
    """The way back: the same numbers, as JAX computes with them."""
    if private.form == "grid":
        raise InvalidInput("The file's arrays do not fit its settings.")
    weights = [jnp.asarray(weight, jnp.float32) for weight in private.weights]
    if private.form == "splines":
        return LinearQ(weights[0], private.box, private.size)
    layers = []
    for weight, bias in zip(weights, private.biases, strict=True):
        layer = eqx.nn.Linear(weight.shape[2], weight.shape[1], key=jax.random.key(0))
        layers.append(eqx.tree_at(lambda one: (one.weight, one.bias), layer, (weight, jnp.asarray(bias, jnp.float32))))
    return DeepQNetwork(tuple(layers), private.box)


def make_network(
    kind: NetworkName, box: Box, actions: int, widths: tuple[int, ...], knots: int, key: PRNGKeyArray
) -> Network:
    """A network for states of a box; `widths` are an mlp's hidden layers, `knots` those of splines a coordinate.

    Linear weights start at zero.
    """
    one_of("network", kind, ("mlp", "splines"))
    if kind == "mlp":
        sizes = [box.dimension, *widths, actions]
        keys = jax.random.split(key, len(sizes) - 1)
        pairs = zip(itertools.pairwise(sizes), keys, strict=True)
        return DeepQNetwork(tuple(eqx.nn.Linear(a, b, key=k) for (a, b), k in pairs), box)
    check_knots("features", count("features", knots, 2), box.dimension, "use network='mlp'")
    return LinearQ(jnp.zeros((actions, knots**box.dimension)), box, knots)


def check_knots(name: str, knots: int, dimension: int, other: str) -> None:
    """Refuses a number of knots a coordinate that gives too many in all; `other` is what else might be done."""
    made = knots**dimension
    if made <= MOST_FEATURES:
        return
    most = max((one for one in range(2, MOST_FEATURES + 1) if one**dimension <= MOST_FEATURES), default=None)
    advice = other if most is None else f"use {name}={most}, or fewer, or {other}"
    raise InvalidInput(f"{name}={knots} makes {made} in {dimension} dimensions, more than {MOST_FEATURES}: {advice}.")
