"""Private worlds from sessions: true return of what was planned or learned in them, delta = 1e-5."""

from collections.abc import Callable
from functools import partial

import numpy as np

import quietq as qq
from benchmarks.study import PACKAGE_ROOMS, ROOT, Case, Numbers, Study, own_files
from benchmarks.systems import REPORTED, Policy, System
from benchmarks.world_twin import twin
from quietq.released.private_world import PrivateWorld
from quietq.worlds.planning import plan_linear

EPISODES = 20


def study() -> Study:
    cases = []
    made_of = (*PACKAGE_ROOMS, ROOT / "src" / "quietq" / "worlds", *own_files("systems", "go", "world_twin", "worlds"))
    for task, epsilon, people, target in CASES:
        measure = partial(TASKS[task], people, qq.Budget(epsilon, 1e-5))
        cases.append(Case({"task": task, "epsilon": epsilon, "people": people}, measure, made_of, target))
    remarks = (
        "One episode per person (at most 200 steps of CartPole, with random pushes); learned dynamics, rewards, ends "
        f"and starts; {EPISODES} episodes in the real CartPole. Linear policies by cross-entropy, and "
        "Stable-Baselines3's PPO. Some settings were found on CartPole: see [sessions.md](sessions.md).",
    )
    return Study("worlds", "people", cases, remarks)


def linear(world: PrivateWorld, system: System, seed: int) -> Policy:
    plan = plan_linear(world, steps=system.steps, seed=seed)
    return lambda states: plan.predict(states)[0]


def ppo(world: PrivateWorld, system: System, seed: int, copies: int = 32) -> Policy:
    """Each episode of each copy is played in one of as many plausible worlds."""
    import stable_baselines3
    import torch

    from quietq.worlds.world_vec_env import WorldVecEnv

    torch.set_num_threads(1)
    model = stable_baselines3.PPO(
        "MlpPolicy",
        WorldVecEnv(world, copies, steps=system.steps, ensemble=copies),
        n_steps=64,
        batch_size=256,
        gae_lambda=0.9,
        learning_rate=lambda left: 1e-3 * left,
        clip_range=lambda left: 0.2 * left,
        seed=seed,
        device="cpu",
    ).learn(150_000)
    return lambda states: model.predict(states.astype(np.float32), deterministic=True)[0]


def balanced(plan: Callable[[PrivateWorld, System, int], Policy], people: int, budget: qq.Budget, draw: int) -> Numbers:
    """What a policy that was planned or trained in the private world reaches in the real CartPole."""
    system = REPORTED["CartPole-v1"]
    world = qq.privatise(system.sessions(people, draw).read(), budget, world=system.model, simulate=draw)
    return {"return": system.value(plan(world, system, draw), draw, EPISODES)}


def dosed(people: int, budget: qq.Budget, draw: int) -> Numbers:
    """A plan is followed if people speak for it to be worth what they reach themselves; else all stays as it is."""
    system = REPORTED["glucose"]
    steps, own = system.sessions(people, draw), system.value_of_behaviour(draw)
    sessions, (of_world, of_check) = steps.read(), budget.split(0.9, 0.1)
    world = qq.privatise(sessions, of_world, world=system.model, simulate=draw)
    plan = plan_linear(world, steps=system.steps, seed=draw)
    found = qq.check(plan, sessions, of_check, own, steps=system.steps, go=0.5, simulate=draw)
    planned = system.value(lambda states: plan.predict(states)[0], draw, 1000)
    reached = planned if found.go else own
    best = system.value(linear(twin(steps), system, draw), draw, 1000)
    return {
        "return": reached,
        "of the way to the twin": (reached - own) / (best - own),
        "without the check": planned,
        "go": float(found.go is True),
        "below behaviour": float(reached < own),
    }


TASKS: dict[str, Callable[[int, qq.Budget, int], Numbers]] = {
    "CartPole-v1": partial(balanced, linear),
    "CartPole-v1, PPO": partial(balanced, ppo),
    "glucose, doses by plan if the check says go": dosed,
}
CASES: tuple[tuple[str, float, int, float | None], ...] = (
    ("CartPole-v1", 1.0, 500, 490.0),
    ("CartPole-v1", 0.5, 1000, 475.0),
    ("CartPole-v1", 2.0, 250, 475.0),
    ("CartPole-v1", 1.0, 350, None),
    ("CartPole-v1, PPO", 1.0, 500, 475.0),
    ("glucose, doses by plan if the check says go", 1.0, 1000, None),
)
"""Task, epsilon, people and what the mean true return is to reach; CartPole with 350 people is near its cliff."""
