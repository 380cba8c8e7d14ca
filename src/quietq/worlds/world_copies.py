"""Many copies of a private world that step together, which is much faster than one after the other."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jaxtyping import Bool, Float32

from quietq.mechanisms.private_world import PrivateWorld
from quietq.privacy.certificate import Certificate
from quietq.privacy.checks import count, shown
from quietq.privacy.errors import InvalidInput
from quietq.worlds.private_world import PrivateWorldEnv

Seen = Float32[np.ndarray, "copies d"]


def environment(world: PrivateWorld, copies: int | None = None, stable_baselines: bool = False, **options: Any) -> Any:
    """A private world for Gymnasium: one environment, or a vector environment of so many copies.

    Stable-Baselines3 takes no vector environment but its own kind: with `stable_baselines` it is one of those.
    """
    if stable_baselines:
        if copies is None:
            raise InvalidInput("stable_baselines is for several copies: say how many, or leave it out for one.")
        from quietq.worlds.stable_baselines import WorldVecEnv

        return WorldVecEnv(world, copies, **options)
    return PrivateWorldEnv(world, **options) if copies is None else WorldCopies(world, copies, **options)


class WorldCopies(VectorEnv):
    """A vector environment of Gymnasium: each copy is a `PrivateWorldEnv` with these options.

    A copy whose episode is over begins the next one in the same step; what it saw last is `info["final_obs"]`.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(self, world: PrivateWorld, copies: int, **options: Any) -> None:
        self.one = PrivateWorldEnv(world, **options)
        self.num_envs = count("copies", copies)
        self.metadata = self.one.metadata | type(self).metadata
        self.single_observation_space, self.single_action_space = self.one.observation_space, self.one.action_space
        self.observation_space = batch_space(self.single_observation_space, copies)
        self.action_space = batch_space(self.single_action_space, copies)
        self.render_mode, self._begun = None, False
        self._states, self._left = np.zeros((copies, world.spaces.states)), np.zeros(copies, int)
        self._weights = None if self.one.members is None else np.zeros((copies, *world.weights.shape))

    @property
    def certificate(self) -> Certificate:
        return self.one.world.certificate

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Seen, dict[str, Any]]:
        super().reset(seed=seed)
        self._begin(np.ones(self.num_envs, bool))
        self._begun = True
        return self.one.seen(self._states), {}

    def _begin(self, which: Bool[np.ndarray, " copies"]) -> None:
        number = int(which.sum())
        self._states[which] = self.one.simulator.start(self.np_random.random((number, self.one.simulator.draws)))
        self._left[which] = self.one.steps
        if self._weights is not None:
            assert self.one.members is not None
            self._weights[which] = self.one.members[self.np_random.integers(len(self.one.members), size=number)]

    def step(self, actions: Any) -> tuple[Seen, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        if not self._begun:
            raise gymnasium.error.ResetNeeded("There is no episode: call reset first.")
        given = np.asarray(actions, self.action_space.dtype)
        if not self.action_space.contains(given):
            raise InvalidInput(f"actions must be in {self.action_space} ({self.one.named()}), not {shown(actions)}.")
        draws = self.np_random.random((self.num_envs, self.one.simulator.draws))
        found = self.one.simulator.step(self._states, self.one.unit(given), draws, weights=self._weights)
        self._states, self._left = np.asarray(found.states), self._left - 1
        ended = self.np_random.random(self.num_envs) < found.ends
        rewards = found.rewards + np.where(found.halted & ~ended, self.one.worst(self._left), 0.0)
        terminated, truncated, seen = found.halted | ended, self._left == 0, self.one.seen(self._states)
        info: dict[str, Any] = {"halt": found.halted}
        if (over := terminated | truncated).any():
            info |= {"final_obs": seen, "_final_obs": over}
            self._begin(over)
            seen = self.one.seen(self._states)
        return seen, rewards, terminated, truncated, info
