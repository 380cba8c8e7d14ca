"""Value networks: one number an action, from a state scaled to the unit box.

A multilayer perceptron of any width, with PyTorch's initialisation (Equinox's is the same: uniform within
1/sqrt(inputs), weights and biases); or linear weights on fixed, public features: hat functions (splines of degree one),
cosines (Fourier), or the last hidden layer of a random network.
"""

import itertools
import math
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from quietq.noise.box import Box
from quietq.privacy.checks import count
from quietq.privacy.errors import InvalidInput

Kind = Literal["mlp", "splines", "fourier", "random"]
MOST_FEATURES = 4096


class Scaled(eqx.Module):
    """States to [0, 1]^d by the public box."""

    low: tuple[float, ...] = eqx.field(static=True)
    high: tuple[float, ...] = eqx.field(static=True)

    def __call__(self, state: Float[Array, " d"]) -> Float[Array, " d"]:
        """The state in unit coordinates."""
        low, high = np.array(self.low, np.float32), np.array(self.high, np.float32)
        return (state - low) / (high - low)


class Hats(eqx.Module):
    """Products of hat functions on a regular grid of knots: non-negative, and 1 in sum at each state."""

    knots: int = eqx.field(static=True)

    def size(self, dimension: int) -> int:
        """Number of features."""
        return self.knots**dimension

    def __call__(self, unit: Float[Array, " d"]) -> Float[Array, " features"]:
        """The features at a point of the unit box."""
        each = jax.nn.relu(1 - jnp.abs(unit[:, None] * (self.knots - 1) - np.arange(self.knots, dtype=np.float32)))
        features = each[0]
        for more in each[1:]:
            features = (features[:, None] * more[None, :]).reshape(-1)
        return features


class Cosines(eqx.Module):
    """cos(pi c . u) for all non-negative integer vectors c with entries below `order`, scaled to length at most 1."""

    order: int = eqx.field(static=True)

    def size(self, dimension: int) -> int:
        """Number of features."""
        return self.order**dimension

    def __call__(self, unit: Float[Array, " d"]) -> Float[Array, " features"]:
        """The features at a point of the unit box."""
        frequencies = np.array(list(itertools.product(range(self.order), repeat=unit.shape[0])), np.float32)
        return jnp.cos(math.pi * (frequencies @ unit)) / math.sqrt(len(frequencies))


class RandomLayer(eqx.Module):
    """The hidden layer of a random ReLU network, public and fixed: the same for every run, scaled to length about 1."""

    width: int = eqx.field(static=True)

    def size(self, dimension: int) -> int:
        """Number of features."""
        return self.width

    def __call__(self, unit: Float[Array, " d"]) -> Float[Array, " features"]:
        """The features at a point of the unit box."""
        source = np.random.default_rng(20191208)  # any fixed number: the features are public
        directions = source.normal(size=(self.width, unit.shape[0])).astype(np.float32)
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        kinks = (directions * source.uniform(size=directions.shape)).sum(axis=1).astype(np.float32)
        return jax.nn.relu(directions @ unit - kinks) * (2 / math.sqrt(self.width))


Features = Hats | Cosines | RandomLayer


class LinearQ(eqx.Module):
    """weights . features(state), one row of weights an action."""

    weights: Float[Array, "actions features"]
    scaled: Scaled
    features: Features

    def __call__(self, state: Float[Array, " d"]) -> Float[Array, " actions"]:
        """The actions' values at a state."""
        return self.weights @ self.features(self.scaled(state))


class DeepQNetwork(eqx.Module):
    """A multilayer perceptron with ReLU."""

    layers: tuple[eqx.nn.Linear, ...]
    scaled: Scaled

    def __call__(self, state: Float[Array, " d"]) -> Float[Array, " actions"]:
        """The actions' values at a state."""
        hidden = self.scaled(state)
        for layer in self.layers[:-1]:
            hidden = jax.nn.relu(layer(hidden))
        return self.layers[-1](hidden)


Network = LinearQ | DeepQNetwork


def make_network(kind: Kind, box: Box, actions: int, widths: tuple[int, ...], size: int, key: PRNGKeyArray) -> Network:
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
    return LinearQ(jnp.zeros((actions, features.size(box.dimension))), scaled, features)


def make_features(kind: Kind, size: int, dimension: int) -> Features:
    """A fixed feature map; refused if it would have too many features for the dimension."""
    kinds = {"splines": Hats, "fourier": Cosines, "random": RandomLayer}
    if kind not in kinds:
        raise InvalidInput(f"network must be one of {('mlp', *kinds)}, not {kind!r}.")
    features = kinds[kind](count("features", size, 2))
    if features.size(dimension) > MOST_FEATURES:
        fewer = f"use features={most}, or fewer" if (most := most_features(kind, dimension)) >= 2 else ""
        other = "" if kind == "random" else "use network='mlp' or 'random'"
        raise InvalidInput(
            f"features={size} makes {features.size(dimension)} in {dimension} dimensions, more than {MOST_FEATURES}: "
            f"{', or '.join(filter(None, (fewer, other)))}."
        )
    return features


def most_features(kind: Kind, dimension: int) -> int:
    """The most that `size` may be in this dimension."""
    if kind == "random":
        return MOST_FEATURES
    return max(size for size in range(1, MOST_FEATURES + 1) if size**dimension <= MOST_FEATURES)
