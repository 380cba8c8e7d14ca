"""Copies of a private world for Stable-Baselines3, which takes no vector environment but its own kind."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices

from quietq.released.private_world import PrivateWorld
from quietq.worlds.private_env import WorldCopies
from quietq.worlds.world import Info


class WorldVecEnv(VecEnv):
    """A VecEnv of copies: `PPO("MlpPolicy", WorldVecEnv(world, 16, steps=500))`, with the options of `env`."""

    def __init__(self, world: PrivateWorld, copies: int, **options: Any) -> None:
        self.env = WorldCopies(world, copies, **options)
        self._actions: np.ndarray | None = None
        super().__init__(copies, self.env.single_observation_space, self.env.single_action_space)

    def reset(self) -> np.ndarray:
        """Begins with the seed that `seed` was given, once."""
        found, _ = self.env.reset(seed=self._seeds[0])
        self._reset_seeds()
        return found

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[Info]]:
        seen, rewards, terminated, truncated, found = self.env.step(self._actions)
        over, infos = terminated | truncated, [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(over):
            infos[i] = {
                "terminal_observation": found["final_obs"][i],
                "TimeLimit.truncated": bool(truncated[i] and not terminated[i]),
            }
        return seen, rewards.astype(np.float32), over, infos

    def close(self) -> None:
        self.env.close()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[object]:
        return [getattr(self.env, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: object, indices: VecEnvIndices = None) -> None:
        raise AttributeError("Copies of a private world step together, so nothing is set in some of them.")

    def env_method(
        self, method_name: str, *method_args: object, indices: VecEnvIndices = None, **method_kwargs: object
    ) -> list[object]:
        raise AttributeError("Copies of a private world step together, so nothing is called in some of them.")

    def env_is_wrapped(self, wrapper_class: type, indices: VecEnvIndices = None) -> list[bool]:
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[np.ndarray | None]:
        return [None] * self.num_envs
