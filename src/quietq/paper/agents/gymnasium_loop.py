"""The ordinary loop: the same methods in any Gymnasium environment, one step after the other.

Between two steps of the environment there is one call of compiled code, which learns from what was seen and chooses the
next action. Vector environments are stepped as they are, one transition per copy; runs follow one another.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import VectorEnv
from jaxtyping import Array, PRNGKeyArray

from quietq.paper.agents.environments import Environment, read_as_given, read_rewards, rows_of, spaces_of_env
from quietq.paper.agents.jax_rewards import as_single
from quietq.paper.agents.method import EnvironmentSpaces, Method, Moment, Noise, State, Transition
from quietq.paper.agents.training import Result, Runs, Training
from quietq.paper.agents.training_events import Event
from quietq.privacy import InvalidInput
from quietq.worlds import World


class LoopStep(NamedTuple):
    learner: State
    step: int
    rewards: np.ndarray  # as the learner got them, one per copy: for most methods not private
    over: np.ndarray


def run(training: Training) -> Result:
    assert not isinstance(training.world, World)
    with training.running() as report:
        env, core, rewards = training.world, training.method.core(), training.rewards()
        if rewards is not None:
            training.probe(rewards)
        runs = Runs(training.keys(), rewards, None)
        runs = training.draw(runs, lambda runs: rehearse(core, env, runs.pick(0), training.seed))
        try:
            results = [_learn(training, env, core, runs.pick(i), i, report) for i in range(training.members)]
        except InvalidInput as error:
            if not training.releases:
                raise
            raise InvalidInput(f"{error} This came up in training: the budget was spent.") from error
    released = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(result.released for result in results))
    seen = tuple(np.concatenate(parts) for parts in zip(*(result.seen for result in results), strict=True))
    return Result(released, seen, results[-1].steps)


def _learn(training: Training, env: Environment, core: Method, one: Runs, number: int, report: Any) -> Result:
    """One run; what it released has no leading axis."""
    gained, over, steps, now, every = [], [], training.steps, None, training.piece()
    seen = lambda: (np.stack(gained, axis=1), np.stack(over, axis=1))  # noqa: E731
    for now in loop(core, env, training.steps, one, training.seed + number):
        gained.append(now.rewards)
        over.append(now.over)
        steps = now.step * len(now.over)
        if steps // every == (steps - len(now.over)) // every:
            continue
        report(steps, seen)
        if training.callback is not None:
            current = jax.tree.map(lambda leaf: leaf[None], _release(core, False, now.learner, one.noise))
            if training.callback(Event.of(steps, core, current)) is True:
                break
    assert now is not None
    return Result(_release(core, True, now.learner, one.noise), seen(), steps)


def loop(method: Method, env: Environment, steps: int, one: Runs, seed: int | None = None) -> Iterator[LoopStep]:
    """One run: learns for so many steps of the environment, in all copies together, by its own reward or the run's.

    The last step's learner is finished by the caller.
    """
    rows = _rows(method, env, one, seed)
    observation = next(rows)
    copies = len(observation)
    learner = _init(method, spaces_of_env(env), copies, jax.random.split(one.keys)[1])
    action = _first(method, learner, observation, one.keys, one.noise)
    for step in range(-(-steps // copies)):
        seen, observation, new = rows.send(np.asarray(action))
        if one.reward is None and not np.isfinite(seen.reward).all():
            raise InvalidInput("The environment's reward must be a finite number.")
        learner, action, gained = _react(method, one, learner, seen, observation, step)
        yield LoopStep(learner, step + 1, np.where(new, gained, 0.0), (seen.terminated | seen.truncated) & new)


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
    jax.eval_shape(partial(_first, method), learner, observation, one.keys, one.noise)
    learner, _, _ = jax.eval_shape(partial(_react, method), one, learner, seen, observation, 0)
    jax.eval_shape(method.finish, learner, one.noise)


def _rows(method: Method, env: Environment, one: Runs, seed: int | None) -> Any:
    """The environment's own rewards are not read strictly where others take their place."""
    return rows_of(env, seed, read_rewards if method.spends and one.reward is None else read_as_given)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _init(method: Method, spaces: EnvironmentSpaces, copies: int, key: PRNGKeyArray) -> State:
    return method.init(spaces, key, copies)


@partial(jax.jit, static_argnums=(0, 1))
def _release(method: Method, last: bool, learner: State, noise: Noise) -> Any:
    return (method.finish if last else method.current)(learner, noise)


@partial(jax.jit, static_argnums=0)
def _first(method: Method, learner: State, observation: Array, key: PRNGKeyArray, noise: Noise) -> Array:
    key_act = jax.random.split(jax.random.fold_in(key, 0), 4)[0]
    return method.act(learner, observation, Moment(jnp.zeros((), jnp.int32), key_act, noise))


@partial(jax.jit, static_argnums=0, donate_argnums=2)
def _react(
    method: Method, one: Runs, learner: State, seen: Transition, observation: Array, step: Array
) -> tuple[State, Array, Array]:
    """What was learned from a step, the next action, and the rewards as the learner got them."""
    single = as_single if method.spends else jnp.float32
    if one.reward is not None:
        seen = seen._replace(reward=jax.vmap(one.reward)(seen.state, seen.action, seen.next_state))
    seen = seen._replace(action=seen.action.astype(jnp.int32), reward=single(seen.reward))
    key_learn, key_act = (jax.random.split(jax.random.fold_in(one.keys, now), 4) for now in (step, step + 1))
    learner = method.update(learner, seen, Moment(step, key_learn[2], one.noise))
    return learner, method.act(learner, observation, Moment(step + 1, key_act[0], one.noise)), seen.reward
