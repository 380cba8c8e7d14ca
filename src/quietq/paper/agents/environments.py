"""Any Gymnasium environment, or vector environment, as rows of transitions: one per copy.

Rewards that a method noises as it goes are read by their type, whatever their value (`read_rewards`). What is refused
is refused for its type or shape. No value raises anything, for whether it did would tell something of the rewards: one
that is no number counts as 0, and what is too large for float32, or infinite, is the largest there is, which the method
clips as any other. So rewards that are near stay near.
"""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box as BoxSpace, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from jaxtyping import Float

from quietq.noise import Box
from quietq.noise.own_values import coarse_type
from quietq.paper.agents.method import EnvironmentSpaces, Transition
from quietq.privacy import InvalidInput

Environment = gymnasium.Env | VectorEnv
Reading = Callable[[Any, tuple[int, ...]], np.ndarray]
"""From what an environment gave to an array of that shape in float32."""
LONGEST_EPISODE = 1000  # taken where an environment does not say how long its episodes are
LARGEST = float(np.finfo(np.float32).max)


def spaces_of_env(env: Environment) -> EnvironmentSpaces:
    """What is public about an environment; refused unless observations are a bounded Box and actions Discrete."""
    vector = isinstance(env, VectorEnv)
    observations = env.single_observation_space if vector else env.observation_space
    actions = env.single_action_space if vector else env.action_space
    if not isinstance(observations, BoxSpace) or len(observations.shape) != 1 or not observations.is_bounded():
        raise InvalidInput(
            f"env must have a bounded Box of shape (d,) for observations, not {observations}; those without bounds are "
            "held to a public box by quietq.worlds.BoundedObservation(env, low, high)."
        )
    if not isinstance(actions, Discrete):
        raise InvalidInput(f"env must have a Discrete action space, not {actions}.")
    ends = (tuple(float(end) for end in side) for side in (observations.low, observations.high))
    own = getattr(getattr(env.unwrapped, "world", None), "steps", LONGEST_EPISODE)
    return EnvironmentSpaces(Box(*ends), int(actions.n), int(getattr(env.spec, "max_episode_steps", None) or own))


def _observed(values: Any, spaces: EnvironmentSpaces) -> np.ndarray:
    """States, one row per copy. They are public: a refusal may look at them."""
    observation, dimension = read_as_given(values, ()), spaces.box.dimension
    if observation.ndim != 2 or observation.shape[1] != dimension:
        raise InvalidInput(
            f"The environment's observations must have shape ({dimension},), as its space says, not "
            f"{observation.shape[1:]}."
        )
    if not np.isfinite(observation).all():
        raise InvalidInput("The environment's observations must be finite numbers.")
    return observation


def read_as_given(given: Any, shape: tuple[int, ...]) -> np.ndarray:
    return np.array(given, np.float32)  # a copy: environments may reuse theirs


def read_rewards(given: Any, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    """The rewards of a step in float32; refused unless there is one number per copy, of a type that is exact enough.

    >>> read_rewards([0.5, float("nan"), 10**400], (3,)).tolist()
    [0.5, 0.0, 3.4028234663852886e+38]
    """
    coarse, array = coarse_type(given, single=True), None
    try:
        array = np.asarray(given)
        if coarse is None and array.dtype.kind == "O":
            coarse = coarse_type(array.ravel().tolist(), single=True)
            array = np.array([_number(item) for item in array.flat]).reshape(array.shape)
    except Exception:  # whatever it is, it is not a number; its text may hold private values
        array = None
    if coarse is not None:
        raise InvalidInput(
            f"The environment's reward must be a Python number, an integer, float32 or float64, not {coarse}, whose "
            "rounding the noise would not hide: compute it in one of these."
        )
    if array is None or array.dtype.kind not in "biuf" or array.shape != shape:
        what = type(given).__name__ if array is None or not array.shape else f"an array of shape {array.shape}"
        right = "one number" if not shape else f"an array of {shape[0]} numbers"
        raise InvalidInput(f"The environment's reward must be {right} a step, not {what}.")
    with np.errstate(over="ignore", invalid="ignore"):
        exact = array.astype(np.float64)
        return np.where(np.isnan(exact), 0.0, np.clip(exact, -LARGEST, LARGEST)).astype(np.float32)


def _number(item: Any) -> float:
    if isinstance(item, str | bytes):
        raise TypeError
    try:
        return float(item)
    except OverflowError:
        return np.inf if item > 0 else -np.inf


def rows_of(env: Environment, seed: int | None, read: Reading = read_as_given) -> Any:
    """A generator that takes one action per copy and gives the transitions, the observations, and which are new."""
    return _rows_of_copies(env, seed, read) if isinstance(env, VectorEnv) else _rows_of_one(env, seed, read)


def _rows_of_one(env: gymnasium.Env, seed: int | None, read: Reading) -> Any:
    lowest, spaces = int(env.action_space.start), spaces_of_env(env)  # pyright: ignore[reportAttributeAccessIssue]
    before = _observed([env.reset(seed=seed)[0]], spaces)
    action = yield before
    while True:
        after, reward, terminated, truncated, _ = env.step(action[0] + lowest)
        after = _observed([after], spaces)
        observation = _observed([env.reset()[0]], spaces) if terminated or truncated else after
        ends = np.array([terminated], bool), np.array([truncated], bool)
        columns: Any = before, action, read(reward, ())[None], after, *ends
        action = yield Transition(*columns), observation, np.array([True])
        before = observation


def _rows_of_copies(env: VectorEnv, seed: int | None, read: Reading) -> Any:
    """The copies of a vector environment, in any of its modes of resetting.

    Where a copy's step only resets it (NEXT_STEP), there is no transition to see: the one before it is seen once more.
    """
    lowest, spaces = int(env.single_action_space.start), spaces_of_env(env)  # pyright: ignore[reportAttributeAccessIssue]
    mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
    if mode == AutoresetMode.DISABLED:
        raise InvalidInput("A vector environment must reset its copies by itself: autoreset_mode must not be DISABLED.")
    before = _observed(env.reset(seed=seed)[0], spaces)
    action = yield before
    last, resetting = None, np.zeros(len(before), bool)
    while True:
        observation, reward, terminated, truncated, info = env.step(action + lowest)
        observation, over = _observed(observation, spaces), np.asarray(terminated | truncated, bool)
        after = observation.copy()
        if mode == AutoresetMode.SAME_STEP:
            for copy in np.flatnonzero(over):
                after[copy] = info["final_obs"][copy]
        ends = np.array(terminated, bool), np.array(truncated, bool)
        columns: Any = before, action, read(reward, (len(before),)), _observed(after, spaces), *ends
        if last is not None and resetting.any():
            columns = [_where(resetting, old, new) for old, new in zip(last, columns, strict=True)]
        action = yield Transition(*columns), observation, ~resetting
        last, before = columns, observation
        resetting = over if mode == AutoresetMode.NEXT_STEP else resetting


def _where(condition: np.ndarray, yes: Any, no: Any) -> Any:
    return np.where(condition.reshape(-1, *[1] * (no.ndim - 1)), yes, no)
