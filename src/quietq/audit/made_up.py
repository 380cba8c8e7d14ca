"""People who are made up, of every kind of feedback in the registry: what is fitted to their rows can be audited.

They like what lies near one place, so that a model learns something, and there is room for two people more: for one
whose rows an adversary chooses, and for that one once again, if somebody counts them twice.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from quietq.feedback.feedback import Feedback
from quietq.privacy import InvalidInput
from quietq.privacy.checks import count
from quietq.registry import FEEDBACK

Crowd = tuple[Callable[[Any], Feedback], Any]
"""How rows are read, and the rows, as `worst_rows` takes them."""
_ROWS = 5  # of each person


def made_up(kind: str, people: int, dimension: int = 2, seed: int = 0) -> Crowd:
    """All but two of so many people, whose feedback is of this kind."""
    if kind not in MADE_UP:
        raise InvalidInput(f"kind must be one of {', '.join(map(repr, MADE_UP))}, not {kind!r}.")
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


MADE_UP: dict[str, Callable[[int, int, np.random.Generator], Crowd]] = {
    "ratings": _ratings,
    "comparisons": _comparisons,
}


def _reader(kind: str, people: int, dimension: int, **options: Any) -> Callable[[Any], Feedback]:
    return partial(FEEDBACK[kind].load().read, box=[(0.0, 1.0)] * dimension, count=people, **options)


def _liking(states: np.ndarray) -> np.ndarray:
    return np.exp(-3 * ((states - 0.3) ** 2).mean(axis=-1))


def _frame(people: int, names: list[str], states: np.ndarray, **more: np.ndarray) -> Any:
    import polars as pl

    columns = dict(zip(names, states.T, strict=True))
    return pl.DataFrame({"person": np.repeat(np.arange(people - 2), _ROWS), **columns, **more})
