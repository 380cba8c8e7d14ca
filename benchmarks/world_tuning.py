"""Settings of each way from sessions to a policy, chosen on the development systems by successive halving.

    python -m benchmarks.world_tuning --minutes 30

For each method that has settings, the same: 32 points of its grid at random on four systems, the best eight of them on
all, and the best four of those on a second draw; 8 points around these; then the best three of all are compared with
more people. A score is (return - behaviour)/(twin - behaviour), held to [-1, 1.1], and its mean counts. What was
measured is kept, so that a run that was ended goes on later.
"""

import argparse
import json
import time
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.development_systems import DEVELOPMENT
from benchmarks.session_data import Steps
from benchmarks.study import RESULTS, ROOT, fingerprint
from benchmarks.world_grids import METHODS
from benchmarks.world_peers import Settings, non_private

FEW, MANY, LIMIT = 500, 1500, 800
"""Settings are chosen for the first number of people, and are used below the limit; the second is for more."""
AT_RANDOM, AROUND = 32, 8
FIRST = ("heavy pole", "spring", "boiler", "rare find")
SYSTEMS = sorted(DEVELOPMENT, key=lambda name: name not in FIRST)
TASKS = [(system, draw) for draw in range(2) for system in SYSTEMS]
ALL = len(SYSTEMS)
CHOSEN, KEPT = RESULTS / "tune-worlds.json", ROOT / "runs" / "benchmarks" / "tune-worlds.jsonl"


def chosen(name: str, people: int) -> Settings | None:
    """The settings for so many people; None before they were searched for."""
    if (only := METHODS[name].only) is not None:
        return only
    rows = json.loads(CHOSEN.read_text())["rows"] if CHOSEN.exists() else []
    wanted = FEW if people < LIMIT else MANY
    found = [row for row in rows if (row["method"], row["people"]) == (name, wanted)]
    return _as_on_grid(found[0]["settings"]) if found else None


@lru_cache(maxsize=64)
def people_of(name: str, people: int, draw: int) -> tuple[Steps, float, float]:
    """Their steps, what they reach themselves, and what a plan without privacy or halts reaches."""
    system = DEVELOPMENT[name]
    steps = system.sessions(people, draw)
    best = system.value(non_private(steps, {"halt": None}, draw), draw)
    return steps, system.value_of_behaviour(), best


def score(name: str, settings: Settings, people: int, system: str, draw: int) -> float:
    steps, behaviour, best = people_of(system, people, draw)
    reached = DEVELOPMENT[system].value(METHODS[name].fit(steps, settings, draw), draw)
    return float(np.clip((reached - behaviour) / (best - behaviour), -1.0, 1.1))


class OutOfTime(Exception):
    pass


class Search:
    """For one method's settings."""

    def __init__(self, name: str, known: dict[str, float], until: float) -> None:
        self.name, self.known, self.until = name, known, until
        self.tried: list[Settings] = []
        modules = (*METHODS[name].made_of, "development_systems")
        self.made_of = fingerprint(ROOT / "benchmarks" / f"{module}.py" for module in modules)

    def rows(self) -> list[dict[str, Any]]:
        """What was chosen for few and for many people."""
        method = METHODS[self.name]
        first = self._best(method.points(AT_RANDOM), (len(FIRST), 8), (ALL, 4), (2 * ALL, 4))
        second = self._best(method.around(first, self.tried, AROUND), (ALL, 3), (2 * ALL, 3))
        final = self._best([*first, *second], (2 * ALL, 3))
        return [self._row(final, FEW, 2 * ALL), self._row(self._best(final, (ALL, 3), people=MANY), MANY, ALL)]

    def _row(self, best: list[Settings], people: int, tasks: int) -> dict[str, Any]:
        return {
            "method": self.name, "people": people, "trials": len(self.tried), "draws": tasks // ALL,
            "settings": best[0], "at the end of what was tried": METHODS[self.name].at_an_end(best[0], self.tried),
            "mean": self.mean(best[0], people, tasks), "second best": self.mean(best[1], people, tasks),
            "systems": {
                name: float(np.mean([self._measured(best[0], people, name, draw) for draw in range(tasks // ALL)]))
                for name in SYSTEMS
            },
        }  # fmt: skip

    def mean(self, settings: Settings, people: int, tasks: int) -> float:
        """Over the first tasks."""
        return float(np.mean([self._measured(settings, people, *task) for task in TASKS[:tasks]]))

    def _best(self, candidates: list[Settings], *rungs: tuple[int, int], people: int = FEW) -> list[Settings]:
        """On each rung so many tasks, by which so many of the candidates go on."""
        self.tried += [one for one in candidates if one not in self.tried]
        for tasks, kept in rungs:
            candidates = sorted(candidates, key=lambda one: -self.mean(one, people, tasks))[:kept]
            print(f"{self.name}, {people} people, {tasks} tasks:", *(
                f"\n {self.mean(one, people, tasks):.3f} {one}" for one in candidates
            ), flush=True)  # fmt: skip
        return candidates

    def _measured(self, settings: Settings, people: int, system: str, draw: int) -> float:
        key = json.dumps([self.name, settings, people, system, draw, self.made_of])
        if key not in self.known:
            if time.monotonic() > self.until:
                raise OutOfTime
            self.known[key] = score(self.name, settings, people, system, draw)
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
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.minutes
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    known = dict(json.loads(line) for line in KEPT.read_text().splitlines()) if KEPT.exists() else {}
    for name in options.method:
        try:
            found = Search(name, known, until).rows()
        except OutOfTime:
            print("Out of time: the same command goes on from here.")
            break
        rows = json.loads(CHOSEN.read_text())["rows"] if CHOSEN.exists() else []
        rows = [row for row in rows if row["method"] != name] + found
        rows.sort(key=lambda row: (searched.index(row["method"]), row["people"]))
        CHOSEN.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
