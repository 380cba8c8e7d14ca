"""Private worlds of people's sessions, and peers: true return of the plans made in them, epsilon = 1, delta = 1e-5."""

import argparse
from collections.abc import Callable
from functools import lru_cache

from benchmarks import world_tuning
from benchmarks.session_data import Steps, System
from benchmarks.study import ROOT, Case, Numbers, Study
from benchmarks.systems import REPORTED
from benchmarks.world_grids import METHODS
from benchmarks.world_peers import Settings

NAME = "world-peers"
PEOPLE: dict[str, tuple[int, ...]] = {
    "glucose": (300, 1000),
    "recommender": (1000, 5000),
    "Acrobot-v1": (1000, 4000),
    "MountainCarContinuous-v0": (100, 300, 1000),
    "rare harm": (1000, 4000),
}
EPISODES = {"Acrobot-v1": 20, "MountainCarContinuous-v0": 10, "recommender": 50}
ROOMS = tuple(ROOT / "src" / "quietq" / room for room in ("privacy", "noise", "feedback", "mechanisms", "worlds"))
MADE_OF = (*world_tuning.MADE_OF, ROOT / "benchmarks" / "systems.py")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--system", nargs="+", choices=REPORTED, default=tuple(REPORTED))
    parser.add_argument("--method", nargs="+", choices=METHODS, default=tuple(METHODS))
    parser.add_argument("--most", type=int, default=10_000, help="of people")


def study(options: argparse.Namespace) -> Study:
    """Every method with the settings that were best on the development systems."""
    tuned = {name: world_tuning.chosen(name) for name in METHODS}
    chosen = {name: settings for name, settings in tuned.items() if settings is not None}
    cases = []
    for system in REPORTED.values():
        cases.append(_behaviour(system))
        for name, settings in chosen.items():
            for people in PEOPLE[system.name]:
                wanted = name in options.method and system.name in options.system and people <= options.most
                labels = {"system": system.name, "method": name, "people": people}
                made_of = (*MADE_OF, *ROOMS) if name.startswith("quietq") else MADE_OF
                cases.append(
                    Case(labels, _measure(name, system, people, settings), made_of, settings=settings, wanted=wanted)
                )
    remark = (
        "quietq has nothing to set; its twin has the same features and known "
        f"parts. Peers have the best of {world_tuning.TRIALS} trials on the development systems. One "
        "person is replaced, for all of them. Laws: `benchmarks/systems.py`."
    )
    return Study(NAME, "people", cases, (remark,))


def _behaviour(system: System) -> Case:
    people = PEOPLE[system.name][-1]
    labels = {"system": system.name, "method": "people's own behaviour", "people": people}
    return Case(labels, lambda draw: {"return": system.value_of_behaviour(draw)}, MADE_OF)


def _measure(name: str, system: System, people: int, settings: Settings) -> Callable[[int], Numbers]:
    def measure(draw: int) -> Numbers:
        policy = METHODS[name].fit(sessions(system.name, people, draw), settings, draw)
        return {"return": system.value(policy, draw, EPISODES.get(system.name, 200))}

    return measure


@lru_cache(maxsize=4)
def sessions(name: str, people: int, draw: int) -> Steps:
    """Every method sees the same people."""
    return REPORTED[name].sessions(people, draw)
