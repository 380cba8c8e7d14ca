"""Networks that learned in private worlds of people's sessions, epsilon = 1, delta = 1e-5: their true return."""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import optax
import stable_baselines3
import torch

import quietq as qq
from benchmarks.study import ROOT, Case, Numbers, Study
from benchmarks.world_study import DELTA, EPISODES, MADE_OF
from benchmarks.world_tasks import CARTPOLE, PENDULUM, GymTask, Policy
from quietq.learning import Agent, NoNoise
from quietq.worlds.learned_world import LearnedWorld
from quietq.worlds.stable_baselines import WorldVecEnv

NAME, EPSILON = "world-ppo", 1.0
COPIES = 32
"""Each episode of each copy is played in one of as many plausible worlds."""
PPO: dict[str, Any] = {
    "n_steps": 64, "batch_size": 256, "gae_lambda": 0.9, "learning_rate": lambda left: 1e-3 * left,
    "clip_range": lambda left: 0.2 * left,
}  # fmt: skip
SAC: dict[str, Any] = {"policy_kwargs": {"net_arch": [64, 64]}, "learning_rate": 1e-3}
COMPILED_STEPS = 60_000
COMPILED: dict[str, Any] = {
    "gamma": 0.98, "widths": (64, 64), "replay": 50_000, "target_every": 500, "explore_decay": 5000.0,
    "optimiser": optax.adam(optax.linear_schedule(1e-3, 0.0, COMPILED_STEPS)),
}  # fmt: skip


def ppo(world: qq.PrivateWorld, steps: int, seed: int) -> Policy:
    env = WorldVecEnv(world, COPIES, steps=steps, ensemble=COPIES)
    return _of(stable_baselines3.PPO, env, 150_000, seed, PPO)


def sac(world: qq.PrivateWorld, steps: int, seed: int) -> Policy:
    return _of(stable_baselines3.SAC, world.env(steps=steps), 10_000, seed, SAC)


def _of(kind: Any, env: Any, total: int, seed: int, settings: dict[str, Any]) -> Policy:
    torch.set_num_threads(1)
    model = kind("MlpPolicy", env, seed=seed, device="cpu", **settings).learn(total)
    return lambda states: model.predict(states.astype(np.float32), deterministic=True)[0]


def compiled(world: qq.PrivateWorld, steps: int, seed: int) -> Policy:
    """Its agents see the last reward, too, which is always 1 here."""
    agent = Agent(LearnedWorld(world, steps), NoNoise(**COMPILED), seed=seed).learn(COMPILED_STEPS)
    low, high = agent.spaces.box.low, agent.spaces.box.high
    return lambda states: agent.predict(np.clip(np.hstack([states, np.ones((len(states), 1))]), low, high))[0]


LEARNERS: dict[str, tuple[Callable[[qq.PrivateWorld, int, int], Policy], GymTask, int, int, float | None]] = {
    "PPO": (ppo, CARTPOLE, 500, 500, 475.0),
    "compiled deep Q-learning": (compiled, CARTPOLE, 500, 500, None),
    "SAC": (sac, PENDULUM, 1000, 200, None),
}
"""By name: the learner, its task, people, steps of an episode, and what the mean true return is to reach."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--learner", nargs="+", choices=LEARNERS, default=tuple(LEARNERS))


def study(options: argparse.Namespace) -> Study:
    cases = [replace(_case(name), wanted=name in options.learner) for name in LEARNERS]
    remarks = (
        "PPO and SAC are Stable-Baselines3's. Random behaviour, one episode per person (at most 200 steps); learned "
        "dynamics, rewards, ends and starts; 20 episodes in the real environment, deterministic policies. Settings of "
        "PPO and of the compiled trainer were fixed on the cart of `benchmarks/world_systems.py`; SAC's are the "
        "library's, but for networks of 64 units and a rate of 0.001. 'Seconds' are a processor's, for training.",
    )
    return Study(NAME, "people", cases, remarks)


def _case(name: str) -> Case:
    learn, task, people, steps, target = LEARNERS[name]

    def measure(draw: int) -> Numbers:
        sessions = task.read(task.collect(people, draw), people)
        world = qq.privatise(
            sessions, qq.Budget(EPSILON, DELTA), world=qq.WorldModel(degree=task.degree), simulate=draw
        )
        begin = time.process_time()
        policy = learn(world, steps, draw)
        seconds = time.process_time() - begin
        return {"return": task.play(policy, EPISODES, draw), "seconds": seconds}

    acting = ("world_copies", "stable_baselines", "learned_world")
    made_of = (*MADE_OF, *(ROOT / "src" / "quietq" / "worlds" / f"{one}.py" for one in acting),
               ROOT / "benchmarks" / "world_ppo_study.py")  # fmt: skip
    return Case({"task": task.name, "learner": name, "people": people}, measure, made_of, target)
