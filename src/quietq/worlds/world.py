"""A world's dynamics, written once for both of its forms.

`World` is frozen constants and pure functions of arrays. They are written against an array module, `xp`: NumPy when a
Gymnasium environment (`WorldEnv`) calls them, jax.numpy when the compiled trainer does. So both forms agree step by
step for the same draws, and there is no second definition to keep in line. This module does not import JAX.

States, actions and ends are public: none of these functions may look at the reward, which is a preference over the
state that a step leads to.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from quietq import registry
from quietq.noise.box import Box
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import Relation

Array = Any
"""A NumPy or a JAX array."""


class World(ABC):
    """What a world is; subclasses are frozen dataclasses of constants.

    A state is an array of shape (dimension,), and is what an agent observes; functions take any number of axes in
    front. Time is kept by whoever runs the world: after `steps` steps an episode is truncated, which is not the same
    as terminated.
    """

    name: ClassVar[str]
    """As in `quietq train METHOD NAME`, and in `quietq.registry`."""
    actions: ClassVar[int]
    action_names: ClassVar[tuple[str, ...]]
    """What each action does, in a word."""
    draws: ClassVar[int]
    """How many uniform numbers of [0, 1) a start and a step each use up."""
    steps: int
    """An episode is truncated after these."""

    @property
    @abstractmethod
    def box(self) -> Box:
        """The public box that all states lie in."""

    @abstractmethod
    def start(self, draws: Array, xp: Any) -> Array:
        """The first state, shape (..., dimension), from uniform draws of shape (..., draws)."""

    @abstractmethod
    def move(self, state: Array, action: Array, draws: Array, xp: Any) -> tuple[Array, Array]:
        """The next state, shape (..., dimension), and whether the episode terminated there, shape (...)."""

    @abstractmethod
    def reward(self, state: Array, xp: Any) -> Array:
        """The preference of the people together, shape (...), at states (..., dimension) that a step led to."""

    @abstractmethod
    def relation(self, people: int) -> Relation:
        """What replacing one of so many people can change, by the bounds that are declared for each person."""

    def mean_reward(self) -> Any:
        """The preference itself, not private, in the form that a mechanism for `relation` takes.

        That is what `GaussianProcessMechanism.apply` takes: by default a function of many states at once; where
        the relation's kernel says so, one function a coordinate, or the weights of its features.
        """
        dimension = self.box.dimension
        return lambda states: self.reward(unflat(states, dimension), np)


def flat(states: Array) -> Array:
    """States as functions of states take them in quietq: (..., d), but (...) in one dimension."""
    return states[..., 0] if states.shape[-1] == 1 else states


def unflat(states: object, dimension: int) -> np.ndarray:
    """The way back, to (..., dimension)."""
    given = np.asarray(states, dtype=np.float64)
    return given[..., None] if dimension == 1 else given


def find_world(name: str) -> World:
    """The world of that name, with its own constants.

    >>> find_world("thermostat").steps
    48
    """
    if name in registry.WORLDS:
        return registry.WORLDS[name].load()()
    raise InvalidInput(f"There is no world called {name!r}: the known ones are {', '.join(registry.WORLDS)}.")
