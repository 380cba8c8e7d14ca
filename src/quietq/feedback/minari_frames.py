"""A Minari data set as rows: a row per step, and one more with the final state at the end of each episode.

Whose an episode is, is said by its metadata, or row by row by its infos. Minari itself is not needed here.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import polars as pl

from quietq.feedback.names import rounded_names
from quietq.feedback.pandas_frame import texts_of
from quietq.privacy.errors import InvalidInput

_EPISODES_AT_ONCE = 1000


def is_minari(source: object) -> bool:
    return hasattr(source, "iterate_episodes") and hasattr(source, "storage")


def columns(dataset: Any, numbers: bool) -> dict[str, Any]:
    """The columns that every such data set has, by the arguments of `Sessions.read`; actions may be numbers."""
    told = {"episode": "episode", "step": "step", "reward": "reward", "end": "terminated", "cut": "truncated"}
    states = [f"observation{i}" for i in range(_size(dataset.observation_space, "observations"))]
    acting = [f"action{i}" for i in range(_size(dataset.action_space, "actions"))] if numbers else "action"
    return {**told, "state": states, "action": acting}


def minari_frames(dataset: Any, person: str) -> Iterator[pl.DataFrame]:
    """All episodes, some at a time."""
    _size(dataset.action_space, "actions")
    metadata = dataset.storage.get_episode_metadata(dataset.episode_indices)
    episodes = zip(dataset.iterate_episodes(), metadata, strict=True)
    while some := list(islice(episodes, _EPISODES_AT_ONCE)):
        yield pl.concat([_rows(episode, more, person) for episode, more in some])


def _rows(episode: Any, metadata: Any, person: str) -> pl.DataFrame:
    steps = len(episode.rewards)
    states = np.asarray(episode.observations, np.float64).reshape(steps + 1, -1)
    actions = np.asarray(episode.actions, np.float64)
    names = {"action": actions} if actions.ndim == 1 else dict(_numbered("action", actions.reshape(steps, -1)))
    told = dict(names, reward=episode.rewards, terminated=episode.terminations, truncated=episode.truncations)
    columns = {name: np.append(np.asarray(column, np.float64), np.nan) for name, column in told.items()}
    columns |= _numbered("observation", states) | {"step": np.arange(steps + 1.0)}
    return pl.DataFrame(columns).with_columns(
        _names(episode, metadata, person, steps + 1).alias(person), pl.lit(int(episode.id), pl.Int64).alias("episode")
    )


def _names(episode: Any, metadata: Any, person: str, rows: int) -> pl.Series:
    infos = episode.infos or {}
    given = np.asarray(infos[person] if person in infos else [metadata.get(person)] * rows)
    if given.dtype.kind == "f":
        raise rounded_names(person, given.dtype)
    if given.size != len(given) or len(given) not in (rows - 1, rows):
        raise InvalidInput(f"infos[{person!r}] of a Minari episode must have one name for each step.")
    values = [one.decode(errors="replace") if isinstance(one, bytes) else one for one in given.reshape(-1).tolist()]
    return texts_of((values + values[-1:] * rows)[:rows])  # infos may have no entry for the final state


def _numbered(name: str, columns: np.ndarray) -> dict[str, np.ndarray]:
    return {f"{name}{i}": column for i, column in enumerate(columns.T)}


def _size(space: Any, what: str) -> int:
    if getattr(space, "shape", None) is None:
        raise InvalidInput(f"The {what} of a Minari data set must be arrays of numbers, not {type(space).__name__}.")
    return int(np.prod(space.shape))
