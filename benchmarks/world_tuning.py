"""Settings of each way from sessions to a policy, tried on the development systems: return over the twin's."""

import argparse
import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.development_systems import DEVELOPMENT
from benchmarks.session_data import Steps
from benchmarks.study import RESULTS, ROOT, Case, Numbers, Study
from benchmarks.world_grids import METHODS
from benchmarks.world_peers import Settings, non_private

NAME, PEOPLE, TRIALS = "tune-worlds", 500, 4
MADE_OF = tuple(
    ROOT / "benchmarks" / f"{name}.py"
    for name in ("development_systems", "session_data", "planners", "world_peers", "world_sgd", "world_twin")
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--method", nargs="+", choices=METHODS, default=tuple(METHODS))


def study(options: argparse.Namespace) -> Study:
    """One draw of each system for each trial."""
    cases = [
        Case({"method": name, "trial": trial}, _measure(name, settings), MADE_OF, settings=settings,
             wanted=name in options.method)
        for name, method in METHODS.items()
        if len(method.trials(2)) > 1
        for trial, settings in enumerate(method.trials(TRIALS))
    ]  # fmt: skip
    return Study(NAME, "trial", cases)


def _measure(name: str, settings: Settings) -> Callable[[int], Numbers]:
    def measure(draw: int) -> Numbers:
        found = {}
        for system in DEVELOPMENT.values():
            steps, behaviour, best = people_of(system.name, draw)
            reached = system.value(METHODS[name].fit(steps, settings, draw), draw)
            found[system.name] = (reached - behaviour) / (best - behaviour)
        return {"mean": float(np.mean(list(found.values()))), **found}

    return measure


@lru_cache(maxsize=16)
def people_of(name: str, draw: int) -> tuple[Steps, float, float]:
    """Their steps, what they reach themselves, and what a plan without privacy or halts reaches."""
    system = DEVELOPMENT[name]
    steps = system.sessions(PEOPLE, draw)
    best = system.value(non_private(steps, {"halt": None}, draw), draw)
    return steps, system.value_of_behaviour(), best


def chosen(name: str) -> Settings | None:
    """The best of all trials, if there is a choice; None before every one was made."""
    if len(trials := METHODS[name].trials(TRIALS)) == 1:
        return trials[0]
    file = RESULTS / f"{NAME}.json"
    rows: list[dict[str, Any]] = json.loads(file.read_text())["rows"] if file.exists() else []
    mine = [row for row in rows if row["method"] == name]
    if len(mine) < len(trials):
        return None
    return max(mine, key=lambda row: row["numbers"]["mean"]["mean"])["settings"]
