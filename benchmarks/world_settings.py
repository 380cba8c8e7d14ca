"""Constants of private worlds, each changed alone, on the development systems: the way from behaviour to the twin."""

import argparse
from collections.abc import Callable
from contextlib import nullcontext
from functools import lru_cache
from typing import Any
from unittest.mock import patch

import numpy as np

import quietq as qq
from benchmarks.development_systems import DEVELOPMENT
from benchmarks.planners import Released, plan
from benchmarks.session_data import Steps
from benchmarks.study import ROOT, Case, Numbers, Study
from benchmarks.world_peers import BUDGET, non_private
from quietq.mechanisms import moments, whitening

NAME = "world-settings"
PEOPLE = {
    "random linear 0": 200, "heavy pole": 280, "tanks": 300, "spring": 150, "bowl": 200, "boiler": 300,
    "rare find": 3000,
}  # fmt: skip
"""About as many as each system needs at least, so that settings matter."""
MADE_OF = (
    *(ROOT / "src" / "quietq" / room for room in ("privacy", "noise", "feedback", "mechanisms")),
    *(ROOT / "src" / "quietq" / "worlds" / f"{name}.py" for name in ("private_world",)),
    *(ROOT / "benchmarks" / f"{name}.py" for name in ("development_systems", "session_data", "planners", "world_twin")),
)
_SHARES = moments.SHARES


def _shares(**others: float) -> dict[str, float]:
    """What others leave goes to the dynamics."""
    found = _SHARES | others
    return found | {"dynamics": 1 - sum(found.values()) + found["dynamics"]}


CONSTANTS: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "looks at the dynamics": (moments, "ROUNDS", {"12": 12, "48": 48}),
    "floor": (whitening, "FLOOR", {"0.25": 0.25, "1": 1.0}),
    "steeper ends": (moments, "STEEPER", {"1.5": 1.5, "6": 6.0}),
    "shares": (
        moments, "SHARES",
        {
            "rewards 0.2": _shares(reward=0.2), "ends 0.2": _shares(end=0.2), "starts 0.1": _shares(start=0.1),
            "rewards 0.2, ends 0.2": _shares(reward=0.2, end=0.2),
        },
    ),
}  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--constant", nargs="+", choices=(*CONSTANTS, *PLANS), default=(*CONSTANTS, *PLANS))


PLANS: dict[str, dict[str, dict[str, Any]]] = {
    "as they are": {"": {}},
    "halt": {"5": {"halt": 5.0}, "20": {"halt": 20.0}, "none": {"halt": None}},
    "plausible worlds": {"none": {"ensemble": False}},
}


def study(options: argparse.Namespace) -> Study:
    cases = [
        Case({"constant": name, "value": label}, _measure(how=how), MADE_OF, wanted=name in options.constant)
        for name, values in PLANS.items()
        for label, how in values.items()
    ]
    for name, (module, constant, values) in CONSTANTS.items():
        for label, value in values.items():
            measure = _measure((module, constant, value))
            cases.append(Case({"constant": name, "value": label}, measure, MADE_OF, wanted=name in options.constant))
    remark = "1 is as good as the twin without privacy, 0 is people's own behaviour. Each constant is changed alone."
    return Study(NAME, "value", cases, (remark,))


def _measure(
    changed: tuple[Any, str, Any] | None = None, how: dict[str, Any] | None = None
) -> Callable[[int], Numbers]:
    def measure(draw: int) -> Numbers:
        found = {}
        for name, system in DEVELOPMENT.items():
            steps, behaviour, best = people_of(name, draw)
            with patch.object(*changed) if changed else nullcontext():
                world = qq.privatise(steps.read(), BUDGET, world=system.model, simulate=draw)
            reached = system.value(plan(Released(world, **(how or {})), system, draw), draw, 200)
            found[name] = (reached - behaviour) / (best - behaviour)
        return {"mean": float(np.mean(list(found.values()))), "least": min(found.values()), **found}

    return measure


@lru_cache(maxsize=32)
def people_of(name: str, draw: int) -> tuple[Steps, float, float]:
    """Their steps, what they reach themselves, and what a plan without privacy reaches."""
    system = DEVELOPMENT[name]
    steps = system.sessions(PEOPLE[name], draw)
    best = system.value(non_private(steps, {"halt": None}, draw), draw, 200)
    return steps, system.value_of_behaviour(), best
