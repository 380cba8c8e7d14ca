"""Sessions in real Gymnasium environments, what a planner reaches there, and the planners."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import polars as pl

import quietq as qq
from quietq.worlds.private_world import Simulator

Policy = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class GymTask:
    """An environment with what is declared of it; boxes are a little wider than what random behaviour visits."""

    name: str
    box: list[tuple[float, float]]
    low: float
    high: float
    actions: int | None = None
    action_box: list[tuple[float, float]] | None = None
    degree: int = 1
    ends: bool = True

    def collect(self, people: int, seed: int, most: int = 200) -> pl.DataFrame:
        """One episode of random behaviour for each person."""
        env, rows = gymnasium.make(self.name), []
        env.action_space.seed(seed)
        for person in range(people):
            seen, _ = env.reset(seed=seed * 1_000_003 + person)
            for step in range(most):
                action = env.action_space.sample()
                after, reward, ended, cut, _ = env.step(action)
                rows.append((person, step, *seen, *after, *np.atleast_1d(action), float(reward), int(ended)))
                seen = after
                if ended or cut:
                    break
        names = [f"{side}{i}" for side in "sn" for i in range(len(self.box))]
        acts = [f"a{i}" for i in range(len(self.action_box or [1]))]
        return pl.DataFrame(rows, schema=["who", "step", *names, *acts, "reward", "end"], orient="row")

    def read(self, rows: pl.DataFrame, people: int) -> qq.Sessions:
        d = range(len(self.box))
        acts: dict[str, Any] = {"action": "a0", "actions": list(range(self.actions))} if self.actions else {
            "action": [f"a{i}" for i in range(len(self.action_box or []))], "action_box": self.action_box}  # fmt: skip
        return qq.Sessions.read(
            rows, person="who", step="step", state=[f"s{i}" for i in d], next_state=[f"n{i}" for i in d],
            reward="reward", low=self.low, high=self.high, end="end" if self.ends else None, box=self.box,
            people=people, **acts,
        )  # fmt: skip

    def play(self, policy: Policy, episodes: int, seed: int) -> float:
        """The mean true return: for whoever studies methods, and private to nobody."""
        envs = [gymnasium.make(self.name) for _ in range(episodes)]
        seen = np.array([env.reset(seed=seed * 7919 + i)[0] for i, env in enumerate(envs)])
        returns, alive = np.zeros(episodes), np.ones(episodes, bool)
        while alive.any():
            actions = policy(seen)
            for i in np.flatnonzero(alive):
                given = int(actions[i]) if self.actions else np.asarray(actions[i], np.float32)
                after, reward, ended, cut, _ = envs[i].step(given)
                seen[i], returns[i], alive[i] = after, returns[i] + float(reward), not (ended or cut)
        return float(returns.mean())


CARTPOLE = GymTask("CartPole-v1", [(-2.5, 2.5), (-4, 4), (-0.3, 0.3), (-4, 4)], 0.0, 1.0, actions=2)
PENDULUM = GymTask(
    "Pendulum-v1", [(-1.1, 1.1), (-1.1, 1.1), (-8.5, 8.5)], -16.3, 0.0, action_box=[(-2, 2)], degree=2, ends=False
)


@dataclass
class LookAhead:
    """Cross-entropy over the next actions, from every state anew: for one number per action, in a box."""

    simulator: Simulator
    horizon: int = 25
    candidates: int = 64
    iterations: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        self.rng, self.last = np.random.default_rng(self.seed), None

    def __call__(self, states: np.ndarray) -> np.ndarray:
        box, acting = self.simulator.world.box, self.simulator.world.spaces.action_box
        assert acting is not None
        unit = np.clip((states - box.low) / np.array(box.width), 0, 1)
        n, k, h = len(states), self.candidates, self.horizon
        mean = np.full((n, h), 0.5) if self.last is None else np.hstack([self.last[:, 1:], np.full((n, 1), 0.5)])
        spread = np.full((n, h), 0.4)
        for _ in range(self.iterations):
            tried = np.clip(mean[:, None] + spread[:, None] * self.rng.standard_normal((n, k, h)), 0, 1)
            place, returns = np.repeat(unit[:, None], k, axis=1), np.zeros((n, k))
            draws = np.full((n, k, self.simulator.draws), 0.5)
            for t in range(h):
                found = self.simulator.step(place, tried[:, :, t : t + 1], draws)
                returns, place = returns + found.rewards, found.states
            best = np.argsort(-returns, axis=1)[:, : k // 8]
            kept = np.take_along_axis(tried, best[:, :, None], axis=1)
            mean, spread = kept.mean(axis=1), kept.std(axis=1) + 0.02
        self.last = mean
        return np.array(acting.low) + mean[:, :1] * np.array(acting.width)
