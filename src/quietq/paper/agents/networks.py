"""Value networks: one number an action, from a state scaled to the unit box.

A multilayer perceptron of any width, with PyTorch's initialisation (Equinox's is the same: uniform within
1/sqrt(inputs), weights and biases); or linear weights on fixed, public features: hat functions (splines of degree one),
cosines (Fourier), or the last hidden layer of a random network.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from quietq.noise import Box
from quietq.privacy import Certificate, InvalidInput
from quietq.privacy.checks import count, one_of
from quietq.released.private_network import (
    MOST_FEATURES,
    Form,
    Output,
    PrivateNetwork,
    frequencies,
    number_of_features,
    random_units,
)

NetworkName = Literal["mlp", "splines", "fourier", "random"]


class Scaled(eqx.Module):
    low: tuple[float, ...] = eqx.field(static=True)
    high: tuple[float, ...] = eqx.field(static=True)

    def __call__(self, state: Float[Array, " d"]) -> Float[Array, " d"]:
        low, high = np.array(self.low, np.float32), np.array(self.high, np.float32)
        return (state - low) / (high - low)


def _hats(unit: Float[Array, " d"], knots: int) -> Float[Array, " features"]:
    """Products of hat functions on a regular grid of knots: non-negative, and 1 in sum at each state."""
    each = jax.nn.relu(1 - jnp.abs(unit[:, None] * (knots - 1) - np.arange(knots, dtype=np.float32)))
    features = each[0]
    for more in each[1:]:
        features = (features[:, None] * more[None, :]).reshape(-1)
    return features


def _cosines(unit: Float[Array, " d"], size: int) -> Float[Array, " features"]:
    """cos(pi c . u) for all non-negative integer vectors c with entries below `size`, scaled to length at most 1."""
    waves = frequencies(size, unit.shape[0]).astype(np.float32)
    return jnp.cos(math.pi * (waves @ unit)) / math.sqrt(len(waves))


def _random_layer(unit: Float[Array, " d"], units: int) -> Float[Array, " features"]:
    """The hidden layer of a random ReLU network, public and fixed: the same for every run, scaled to length about 1."""
    directions, kinks = random_units(units, unit.shape[0])
    return jax.nn.relu(directions @ unit - kinks) * (2 / math.sqrt(units))


_FEATURES: dict[str, Callable[[Any, int], Any]] = {"splines": _hats, "fourier": _cosines, "random": _random_layer}


class Features(eqx.Module):
    """A fixed, public map from a point of the unit box to features; `units` is what it is made of."""

    form: Form = eqx.field(static=True)
    units: int = eqx.field(static=True)

    def __call__(self, unit: Float[Array, " d"]) -> Float[Array, " features"]:
        return _FEATURES[self.form](unit, self.units)


class LinearQ(eqx.Module):
    """weights . features(state), one row of weights an action."""

    weights: Float[Array, "*runs actions features"]
    scaled: Scaled
    features: Features

    def features_of(self, state: Float[Array, " d"]) -> Float[Array, " features"]:
        return self.features(self.scaled(state))

    def __call__(self, state: Float[Array, " d"]) -> Float[Array, " actions"]:
        return self.weights @ self.features_of(state)

    def to_private(self, output: Output, box: Box, certificate: Certificate) -> PrivateNetwork:
        weights = np.asarray(self.weights, np.float64)
        return PrivateNetwork(self.features.form, self.features.units, (weights,), (), output, box, certificate)


class DeepQNetwork(eqx.Module):
    layers: tuple[eqx.nn.Linear, ...]
    scaled: Scaled

    def __call__(self, state: Float[Array, " d"]) -> Float[Array, " actions"]:
        hidden = self.scaled(state)
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
    scaled = Scaled(private.box.low, private.box.high)
    weights = [jnp.asarray(weight, jnp.float32) for weight in private.weights]
    if private.form in _FEATURES:
        return LinearQ(weights[0], scaled, Features(private.form, private.size))
    layers = []
    for weight, bias in zip(weights, private.biases, strict=True):
        layer = eqx.nn.Linear(weight.shape[2], weight.shape[1], key=jax.random.key(0))
        layers.append(eqx.tree_at(lambda one: (one.weight, one.bias), layer, (weight, jnp.asarray(bias, jnp.float32))))
    return DeepQNetwork(tuple(layers), scaled)


def make_network(
    kind: NetworkName, box: Box, actions: int, widths: tuple[int, ...], size: int, key: PRNGKeyArray
) -> Network:
    """A network for states of a box; `widths` are an mlp's hidden layers, `size` is what a feature map is made of.

    `size` is the number of knots a coordinate for splines, of frequencies a coordinate for Fourier, and of units for
    random. Linear weights start at zero.
    """
    scaled = Scaled(box.low, box.high)
    if kind == "mlp":
        sizes = [box.dimension, *widths, actions]
        keys = jax.random.split(key, len(sizes) - 1)
        pairs = zip(itertools.pairwise(sizes), keys, strict=True)
        return DeepQNetwork(tuple(eqx.nn.Linear(a, b, key=k) for (a, b), k in pairs), scaled)
    features = make_features(kind, size, box.dimension)
    return LinearQ(jnp.zeros((actions, number_of_features(kind, size, box.dimension))), scaled, features)


def make_features(kind: NetworkName, size: int, dimension: int) -> Features:
    """A fixed feature map; refused if it would have too many features for the dimension."""
    one_of("network", kind, _FEATURES)
    check_features(kind, count("features", size, 2), dimension, "features", "use network='mlp' or 'random'")
    return Features(kind, size)


def check_features(kind: NetworkName, size: int, dimension: int, name: str, other: str) -> None:
    """Refuses a `size` by which there are too many features; `other` is what else might be done."""
    made = number_of_features(kind, size, dimension)
    if made <= MOST_FEATURES:
        return
    sizes = range(2, MOST_FEATURES + 1)
    most = max((one for one in sizes if number_of_features(kind, one, dimension) <= MOST_FEATURES), default=None)
    advice = other if most is None else f"use {name}={most}, or fewer" + (f", or {other}" if kind != "random" else "")
    raise InvalidInput(f"{name}={size} makes {made} in {dimension} dimensions, more than {MOST_FEATURES}: {advice}.")
