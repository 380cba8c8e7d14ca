"""PPO of Stable-Baselines3 as it comes, 30,000 steps, on the private reward of 1,000 people: two peaks in a plane.

What the policy earns in true reward, as a share of what it earns when it is trained on the true reward. The walker's
moves are continuous because PPO learns them more surely in so few steps: tried with true rewards of other shapes.
"""

import argparse
import warnings
from typing import Any

import gymnasium
import numpy as np
import stable_baselines3
import torch

import quietq as qq
from benchmarks import families
from benchmarks.family_study import BUDGET, MADE_OF
from benchmarks.study import ROOT, Case, Numbers, Study

PEOPLE, STEPS, EPISODES, TARGET = 1000, 30_000, 200, 0.98


class Plane(gymnasium.Env):
    """A walker in the unit square: it goes up to 0.1 along each axis, 50 times, from anywhere."""

    LENGTH = 50

    def __init__(self, reward: families.Shape) -> None:
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (2,), np.float64)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float64)
        self.reward, self.place, self.time = reward, np.zeros(2), 0

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.place, self.time = self.np_random.random(2), 0
        return self.place, {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.place, self.time = moved(self.place, action), self.time + 1
        return self.place, float(self.reward(self.place)), False, self.time == self.LENGTH, {}


def moved(place: np.ndarray, action: np.ndarray) -> np.ndarray:
    return np.clip(place + 0.1 * np.clip(action, -1, 1), 0, 1)


def add_options(parser: argparse.ArgumentParser) -> None:
    pass


def study(options: argparse.Namespace) -> Study:
    """A new shape, new people and a new seed of PPO for each draw."""
    labels = {"family": "two-peaks", "people": PEOPLE, "d": 2}
    made_of = (*MADE_OF, ROOT / "src" / "quietq" / "worlds", ROOT / "benchmarks" / "ppo_study.py")
    remark = "The walker of `benchmarks/ppo_study.py`, deterministic policies, 200 episodes of 50 steps."
    return Study("ppo", "d", [Case(labels, measure, made_of, TARGET)], (remark,))


def measure(draw: int) -> Numbers:
    drawn = families.ratings("two-peaks", 2, PEOPLE, draw)
    read = qq.Ratings.read(drawn.rows, box=[(0.0, 1.0)] * 2, low=0, high=1, people=PEOPLE, state=drawn.states)
    private = qq.privatise(read, BUDGET, simulate=draw)
    assert drawn.reward is not None
    env = Plane(drawn.reward)
    on_private = _earned(env, _policy(qq.PrivateReward(Plane(drawn.reward), private), draw))
    on_truth = _earned(env, _policy(Plane(drawn.reward), draw))
    generator = np.random.default_rng(draw)
    at_random = _earned(env, lambda places: generator.uniform(-1, 1, places.shape))
    return {
        "share of the true reward's": on_private / on_truth,
        "trained on the private reward": on_private,
        "trained on the true reward": on_truth,
        "random moves": at_random,
    }


def _policy(env: Any, seed: int) -> Any:
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = stable_baselines3.PPO("MlpPolicy", env, seed=seed, device="cpu").learn(STEPS)
    return lambda places: model.predict(places, deterministic=True)[0]


def _earned(env: Plane, policy: Any) -> float:
    """The mean true return, over starts that are the same for all policies."""
    places, total = np.random.default_rng(1).random((EPISODES, 2)), np.zeros(EPISODES)
    for _ in range(env.LENGTH):
        places = moved(places, policy(places))
        total += env.reward(places)
    return float(total.mean())
