"""Systems on which settings may be chosen; nothing is reported of them but what was chosen."""

from typing import Any

import numpy as np

from benchmarks.session_data import Array, Outcome, Rng, System
from quietq.mechanisms.world_model import WorldModel
from quietq.noise.feature_maps import Polynomials


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


class Bowl(System):
    """A ball in a bowl whose wall gets steeper, to be swung over its rim: worth 10, less what pushing costs.

    The rim is farther out than nearly everybody gets, so the goal lies where there is little data. People push along to
    some degree. The rules of the game are known; how the ball moves is learned, but that its place follows its speed.
    """

    name = "bowl"
    box = [(-1.4, 1.4), (-0.25, 0.25)]  # noqa: RUF012
    low, high, steps, planning = -0.05, 10.0, 200, 200
    recorded = 100
    action_box = [(-1.0, 1.0)]  # noqa: RUF012

    @property
    def model(self) -> WorldModel:
        terms = (*(((i, 1),) for i in range(3)), *(((0, k),) for k in range(2, 6)))
        return WorldModel(
            features=Polynomials(3, terms), reward=self._reward, end=self._end,
            moves={0: lambda states, actions, after: np.clip(states[..., 0] + after[..., 1], -1.3, 1.3)},
        )  # fmt: skip

    def _end(self, after: Any) -> Any:
        return np.abs(after[..., 0]) >= 1.1

    def _reward(self, states: Any, actions: Any, after: Any) -> Any:
        return 10.0 * self._end(after) - 0.05 * actions[..., 0] ** 2

    def start(self, rng: Rng, people: Array) -> Array:
        return np.stack([rng.uniform(-0.2, 0.2, len(people)), np.zeros(len(people))], axis=1)

    def behave(self, rng: Rng, people: Array, states: Array) -> Array:
        random = rng.uniform(-1, 1, len(states))
        along = np.sign(states[:, 1]) * np.abs(random)
        return np.where(rng.random(len(states)) < people[:, 0], along, random)[:, None]

    def step(self, rng: Rng, people: Array, states: Array, actions: Array) -> Outcome:
        place, speed = states.T
        force = np.clip(actions[:, 0], -1, 1)
        speed = speed - 0.012 * place - 0.01 * place**3 + 0.002 * np.sin(5 * place) + 0.004 * force
        after = np.stack([np.clip(place + speed, -1.3, 1.3), speed], axis=1)
        ended = np.asarray(self._end(after))
        return Outcome(after, 10.0 * ended - 0.05 * actions[:, 0] ** 2, ended)


class Boiler(System):
    """Heat, and steam that follows it late, with much noise; the best is where few people heat, and too much ends it.

    Losses grow with the square of heat, and steam carries heat away. People heat by habit, and by how cold it is.
    """

    name = "boiler"
    box = [(0.0, 3.0), (0.0, 3.0)]  # noqa: RUF012
    low, high, steps = 0.0, 1.0, 40
    action_box = [(0.0, 1.0)]  # noqa: RUF012

    @property
    def model(self) -> WorldModel:
        return WorldModel(degree=2)

    def start(self, rng: Rng, people: Array) -> Array:
        return rng.uniform(0.2, 0.9, (len(people), 2))

    def behave(self, rng: Rng, people: Array, states: Array) -> Array:
        wanted = 0.25 * people + 0.5 * people * (1 - states[:, :1])
        return np.clip(wanted * np.exp(0.4 * rng.standard_normal((len(states), 1))), 0, 1)

    def step(self, rng: Rng, people: Array, states: Array, actions: Array) -> Outcome:
        heat, steam = states.T
        warmer = heat + 0.35 * np.clip(actions[:, 0], 0, 1) - 0.05 * heat**2 - 0.06 * heat * steam
        after = np.stack([warmer, steam + 0.25 * (heat - steam)], axis=1)
        after = np.clip(after * np.exp([0.05, 0.02] * rng.standard_normal(after.shape)), 0, 3)
        ended = after[:, 1] > 1.8
        rewards = np.where(ended, 0.0, np.maximum(0.0, 1 - 3 * (after[:, 1] - 1.3) ** 2))
        return Outcome(after, rewards, ended)


class RareFind(System):
    """Finds, worth 1, come with probability 0.1 (1 - x)^2 left of a hill and 0.02 on it; people wander."""

    name = "rare find"
    box = [(0.0, 1.0), (0.0, 1.0)]  # noqa: RUF012
    low, high, steps, ends, actions = 0.0, 1.0, 30, False, 4

    def start(self, rng: Rng, people: Array) -> Array:
        return rng.uniform(0.3, 0.9, (len(people), 2))

    def behave(self, rng: Rng, people: Array, states: Array) -> Array:
        return rng.integers(0, 4, len(states))

    def step(self, rng: Rng, people: Array, states: Array, actions: Array) -> Outcome:
        place, far = states.T
        found = rng.random(len(place)) < 0.02 + 0.1 * (1 - place) ** 2 * far
        way = np.array([[0.08, 0.0], [-0.08, 0.0], [0.0, 0.08], [0.0, -0.08]])[actions]
        moved = states + way + 0.02 * rng.standard_normal(states.shape)
        return Outcome(np.clip(moved, 0, 1), found.astype(float), np.zeros(len(place), bool))


DEVELOPMENT: dict[str, System] = {
    one.name: one for one in (RandomLinear(), HeavyPole(), Tanks(), Spring(), Bowl(), Boiler(), RareFind())
}
