"""Private worlds from sessions: true return of what was planned or learned in them, delta = 1e-5."""

import argparse
import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import quietq as qq
from benchmarks.go_study import GO
from benchmarks.planners import LookAhead, Released, in_own_units
from benchmarks.session_data import Policy, System
from benchmarks.study import PACKAGE_ROOMS, ROOT, Case, Numbers, Study
from benchmarks.systems import REPORTED
from benchmarks.world_twin import twin
from quietq.released.private_world import PrivateWorld
from quietq.worlds.planning import LinearPolicy, plan_linear

MADE_OF = (
    *PACKAGE_ROOMS,
    ROOT / "src" / "quietq" / "worlds",
    *(ROOT / "benchmarks" / f"{name}.py" for name in ("session_data", "systems", "planners", "world_study")),
)
DELTA = 1e-5
EPISODES = 20
Planner = Callable[[PrivateWorld, System, int], Policy]


def linear(world: PrivateWorld, system: System, seed: int) -> LinearPolicy:
    return plan_linear(world, steps=system.steps, seed=seed)


def look_ahead(world: PrivateWorld, system: System, seed: int) -> Policy:
    assert system.ahead is not None
    planner = LookAhead(Released(world, halt=None), system.ahead, np.random.default_rng(seed))
    return in_own_units(world.spaces, planner.acts)


def ppo(world: PrivateWorld, system: System, seed: int, copies: int = 32) -> Policy:
    """Each episode of each copy is played in one of as many plausible worlds."""
    from quietq.worlds.world_vec_env import WorldVecEnv

    return _trained(
        "PPO",
        WorldVecEnv(world, copies, steps=system.steps, ensemble=copies),
        150_000,
        seed,
        n_steps=64,
        batch_size=256,
        gae_lambda=0.9,
        learning_rate=lambda left: 1e-3 * left,
        clip_range=lambda left: 0.2 * left,
    )


def sac(world: PrivateWorld, system: System, seed: int) -> Policy:
    """With the library's own settings, but for networks of 64 units and a rate of 0.001."""
    env = world.env(steps=system.steps)
    return _trained("SAC", env, 10_000, seed, policy_kwargs={"net_arch": [64, 64]}, learning_rate=1e-3)


def _trained(kind: str, env: Any, total: int, seed: int, **settings: Any) -> Policy:
    import stable_baselines3
    import torch

    torch.set_num_threads(1)
    learner = getattr(stable_baselines3, kind)
    model = learner("MlpPolicy", env, seed=seed, device="cpu", **settings).learn(total)
    return lambda states: model.predict(states.astype(np.float32), deterministic=True)[0]


def turned(wanted: int, states: Any, actions: Any, after: Any) -> Any:
    """Cosine and sine of an angle after a step of 0.05 s at its new speed: what speed means, and public."""
    cosine, sine, angle = states[..., 0], states[..., 1], 0.05 * after[..., 2]
    if wanted == 0:
        return cosine * np.cos(angle) - sine * np.sin(angle)
    return sine * np.cos(angle) + cosine * np.sin(angle)


TURNS = qq.WorldModel(moves={i: partial(turned, i) for i in (0, 1)})
"""How the speed changes is learned, by a linear law."""


def reached(
    name: str, plan: Planner, people: int, budget: qq.Budget, draw: int, model: qq.WorldModel | None = None
) -> Numbers:
    system = REPORTED[name]
    sessions = system.sessions(people, draw).read()
    world = qq.privatise(sessions, budget, world=model or system.model, simulate=draw)
    begin = time.process_time()
    policy = plan(world, system, draw)
    seconds = time.process_time() - begin
    return {"return": system.value(policy, draw, EPISODES), "seconds of a processor for the plan": seconds}


def harm(people: int, budget: qq.Budget, draw: int) -> Numbers:
    """How far off the coefficients are of a harm, -1, that comes with probability 0.02 (1 + x)."""
    steps = REPORTED["rare harm"].sessions(people, draw)
    world = qq.privatise(steps.read(), budget, simulate=draw)
    places = np.linspace(0, 1, 201)
    assert world.reward is not None
    found = np.polyfit(places, world.reward(places).mean(axis=-1), 1)
    asked = np.polyfit(steps.states[..., 0].ravel(), steps.rewards.ravel(), 1)  # of these very people, without noise
    errors = np.abs(found - asked)
    return {
        "error over coefficient": float((errors / np.abs(asked)).max()),
        "error over stated": float(errors.max() / world.errors.reward_noise),
    }


def dosed(people: int, budget: qq.Budget, draw: int, check: float = 0.1) -> Numbers:
    """A plan is followed if people speak for it to be worth what they reach themselves; else all stays as it is."""
    system = REPORTED["glucose"]
    steps, own = system.sessions(people, draw), system.value_of_behaviour(draw)
    sessions = steps.read()
    parts = [qq.Budget.from_mu(budget.mu * math.sqrt(share), budget.delta) for share in (1 - check, check)]
    world = qq.privatise(sessions, parts[0], world=system.model, simulate=draw)
    policy = linear(world, system, draw)
    found = qq.check_plan(world, sessions, policy, own, parts[1], steps=system.steps, go=GO, simulate=draw)
    planned = system.value(policy, draw, 1000)
    reached = planned if found.go else own
    best = system.value(linear(twin(steps), system, draw), draw, 1000)
    return {
        "return": reached,
        "of the way to the twin": (reached - own) / (best - own),
        "without the check": planned,
        "go": float(found.go),
        "below behaviour": float(reached < own),
    }


TASKS: dict[str, Callable[[int, qq.Budget, int], Numbers]] = {
    "CartPole-v1": partial(reached, "CartPole-v1", linear),
    "CartPole-v1, PPO": partial(reached, "CartPole-v1", ppo),
    "Pendulum-v1": partial(reached, "Pendulum-v1", look_ahead),
    "Pendulum-v1, turns known": partial(reached, "Pendulum-v1", look_ahead, model=TURNS),
    "Pendulum-v1, SAC": partial(reached, "Pendulum-v1", sac),
    "rare harm": harm,
    "glucose, doses by plan if the check says go": dosed,
}
CASES: tuple[tuple[str, float, int, float | None], ...] = (
    ("CartPole-v1", 1.0, 500, 490.0),
    ("CartPole-v1", 0.5, 1000, 475.0),
    ("CartPole-v1", 2.0, 250, 475.0),
    ("CartPole-v1", 1.0, 350, None),
    ("CartPole-v1, PPO", 1.0, 500, 475.0),
    ("Pendulum-v1", 1.0, 1000, -170.0),
    ("Pendulum-v1, turns known", 1.0, 1000, -170.0),
    ("Pendulum-v1, SAC", 1.0, 1000, None),
    ("rare harm", 1.0, 4000, None),
    ("rare harm", 100.0, 4000, None),
    ("glucose, doses by plan if the check says go", 1.0, 1000, None),
)
"""Task, epsilon, people and what the mean true return is to reach; CartPole with 350 people is near its cliff."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--task", nargs="+", choices=TASKS, default=tuple(TASKS))


def study(options: argparse.Namespace) -> Study:
    cases = [
        Case(
            {"task": task, "epsilon": epsilon, "people": people},
            partial(TASKS[task], people, qq.Budget(epsilon, DELTA)),
            MADE_OF,
            target,
            wanted=task in options.task,
        )
        for task, epsilon, people, target in CASES
    ]
    remarks = (
        "Random behaviour, one episode per person (at most 200 steps); learned dynamics, rewards, ends and starts; "
        f"{EPISODES} episodes in the real environment. CartPole: linear policies by cross-entropy, and PPO; Pendulum: "
        "look-ahead by cross-entropy, with a law of the second degree or, added after that had failed in one draw of "
        "twenty, with the public rule by which speeds turn angles, and SAC. PPO and SAC are Stable-Baselines3's. Of "
        "rare harm, errors of both coefficients over what they are, and over the stated error. Some settings were "
        "found on these tasks: see [sessions.md](sessions.md).",
    )
    return Study("worlds", "people", cases, remarks)
