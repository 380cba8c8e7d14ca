"""Environments whose observations have no bounds, held to a public box."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box as BoxSpace

from quietq.noise.box import Box
from quietq.privacy.errors import InvalidInput


class BoundedObservation(gymnasium.ObservationWrapper):
    """An environment that declares a box, and clips its observations to it.

    The box is public: choose it without looking at private data. What lies outside is seen as the nearest point of it.

    >>> env = BoundedObservation(gymnasium.make("CartPole-v1"), low=[-2.4, -3, -0.21, -3], high=[2.4, 3, 0.21, 3])
    >>> env.observation_space.is_bounded()
    True
    """

    def __init__(self, env: gymnasium.Env, low: Sequence[float], high: Sequence[float]) -> None:
        super().__init__(env)
        box, own = Box(tuple(map(float, low)), tuple(map(float, high))), env.observation_space
        if not isinstance(own, BoxSpace) or own.shape != (box.dimension,):
            raise InvalidInput(
                f"box has {box.dimension} pairs of LOW and HIGH, which do not fit the observations {own}: give one for "
                "each coordinate of a Box of shape (d,)."
            )
        # In double precision, so that the box is the one that was asked for to the last bit.
        self.observation_space = BoxSpace(np.array(box.low), np.array(box.high), (box.dimension,), np.float64)

    def observation(self, observation: Any) -> np.ndarray:
        """The nearest point of the box."""
        space = self.observation_space
        assert isinstance(space, BoxSpace)
        return np.clip(np.asarray(observation, np.float64), space.low, space.high)
