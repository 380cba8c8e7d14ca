"""A world's dynamics, written once for both of its forms.

`World` is frozen constants and pure functions of arrays. They are written against an array module, `xp`: NumPy when a
Gymnasium environment (`WorldEnv`) calls them, jax.numpy when the compiled trainer does. So both forms agree step by
step for the same draws, and there is no second definition to keep in line. This module does not import JAX.

States, actions and ends are public: neither `start` nor `move` may look at the reward.
"""

from abc import ABC, abstractmethod
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from quietq.noise import Box
from quietq.privacy import InvalidInput, Relation

Array = Any
"""A NumPy or a JAX array."""
Observation = Any
"""Whatever an environment shows."""
Action = Any
"""Whatever an environment takes for an action."""
Info = dict[str, Any]
"""What a step or a reset of Gymnasium tells besides observation, reward and ends; also its options and metadata."""


class World(ABC):
    """What a world is; subclasses are frozen dataclasses of constants.

    A state is an array of shape (dimension,), and is what an agent observes; functions take any number of axes in
    front. Time is kept by whoever runs the world: after `steps` steps an episode is truncated, which is not the same
    as terminated.
    """

    name: ClassVar[str]
    """The name in `quietq paper train METHOD NAME` and in `WORLDS`."""
    box: ClassVar[Box]
    """The public box that all states lie in."""
    actions: ClassVar[int]
    action_names: ClassVar[tuple[str, ...]]
    """What each action does, in a word."""
    draws: ClassVar[int]
    """How many uniform numbers of [0, 1) a start and a step each use up."""
    steps: int
    """An episode is truncated after these."""

    def start(self, draws: Array, xp: ModuleType) -> Array:
        """Returns the first state, shape (..., dimension), from draws, shape (..., draws): by default uniform."""
        low, width = (xp.asarray(end, dtype=draws.dtype) for end in (self.box.low, self.box.width))
        return low + width * draws[..., : self.box.dimension]

    @abstractmethod
    def move(self, state: Array, action: Array, draws: Array, xp: ModuleType) -> tuple[Array, Array]:
        """Returns the next state, shape (..., dimension), and whether the episode terminated there, shape (...)."""

    @abstractmethod
    def reward(self, state: Array, xp: ModuleType) -> Array:
        """Returns the mean of people's rewards, shape (...), at states (..., dimension) that a step led to."""

    @abstractmethod
    def relation(self, people: int) -> Relation:
        """Returns what replacing one of `people` can change, by the bounds that are declared for each person."""

    def mean_reward(self) -> Any:
        """Returns the reward, not private, in the form that a mechanism for `relation` takes.

        That is what `GaussianProcessMechanism.apply` takes: by default a function of many states at once; where the
        relation's kernel is additive, one function per coordinate.
        """
        return self.reward_at

    def reward_at(self, states: np.ndarray) -> np.ndarray:
        """Returns the reward as a function of many states, which come as private functions take them."""
        return np.asarray(self.reward(unflat(states, self.box.dimension), np))


def never(states: Array, xp: ModuleType) -> Array:
    return xp.zeros(states.shape[:-1], dtype=bool)


def flat(states: Array) -> Array:
    """States as functions of states take them in quietq: (..., d), but (...) in one dimension."""
    return states[..., 0] if states.shape[-1] == 1 else states


def unflat(states: object, dimension: int) -> np.ndarray:
    """The way back, to (..., dimension)."""
    given = np.asarray(states, dtype=np.float64)
    return given[..., None] if dimension == 1 else given


def chances_of(
    policy: object, points: int, actions: int, steps: int | None = None
) -> Float[np.ndarray, "*steps points actions"]:
    """Returns what a policy gave, as probabilities: an action for each state, or a row of probabilities.

    There may be an axis of so many `steps` in front.
    """
    given = np.asarray(policy)
    if given.shape[-2:] != (points, actions) and given.shape[-1:] == (points,) and np.isin(given, range(actions)).all():
        given = np.eye(actions)[given.astype(np.int64)]
    fits = given.shape[-2:] == (points, actions) and given.shape[:-2] in ((), (steps,))
    if not fits or given.dtype.kind not in "biuf":
        raise InvalidInput(
            f"policy must give an action, 0 to {actions - 1}, or a row of {actions} probabilities for each of {points} "
            "states."
        )
    if not ((given >= 0).all() and np.allclose(given.sum(axis=-1), 1)):
        raise InvalidInput("policy must give probabilities: at least 0, and 1 in sum for each state.")
    return given.astype(np.float64)
