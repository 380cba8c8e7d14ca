"""The ordinary loop: the same methods in any Gymnasium environment, one step after the other.

Between two steps of the environment there is one call of compiled code, which learns from what was seen and chooses the
next action. Vector environments are stepped as they are, a transition a copy.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box as BoxSpace, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from jaxtyping import Array, PRNGKeyArray

from quietq.learning.method import Method, Noise, Spaces, State, Transition
from quietq.learning.own_rewards import own_rewards
from quietq.noise.box import Box
from quietq.privacy.errors import InvalidInput
from quietq.worlds.jax_rewards import as_single

Reading = Callable[[Any, tuple[int, ...]], np.ndarray]
"""From what an environment gave to an array of that shape in float32."""

LONGEST_EPISODE = 1000
"""Taken where an environment does not say how long its episodes are."""


class LoopStep(NamedTuple):
    """Where the loop stands after a step."""

    learner: State
    step: int
    rewards: np.ndarray
    """As the learner got them, one a copy: for most methods not private."""
    over: np.ndarray


def spaces_of_env(env: gymnasium.Env | VectorEnv) -> Spaces:
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
    limit = getattr(env.spec, "max_episode_steps", None) or getattr(
        getattr(env.unwrapped, "world", None), "steps", LONGEST_EPISODE
    )
    return Spaces(Box(*ends), int(actions.n), int(limit))


def loop(
    method: Method,
    env: gymnasium.Env | VectorEnv,
    steps: int,
    key: PRNGKeyArray,
    noise: Noise,
    source: Callable[..., Array] | None = None,
    seed: int | None = None,
) -> Iterator[LoopStep]:
    """Learns for so many steps of the environment, in all copies together; `source` replaces its reward.

    The last step's learner is finished by the caller.
    """
    spaces = spaces_of_env(env)
    rows = rows_of(env, seed, _reading(method, source))
    observation = next(rows)
    copies = len(observation)
    _check_observation(observation, spaces)
    learner = _init(method, spaces, copies, jax.random.split(key)[1])
    action = _first(method, learner, observation, key, noise)
    for step in range(-(-steps // copies)):
        seen, observation, new = rows.send(np.asarray(action))
        _check_observation(seen.next_state, spaces)
        _check_observation(observation, spaces)
        if source is None and not np.isfinite(seen.reward).all():
            raise InvalidInput("The environment's reward must be a finite number.")
        learner, action, gained = _react(method, source, learner, seen, observation, step, key, noise)
        yield LoopStep(learner, step + 1, np.where(new, gained, 0.0), (seen.terminated | seen.truncated) & new)


def rehearse(
    method: Method, env: gymnasium.Env | VectorEnv, noise: Noise, source: Callable[..., Array] | None, seed: int
) -> None:
    """Resets the environment, steps it once and traces what learns from it: raises what training would raise at once.

    Of the reward its type and its shape are looked at, and not its value.
    """
    spaces, key = spaces_of_env(env), jax.random.key(0)
    rows = rows_of(env, seed, _reading(method, source))
    observation = next(rows)
    _check_observation(observation, spaces)
    seen, observation, _ = rows.send(np.zeros(len(observation), np.int32))
    _check_observation(seen.next_state, spaces)
    for copy in getattr(env.unwrapped, "envs", ()) if isinstance(env, VectorEnv) else ():
        next(one := rows_of(copy, seed, _reading(method, source)))  # in an array with others a reward loses its type
        one.send(np.zeros(1, np.int32))
    learner = jax.eval_shape(partial(_init, method, spaces, len(observation)), key)
    jax.eval_shape(partial(_first, method), learner, observation, key, noise)
    learner, _, _ = jax.eval_shape(partial(_react, method), source, learner, seen, observation, 0, key, noise)
    jax.eval_shape(method.finish, learner, noise)


def _reading(method: Method, source: Callable[..., Array] | None) -> Reading:
    """How strictly the environment's own rewards are read: not at all, where others take their place."""
    return own_rewards if method.spends and source is None else _as_they_are


def _check_observation(observation: np.ndarray, spaces: Spaces) -> None:
    """States are public: a refusal may look at them."""
    if observation.ndim != 2 or observation.shape[1] != spaces.box.dimension:
        raise InvalidInput(
            f"The environment's observations must have shape ({spaces.box.dimension},), as its space says, not "
            f"{observation.shape[1:]}."
        )
    if not np.isfinite(observation).all():
        raise InvalidInput("The environment's observations must be finite numbers.")


@partial(jax.jit, static_argnums=(0, 1, 2))
def _init(method: Method, spaces: Spaces, copies: int, key: PRNGKeyArray) -> State:
    return method.init(spaces, key, copies)


@partial(jax.jit, static_argnums=0)
def _first(method: Method, learner: State, observation: Array, key: PRNGKeyArray, noise: Noise) -> Array:
    key_act = jax.random.split(jax.random.fold_in(key, 0), 4)[0]
    return method.act(learner, observation, jnp.zeros((), jnp.int32), key_act, noise)


@partial(jax.jit, static_argnums=0, donate_argnums=2)
def _react(
    method: Method, source: Any, learner: State, seen: Transition, observation: Array, step: Array, key: PRNGKeyArray,
    noise: Noise,
) -> tuple[State, Array, Array]:  # fmt: skip
    """What was learned from a step, the next action, and the rewards as the learner got them."""
    single = as_single if method.spends else jnp.float32
    if source is not None:
        seen = seen._replace(reward=jax.vmap(source)(seen.state, seen.action, seen.next_state))
    seen = seen._replace(action=seen.action.astype(jnp.int32), reward=single(seen.reward))
    learner = method.update(learner, seen, step, jax.random.split(jax.random.fold_in(key, step), 4)[2], noise)
    key_act = jax.random.split(jax.random.fold_in(key, step + 1), 4)[0]
    return learner, method.act(learner, observation, step + 1, key_act, noise), seen.reward


def rows_of(env: gymnasium.Env | VectorEnv, seed: int | None, read: Reading | None = None) -> Any:
    """A generator that takes an action a copy and gives the transitions, the observations, and which are new."""
    return (_vector_rows if isinstance(env, VectorEnv) else _rows)(env, seed, read or _as_they_are)  # pyright: ignore[reportArgumentType]


def _rows(env: gymnasium.Env, seed: int | None, read: Reading) -> Any:
    """A single environment as one row; it is reset when an episode is over."""
    lowest = int(env.action_space.start)  # pyright: ignore[reportAttributeAccessIssue]
    before = _single(env.reset(seed=seed)[0])[None]
    action = yield before
    while True:
        after, reward, terminated, truncated, _ = env.step(action[0] + lowest)
        after = _single(after)[None]
        observation = _single(env.reset()[0])[None] if terminated or truncated else after
        flags = np.array([terminated], bool), np.array([truncated], bool)
        rows = _transition(before, action, read(reward, ())[None], after, *flags)
        action = yield rows, observation, np.array([True])
        before = observation


def _vector_rows(env: VectorEnv, seed: int | None, read: Reading) -> Any:
    """The copies of a vector environment, in any of its modes of resetting.

    Where a copy's step only resets it (NEXT_STEP), there is no transition to see: the one before it is seen once more.
    """
    lowest = int(env.single_action_space.start)  # pyright: ignore[reportAttributeAccessIssue]
    mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
    if mode == AutoresetMode.DISABLED:
        raise InvalidInput("A vector environment must reset its copies by itself: autoreset_mode must not be DISABLED.")
    before = _single(env.reset(seed=seed)[0])
    action = yield before
    last, resetting = None, np.zeros(len(before), bool)
    while True:
        observation, reward, terminated, truncated, info = env.step(action + lowest)
        observation, over = _single(observation), np.asarray(terminated | truncated, bool)
        after = observation.copy()
        if mode == AutoresetMode.SAME_STEP:
            for copy in np.flatnonzero(over):
                after[copy] = info["final_obs"][copy]
        rows = _transition(
            before, action, read(reward, (len(before),)), after, np.array(terminated, bool), np.array(truncated, bool)
        )
        if last is not None and resetting.any():
            rows = _transition(*(_where(resetting, old, new) for old, new in zip(last, rows, strict=True)))
        action = yield rows, observation, ~resetting
        last, before = rows, observation
        resetting = over if mode == AutoresetMode.NEXT_STEP else resetting


def _transition(*columns: Any) -> Transition:
    """Of NumPy's arrays: compiled code makes JAX's of them."""
    return Transition(*columns)


def _single(values: Any) -> np.ndarray:
    return np.array(values, np.float32)  # a copy: environments may reuse theirs


def _as_they_are(given: Any, shape: tuple[int, ...]) -> np.ndarray:
    return _single(given)


def _where(condition: np.ndarray, yes: Any, no: Any) -> np.ndarray:
    return np.where(condition.reshape(-1, *[1] * (no.ndim - 1)), yes, no)
