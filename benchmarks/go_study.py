"""A private go or no-go near each cliff: does it tell plans that are good from those that are not? delta = 1e-5."""

import argparse
import math
from collections.abc import Callable
from functools import partial

import numpy as np

import quietq as qq
from benchmarks.development_systems import DEVELOPMENT
from benchmarks.session_data import System
from benchmarks.study import ROOT, Case, Draws, Numbers, Study
from benchmarks.systems import REPORTED
from benchmarks.world_tasks import CARTPOLE
from benchmarks.world_twin import twin
from quietq.mechanisms.private_world import PrivateWorld
from quietq.worlds.cross_entropy import LinearPolicy, plan_linear

NAME = "go"
SYSTEMS: dict[str, System] = DEVELOPMENT | REPORTED
PEOPLE = {
    "random linear 0": 150, "heavy pole": 280, "tanks": 300, "spring": 150, "bowl": 180, "boiler": 300,
    "rare find": 3000, "CartPole-v1": 350, "glucose": 600, "MountainCarContinuous-v0": 80, "rare harm": 4000,
}  # fmt: skip
"""About where half of the plans are good."""
WHOLE, CHECK, DELTA = qq.Budget(1, 1e-5), 0.1, 1e-5
"""Of mu squared, a tenth goes into the check."""
GOOD = 0.1
"""A plan is good if it is not worse than the twin's by more than this part of it."""
EPISODES = 100
MADE_OF = (
    *(ROOT / "src" / "quietq" / room for room in ("privacy", "noise", "feedback", "mechanisms")),
    *(
        ROOT / "src" / "quietq" / "worlds" / f"{name}.py"
        for name in ("private_world", "cross_entropy", "own_worlds", "check_plan")
    ),
    *(ROOT / "benchmarks" / f"{name}.py" for name in ("development_systems", "session_data", "systems", "world_tasks")),
)  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--system", nargs="+", choices=PEOPLE, default=tuple(PEOPLE))
    parser.add_argument("--people", type=int, help="instead of those near the cliff, for one system")


def study(options: argparse.Namespace) -> Study:
    cases = []
    for name, people in PEOPLE.items():
        wanted, people = name in options.system, options.people or people
        labels = {"system": name, "kind": "development" if name in DEVELOPMENT else "reported", "people": people}
        measure = _cartpole if name == "CartPole-v1" else partial(_measure, SYSTEMS[name])
        cases.append(Case(labels, partial(measure, people), MADE_OF, wanted=wanted))
    remarks = (
        "'area' is that under the curve of the check's answer for 'the plan is good': its true return is at least 0.9 "
        "of the twin's (1.1, below 0). A tenth of the budget's square goes into the check, the rest into the world. "
        "What the check takes for plausible was chosen on the development systems alone.",
    )
    return Study(NAME, "people", cases, remarks, compare=_areas)


def _areas(found: list[Draws]) -> list[Draws]:
    """Of each good plan, how many of the others it stands above: their mean is the area under the curve."""
    return [{draw: one | _area(one, draws) for draw, one in draws.items()} for draws in found]


def _area(one: Numbers, draws: Draws) -> Numbers:
    others = [other["expected"] for other in draws.values() if not other["good"]]
    if not one["good"] or not others:
        return {}
    return {"area": float(np.mean([(one["expected"] > other) + (one["expected"] == other) / 2 for other in others]))}


def _measure(system: System, people: int, draw: int) -> Numbers:
    steps, horizon = system.sessions(people, 500 + draw), system.planning or system.steps
    plan = partial(plan_linear, steps=horizon, seed=draw)
    return _checked(
        steps.read(), system.model, plan, horizon, lambda policy: system.value(policy, draw, EPISODES), draw,
        system.value(plan(twin(steps)), draw, EPISODES),
    )  # fmt: skip


def _cartpole(people: int, draw: int) -> Numbers:
    """The twin is known to balance for all of the 500 steps."""
    sessions = CARTPOLE.read(CARTPOLE.collect(people, 500 + draw), people)
    plan = partial(plan_linear, steps=500, seed=draw)
    return _checked(sessions, None, plan, 500, lambda policy: CARTPOLE.play(policy, 20, draw), draw, 500.0)


def _checked(
    sessions: qq.Sessions, model: qq.WorldModel | None, plan: Callable[[PrivateWorld], LinearPolicy], steps: int,
    value: Callable[[LinearPolicy], float], draw: int, best: float,
) -> Numbers:  # fmt: skip
    budgets = [qq.Budget.from_mu(WHOLE.mu * math.sqrt(share), DELTA) for share in (1 - CHECK, CHECK)]
    world = qq.privatise(sessions, budgets[0], world=model, simulate=draw)
    policy = plan(world)
    check = qq.check_plan(world, sessions, policy, budgets[1], steps=steps, simulate=draw)
    reached = value(policy)
    return {"good": float(reached >= best - GOOD * abs(best)), "return": reached, "twin": best,
            "expected": check.expected, "promised": check.promised, "noise": check.error}  # fmt: skip
