"""Systems in which some people are good: each has an expert, and people who differ from it by noise or by habit.

On SKILLED settings of `qq.clone` were chosen, and on REPORTED_SKILLED none. People are of two kinds. *Noisy* people
know what the expert does, and do something random instead, the less skilled the oftener: their mean is the expert.
*Habitual* people see states in their own distorted way, the less skilled the more, and act as the expert would if that
were the state: their mean is not. In MuJoCo there are people *of ages*, too: each acts by one of several policies.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import gymnasium
import numpy as np
from scipy.linalg import solve_discrete_are

from benchmarks.study import RESULTS, ROOT, fingerprint
from benchmarks.systems import Acrobot, Array, CartPole, MountainCar, Outcome, Pendulum, Rng, Row, Steps, System

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


class SkilledCartPole(Skilled, CartPole):
    """CartPole-v1, whose expert pushes towards where the pole falls."""

    scatter = np.array([0.3, 0.4, 0.03, 0.4])
    distortion = 2.0
    returns = (0.0, 200.0)

    def expert(self, states: Array) -> Array:
        return (states @ [0.3, 0.6, 4.0, 1.0] > 0).astype(int)


class SkilledAcrobot(Skilled, Acrobot):
    """Acrobot-v1 with a list of three torques, whose expert pushes along."""

    scatter = np.array([0.5, 0.5, 0.5, 0.5, 1.5, 3.0])
    returns = (-200.0, 0.0)
    actions, action_box, items = 3, None, None

    def expert(self, states: Array) -> Array:
        return np.where(states[:, 5] > 0, 2, 0)

    def step(self, rng: Rng, people: Array, states: Array, actions: Array) -> Outcome:
        return super().step(rng, people, states, (np.asarray(actions, float) - 1)[:, None])


class SkilledMountainCar(Skilled, MountainCar):
    """MountainCarContinuous-v0, whose expert pushes along its speed."""

    scatter = np.array([0.4, 0.03])
    returns = (-30.0, 100.0)

    def expert(self, states: Array) -> Array:
        return np.clip(60 * states[:, 1:] + 0.05, -1, 1)


class Quadratic(Skilled):
    """A linear system of eight coordinates and three actions with quadratic costs, whose expert is Riccati's."""

    name = "quadratic"
    box = [(-5.0, 5.0)] * 8
    action_box = [(-1.0, 1.0)] * 3
    low, high, steps, ends = -3.0, 0.0, 60, False
    scatter = np.full(8, 0.5)
    returns = (-180.0, 0.0)

    def __init__(self) -> None:
        rng = np.random.default_rng(11)
        matrix = np.eye(8) + 0.25 * rng.standard_normal((8, 8))
        self.matrix = 1.02 * matrix / np.abs(np.linalg.eigvals(matrix)).max()
        self.effect = 0.3 * rng.standard_normal((8, 3))
        value = solve_discrete_are(self.matrix, self.effect, np.eye(8), 0.1 * np.eye(3))
        inner = 0.1 * np.eye(3) + self.effect.T @ value @ self.effect
        self.gain = np.linalg.solve(inner, self.effect.T @ value @ self.matrix)

    def start(self, rng: Rng, people: Array) -> Array:
        return rng.uniform(-0.7, 0.7, (len(people), 8))

    def expert(self, states: Array) -> Array:
        return np.clip(-states @ self.gain.T, -1, 1)

    def step(self, rng: Rng, people: Array, states: Array, actions: Array) -> Outcome:
        pushed = np.clip(actions, -1, 1)
        after = states @ self.matrix.T + pushed @ self.effect.T + 0.02 * rng.standard_normal(states.shape)
        costs = (states**2).mean(axis=1) + 0.1 * (pushed**2).mean(axis=1)
        return Outcome(np.clip(after, -5, 5), np.maximum(-costs, -3.0), np.zeros(len(states), bool))


class Detour(Skilled):
    """A point that is pushed around a disc to a goal; within the disc each step costs much."""

    name = "detour"
    box = [(-2.0, 2.0)] * 2 + [(-1.0, 1.0)] * 2
    action_box = [(-1.0, 1.0)] * 2
    low, high, steps, ends = -3.0, 0.0, 80, False
    scatter = np.array([0.7, 0.7, 0.1, 0.1])
    distortion = 0.6
    returns = (-240.0, 0.0)
    GOAL = np.array([0.9, 0.9])

    def start(self, rng: Rng, people: Array) -> Array:
        return np.hstack([rng.uniform(-1.2, -0.6, (len(people), 2)), np.zeros((len(people), 2))])

    def expert(self, states: Array) -> Array:
        """Towards the goal, and around the disc the short way."""
        place, speed = states[:, :2], states[:, 2:]
        wanted = self.GOAL - place
        distance = np.linalg.norm(place, axis=1, keepdims=True)
        outwards = place / np.maximum(distance, 1e-9)
        side = np.sign(place[:, :1] * self.GOAL[1] - place[:, 1:] * self.GOAL[0])
        around = side * np.stack([outwards[:, 1], -outwards[:, 0]], axis=1)
        near = np.clip((0.75 - distance) / 0.25, 0, 1)
        ahead = (place * wanted).sum(axis=1, keepdims=True) < 0
        around = np.where(ahead, -around, 0.0)
        return np.clip(3 * wanted + 6 * near * (around + outwards) - 8 * speed, -1, 1)

    def step(self, rng: Rng, people: Array, states: Array, actions: Array) -> Outcome:
        speed = 0.9 * states[:, 2:] + 0.02 * np.clip(actions, -1, 1) + 0.002 * rng.standard_normal((len(states), 2))
        place = np.clip(states[:, :2] + speed, -2, 2)
        costs = np.linalg.norm(place - self.GOAL, axis=1) / 2 + 2.0 * (np.linalg.norm(place, axis=1) < 0.5)
        return Outcome(np.hstack([place, speed]), np.maximum(-costs, -3.0), np.zeros(len(states), bool))


SKILLED: dict[str, type[Skilled]] = {
    "CartPole-v1": SkilledCartPole,
    "Acrobot-v1": SkilledAcrobot,
    "MountainCarContinuous-v0": SkilledMountainCar,
    "quadratic": Quadratic,
    "detour": Detour,
}


# Reported: no setting of cloning was chosen on these.


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
    and one time in ten at random. People are drawn from a pool of 6,000, whose sessions are stored.
    """

    low, high, steps, ends, episodes = -10.0, 15.0, 100, False, 100
    distortion = 0.6
    kinds = (NOISY, AGES)
    AT_ONCE: ClassVar[int] = 50
    POOL: ClassVar[int] = 6000

    @cached_property
    def policies(self) -> list[list[Array]]:
        """Weights and biases of each age's layers, youngest first."""
        stored = np.load(RESULTS / "policies" / f"{self.name}.npz")
        ages = sorted({name.partition("_")[0] for name in stored})
        return [[stored[f"{age}_{i}"].astype(float) for i in range(6)] for age in ages]

    def acts(self, policy: list[Array], states: Array) -> Array:
        """A network of two hidden layers, as Stable-Baselines3's SAC has them."""
        first, one, second, two, last, three = policy
        hidden = np.maximum(np.maximum(states @ first.T + one, 0) @ second.T + two, 0)
        return np.tanh(hidden @ last.T + three)

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
        stored = ROOT / "runs" / "benchmarks" / f"{self.name}-{self.people_are}-{fingerprint([Path(__file__)])}.npz"
        if not stored.exists():
            stored.parent.mkdir(parents=True, exist_ok=True)
            pool = super().sessions(self.POOL, 0)
            np.savez(stored, *(getattr(pool, name) for name in STEPS))
        chosen = np.random.default_rng([seed, people]).choice(self.POOL, people, replace=False)
        with np.load(stored) as pool:
            return Steps(self, *(pool[f"arr_{i}"][chosen] for i in range(len(STEPS))))

    def start(self, rng: Rng, people: Array) -> Array:
        raise NotImplementedError("It is MuJoCo that moves this: see roll.")

    def step(self, rng: Rng, people: Array, states: Array, actions: Array) -> Outcome:
        raise NotImplementedError("It is MuJoCo that moves this: see roll.")

    def roll(self, rng: Rng, number: int, steps: int, act: Callable[[Rng, Array, Array], Array]) -> Iterator[Row]:
        """Some environments at a time, step by step; of ended episodes the last state stays."""
        envs = [gymnasium.make(self.name).unwrapped for _ in range(min(self.AT_ONCE, number))]
        people, size = self.people(rng, number), len(self.box)
        columns = [np.zeros((number, steps, width)) for width in (size, len(self.action_box or []), size, 1, 1, 1)]
        for begin in range(0, number, len(envs)):
            some = range(begin, min(begin + len(envs), number))
            seeds = rng.integers(2**31, size=len(some))
            states = np.array([env.reset(seed=int(seed))[0] for env, seed in zip(envs, seeds, strict=False)])
            alive = np.ones(len(some), bool)
            for step in range(steps):
                actions = np.clip(act(rng, people[begin : some.stop], states), -1, 1)
                after, rewards, ended = states.copy(), np.zeros((len(some), 1)), np.zeros((len(some), 1))
                for i in np.flatnonzero(alive):
                    after[i], rewards[i], ended[i], _, _ = envs[i].step(actions[i])
                found = (states, actions, after, rewards, ended, alive[:, None])
                for column, values in zip(columns, found, strict=True):
                    column[begin : some.stop, step] = values
                states, alive = after, alive & (ended[:, 0] == 0)
        before, acted, after, rewards, ended, there = columns
        for i in range(steps):
            yield before[:, i], acted[:, i], after[:, i], rewards[:, i, 0], ended[:, i, 0] > 0, there[:, i, 0] > 0


class SkilledReacher(InMujoco):
    """Gymnasium's Reacher-v5; the expert of noisy people pulls the tip to the target through the arm's Jacobian."""

    name = "Reacher-v5"
    box = [(-1.0, 1.0)] * 4 + [(-0.25, 0.25)] * 2 + [(-20.0, 20.0)] * 2 + [(-0.5, 0.5)] * 2
    action_box = [(-1.0, 1.0)] * 2
    low, high, steps = -3.0, 0.0, 50
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

    name = "HalfCheetah-v5"
    box = [(-10.0, 10.0)] * 17
    action_box = [(-1.0, 1.0)] * 6
    returns = (-300.0, 1000.0)


REPORTED_SKILLED: dict[str, type[Skilled]] = {
    "Pendulum-v1": SkilledPendulum,
    "Reacher-v5": SkilledReacher,
    "HalfCheetah-v5": SkilledHalfCheetah,
}


def skilled(name: str, people_are: str) -> Skilled:
    """One of these systems with people of one kind."""
    system = (SKILLED | REPORTED_SKILLED)[name]()
    system.people_are = people_are
    return system
