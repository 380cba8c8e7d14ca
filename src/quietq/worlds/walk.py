"""The paper's walk on [0, 1] (its appendix E), as a Gymnasium environment."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Discrete
from jaxtyping import Float, Float32

from quietq.privacy.checks import real
from quietq.privacy.errors import InvalidInput

Preference = Callable[[np.ndarray], np.ndarray]
"""A reward as a vectorised function of states."""


@dataclass(frozen=True)
class WalkConstants:
    """Everything that defines the dynamics, for each form of this world."""

    low: float = 0.0
    high: float = 1.0
    reach: float = 0.25
    """A move is uniform between 0 and this, to the right (action 1) or to the left (action 0)."""
    actions: int = 2
    steps: int = 50
    """An episode is truncated after these, and never terminates."""
    peak: float = 0.5
    """Where the reward, 0.5 - |s - peak| of the state after the move, is largest."""


WALK = WalkConstants()


def walk_reward(states: np.ndarray) -> Float[np.ndarray, "..."]:
    """The paper's reward, 0.5 - |s - 0.5|.

    >>> walk_reward(np.array([0.0, 0.25, 0.5]))
    array([0.  , 0.25, 0.5 ])
    """
    return np.asarray(0.5 - np.abs(np.asarray(states, dtype=np.float64) - WALK.peak))


class Walk(gymnasium.Env[np.ndarray, np.int64]):
    """The walk for Gymnasium; `reward` replaces the paper's. The reward is a function of the observation returned.

    `reset(options={"state": 0.3})` starts there instead of at random.

    >>> import quietq.worlds
    >>> env = gymnasium.make("quietq/Walk-v0")
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step(1)
    >>> bool(reward == walk_reward(observation)[0]), terminated, truncated
    (True, False, False)
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (Gymnasium's own)

    def __init__(self, reward: Preference | None = None, render_mode: str | None = None) -> None:
        if render_mode is not None:
            raise InvalidInput(f"The walk cannot be rendered, so render_mode must be None, not {render_mode!r}.")
        self.reward = walk_reward if reward is None else reward
        rewards_at(np.linspace(WALK.low, WALK.high, 5), self.reward)
        self.render_mode = None
        self.observation_space = Box(WALK.low, WALK.high, (1,), np.float32)
        self.action_space = Discrete(WALK.actions)
        self._state = 0.0
        self._steps_left: int | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32[np.ndarray, "1"], dict[str, Any]]:
        """A new episode from a uniformly random state; the same seed gives the same episodes."""
        super().reset(seed=seed)
        start = real("state", (options or {}).get("state", self.np_random.uniform(WALK.low, WALK.high)))
        if not WALK.low <= start <= WALK.high:
            raise InvalidInput(f"state must lie within [{WALK.low:g}, {WALK.high:g}], not {start!r}.")
        self._state, self._steps_left = start, WALK.steps
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Float32[np.ndarray, "1"], float, bool, bool, dict[str, Any]]:
        """One move; the reward is that of the state it leads to."""
        if not self._steps_left:
            over = "has not begun" if self._steps_left is None else f"is over after {WALK.steps} steps"
            raise ResetNeeded(f"The episode {over}: call reset first.")
        if not self.action_space.contains(action):
            raise InvalidInput(f"action must be 0 (left) or 1 (right), not {action!r}.")
        move = self.np_random.uniform(0.0, WALK.reach)
        self._state = float(np.clip(self._state + (move if action == 1 else -move), WALK.low, WALK.high))
        self._steps_left -= 1
        observation = self._observation()
        return (
            observation,
            float(rewards_at(observation.astype(np.float64), self.reward)[0]),
            False,
            self._steps_left == 0,
            {},
        )

    def _observation(self) -> Float32[np.ndarray, "1"]:
        return np.array([self._state], dtype=np.float32)


def rewards_at(states: np.ndarray, reward: Preference) -> Float[np.ndarray, "points"]:
    """A preference at many states, checked to give one finite number for each."""
    values = np.asarray(reward(states), dtype=np.float64) if callable(reward) else np.empty(0)
    if values.shape != states.shape or not np.isfinite(values).all():
        raise InvalidInput("reward must be a function of many states at once that gives one finite number for each.")
    return values
