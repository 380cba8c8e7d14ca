"""What is seen of a training: released values for callbacks, and returns for the operator."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quietq.learning.method import Method, Released


class Event(NamedTuple):
    """What a callback gets: the step, and the values that have been released so far (None if nothing has been)."""

    step: int
    values: Callable[[np.ndarray], np.ndarray] | None
    """From observations (points, d) to (runs, points, actions)."""


def answers(core: Method, current: Released | None) -> Callable[[np.ndarray], np.ndarray] | None:
    """The function of observations that a callback gets, if anything was released."""
    if current is None:
        return None
    values = jax.vmap(jax.vmap(core.values, in_axes=(None, 0)), in_axes=(0, None))
    return lambda points: np.asarray(values(current, jnp.asarray(points, jnp.float32)))


def columns(gained: list[np.ndarray], over: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """A loop's rewards and ends, one row for all copies in turn if there is one copy, else a row a copy."""
    return np.stack([np.asarray(one) for one in gained], axis=1), np.stack(over, axis=1)


def recent(seen: Any) -> float | None:
    """The mean return of the last episodes, for the log."""
    last = [returns[-1] for returns in episode_returns(seen) if returns]
    return float(np.mean(last)) if last else None


def episode_returns(seen: Any) -> list[list[float]]:
    """The returns of all episodes that ended, one list a row."""
    rows = []
    for rewards, over in zip(*(np.asarray(part) for part in seen), strict=True):
        ends = np.flatnonzero(over) + 1
        total = np.concatenate([[0.0], np.cumsum(rewards.astype(np.float64))])
        rows.append(np.diff(total[np.concatenate([[0], ends])]).tolist())
    return rows
