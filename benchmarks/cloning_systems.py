"""Systems in which some people are good: each has an expert, and people who differ from it by noise or by habit.

Settings of `qq.clone` were chosen on other systems, which are not kept. People are of two kinds. *Noisy* people know
what the expert does, and do something random instead, the less skilled the oftener: their mean is the expert.
*Habitual* people see states in their own distorted way, the less skilled the more, and act as the expert would if that
were the state: their mean is not. In MuJoCo there are people *of ages*, too: each acts by one of several policies.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import gymnasium
import numpy as np

from benchmarks.study import RESULTS, ROOT, fingerprint
from benchmarks.systems import Array, Outcome, Pendulum, Rng, Row, Steps, System

NOISY, HABITUAL, AGES = "noisy", "habitual", "of ages"
STEPS = ("states", "actions", "after", "rewards", "ended", "there")


class Skilled(System):
    """A system with an expert; the traits of people are a skill from 0 to 1, and how they see states."""

    people_are: str = NOISY
    kinds: ClassVar[tuple[str, ...]] = (NOISY, HABITUAL)
    episodes: ClassVar[int] = 400
    """Of each true return."""
    distortion: ClassVar[float] = 1.0
    """How far off an unskilled habit sees each coordinate, in units of how far experts' states scatter."""
    scatter: ClassVar[Array]
    """How far experts' states scatter, about."""
    returns: ClassVar[tuple[float, float]]
    """What is declared of people's returns."""

    def expert(self, states: Array) -> Array:
        """What is done by those who know."""
        raise NotImplementedError

    def random(self, rng: Rng, number: int) -> Array:
        """What is done by those who don't."""
        if self.actions is not None:
            return rng.integers(0, self.actions, number)
        low, high = np.array(self.action_box, float).T
        return rng.uniform(low, high, (number, len(low)))

    def people(self, rng: Rng, number: int) -> Array:
        return np.hstack([rng.random((number, 1)), rng.standard_normal((number, len(self.box)))])

    def behave(self, rng: Rng, people: Array, states: Array) -> Array:
        skill = people[:, :1]
        if self.people_are == HABITUAL:
            seen = states + (1 - skill) * self.distortion * self.scatter * people[:, 1:]
            acted, random = self.expert(seen), self.random(rng, len(states))
            chance = rng.random(len(states)) < 0.9
        else:
            acted, random = self.expert(states), self.random(rng, len(states))
            chance = rng.random(len(states)) < skill[:, 0]
        return np.where(chance if acted.ndim == 1 else chance[:, None], acted, random)


class SkilledPendulum(Skilled, Pendulum):
    """Pendulum-v1, whose expert pumps energy until it is near the top, and balances there."""

    scatter = np.array([0.5, 0.5, 2.0])
    distortion = 0.6
    returns = (-2000.0, 0.0)

    def expert(self, states: Array) -> Array:
        cosine, sine, speed = states.T
        angle = np.arctan2(sine, cosine)
        energy = speed**2 / 2 + 15 * (cosine - 1)
        pump = -np.sign(speed + 1e-3) * np.clip(energy, -2, 2)
        balance = -(12 * angle + 3 * speed)
        return np.clip(np.where(cosine > 0.9, balance, pump), -2, 2)[:, None]


class InMujoco(Skilled):
    """One of Gymnasium's, moved by MuJoCo; the expert is the oldest of some policies that were trained for minutes.

    Besides noisy ones there are *people of ages*: each acts by one of the policies, from hardly trained to the oldest,
    and one time in ten at random. People are drawn with replacement from a pool of 2,000, whose sessions are stored:
    whole episodes, of which every tenth state and action is a row, and what ten steps were worth is its reward.
    """

    low, high, steps, ends, episodes = -100.0, 150.0, 1000, False, 25
    every: ClassVar[int] = 10
    """Of so many steps one is a row, with the sum of their rewards."""
    squashed: ClassVar[bool] = False
    """Whether policies are SAC's, of ReLU and a final tanh; else they are PPO's, of tanh and a clipped action."""
    distortion = 0.6
    kinds = (NOISY, AGES)
    AT_ONCE: ClassVar[int] = 50
    POOL: ClassVar[int] = 2000

    @cached_property
    def policies(self) -> list[list[Array]]:
        """Weights and biases of each age's layers, youngest first."""
        stored = np.load(RESULTS / "policies" / f"{self.name}.npz")
        ages = sorted({name.partition("_")[0] for name in stored})
        return [[stored[f"{age}_{i}"].astype(float) for i in range(6)] for age in ages]

    def acts(self, policy: list[Array], states: Array) -> Array:
        """A network of two hidden layers, as Stable-Baselines3's SAC and PPO have them."""
        for weights, bias in (policy[:2], policy[2:4]):
            states = states @ weights.T + bias
            states = np.maximum(states, 0) if self.squashed else np.tanh(states)
        acted = states @ policy[4].T + policy[5]
        return np.tanh(acted) if self.squashed else np.clip(acted, -1, 1)

    def expert(self, states: Array) -> Array:
        return self.acts(self.policies[-1], states)

    def behave(self, rng: Rng, people: Array, states: Array) -> Array:
        if self.people_are != AGES:
            return super().behave(rng, people, states)
        each = np.stack([self.acts(policy, states) for policy in self.policies])
        age = (len(each) * people[:, 0]).astype(int)
        acted = each[age, np.arange(len(states))]
        return np.where(rng.random((len(states), 1)) < 0.9, acted, self.random(rng, len(states)))

    def sessions(self, people: int, seed: int) -> Steps:
        named = f"{type(self).__name__}-{self.people_are}-{fingerprint([Path(__file__)])}.npz"
        stored = ROOT / "runs" / "benchmarks" / named
        if not stored.exists():
            stored.parent.mkdir(parents=True, exist_ok=True)
            pool = super().sessions(self.POOL, 0)
            np.savez(stored, *(getattr(pool, name) for name in STEPS))
        chosen = np.random.default_rng([seed, people]).integers(self.POOL, size=people)
        with np.load(stored) as pool:
            return Steps(self, *(pool[f"arr_{i}"][chosen] for i in range(len(STEPS))))

    def start(self, rng: Rng, people: Array) -> Array:
        raise NotImplementedError("It is MuJoCo that moves this: see roll.")

    def step(self, rng: Rng, people: Array, states: Array, actions: Array) -> Outcome:
        raise NotImplementedError("It is MuJoCo that moves this: see roll.")

    def roll(self, rng: Rng, number: int, steps: int, act: Callable[[Rng, Array, Array], Array]) -> Iterator[Row]:
        """Some environments at a time, one row for `every` so many steps; nothing follows an end."""
        envs = [gymnasium.make(self.name).unwrapped for _ in range(min(self.AT_ONCE, number))]
        people, size, rows = self.people(rng, number), len(self.box), -(-steps // self.every)
        widths = (size, len(self.action_box or []), size, 1, 1, 1)
        before, acted, after, rewards, ended, there = (np.zeros((number, rows, w), np.float32) for w in widths)
        for begin in range(0, number, len(envs)):
            some = np.arange(begin, min(begin + len(envs), number))
            seeds = rng.integers(2**31, size=len(some))
            states = np.array([env.reset(seed=int(seed))[0] for env, seed in zip(envs, seeds, strict=False)])
            for step in range(steps):
                row = step // self.every
                alive = ended[some, : row + 1].max(axis=(1, 2)) == 0
                if not alive.any():
                    break
                actions = np.clip(act(rng, people[some], states), -1, 1)
                if step % self.every == 0:
                    before[some, row], acted[some, row], there[some, row, 0] = states, actions, alive
                for i in np.flatnonzero(alive):
                    states[i], reward, ended[begin + i, row], _, _ = envs[i].step(actions[i])
                    rewards[begin + i, row] += reward
                after[some, row] = states
        for i in range(rows):
            yield before[:, i], acted[:, i], after[:, i], rewards[:, i, 0], ended[:, i, 0] > 0, there[:, i, 0] > 0


class SkilledReacher(InMujoco):
    """Gymnasium's Reacher-v5; the expert of noisy people pulls the tip to the target through the arm's Jacobian."""

    name = "Reacher-v5"
    box = [(-1.0, 1.0)] * 4 + [(-0.25, 0.25)] * 2 + [(-20.0, 20.0)] * 2 + [(-0.5, 0.5)] * 2
    action_box = [(-1.0, 1.0)] * 2
    low, high, steps, every, squashed = -3.0, 0.0, 50, 1, True
    scatter = np.array([0.5, 0.5, 0.5, 0.5, 0.1, 0.1, 3.0, 3.0, 0.1, 0.1])
    kinds = (NOISY, HABITUAL, AGES)
    returns = (-100.0, 0.0)

    def expert(self, states: Array) -> Array:
        first, second = np.arctan2(states[:, 2], states[:, 0]), np.arctan2(states[:, 3], states[:, 1])
        both, apart, speed = first + second, states[:, 8:10], states[:, 6:8]
        outer = 0.11 * np.stack([-np.sin(both), np.cos(both)], axis=1)
        inner = 0.1 * np.stack([-np.sin(first), np.cos(first)], axis=1) + outer
        pull = np.stack([(inner * apart).sum(axis=1), (outer * apart).sum(axis=1)], axis=1)
        return np.clip(-25 * pull - 0.05 * speed, -1, 1)


class SkilledHalfCheetah(InMujoco):
    """Gymnasium's HalfCheetah-v5."""

    name, squashed = "HalfCheetah-v5", True
    box = [(-30.0, 30.0)] * 17
    action_box = [(-1.0, 1.0)] * 6
    returns = (-1000.0, 6000.0)


class SkilledSwimmer(InMujoco):
    """Gymnasium's Swimmer-v5."""

    name = "Swimmer-v5"
    box = [(-10.0, 10.0)] * 8
    action_box = [(-1.0, 1.0)] * 2
    returns = (-100.0, 400.0)


class SkilledHopper(InMujoco):
    """Gymnasium's Hopper-v5, whose episodes end when it falls."""

    name, ends = "Hopper-v5", True
    box = [(-10.0, 10.0)] * 11
    action_box = [(-1.0, 1.0)] * 3
    returns = (-100.0, 4000.0)


class SkilledWalker(InMujoco):
    """Gymnasium's Walker2d-v5, whose episodes end when it falls."""

    name, ends = "Walker2d-v5", True
    box = [(-10.0, 10.0)] * 17
    action_box = [(-1.0, 1.0)] * 6
    returns = (-100.0, 5000.0)


SKILLED: dict[str, type[Skilled]] = {
    system.name: system
    for system in (SkilledPendulum, SkilledReacher, SkilledHalfCheetah, SkilledSwimmer, SkilledHopper, SkilledWalker)
}


def skilled(name: str, people_are: str) -> Skilled:
    """One of these systems with people of one kind."""
    system = SKILLED[name]()
    system.people_are = people_are
    return system
