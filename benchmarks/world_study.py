"""Private worlds from sessions: true return of what was planned in them, delta = 1e-5."""

import argparse
import math
import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

import quietq as qq
from benchmarks.go_study import GO
from benchmarks.study import ROOT, Case, Numbers, Study
from benchmarks.systems import REPORTED
from benchmarks.world_systems import Cart
from benchmarks.world_tasks import CARTPOLE, PENDULUM, LookAhead
from benchmarks.world_twin import twin
from quietq.worlds.cross_entropy import plan_linear
from quietq.worlds.private_world import Simulator

NAME = "worlds"
MADE_OF = (
    *(ROOT / "src" / "quietq" / room for room in ("privacy", "noise", "feedback", "mechanisms")),
    *(ROOT / "src" / "quietq" / "worlds" / f"{name}.py" for name in ("private_world", "cross_entropy")),
    *(ROOT / "benchmarks" / f"{name}.py" for name in ("world_tasks", "world_systems")),
)
DELTA = 1e-5
EPISODES = 20
CASES: tuple[tuple[str, float, int, float | None], ...] = (
    ("CartPole-v1", 1.0, 500, 490.0),
    ("CartPole-v1", 0.5, 1000, 475.0),
    ("CartPole-v1", 2.0, 250, 475.0),
    ("Pendulum-v1", 1.0, 1000, -170.0),
    ("Pendulum-v1, turns known", 1.0, 1000, -170.0),
    ("CartPole-v1, near the cliff", 1.0, 350, None),
    ("rare harm", 1.0, 4000, None),
    ("rare harm", 100.0, 4000, None),
    ("another cart", 1.0, 500, None),
    ("glucose, doses by plan if the check says go", 1.0, 1000, None),
)
"""Task, epsilon, people and what the mean true return is to reach."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--task", nargs="+", choices=sorted({task for task, *_ in CASES}))


def study(options: argparse.Namespace) -> Study:
    cases = [
        replace(_case(*case), wanted=options.task is None or case[0] in options.task) for case in CASES
    ]  # fmt: skip
    remarks = (
        "Random behaviour, one episode per person (at most 200 steps); learned dynamics, rewards, ends and starts. "
        "CartPole: linear policies by cross-entropy; Pendulum: look-ahead by cross-entropy, with a law of the second "
        "degree or, added after that had failed in one draw of twenty, with the public rule by which speeds turn "
        "angles. Of rare harm, errors of both coefficients over what they are, and over the stated error. Some "
        "settings were found on these tasks: see [sessions.md](sessions.md).",
    )
    return Study(NAME, "people", cases, remarks)


def _case(task: str, epsilon: float, people: int, target: float | None) -> Case:
    labels = {"task": task, "epsilon": epsilon, "people": people}

    def measure(draw: int) -> Numbers:
        return TASKS[task](people, qq.Budget(epsilon, DELTA), draw)

    return Case(labels, measure, MADE_OF, target)


def _cartpole(people: int, budget: qq.Budget, draw: int) -> Numbers:
    sessions = CARTPOLE.read(CARTPOLE.collect(people, draw), people)
    world, seconds = _release(sessions, budget, draw)
    policy = plan_linear(world, steps=500, seed=draw)
    return {"return": CARTPOLE.play(policy, EPISODES, draw), "seconds": seconds}


def _cart(people: int, budget: qq.Budget, draw: int) -> Numbers:
    cart = Cart()
    world, seconds = _release(cart.read(cart.collect(people, draw), people), budget, draw)
    policy = plan_linear(world, steps=cart.steps, seed=draw)
    return {"return": cart.play(policy, EPISODES, draw), "seconds": seconds}


def _pendulum(people: int, budget: qq.Budget, draw: int, model: qq.WorldModel | None = None) -> Numbers:
    sessions = PENDULUM.read(PENDULUM.collect(people, draw), people)
    world, seconds = _release(sessions, budget, draw, model or qq.WorldModel(degree=PENDULUM.degree))
    policy = LookAhead(Simulator(world, halt=None, noise=False), seed=draw)
    return {"return": PENDULUM.play(policy, EPISODES // 2, draw), "seconds": seconds}


def turned(wanted: int, states: Any, actions: Any, after: Any) -> Any:
    """Cosine and sine of an angle after a step of 0.05 s at its new speed: what speed means, and public."""
    cosine, sine, angle = states[..., 0], states[..., 1], 0.05 * after[..., 2]
    if wanted == 0:
        return cosine * np.cos(angle) - sine * np.sin(angle)
    return sine * np.cos(angle) + cosine * np.sin(angle)


TURNS = qq.WorldModel(moves={i: partial(turned, i) for i in (0, 1)})
"""How the speed changes is learned, by a linear law."""


def _harm(people: int, budget: qq.Budget, draw: int, steps: int = 20) -> Numbers:
    """A reward of -1 with probability 0.02 (1 + x), and of 0 else."""
    rng = np.random.default_rng(draw)
    x = rng.random((people, steps + 1))
    harm = -(rng.random((people, steps)) < 0.02 * (1 + x[:, :-1])).astype(float)
    rows = pl.DataFrame(
        {"who": np.repeat(np.arange(people), steps), "step": np.tile(np.arange(steps), people),
         "x": x[:, :-1].ravel(), "after": x[:, 1:].ravel(), "push": rng.integers(0, 2, people * steps),
         "reward": harm.ravel()}
    )  # fmt: skip
    sessions = qq.Sessions.read(
        rows, person="who", step="step", state="x", next_state="after", action="push", actions=[0, 1],
        reward="reward", low=-1, high=0, box=(0, 1), people=people,
    )  # fmt: skip
    world, seconds = _release(sessions, budget, draw)
    places = np.linspace(0, 1, 201)
    assert world.reward is not None
    found = np.polyfit(places, world.reward(places).mean(axis=-1), 1)
    asked = np.polyfit(x[:, :-1].ravel(), harm.ravel(), 1)  # of these very people, without noise
    errors = np.abs(found - asked)
    return {
        "error over coefficient": float((errors / np.abs(asked)).max()),
        "error over stated": float(errors.max() / world.errors.reward_noise), "seconds": seconds,
    }  # fmt: skip


def _dosed(people: int, budget: qq.Budget, draw: int, check: float = 0.1) -> Numbers:
    """A plan is followed if people speak for it to be worth what they reach themselves; else all stays as it is."""
    system = REPORTED["glucose"]
    sessions, own = system.sessions(people, draw).read(), system.value_of_behaviour(draw)
    parts = [qq.Budget.from_mu(budget.mu * math.sqrt(share), budget.delta) for share in (1 - check, check)]
    world, seconds = _release(sessions, parts[0], draw, system.model)
    plan = plan_linear(world, steps=system.steps, seed=draw)
    found = qq.check_plan(world, sessions, plan, own, parts[1], steps=system.steps, go=GO, simulate=draw)
    planned = system.value(plan, draw, 1000)
    reached = planned if found.go else own
    best = system.value(plan_linear(twin(system.sessions(people, draw)), steps=system.steps, seed=draw), draw, 1000)
    return {
        "return": reached, "of the way to the twin": (reached - own) / (best - own), "without the check": planned,
        "go": float(found.go), "below behaviour": float(reached < own), "seconds": seconds,
    }  # fmt: skip


def _release(
    sessions: qq.Sessions, budget: qq.Budget, draw: int, model: qq.WorldModel | None = None
) -> tuple[qq.PrivateWorld, float]:
    begin = time.perf_counter()
    world = qq.privatise(sessions, budget, world=model, simulate=draw)
    return world, time.perf_counter() - begin


TASKS = {
    "CartPole-v1": _cartpole,
    "CartPole-v1, near the cliff": _cartpole,
    "Pendulum-v1": _pendulum,
    "Pendulum-v1, turns known": partial(_pendulum, model=TURNS),
    "rare harm": _harm,
    "another cart": _cart,
    "glucose, doses by plan if the check says go": _dosed,
}
