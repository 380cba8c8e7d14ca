"""A training in a Gymnasium environment: one run after the other, by the ordinary loop."""

from typing import TYPE_CHECKING, Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import VectorEnv

from quietq.learning.events import Event, answers, columns, recent
from quietq.learning.loop import loop, rehearse
from quietq.learning.method import Method, Noise
from quietq.learning.rehearsal import refused_early
from quietq.learning.report import Reporter
from quietq.privacy.errors import InvalidInput

if TYPE_CHECKING:
    from quietq.learning import training


def run(
    training: "training.Training", env: gymnasium.Env | VectorEnv, progress: Any, callback: Any, reporter: Reporter
) -> tuple[Any, Any, int]:
    """What was released, what was seen (rewards and ends, a row a run and copy), and after how many steps."""
    core, rewards = training.method.core(), training.rewards()
    if rewards is not None:
        training.probe(rewards)
    if training.releases:
        first = jax.tree.map(lambda leaf: leaf[0], (training.no_noise(), rewards))
        refused_early(rehearse, core, env, *first, training.seed)
    training.pay()
    noise = training.noise(training.simulate is not None)
    try:
        return _learn(training, env, core, rewards, noise, training.piece(progress, callback), callback, reporter)
    except InvalidInput as error:
        if not training.releases:
            raise
        raise InvalidInput(f"{error} This came up in training: the budget was spent.") from error


def _learn(
    training: "training.Training", env: gymnasium.Env | VectorEnv, core: Method, rewards: Any, noise: Noise, every: int,
    callback: Any, reporter: Reporter,
) -> tuple[Any, Any, int]:  # fmt: skip
    all_released, all_seen, steps = [], [], training.steps
    for run, key in enumerate(training.keys()):
        pick = lambda tree, run=run: jax.tree.map(lambda leaf: leaf[run], tree)  # noqa: E731
        gained, over, now = [], [], None
        source = None if rewards is None else pick(rewards)
        for now in loop(core, env, training.steps, key, pick(noise), source, training.seed + run):
            gained.append(now.rewards)
            over.append(now.over)
            steps = now.step * len(now.over)
            if steps // every != (steps - len(now.over)) // every:
                reporter.at(steps, lambda gained=gained, over=over: recent(columns(gained, over)))
                if callback is not None and callback(_event(core, now.learner, pick(noise), steps)) is True:
                    break
        assert now is not None
        all_released.append(jax.jit(core.finish)(now.learner, pick(noise)))
        all_seen.append(columns(gained, over))
    released = jax.tree.map(lambda *leaves: jnp.stack(leaves), *all_released)
    return released, tuple(np.concatenate(parts) for parts in zip(*all_seen, strict=True)), steps


def _event(core: Method, learner: Any, noise: Noise, step: int) -> Event:
    one = jax.tree.map(lambda leaf: leaf[None], jax.jit(core.current)(learner, noise))
    return Event(step, answers(core, one))
