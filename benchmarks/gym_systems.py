"""CartPole and Pendulum as people play them at random: the law for many copies at once, and Gymnasium's for returns.

Boxes are those of `world_tasks.py`. The estimator of private worlds was developed with these two in sight, so what is
reported of them is no test on unseen systems; settings of its peers were chosen elsewhere.
"""

import numpy as np

from benchmarks.session_data import Array, Outcome, Rng, System
from benchmarks.world_tasks import CARTPOLE, PENDULUM
from quietq.mechanisms.world_model import WorldModel


class CartPole(System):
    """Gymnasium's CartPole-v1: Barto, Sutton & Anderson's equations; people push at random."""

    name, gymnasium = "CartPole-v1", "CartPole-v1"
    box = CARTPOLE.box
    low, high, steps, recorded, planning, actions = 0.0, 1.0, 500, 200, 300, 2

    def start(self, rng: Rng, people: Array) -> Array:
        return rng.uniform(-0.05, 0.05, (len(people), 4))

    def behave(self, rng: Rng, people: Array, states: Array) -> Array:
        return rng.integers(0, 2, len(states))

    def step(self, rng: Rng, people: Array, states: Array, actions: Array) -> Outcome:
        _, speed, angle, turn = states.T
        pushed = (np.where(actions > 0, 10.0, -10.0) + 0.05 * turn**2 * np.sin(angle)) / 1.1
        tipped = (9.8 * np.sin(angle) - np.cos(angle) * pushed) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
        moved = pushed - 0.05 * tipped * np.cos(angle) / 1.1
        after = states + 0.02 * np.stack([speed, moved, turn, tipped], axis=1)
        ended = (np.abs(after[:, 0]) > 2.4) | (np.abs(after[:, 2]) > 12 * np.pi / 180)
        return Outcome(after, np.ones(len(states)), ended)


class Pendulum(System):
    """Gymnasium's Pendulum-v1, whose angle is seen as cosine and sine; people push at random."""

    name, gymnasium = "Pendulum-v1", "Pendulum-v1"
    box, action_box = PENDULUM.box, PENDULUM.action_box
    low, high, steps, ends, ahead = PENDULUM.low, PENDULUM.high, 200, False, 25

    @property
    def model(self) -> WorldModel:
        return WorldModel(degree=PENDULUM.degree)

    def start(self, rng: Rng, people: Array) -> Array:
        angle, speed = rng.uniform([-np.pi, -1], [np.pi, 1], (len(people), 2)).T
        return np.stack([np.cos(angle), np.sin(angle), speed], axis=1)

    def behave(self, rng: Rng, people: Array, states: Array) -> Array:
        return rng.uniform(-2, 2, (len(states), 1))

    def step(self, rng: Rng, people: Array, states: Array, actions: Array) -> Outcome:
        angle, speed, torque = np.arctan2(states[:, 1], states[:, 0]), states[:, 2], np.clip(actions[:, 0], -2, 2)
        rewards = -(angle**2 + 0.1 * speed**2 + 0.001 * torque**2)
        speed = np.clip(speed + (15 * np.sin(angle) + 3 * torque) * 0.05, -8, 8)
        angle = angle + 0.05 * speed
        after = np.stack([np.cos(angle), np.sin(angle), speed], axis=1)
        return Outcome(after, rewards, np.zeros(len(states), bool))


GYM: dict[str, System] = {one.name: one() for one in (CartPole, Pendulum)}
