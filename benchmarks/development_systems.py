"""Systems on which settings may be chosen; nothing is reported of them but what was chosen."""

import numpy as np

from benchmarks.session_data import Array, Outcome, Rng, System
from quietq.mechanisms.world_model import WorldModel


class RandomLinear(System):
    """s' = A s + B a + noise in three dimensions, a little unstable, with ends far out; matrices are drawn once."""

    box = [(-2.0, 2.0)] * 3
    low, high, steps = 0.0, 1.0, 60
    action_box = [(-1.0, 1.0)]  # noqa: RUF012

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng([seed, 5])
        self.name = f"random linear {seed}"
        matrix = np.eye(3) + 0.2 * rng.standard_normal((3, 3))
        self.matrix = 1.03 * matrix / np.abs(np.linalg.eigvals(matrix)).max()
        self.effect = 0.2 * rng.standard_normal((3, 1))

    def start(self, rng: Rng, people: Array) -> Array:
        return rng.uniform(-0.5, 0.5, (len(people), 3))

    def behave(self, rng: Rng, people: Array, states: Array) -> Array:
        return rng.uniform(-1, 1, (len(states), 1))

    def step(self, rng: Rng, people: Array, states: Array, actions: Array) -> Outcome:
        scatter = 0.01 * rng.standard_normal(states.shape)
        after = states @ self.matrix.T + np.clip(actions, -1, 1) @ self.effect.T + scatter
        ended = (np.abs(after) > 1.9).any(axis=1)
        return Outcome(np.clip(after, -2, 2), np.maximum(0.0, 1 - (after**2).sum(axis=1) / 3), ended)


class HeavyPole(System):
    """A cart-pole with other constants: Barto, Sutton & Anderson's equations; people push at random."""

    name = "heavy pole"
    box = [(-2.0, 2.0), (-3.0, 3.0), (-0.35, 0.35), (-3.0, 3.0)]  # noqa: RUF012
    low, high, steps, actions = 0.0, 1.0, 200, 2
    GRAVITY, CART, POLE, LENGTH, FORCE, STEP = 7.0, 0.6, 0.3, 0.9, 6.0, 0.03

    def start(self, rng: Rng, people: Array) -> Array:
        return rng.uniform(-0.05, 0.05, (len(people), 4))

    def behave(self, rng: Rng, people: Array, states: Array) -> Array:
        return rng.integers(0, 2, len(states))

    def step(self, rng: Rng, people: Array, states: Array, actions: Array) -> Outcome:
        _, speed, angle, turn = states.T
        force, mass = np.where(actions > 0, self.FORCE, -self.FORCE), self.CART + self.POLE
        pushed = (force + self.POLE * self.LENGTH * turn**2 * np.sin(angle)) / mass
        tipped = (self.GRAVITY * np.sin(angle) - np.cos(angle) * pushed) / (
            self.LENGTH * (4 / 3 - self.POLE * np.cos(angle) ** 2 / mass)
        )
        moved = pushed - self.POLE * self.LENGTH * tipped * np.cos(angle) / mass
        after = states + self.STEP * np.stack([speed, moved, turn, tipped], axis=1)
        ended = (np.abs(after[:, 0]) > 1.9) | (np.abs(after[:, 2]) > 0.3)
        return Outcome(after, np.ones(len(states)), ended)


class Tanks(System):
    """Two tanks: water is let into the first, runs into the second and out; its level is to be kept, without a spill.

    What runs out of a tank goes with the root of its level (Torricelli). Some people let in more than others.
    """

    name = "tanks"
    box = [(0.0, 2.0), (0.0, 2.0)]  # noqa: RUF012
    low, high, steps = 0.0, 1.0, 50
    action_box = [(0.0, 1.0)]  # noqa: RUF012

    @property
    def model(self) -> WorldModel:
        return WorldModel(degree=2)

    def start(self, rng: Rng, people: Array) -> Array:
        return rng.uniform(0.1, 1.0, (len(people), 2))

    def behave(self, rng: Rng, people: Array, states: Array) -> Array:
        return np.clip(people + rng.uniform(-0.5, 0.5, (len(states), 1)), 0, 1)

    def step(self, rng: Rng, people: Array, states: Array, actions: Array) -> Outcome:
        first, second = states.T
        over, out = 0.15 * np.sqrt(first), 0.15 * np.sqrt(second)
        first = first + 0.3 * np.clip(actions[:, 0], 0, 1) - over + 0.01 * rng.standard_normal(len(first))
        second = second + over - out
        ended = (first > 1.9) | (second > 1.9)
        rewards = np.where(ended, 0.0, np.maximum(0.0, 1 - 2 * (second - 1.2) ** 2))
        return Outcome(np.clip(np.stack([first, second], axis=1), 0, 2), rewards, ended)


class Spring(System):
    """A mass on a spring that has to be swung beyond what a push reaches: each step costs 1 until it is there.

    People push along to some degree, and else at random.
    """

    name = "spring"
    box = [(-1.3, 1.3), (-0.2, 0.2)]  # noqa: RUF012
    low, high, steps = -1.0, 0.0, 150
    action_box = [(-1.0, 1.0)]  # noqa: RUF012

    def start(self, rng: Rng, people: Array) -> Array:
        return rng.uniform([-0.1, -0.01], [0.1, 0.01], (len(people), 2))

    def behave(self, rng: Rng, people: Array, states: Array) -> Array:
        random = rng.uniform(-1, 1, len(states))
        along = np.sign(states[:, 1]) * np.abs(random)
        return np.where(rng.random(len(states)) < people[:, 0], along, random)[:, None]

    def step(self, rng: Rng, people: Array, states: Array, actions: Array) -> Outcome:
        speed = 0.99 * states[:, 1] - 0.02 * states[:, 0] + 0.006 * np.clip(actions[:, 0], -1, 1)
        after = np.stack([states[:, 0] + speed, speed], axis=1)
        ended = after[:, 0] > 1
        return Outcome(after, np.where(ended, 0.0, -1.0), ended)


DEVELOPMENT: dict[str, System] = {one.name: one for one in (RandomLinear(), HeavyPole(), Tanks(), Spring())}
