"""Settings of each way from sessions to a policy, chosen on the development systems by successive halving.

    python -m benchmarks.world_tuning --minutes 30

For each method that has settings, the same: 32 points of its grid at random, and points by hand if there are any, on
two systems, the best twelve of them on four, the best six on all, and the best four of those on a second draw; 16
points around these, likewise; then the best three of all on a third draw, with 500 people each. Plans are made with
less effort than for what is reported. A score is (return - behaviour)/(twin - behaviour), held to [-1, 1.1], and its
mean counts. What was measured is kept, so that a run that was ended goes on later.
"""

import argparse
import json
import time
from functools import lru_cache
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.development_systems import DEVELOPMENT
from benchmarks.planners import linear_by_cross_entropy
from benchmarks.session_data import Steps
from benchmarks.study import RESULTS, ROOT, fingerprint
from benchmarks.world_grids import METHODS
from benchmarks.world_peers import Settings, non_private

PEOPLE = 500
AT_RANDOM, AROUND = 32, 16
EFFORT = (10, 64, 4)
"""Iterations, candidates and episodes of plans."""
FIRST = ("heavy pole", "boiler", "spring", "rare find")
SYSTEMS = [*FIRST, *(name for name in DEVELOPMENT if name not in FIRST)]
ALL = len(SYSTEMS)
TASKS = [(system, draw) for draw in range(3) for system in SYSTEMS]
CHOSEN, KEPT = RESULTS / "tune-worlds.json", ROOT / "runs" / "benchmarks" / "tune-worlds.jsonl"


def chosen(name: str) -> Settings | None:
    """None before settings were searched for."""
    if (only := METHODS[name].only) is not None:
        return only
    rows = json.loads(CHOSEN.read_text())["rows"] if CHOSEN.exists() else []
    found = [row for row in rows if row["method"] == name]
    return _as_on_grid(found[0]["settings"]) if found else None


def tried_in_words() -> str:
    """Of each method how many settings were tried, which of the best lie at an end, and what these reached."""
    rows = json.loads(CHOSEN.read_text())["rows"] if CHOSEN.exists() else []
    return "; ".join(map(_in_words, rows))


def _in_words(row: dict[str, Any]) -> str:
    ends = ", ".join(row["at the end of what was tried"])
    told = f"{row['method']}: {row['trials']} of them, mean of the best {row['means of the best'][0]:.2f}"
    return f"{told}, at the end of what was tried in {ends}" if ends else told


@lru_cache(maxsize=64)
def people_of(name: str, draw: int) -> tuple[Steps, float, float]:
    """Their steps, what they reach themselves, and what a plan without privacy or halts reaches."""
    system = DEVELOPMENT[name]
    steps = system.sessions(PEOPLE, draw)
    best = system.value(non_private(steps, {"halt": None}, draw), draw)
    return steps, system.value_of_behaviour(), best


def score(name: str, settings: Settings, system: str, draw: int) -> float:
    steps, behaviour, best = people_of(system, draw)
    reached = DEVELOPMENT[system].value(METHODS[name].fit(steps, settings, draw), draw)
    return float(np.clip((reached - behaviour) / (best - behaviour), -1.0, 1.1))


class OutOfTime(Exception):
    pass


class Search:
    """For one method's settings."""

    def __init__(self, name: str, known: dict[str, float], until: float, around: int = AROUND) -> None:
        self.name, self.known, self.until, self.around = name, known, until, around
        self.tried: list[Settings] = []
        modules = (*METHODS[name].made_of, "development_systems")
        self.made_of = fingerprint(ROOT / "benchmarks" / f"{module}.py" for module in modules)

    def row(self) -> dict[str, Any]:
        method = METHODS[self.name]
        first = self._best([*method.by_hand, *method.points(AT_RANDOM)], (2, 12), (4, 6), (ALL, 4), (2 * ALL, 4))
        around = method.around(first, self.tried, self.around)
        second = self._best(around, (2, 8), (4, 4), (ALL, 3), (2 * ALL, 3))
        best = self._best([*first, *second], (2 * ALL, 3), (len(TASKS), 3))
        scores: dict[str, list[float]] = {}
        for system, draw in TASKS:
            scores.setdefault(system, []).append(self._measured(best[0], system, draw))
        return {
            "method": self.name, "trials": len(self.tried), "settings": best[0],
            "at the end of what was tried": method.at_an_end(best[0], self.tried),
            "means of the best": [self.mean(one, len(TASKS)) for one in best],
            "systems": {system: float(np.mean(found)) for system, found in scores.items()},
        }  # fmt: skip

    def mean(self, settings: Settings, tasks: int) -> float:
        """Over the first tasks."""
        return float(np.mean([self._measured(settings, *task) for task in TASKS[:tasks]]))

    def _best(self, candidates: list[Settings], *rungs: tuple[int, int]) -> list[Settings]:
        """On each rung so many tasks, by which so many of the candidates go on."""
        self.tried += [one for one in candidates if one not in self.tried]
        for tasks, kept in rungs:
            candidates = sorted(candidates, key=lambda one: -self.mean(one, tasks))[:kept]
            print(f"{self.name}, {tasks} tasks:", *(
                f"\n {self.mean(one, tasks):.3f} {one}" for one in candidates
            ), flush=True)  # fmt: skip
        return candidates

    def _measured(self, settings: Settings, system: str, draw: int) -> float:
        key = json.dumps([self.name, settings, PEOPLE, system, draw, self.made_of])
        if key not in self.known:
            if time.monotonic() > self.until:
                raise OutOfTime
            self.known[key] = score(self.name, settings, system, draw)
            with KEPT.open("a") as file:
                file.write(json.dumps([key, self.known[key]]) + "\n")
        return self.known[key]


def _as_on_grid(settings: Settings) -> Settings:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.world_tuning")
    parser.add_argument("--minutes", type=float, default=30.0, help="what is not done by then is left for later")
    searched = [name for name, method in METHODS.items() if method.only is None]
    parser.add_argument("--method", nargs="+", choices=searched, default=searched)
    parser.add_argument("--around", type=int, default=AROUND, help="how many points around the best are tried")
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.minutes
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    known = dict(json.loads(line) for line in KEPT.read_text().splitlines()) if KEPT.exists() else {}
    for name in options.method:
        try:
            with patch.object(linear_by_cross_entropy, "__defaults__", EFFORT):
                found = Search(name, known, until, options.around).row()
        except OutOfTime:
            print("Out of time: the same command goes on from here.")
            break
        rows = json.loads(CHOSEN.read_text())["rows"] if CHOSEN.exists() else []
        rows = [row for row in rows if row["method"] != name] + [found]
        rows.sort(key=lambda row: searched.index(row["method"]))
        CHOSEN.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
