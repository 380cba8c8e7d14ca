"""People who are made up, of every kind of feedback in the registry: what is fitted to their rows can be audited.

They like what lies near one place, or are pushed about, so that a model learns something, and there is room for two
people more: for one whose rows an adversary chooses, and for that one once again, if somebody counts them twice.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from quietq.feedback.feedback import Feedback
from quietq.privacy.checks import count, one_of
from quietq.registry import FEEDBACK

Crowd = tuple[Callable[..., Feedback], Any]
"""How rows are read, and the rows, as `worst_rows` takes them."""
_ROWS = 5  # of each person
_ITEMS = [f"item {i}" for i in range(12)]


def made_up(kind: str, people: int, dimension: int = 2, seed: int = 0) -> Crowd:
    """All but two of so many people, whose feedback is of this kind."""
    one_of("kind", kind, MADE_UP)
    people, dimension = count("people", people, 3), count("dimension", dimension, 2)
    return MADE_UP[kind](people, dimension, np.random.default_rng(count("seed", seed, 0)))


def _ratings(people: int, dimension: int, rng: np.random.Generator) -> Crowd:
    states = rng.random((_ROWS * (people - 2), dimension))
    names = [f"x{i}" for i in range(dimension)]
    rows = _frame(people, names, states, rating=_liking(states))
    return _reader("ratings", people, dimension, state=names, low=0.0, high=1.0), rows


def _comparisons(people: int, dimension: int, rng: np.random.Generator) -> Crowd:
    left, right = rng.random((2, _ROWS * (people - 2), dimension))
    sides = [[f"{side}{i}" for i in range(dimension)] for side in ("left", "right")]
    first = rng.random(len(left)) < expit(8 * (_liking(left) - _liking(right)))
    rows = _frame(people, [*sides[0], *sides[1]], np.hstack([left, right]), choice=np.where(first, "left", "right"))
    return _reader("comparisons", people, dimension, left=sides[0], right=sides[1]), rows


def _items(people: int, dimension: int, rng: np.random.Generator) -> Crowd:
    number = _ROWS * (people - 2)
    rows = _frame(people, [], np.zeros((number, 0)), item=rng.choice(_ITEMS, number), rating=rng.random(number))
    read = FEEDBACK["ratings"].load().read
    return partial(read, state="item", items=_ITEMS, low=0.0, high=1.0, people=people), rows


def _actions(people: int, dimension: int, rng: np.random.Generator) -> Crowd:
    read, rows = _ratings(people, dimension, rng)
    actions = ["stay", "go"]
    rows = rows.hstack([_series("action", rng.choice(actions, len(rows)))])
    return partial(read, action="action", actions=actions), rows


def _options(people: int, dimension: int, rng: np.random.Generator) -> Crowd:
    sides = {name: [f"{name}{i}" for i in range(dimension)] for name in ("train", "car", "bus")}
    states = rng.random((_ROWS * (people - 2), 3 * dimension))
    rows = _frame(
        people,
        [column for columns in sides.values() for column in columns],
        states,
        choice=rng.choice(list(sides), len(states)),
    )
    return _reader("comparisons", people, dimension, options=sides), rows


def _segments(people: int, dimension: int, rng: np.random.Generator) -> Crowd:
    read, rows = _comparisons(people, dimension, rng)
    rows = rows.hstack([_series("pair", rng.integers(0, 2, len(rows)))])
    return partial(read, segment="pair", length=2), rows


def _sessions(people: int, dimension: int, rng: np.random.Generator) -> Crowd:
    """Two visits of each, at which everybody is pushed along the first coordinate, and rests beyond an edge."""
    visits, shape = np.arange(_ROWS) // 3, (people - 2, dimension)
    state, rows = rng.random(shape), []
    for step in range(_ROWS):
        state = np.where(step == 3, rng.random(shape), state)
        push = rng.integers(0, 2, people - 2)
        after = 0.9 * state + 0.05 + rng.normal(0, 0.02, shape)
        after[:, 0] += 0.1 * (2 * push - 1)
        after = np.clip(after, 0.0, 1.0)
        rows.append(np.column_stack([state, after, push, _liking(after), after[:, 0] > 0.9]))
        state = after
    states, nexts = ([f"{name}{i}" for i in range(dimension)] for name in ("x", "next"))
    table = np.stack(rows, axis=1).reshape(-1, 2 * dimension + 3)
    told = {"visit": np.tile(visits, people - 2), "step": np.tile(np.arange(_ROWS), people - 2)}
    names = [*states, *nexts, "push", "reward", "end"]
    read = _reader(
        "sessions", people, dimension, episode="visit", step="step", state=states, next_state=nexts, action="push",
        actions=[0, 1], reward="reward", low=0.0, high=1.0, end="end",
    )  # fmt: skip
    return read, _frame(people, names, table, **told)


MADE_UP: dict[str, Callable[[int, int, np.random.Generator], Crowd]] = {
    "ratings": _ratings,
    "comparisons": _comparisons,
    "sessions": _sessions,
    "ratings of items": _items,
    "ratings per action": _actions,
    "choices among three": _options,
    "comparisons of segments": _segments,
}


def _reader(kind: str, people: int, dimension: int, **options: Any) -> Callable[..., Feedback]:
    return partial(FEEDBACK[kind].load().read, box=[(0.0, 1.0)] * dimension, people=people, **options)


def _liking(states: np.ndarray) -> np.ndarray:
    return np.exp(-3 * ((states - 0.3) ** 2).mean(axis=-1))


def _frame(people: int, names: list[str], states: np.ndarray, **more: np.ndarray) -> Any:
    import polars as pl

    columns = dict(zip(names, states.T, strict=True))
    return pl.DataFrame({"person": np.repeat(np.arange(people - 2), _ROWS), **columns, **more})


def _series(name: str, cells: np.ndarray) -> Any:
    import polars as pl

    return pl.Series(name, cells)
