"""Rare harm: the rewards that a private world states, where -1 comes with probability 0.02 (1 + x), 4,000 people."""

import argparse
from collections.abc import Callable

import numpy as np

import quietq as qq
from benchmarks.study import ROOT, Case, Numbers, Study
from benchmarks.systems import REPORTED
from benchmarks.world_peer_study import MADE_OF, ROOMS
from benchmarks.world_peers import private_world

NAME, PEOPLE = "rare-harm", 4000
EPSILONS = (1.0, 100.0)
"""The second leaves next to no noise, but the chance of who was harmed."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--epsilon", type=float, nargs="+", default=EPSILONS)


def study(options: argparse.Namespace) -> Study:
    made_of = (*MADE_OF, *ROOMS, ROOT / "benchmarks" / "rare_harm_study.py")
    cases = [
        Case({"people": PEOPLE, "epsilon": epsilon}, _measure(epsilon), made_of, wanted=epsilon in options.epsilon)
        for epsilon in EPSILONS
    ]
    remark = (
        "Both coefficients are -0.02: straight lines through the released reward, over [0, 1] and both actions. "
        "Beside them the same of what happened to these people, and the error that the release states."
    )
    return Study(NAME, "epsilon", cases, (remark,))


def _measure(epsilon: float) -> Callable[[int], Numbers]:
    def measure(draw: int) -> Numbers:
        steps = REPORTED["rare harm"].sessions(PEOPLE, draw)
        world = private_world(steps, draw, qq.Budget(epsilon, 1e-5))
        assert world.reward is not None
        grid = np.linspace(0, 1, 101)
        slope, constant = np.polyfit(grid, world.reward(grid).reshape(101, -1).mean(axis=1), 1)
        happened = np.polyfit(steps.states[..., 0].ravel(), steps.rewards.ravel(), 1)
        return {
            "constant": constant,
            "slope": slope,
            "constant that happened": happened[1],
            "slope that happened": happened[0],
            "stated error": world.reward_error,
            "error": float(np.sqrt(np.mean((constant + slope * grid + 0.02 * (1 + grid)) ** 2))),
        }

    return measure
