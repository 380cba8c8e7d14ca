"""A private go or no-go near each cliff: does it tell plans that are good from those that are not? delta = 1e-5."""

from functools import lru_cache, partial

import numpy as np

import quietq as qq
from benchmarks.study import PACKAGE_ROOMS, ROOT, Case, Draws, Numbers, Study, own_files
from benchmarks.systems import DEVELOPMENT, REPORTED, System
from benchmarks.world_twin import twin
from quietq.worlds.planning import plan_linear

SYSTEMS: dict[str, System] = DEVELOPMENT | REPORTED
PEOPLE = {
    "random linear 0": 150,
    "tanks": 300,
    "spring": 150,
    "bowl": 180,
    "boiler": 300,
    "rare find": 3000,
    "CartPole-v1": 350,
    "glucose": 500,
    "MountainCarContinuous-v0": 180,
    "rare harm": 4000,
}
"""About where half of the plans are good."""
GO = 0.3
"""The share of people from which on it counts as a go: chosen on the development systems."""
PART = 0.9
"""A plan is good if it is worth this part of what twins are, on average."""
MADE_OF = (*PACKAGE_ROOMS, ROOT / "src" / "quietq" / "worlds", *own_files("systems", "world_twin", "go"))


def study() -> Study:
    cases = []
    for name, people in PEOPLE.items():
        labels = {"system": name, "kind": "development" if name in DEVELOPMENT else "reported", "people": people}
        cases.append(Case(labels, partial(_measure, SYSTEMS[name], people), MADE_OF))
    remarks = (
        "'good' is the part of plans whose true return is at least 0.9 of the twin's (1.1, below 0), which is what is "
        "wanted; 'area' that under the curve of the check's answer, 'share', for good plans against others; 'right' "
        "how often `go` is. A tenth of mu squared goes into the check, the rest into the world. What the check "
        "is made of was chosen on the development systems, but early forms of it had been tried on the reported ones "
        "too (4 to 10 draws each, some of them among these).",
    )
    return Study("go", "people", cases, remarks, compare=_areas)


def _areas(found: list[Draws]) -> list[Draws]:
    """Of each good plan, how many of the others it stands above: their mean is the area under the curve."""
    return [{draw: one | _area(one, draws) for draw, one in draws.items()} for draws in found]


def _area(one: Numbers, draws: Draws) -> Numbers:
    others = [other["share"] for other in draws.values() if not other["good"]]
    if not one["good"] or not others:
        return {}
    return {"area": float(np.mean([(one["share"] > other) + (one["share"] == other) / 2 for other in others]))}


def _measure(system: System, people: int, draw: int) -> Numbers:
    """Whether the check of a plan is right; CartPole's twin is known to balance for all of its steps."""
    cartpole = system.name == "CartPole-v1"
    steps = system.steps if cartpole else system.planning or system.steps
    wanted = PART * system.steps if cartpole else wanted_of(system.name, people)
    sessions = system.sessions(people, 500 + draw).read()
    of_world, of_check = qq.Budget(1, 1e-5).split(0.9, 0.1)
    world = qq.privatise(sessions, of_world, world=system.model, simulate=draw)
    policy = plan_linear(world, steps=steps, seed=draw)
    check = qq.check_plan(world, sessions, policy, wanted, of_check, steps=steps, go=GO, simulate=draw)
    good = system.value(policy, draw, _episodes(system)) >= wanted
    return {"good": float(good), "share": check.share, "right": float(check.go == good), "noise": check.error}


@lru_cache
def wanted_of(name: str, people: int) -> float:
    """Nine tenths of what five twins reach, of other people."""
    system, found = SYSTEMS[name], []
    for draw in range(1000, 1005):
        policy = plan_linear(twin(system.sessions(people, draw)), steps=system.planning or system.steps, seed=draw)
        found.append(system.value(policy, draw, _episodes(system)))
    return float(np.mean(found) - (1 - PART) * abs(np.mean(found)))


def _episodes(system: System) -> int:
    return 20 if system.in_gymnasium else 1000
