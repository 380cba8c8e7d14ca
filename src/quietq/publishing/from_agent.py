"""From a trained agent to what of it may leave: the released numbers, as a function that needs no JAX."""

from typing import TYPE_CHECKING, Any

import numpy as np

from quietq.mechanisms.private_function import PrivateFunction, PrivateTable
from quietq.privacy.errors import InvalidInput
from quietq.publishing.network import PrivateNetwork

if TYPE_CHECKING:
    from quietq.learning import Agent


def function_of(agent: "Agent") -> PrivateFunction:
    """The agent's released values. Steps, seeds, returns, settings and whatever else it knows stay behind."""
    from quietq.learning import ActorCritic, Published
    from quietq.learning.networks import Cosines, DeepQNetwork, Hats, LinearQ, RandomLayer

    released: Any = agent.released
    if agent.draws > 1:
        raise InvalidInput(
            f"These are {agent.draws} simulated releases, and a file holds one: train with simulate=1, or publish "
            "what you want to compare one by one."
        )
    box, certificate = agent.spaces.box, agent.certificate
    if isinstance(agent.method, Published):
        return _table(agent)
    output = "log-probabilities" if isinstance(agent.method, ActorCritic) else "values"
    if isinstance(released, DeepQNetwork):
        weights = tuple(np.asarray(layer.weight, np.float64) for layer in released.layers)
        biases = tuple(np.asarray(layer.bias, np.float64) for layer in released.layers)
        return PrivateNetwork("mlp", 0, weights, biases, output, box, certificate)
    if isinstance(released, LinearQ):
        features, weights = released.features, (np.asarray(released.weights, np.float64),)
        if isinstance(features, Hats):
            return PrivateNetwork("splines", features.knots, weights, (), output, box, certificate)
        if isinstance(features, Cosines):
            return PrivateNetwork("fourier", features.order, weights, (), output, box, certificate)
        assert isinstance(features, RandomLayer)
        return PrivateNetwork("random", features.width, weights, (), output, box, certificate)
    raise InvalidInput(f"What {agent.method.name!r} releases cannot be published: {type(released).__name__}.")


def _table(agent: "Agent") -> PrivateTable:
    """The paper's value function with its noise, on the grid of that noise; network and noise apart stay behind."""
    method, box = agent.method, agent.spaces.box
    levels: int = method.levels  # pyright: ignore[reportAttributeAccessIssue]
    if box.dimension != 1:
        raise InvalidInput(f"The paper's noise has one coordinate, but this world has {box.dimension}.")
    states = box.from_unit(np.linspace(0, 1, 2**levels + 1))
    values = np.asarray(agent.q_values(states[:, None]), np.float64)
    return PrivateTable(values, levels, box, agent.certificate)
