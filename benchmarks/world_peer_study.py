"""Private worlds of people's sessions, and peers: true return of the plans made in them, epsilon = 1, delta = 1e-5."""

import argparse
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from benchmarks import world_picture, world_tuning
from benchmarks.gym_systems import GYM
from benchmarks.session_data import Steps, System
from benchmarks.study import ROOT, Case, Numbers, Study
from benchmarks.systems import REPORTED
from benchmarks.world_grids import METHODS
from benchmarks.world_peers import Settings

NAME = "world-peers"
PEOPLE: dict[str, tuple[int, ...]] = {
    "CartPole-v1": (350, 500, 1000),
    "Pendulum-v1": (500, 1000),
    "glucose": (300, 1000),
    "recommender": (1000, 5000),
    "Acrobot-v1": (300, 1000),
    "MountainCarContinuous-v0": (100, 300, 1000),
    "rare harm": (1000, 4000),
}
SYSTEMS = GYM | REPORTED
EPISODES = {"CartPole-v1": 20, "Pendulum-v1": 10, "Acrobot-v1": 20, "MountainCarContinuous-v0": 10, "recommender": 50}
ROOMS = tuple(ROOT / "src" / "quietq" / room for room in ("privacy", "noise", "feedback", "mechanisms", "worlds"))


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--system", nargs="+", choices=SYSTEMS, default=tuple(SYSTEMS))
    parser.add_argument("--method", nargs="+", choices=METHODS, default=tuple(METHODS))
    parser.add_argument("--most", type=int, default=10_000, help="of people")


def study(options: argparse.Namespace) -> Study:
    """Every method with the settings that were best on the development systems."""
    tuned, cases = {method: world_tuning.chosen(method) for method in METHODS}, []
    for name, numbers in PEOPLE.items():
        system = SYSTEMS[name]
        cases.append(_behaviour(system))
        for method, people in [(method, people) for method in tuned for people in numbers]:
            if (settings := tuned[method]) is None:
                continue
            wanted = method in options.method and name in options.system and people <= options.most
            labels = {"system": name, "method": method, "people": people}
            made_of = _made_of(method)
            cases.append(
                Case(labels, _measure(method, system, people, settings), made_of, settings=settings, wanted=wanted)
            )
    remark = (
        "quietq has nothing to set here, but CartPole and Pendulum were in sight when its estimator was made; its twin "
        "has the same features and known parts. Settings of peers were tried on the development systems, with "
        f"{world_tuning.PEOPLE} people ({world_tuning.tried_in_words()}; 1 is the twin there, and 0 people's own "
        "behaviour), and the best is used for all numbers (`benchmarks/results/tune-worlds.json`, "
        "`python -m benchmarks.world_tuning`). Where it lies at the end of what was tried, a wider search may do "
        "better. One person is replaced, for all of them, and all see the same people. Laws: `benchmarks/systems.py` "
        "and `benchmarks/gym_systems.py`."
    )
    return Study(NAME, "people", cases, (remark,))


def more_tables(rows: list[dict[str, Any]]) -> dict[str, list[list[str]]]:
    return {
        "What 95 % intervals show: quietq's mean return less that of a peer": world_picture.differences(rows),
        "The fewest people from whom on mean returns are 0.9 of the way from behaviour to the twin": (
            world_picture.cliffs(rows)
        ),
    }


def _made_of(method: str) -> tuple[Any, ...]:
    modules = (*METHODS[method].made_of, "systems", "gym_systems")
    files = tuple(ROOT / "benchmarks" / f"{module}.py" for module in modules)
    return (*files, *ROOMS) if method.startswith("quietq") else files


def _behaviour(system: System) -> Case:
    people = PEOPLE[system.name][-1]
    labels = {"system": system.name, "method": world_picture.BEHAVIOUR, "people": people}
    files = tuple(ROOT / "benchmarks" / f"{module}.py" for module in ("systems", "gym_systems"))
    return Case(labels, lambda draw: {"return": system.value_of_behaviour(draw)}, files)


def _measure(name: str, system: System, people: int, settings: Settings) -> Callable[[int], Numbers]:
    def measure(draw: int) -> Numbers:
        policy = METHODS[name].fit(sessions(system.name, people, draw), settings, draw)
        return {"return": system.value(policy, draw, EPISODES.get(system.name, 200))}

    return measure


@lru_cache(maxsize=4)
def sessions(name: str, people: int, draw: int) -> Steps:
    """Every method sees the same people."""
    return SYSTEMS[name].sessions(people, draw)
