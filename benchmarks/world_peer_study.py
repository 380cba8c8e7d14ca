"""Private worlds of people's sessions, and peers: true return of the plans made in them, epsilon = 1, delta = 1e-5.

Settings of peers were chosen on the development systems (`python -m benchmarks.world_peer_study --minutes 30`), for
each the same: 32 points of its grid at random, and points by hand if there are any, on two systems, the best twelve of
them on four, the best six on all, and the best four of those on a second draw; 16 points around these, likewise; then
the best three of all on a third draw, with 500 people each. Plans are made with less effort than for what is reported.
A score is (return - behaviour)/(twin - behaviour), held to [-1, 1.1], and its mean counts.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks import world_peers, world_picture
from benchmarks.planners import linear_by_cross_entropy
from benchmarks.search import Chosen, Grid, Grids, Kept, Search, Settings
from benchmarks.session_data import Policy, Steps, System
from benchmarks.study import PACKAGE_ROOMS, ROOT, Case, Numbers, Study, fingerprint
from benchmarks.systems import DEVELOPMENT, REPORTED
from quietq.worlds.private_env import HALT

PEOPLE: dict[str, tuple[int, ...]] = {
    "CartPole-v1": (350, 500, 1000),
    "Pendulum-v1": (500, 1000),
    "glucose": (300, 1000),
    "Acrobot-v1": (300, 1000),
    "MountainCarContinuous-v0": (100, 300, 1000),
    "rare harm": (1000, 4000),
}
EPISODES = {"CartPole-v1": 20, "Pendulum-v1": 10, "Acrobot-v1": 20, "MountainCarContinuous-v0": 10}
CHOSEN = Chosen("tune-worlds", ("method",))
TUNED_WITH = 500
"""People of each development system."""
EFFORT = (10, 64, 4)
"""Iterations, candidates and episodes of plans while settings are sought."""
_FIRST = ("heavy pole", "boiler", "spring", "rare find")
SYSTEMS = [*_FIRST, *(name for name in DEVELOPMENT if name not in _FIRST)]
TASKS = [(system, draw) for draw in range(3) for system in SYSTEMS]


@dataclass(frozen=True)
class Method:
    """A way from sessions to a policy, and the grid that its settings are chosen from."""

    fit: Callable[[Steps, Settings, int], Policy]
    grid: Grid
    also_made_of: tuple[str, ...] = ()
    """The benchmarks' modules that its numbers depend on, beside those that all do."""
    by_hand: tuple[Settings, ...] = ()
    """Points that did well while the method was written, on development systems."""

    @property
    def made_of(self) -> tuple[Path, ...]:
        modules = ("session_data", "planners", "world_peers", "world_twin", "systems", *self.also_made_of)
        return tuple(ROOT / "benchmarks" / f"{module}.py" for module in modules)

    @property
    def only(self) -> Settings | None:
        """Its settings, if there is nothing to choose."""
        found = {name: values[0] for name, values in self.grid.items()}
        return found if all(len(values) == 1 for values in self.grid.values()) else None

    @property
    def settings(self) -> Grids:
        choices = ("white", "ensemble", "apart", "straight", "features", "scaling", "members", "optimiser", "widths")
        last = (("halt", None), ("penalty", 0.0))
        shares = ("dynamics", "scales")
        return Grids((self.grid,), (*choices, "averaged"), last, shares=shares, moves=(-1, 0, 0, 0, 1))


def _network(steps: Steps, settings: Settings, seed: int) -> Policy:
    from benchmarks.world_sgd import network  # JAX only where it is needed

    return network(steps, settings, seed)


METHODS: dict[str, Method] = {
    world_picture.OURS: Method(world_peers.quietq, {"halt": (HALT,)}),
    world_picture.TWIN: Method(world_peers.non_private, {"halt": (None,)}),
    "one-shot moments": Method(
        world_peers.one_shot,
        {
            "white": (False, True),
            "ensemble": (False, True),
            "halt": (2.5, 5.0, 10.0, 20.0, 40.0, None),
            "ridge": (0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
            "larger": (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0),
            "steep": (1.0, 3.0, 10.0, 30.0),
            "dynamics": (0.3, 0.5, 0.7, 0.85, 0.95),
        },
    ),
    "DP-SGD, networks": Method(
        _network,
        {
            "scaling": ("public", "spread", "place"),
            "scales": (0.03, 0.1, 0.2, 0.4),
            "features": (False, True),
            "straight": (False, True),
            "widths": ((16,), (32,), (16, 16)),
            "members": (1, 3),
            "apart": (False, True),
            "steps": (12, 25, 50, 100, 200, 400),
            "optimiser": (
                *(("adam", rate) for rate in (0.003, 0.01, 0.03, 0.1)),
                *(("momentum", rate) for rate in (0.01, 0.03, 0.1, 0.3, 1.0)),
            ),
            "clip": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0),
            "averaged": (0.0, 0.3, 0.6),
            "penalty": (0.0, 0.01, 0.03, 0.1, 0.3, 1.0),
        },
        ("world_sgd",),
        (
            {
                "scaling": "place",
                "scales": 0.2,
                "features": True,
                "straight": False,
                "widths": (16, 16),
                "members": 1,
                "apart": True,
                "steps": 400,
                "optimiser": ("momentum", 0.03),
                "clip": 0.1,
                "averaged": 0.6,
                "penalty": 0.1,
            },
        ),
    ),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--system", nargs="+", choices=REPORTED, default=tuple(REPORTED))
    parser.add_argument("--method", nargs="+", choices=METHODS, default=tuple(METHODS))
    parser.add_argument("--most", type=int, default=10_000, help="of people")


def study(options: argparse.Namespace) -> Study:
    """Every method with the settings that were best on the development systems."""
    cases = []
    for name, numbers in PEOPLE.items():
        cases.append(_behaviour(REPORTED[name]))
        for label, method in METHODS.items():
            settings = method.only or CHOSEN.settings(label)
            if settings is None:
                continue
            made_of = method.made_of if label != world_picture.OURS else (*method.made_of, *PACKAGE_ROOMS)
            for people in numbers:
                wanted = label in options.method and name in options.system and people <= options.most
                labels = {"system": name, "method": label, "people": people}
                measure = partial(_measure, method, name, people, settings)
                cases.append(Case(labels, measure, made_of, settings=settings, wanted=wanted))
    remark = (
        "quietq has nothing to set here, but CartPole and Pendulum were in sight when its estimator was made; its twin "
        "has the same features and known parts. Settings of peers were tried on the development systems, with "
        f"{TUNED_WITH} people ({'; '.join(map(_in_words, CHOSEN.rows()))}; 1 is the twin there, and 0 people's own "
        f"behaviour), and the best is used for all numbers (`benchmarks/results/{CHOSEN.file.name}`, "
        "`python -m benchmarks.world_peer_study`). Where it lies at the end of what was tried, a wider search may do "
        "better. One person is replaced, for all of them, and all see the same people. Laws: `benchmarks/systems.py`."
    )
    return Study("world-peers", "people", cases, (remark,))


def _in_words(row: dict[str, Any]) -> str:
    """How many settings of a method were tried, which of the best lie at an end, and what these reached."""
    ends = ", ".join(row["at the end of what was tried"])
    told = f"{row['method']}: {row['trials']} of them, mean of the best {row['means of the best'][0]:.2f}"
    return f"{told}, at the end of what was tried in {ends}" if ends else told


def more_tables(rows: list[dict[str, Any]]) -> dict[str, list[list[str]]]:
    peers = [name for name in METHODS if name not in (world_picture.OURS, world_picture.TWIN)]
    return {
        "What 95 % intervals show: quietq's mean return less that of a peer": world_picture.differences(rows, peers),
        "The fewest people from whom on mean returns are 0.9 of the way from behaviour to the twin": (
            world_picture.cliffs(rows, peers)
        ),
    }


def _behaviour(system: System) -> Case:
    people = PEOPLE[system.name][-1]
    labels = {"system": system.name, "method": world_picture.BEHAVIOUR, "people": people}
    files = (ROOT / "benchmarks" / "systems.py",)
    return Case(labels, lambda draw: {"return": system.value_of_behaviour(draw)}, files)


def _measure(method: Method, name: str, people: int, settings: Settings, draw: int) -> Numbers:
    policy = method.fit(sessions(name, people, draw), settings, draw)
    return {"return": REPORTED[name].value(policy, draw, EPISODES.get(name, 200))}


@lru_cache(maxsize=4)
def sessions(name: str, people: int, draw: int) -> Steps:
    """Every method sees the same people."""
    return REPORTED[name].sessions(people, draw)


@lru_cache(maxsize=64)
def _people_of(name: str, draw: int) -> tuple[Steps, float, float]:
    """Their steps, what they reach themselves, and what a plan without privacy or halts reaches."""
    system = DEVELOPMENT[name]
    steps = system.sessions(TUNED_WITH, draw)
    best = system.value(world_peers.non_private(steps, {"halt": None}, draw), draw)
    return steps, system.value_of_behaviour(), best


def score(method: Method, settings: Settings, system: str, draw: int) -> float:
    steps, behaviour, best = _people_of(system, draw)
    reached = DEVELOPMENT[system].value(method.fit(steps, settings, draw), draw)
    return float(np.clip((reached - behaviour) / (best - behaviour), -1.0, 1.1))


def search(kept: Kept, name: str) -> dict[str, Any]:
    """The best settings of one method, as they are written down."""
    method, every = METHODS[name], len(SYSTEMS)
    found = Search(partial(score, method), TASKS, kept, [name, TUNED_WITH, fingerprint(method.made_of)])
    with patch.object(linear_by_cross_entropy, "__defaults__", EFFORT):
        points = [*method.by_hand, *method.settings.points(32)]
        first = found.best(points, (2, 12), (4, 6), (every, 4), (2 * every, 4))
        around = method.settings.around(first, found.tried, 16)
        second = found.best(around, (2, 8), (4, 4), (every, 3), (2 * every, 3))
        best = found.best([*first, *second], (2 * every, 3), (len(TASKS), 3))
        scores = {one: [found.measured(best[0], task) for task in TASKS if task[0] == one] for one in SYSTEMS}
        means = [found.mean(one, len(TASKS)) for one in best]
    return {
        "method": name,
        "trials": len(found.tried),
        "settings": best[0],
        "at the end of what was tried": method.settings.at_an_end(best[0], found.tried),
        "means of the best": means,
        "systems": {system: float(np.mean(one)) for system, one in scores.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.world_peer_study")
    parser.add_argument("--minutes", type=float, default=30.0, help="what is not done by then is left for later")
    searched = [name for name, method in METHODS.items() if method.only is None]
    parser.add_argument("--method", nargs="+", choices=searched, default=searched)
    options = parser.parse_args()
    kept = Kept(CHOSEN.name, time.monotonic() + 60 * options.minutes)
    CHOSEN.write([(name,) for name in options.method], partial(search, kept))


if __name__ == "__main__":
    main()
