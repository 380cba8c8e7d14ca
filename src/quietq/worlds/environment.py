"""quietq's own worlds by name, and as Gymnasium environments (`quietq/Walk-v0`)."""

from collections.abc import Callable

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Discrete
from jaxtyping import Float, Float32

from quietq.privacy import InvalidInput
from quietq.privacy.checks import did_you_mean, instance, shown
from quietq.worlds.navigation import NavigationWorld
from quietq.worlds.thermostat import ThermostatWorld
from quietq.worlds.walk import WalkWorld
from quietq.worlds.world import Info, World, flat

RewardFunction = Callable[[np.ndarray], np.ndarray]
"""A reward as a vectorised function of states, which come as private functions take them: an array of shape
(points, d), but (points,) in one dimension."""

WORLDS: dict[str, type[World]] = {kind.name: kind for kind in (WalkWorld, ThermostatWorld, NavigationWorld)}


def gymnasium_id(name: str) -> str:
    """The id under which Gymnasium knows a world of this name.

    >>> gymnasium_id("walk")
    'quietq/Walk-v0'
    """
    return f"quietq/{name.capitalize()}-v0"


def register_worlds() -> None:
    """Registers the worlds with Gymnasium, each once however often this is called."""
    for name in WORLDS:
        if gymnasium_id(name) not in gymnasium.registry:
            gymnasium.register(gymnasium_id(name), "quietq.worlds.environment:WorldEnv", kwargs={"world": name})


def find_world(name: str) -> World:
    """Finds the world of a name, with its own constants.

    Args:
        name: The name, e.g. "walk".

    """
    if name in WORLDS:
        return WORLDS[name]()
    known = f"the known ones are {', '.join(WORLDS)}."
    raise InvalidInput(f"There is no world called {name!r}: {known}{did_you_mean(name, WORLDS)}")


class WorldEnv(gymnasium.Env[np.ndarray, object]):
    """A world for Gymnasium, given by itself or by its name; `PrivateReward` replaces its reward.

    The reward is a function of the observation returned, which is the state in single precision; the state itself is
    kept in double precision. `terminated` comes from the world, `truncated` from the clock; both may be true at once.
    """

    metadata: Info = {"render_modes": []}  # noqa: RUF012 (Gymnasium's own)

    def __init__(self, world: World | str) -> None:
        world = find_world(world) if isinstance(world, str) else world
        instance("world", world, World, "a World, e.g. find_world('walk')")
        self.world = world
        dimension, box = world.box.dimension, world.box
        low, high = np.array(box.low, dtype=np.float32), np.array(box.high, dtype=np.float32)
        self.observation_space = Box(low, high, (dimension,), np.float32)
        self.action_space = Discrete(world.actions)
        self._state, self._left = np.zeros(dimension), False
        self._steps_left: int | None = None

    def reset(
        self, *, seed: int | None = None, options: Info | None = None
    ) -> tuple[Float32[np.ndarray, " dimension"], Info]:
        super().reset(seed=seed)
        self._state = np.asarray(self.world.start(self.np_random.random(self.world.draws), np))
        self._steps_left = self.world.steps
        self._left = False
        return self._state.astype(np.float32), {}

    def step(self, action: object) -> tuple[Float32[np.ndarray, " dimension"], float, bool, bool, Info]:
        if not self._steps_left or self._left:
            over = "is over" if self._left else f"is over after {self.world.steps} steps"
            raise ResetNeeded(f"The episode {'has not begun' if self._steps_left is None else over}: call reset first.")
        if not self.action_space.contains(action):
            *first, last = (f"{number} ({name})" for number, name in enumerate(self.world.action_names))
            raise InvalidInput(f"action must be {', '.join(first)} or {last}, not {shown(action)}.")
        draws = self.np_random.random(self.world.draws)
        self._state, terminated = self.world.move(self._state, np.asarray(action), draws, np)
        self._steps_left -= 1
        self._left = bool(terminated)
        observation = self._state.astype(np.float32)
        reward = float(rewards_at(observation.astype(np.float64), self.world.reward_at))
        return observation, reward, self._left, self._steps_left == 0, {}


def rewards_at(states: np.ndarray, reward: RewardFunction) -> Float[np.ndarray, "..."]:
    """Computes a reward at states (..., d), and checks that it is one finite number for each.

    Args:
        states: The states.
        reward: A function of many states at once.

    """
    rows = np.reshape(states, (-1, states.shape[-1]))
    values = np.asarray(reward(flat(rows)), dtype=np.float64) if callable(reward) else np.empty(0)
    if values.shape != (len(rows),) or not np.isfinite(values).all():
        raise InvalidInput("reward must be a function of many states at once that gives one finite number for each.")
    return values.reshape(states.shape[:-1])
