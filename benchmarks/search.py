"""A search for the settings of a method, on tasks that nothing is reported of: points of grids by successive halving.

Points of wide grids are tried at random on a few tasks, the best of them on more, and so on; then points around the
best. What was measured is kept in runs/, so that a search that was ended goes on later; what was chosen is written to
benchmarks/results/ as it is found.
"""

import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.study import RESULTS, ROOT

Settings = dict[str, Any]
Grid = dict[str, tuple[Any, ...]]
Row = dict[str, Any]


@dataclass(frozen=True)
class Grids:
    """Where settings are sought: the values of each, in one grid or in several that have different settings."""

    grids: tuple[Grid, ...]
    unordered: tuple[str, ...] = ()
    """Settings whose grid holds all there is, or that are in no order."""
    last: tuple[tuple[str, Any], ...] = ()
    """Values beyond which there is nothing."""
    most: dict[str, float] = field(default_factory=dict)
    """The largest value of a setting."""
    shares: tuple[str, ...] = ()
    """Settings that stay below 1."""
    moves: tuple[int, ...] = (-1, 0, 0, 1)
    """By how many places a setting moves, each as likely."""

    def points(self, number: int) -> list[Settings]:
        """Different points, as many of each grid, at random; for the same grid always the same."""
        found: list[Settings] = []
        for grid in self.grids:
            sizes = [len(values) for values in grid.values()]
            numbers = np.random.default_rng(20).choice(math.prod(sizes), number // len(self.grids), False)
            places = zip(*np.unravel_index(numbers, sizes), strict=True)
            found += [{name: grid[name][i] for name, i in zip(grid, place, strict=True)} for place in places]
        return found

    def around(self, best: Sequence[Settings], tried: list[Settings], number: int) -> list[Settings]:
        """New points around the best ones: each setting stays or moves by a place, beyond the end of its grid too."""
        rng, found = np.random.default_rng(len(tried)), []
        for attempt in range(100 * number):
            if len(found) == number:
                break
            settings = best[attempt % len(best)]
            grid = next(grid for grid in self.grids if grid.keys() == settings.keys())
            near = {
                name: self._moved(name, value, grid[name], rng.choice(self.moves)) for name, value in settings.items()
            }
            if near not in [*tried, *found]:
                found.append(near)
        return found

    def at_an_end(self, settings: Settings, tried: list[Settings]) -> list[str]:
        """Which settings are the least or the most that was tried, where there could be more."""
        like = [one for one in tried if one.keys() == settings.keys()]
        names = [name for name in settings if name not in self.unordered and (name, settings[name]) not in self.last]
        values = {name: [math.inf if one[name] is None else one[name] for one in like] for name in names}
        return [name for name in names if settings[name] in (min(values[name]), max(values[name]))]

    def _moved(self, name: str, value: Any, grid: tuple[Any, ...], move: int) -> Any:
        """One place on, or where there is none, by the last ratio once more; shares near 1 by that of what is left."""
        place = grid.index(value) + move if value in grid else -1
        if move == 0 or 0 <= place < len(grid):
            return grid[place] if move else value
        if name in self.unordered or (move > 0 and (name, value) in self.last):
            return value
        if name in self.shares and move > 0:
            return float(f"{1 - (1 - value) * (1 - grid[-1]) / (1 - grid[-2]):.3g}")
        further = value * (grid[-1] / grid[-2] if move > 0 else grid[0] / grid[1])
        further = min(further, self.most.get(name, math.inf))
        return max(1, round(further)) if isinstance(value, int) else float(f"{further:.1g}")


class OutOfTime(Exception):
    pass


class Kept:
    """Scores that were measured, in runs/ under a name; nothing more is measured after `until`."""

    def __init__(self, name: str, until: float) -> None:
        self.file, self.until = ROOT / "runs" / "benchmarks" / f"{name}.jsonl", until
        self.file.parent.mkdir(parents=True, exist_ok=True)
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        self.known: dict[str, float] = dict(json.loads(line) for line in lines)

    def score(self, key: list[Any], measure: Callable[[], float]) -> float:
        named = json.dumps(key)
        if named not in self.known:
            if time.monotonic() > self.until:
                raise OutOfTime
            self.known[named] = measure()
            with self.file.open("a") as file:
                file.write(json.dumps([named, self.known[named]]) + "\n")
        return self.known[named]


@dataclass
class Search:
    """For the settings of one method that have the largest mean score over tasks."""

    score: Callable[..., float]
    """Of settings and what a task is called with."""
    tasks: Sequence[tuple[Any, ...]]
    kept: Kept
    key: list[Any]
    """What else scores depend on, with the code that they are made of."""
    tried: list[Settings] = field(default_factory=list)

    def mean(self, settings: Settings, tasks: int) -> float:
        """Over the first tasks."""
        return float(np.mean([self.measured(settings, task) for task in self.tasks[:tasks]]))

    def measured(self, settings: Settings, task: tuple[Any, ...]) -> float:
        return self.kept.score([*self.key, settings, *task], lambda: self.score(settings, *task))

    def best(self, candidates: Iterable[Settings], *rungs: tuple[int, int], least: int = 0) -> list[Settings]:
        """On each rung so many tasks, by which so many candidates go on; the next best follow if they are too few."""
        candidates, behind = list(candidates), list[Settings]()
        self.tried += [one for one in candidates if one not in self.tried]
        for tasks, number in rungs:
            candidates = sorted(candidates, key=lambda one: -self.mean(one, tasks))
            candidates, behind = candidates[:number], [*candidates[number:], *behind]
        return [*candidates, *behind][: max(least, rungs[-1][1])]


@dataclass(frozen=True)
class Chosen:
    """The file of what was chosen, a row for each search."""

    name: str
    labels: tuple[str, ...]
    """The columns by which a search is known."""

    @property
    def file(self) -> Path:
        return RESULTS / f"{self.name}.json"

    def rows(self) -> list[Row]:
        return json.loads(self.file.read_text())["rows"] if self.file.exists() else []

    def settings(self, *values: Any) -> Settings | None:
        """What was found to be best, with lists as the tuples that grids have; None if it was not searched for yet."""
        found = next((row["settings"] for row in self.rows() if self._labels(row) == values), None)
        if found is None:
            return None
        return {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}

    def write(self, searches: Iterable[tuple[Any, ...]], find: Callable[..., Row]) -> None:
        """Searches one after the other, until time is out; each row takes the place of the one that was there."""
        for values in searches:
            try:
                row = find(*values)
            except OutOfTime:
                print("Out of time: the same command goes on from here.")
                break
            others = [one for one in self.rows() if self._labels(one) != values]
            self.file.write_text(json.dumps({"rows": [*others, row]}, indent=1) + "\n")
            print(json.dumps(row), flush=True)

    def _labels(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[label] for label in self.labels)
