"""The ordinary loop: the same methods in any Gymnasium environment, one step after the other.

Between two steps of the environment there is one call of compiled code, which learns from what was seen and chooses the
next action. Vector environments are stepped as they are, one transition per copy; runs follow one another.

Rewards that a method noises as it goes are read by their type, whatever their value (`read_rewards`). What is refused
is refused for its type or shape. No value raises anything, for whether it did would tell something of the rewards: one
that is no number counts as 0, and what is too large for float32, or infinite, is the largest there is, which the method
clips as any other. So rewards that are near stay near.
"""

from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box as BoxSpace, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from jaxtyping import Array, Float, PRNGKeyArray

from quietq.noise import Box
from quietq.noise.rounding import coarse_type
from quietq.paper.agents.method import EnvironmentSpaces, Method, Noise, Released, State, Transition
from quietq.paper.agents.training import Result, Runs, Training
from quietq.privacy import InvalidInput
from quietq.worlds import World

Environment = gymnasium.Env | VectorEnv
Reading = Callable[[object, tuple[int, ...]], np.ndarray]
"""A function from what an environment gave to an array of that shape in float32."""
Rows = Generator[Any, np.ndarray, None]
"""Takes one action per copy, and gives the first observation, then transitions, observations and which are new."""
LARGEST = float(np.finfo(np.float32).max)


def spaces_of_env(env: Environment) -> EnvironmentSpaces:
    """Returns what is public about an environment; refuses all but a bounded Box and Discrete actions."""
    vector = isinstance(env, VectorEnv)
    observations = env.single_observation_space if vector else env.observation_space
    actions = env.single_action_space if vector else env.action_space
    if not isinstance(observations, BoxSpace) or len(observations.shape) != 1 or not observations.is_bounded():
        raise InvalidInput(
            f"env must have a bounded Box of shape (d,) for observations, not {observations}; those without bounds are "
            "clipped to a public box by quietq.paper.agents.bound_observations(env, low, high)."
        )
    if not isinstance(actions, Discrete):
        raise InvalidInput(f"env must have a Discrete action space, not {actions}.")
    ends = (tuple(float(end) for end in side) for side in (observations.low, observations.high))
    # 1000 is for environments that do not say how long their episodes are.
    own = getattr(getattr(env.unwrapped, "world", None), "steps", 1000)
    return EnvironmentSpaces(Box(*ends), int(actions.n), int(getattr(env.spec, "max_episode_steps", None) or own))


def _observed(values: object, spaces: EnvironmentSpaces) -> np.ndarray:
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


def read_as_given(given: object, shape: tuple[int, ...]) -> np.ndarray:
    return np.array(given, np.float32)  # a copy: environments may reuse theirs


def read_rewards(given: object, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
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


def rows_of(env: Environment, seed: int | None, read: Reading = read_as_given) -> Rows:
    """The steps of an environment, or of all copies of a vector environment."""
    return _rows_of_copies(env, seed, read) if isinstance(env, VectorEnv) else _rows_of_one(env, seed, read)


def _rows_of_one(env: gymnasium.Env, seed: int | None, read: Reading) -> Rows:
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


def _rows_of_copies(env: VectorEnv, seed: int | None, read: Reading) -> Rows:
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


def _where(condition: np.ndarray, yes: np.ndarray, no: np.ndarray) -> np.ndarray:
    return np.where(condition.reshape(-1, *[1] * (no.ndim - 1)), yes, no)


def run(training: Training) -> Result:
    assert not isinstance(training.world, World)
    with training.running():
        env, core = training.world, training.method.core()
        runs = Runs(training.keys(), training.rewards(), None)
        runs = training.draw(runs, lambda runs: rehearse(core, env, runs.pick(0), training.seed))
        try:
            results = [_learn(training, env, core, runs.pick(i), i) for i in range(training.members)]
        except InvalidInput as error:
            if not training.releases:
                raise
            raise InvalidInput(f"{error} This came up in training: the budget was spent.") from error
    released, seen, steps = zip(*results, strict=True)
    rows = tuple(np.concatenate(parts) for parts in zip(*seen, strict=True))
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *released), rows, steps[-1]


def _learn(training: Training, env: Environment, core: Method, one: Runs, number: int) -> Result:
    """One run; what it released has no leading axis."""
    last, gained, over, steps = None, [], [], 0
    for learner, rewards, ended in loop(core, env, training.steps, one, training.seed + number):
        last, steps = learner, steps + len(rewards)
        gained.append(rewards)
        over.append(ended)
    return _finish(core, last, one.noise), (np.stack(gained, axis=1), np.stack(over, axis=1)), steps


def loop(
    method: Method, env: Environment, steps: int, one: Runs, seed: int | None = None
) -> Iterator[tuple[State, np.ndarray, np.ndarray]]:
    """One run: learns for `steps` of the environment, in all copies together, by its own reward or the run's.

    It gives, after each step, the learner, its rewards as it got them, one per copy, and where episodes ended. The last
    step's learner is finished by the caller.
    """
    rows = _rows(method, env, one, seed)
    observation = next(rows)
    copies = len(observation)
    learner = _init(method, spaces_of_env(env), copies, jax.random.split(one.keys)[1])
    action = _first(method, one, learner, observation)
    for step in range(-(-steps // copies)):
        seen, observation, new = rows.send(np.asarray(action))
        if one.reward is None and not np.isfinite(seen.reward).all():
            raise InvalidInput("The environment's reward must be a finite number.")
        learner, action, gained = _react(method, one, learner, seen, observation, step)
        yield learner, np.where(new, gained, 0.0), (seen.terminated | seen.truncated) & new


def rehearse(method: Method, env: Environment, one: Runs, seed: int) -> None:
    """Resets the environment, steps it once and traces what learns from it: raises what training would raise at once.

    Of the reward its type and its shape are looked at, and not its value.
    """
    rows = _rows(method, env, one, seed)
    observation = next(rows)
    seen, observation, _ = rows.send(np.zeros(len(observation), np.int32))
    for copy in getattr(env.unwrapped, "envs", ()) if isinstance(env, VectorEnv) else ():
        next(rows := _rows(method, copy, one, seed))  # in an array with others a reward loses its type
        rows.send(np.zeros(1, np.int32))
    learner = jax.eval_shape(partial(_init, method, spaces_of_env(env), len(observation)), one.keys)
    jax.eval_shape(partial(_first, method), one, learner, observation)
    learner, _, _ = jax.eval_shape(partial(_react, method), one, learner, seen, observation, 0)
    jax.eval_shape(method.finish, learner, one.noise)


def _rows(method: Method, env: Environment, one: Runs, seed: int | None) -> Rows:
    """The environment's own rewards are not read strictly where others take their place."""
    return rows_of(env, seed, read_rewards if method.spends and one.reward is None else read_as_given)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _init(method: Method, spaces: EnvironmentSpaces, copies: int, key: PRNGKeyArray) -> State:
    return method.init(spaces, key, copies)


@partial(jax.jit, static_argnums=0)
def _finish(method: Method, learner: State, noise: Noise) -> Released:
    return method.finish(learner, noise)


@partial(jax.jit, static_argnums=0)
def _first(method: Method, one: Runs, learner: State, observation: Array) -> Array:
    return one.act(method, learner, observation, jnp.zeros((), jnp.int32))


@partial(jax.jit, static_argnums=0, donate_argnums=2)
def _react(
    method: Method, one: Runs, learner: State, seen: Transition, observation: Array, step: Array
) -> tuple[State, Array, Array]:
    """Returns what was learned from a step, the next action, and the rewards as the learner got them."""
    if one.reward is not None:
        seen = seen._replace(reward=jax.vmap(one.reward)(seen.state, seen.action, seen.next_state))
    learner, gained = one.learn(method, learner, seen._replace(action=seen.action.astype(jnp.int32)), step)
    return learner, one.act(method, learner, observation, step + 1), gained
