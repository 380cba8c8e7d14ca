"""Systems that people act in, written for many copies at once: their sessions, and the true return of a policy.

A system is a law: who people are, where they begin, what a step does, and how they behave. REPORTED are dosing, a rare
harm and four of Gymnasium's, as people play them: the law for many copies at once, and Gymnasium's own environment for
returns. No setting of any method was chosen on them, but the estimator of private worlds was developed with CartPole
and Pendulum in sight. On the DEVELOPMENT systems settings were chosen. Everything here is about synthetic people.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, NamedTuple

import gymnasium
import numpy as np
import polars as pl

import quietq as qq
from quietq.feedback.spaces import Spaces
from quietq.noise.box import Box
from quietq.noise.feature_maps import Polynomials
from quietq.released.world_model import WorldModel

Array = np.ndarray
Rng = np.random.Generator
Policy = Callable[[Array], Array]
"""From states to actions, one row for each copy, both in their own units."""


Row = tuple[Array, Array, Array, Array, Array, Array]
"""States, actions, what they led to (states, rewards, ends), and whose episode had not ended before: of each copy."""


class Outcome(NamedTuple):
    """What a step led to, for each copy."""

    states: Array
    rewards: Array
    ended: Array


class System(ABC):
    """A law of people's sessions, and what is declared of it."""

    name: str
    box: ClassVar[list[tuple[float, float]]]
    low: ClassVar[float]
    high: ClassVar[float]
    """Of rewards."""
    steps: ClassVar[int]
    """The time limit of an episode."""
    recorded: ClassVar[int | None] = None
    """How many steps of each person are recorded, if not the whole episode."""
    actions: ClassVar[int | None] = None
    action_box: ClassVar[list[tuple[float, float]] | None] = None
    items: ClassVar[Array | None] = None
    """If actions are points of a public list, in the box."""
    in_gymnasium: ClassVar[bool] = False
    """Whether this is a copy of Gymnasium's environment of this name."""
    ends: ClassVar[bool] = True
    planning: ClassVar[int | None] = None
    """How many steps plans are judged by, if not the whole episode."""
    ahead: ClassVar[int | None] = None
    """If actions are sought in every state anew, so many steps ahead."""

    @property
    def model(self) -> WorldModel:
        """Features of the dynamics, and what is known: the same for all methods."""
        return WorldModel()

    @cached_property
    def spaces(self) -> Spaces:
        acting = None if self.action_box is None else Box.of(self.action_box)
        return Spaces(Box.of(self.box), self.actions, acting, self.low, self.high)

    @property
    def unit_items(self) -> Array | None:
        """The items, in the unit box of actions."""
        acting = self.spaces.action_box
        return None if self.items is None or acting is None else (self.items - acting.low) / np.array(acting.width)

    def people(self, rng: Rng, number: int) -> Array:
        """Traits of people: how they are, and how they behave."""
        return rng.random((number, 1))

    @abstractmethod
    def start(self, rng: Rng, people: Array) -> Array: ...

    @abstractmethod
    def step(self, rng: Rng, people: Array, states: Array, actions: Array) -> Outcome: ...

    @abstractmethod
    def behave(self, rng: Rng, people: Array, states: Array) -> Array: ...

    def roll(self, rng: Rng, number: int, steps: int, act: Callable[[Rng, Array, Array], Array]) -> Iterator[Row]:
        """Episodes of so many people, step by step, until all have ended; `act` is given traits and states."""
        people = self.people(rng, number)
        states, alive = self.start(rng, people), np.ones(number, bool)
        for _ in range(steps):
            actions = act(rng, people, states)
            found = self.step(rng, people, states, actions)
            yield states, actions, found.states, found.rewards, found.ended, alive
            states, alive = found.states, alive & ~found.ended
            if not alive.any():
                break

    def sessions(self, people: int, seed: int) -> "Steps":
        """One episode of each person, as people behave."""
        rows = self.roll(np.random.default_rng([seed, people]), people, self.recorded or self.steps, self.behave)
        return Steps(self, *(np.stack(column, axis=1) for column in zip(*rows, strict=True)))

    def value(self, policy: Policy, seed: int, episodes: int = 50) -> float:
        """The mean true return, in Gymnasium's own environment where there is one."""
        if not self.in_gymnasium:
            return self._mean_return([seed, 1], episodes, lambda rng, people, states: policy(states))
        envs = [gymnasium.make(self.name) for _ in range(episodes)]
        states = np.array([env.reset(seed=1000 * seed + i)[0] for i, env in enumerate(envs)], float)
        returns, alive = np.zeros(episodes), np.ones(episodes, bool)
        while alive.any():
            actions = policy(states)
            for i in np.flatnonzero(alive):
                states[i], reward, ended, cut, _ = envs[i].step(self.action_there(actions[i]))
                returns[i], alive[i] = returns[i] + float(reward), not (ended or cut)
        return float(returns.mean())

    def value_of_behaviour(self, seed: int = 0) -> float:
        """The mean return of people as they are."""
        return self._mean_return([seed, 2], 1000, self.behave)

    def _mean_return(self, seed: list[int], episodes: int, act: Callable[[Rng, Array, Array], Array]) -> float:
        returns = np.zeros(episodes)
        for _, _, _, rewards, _, alive in self.roll(np.random.default_rng(seed), episodes, self.steps, act):
            returns += alive * rewards
        return float(returns.mean())

    def action_there(self, action: Array) -> int | Array:
        """An action as Gymnasium's environment takes it."""
        return int(action) if self.actions is not None else np.asarray(action, np.float32)


@dataclass(frozen=True, eq=False)
class Steps:
    """People's steps, one row each for as many steps as the longest has; `there` says which of them were made."""

    system: System
    states: Array
    actions: Array
    after: Array
    rewards: Array
    ended: Array
    there: Array

    @property
    def people(self) -> int:
        return len(self.there)

    def frame(self) -> pl.DataFrame:
        person, step = np.nonzero(self.there)
        columns: dict[str, Array] = {"person": person, "step": step}
        for name, array in (("s", self.states), ("n", self.after)):
            columns |= {f"{name}{i}": array[person, step, i] for i in range(array.shape[-1])}
        if self.system.actions is not None:
            columns["action"] = self.actions[person, step]
        else:
            columns |= {f"a{i}": self.actions[person, step, i] for i in range(self.actions.shape[-1])}
        columns |= {"reward": self.rewards[person, step], "end": self.ended[person, step].astype(int)}
        return pl.DataFrame(columns)

    def read(self) -> qq.Sessions:
        system = self.system
        states = range(len(system.box))
        action, actions = "action", range(system.actions or 0)
        if system.action_box is not None:
            action, actions = [f"a{i}" for i in range(len(system.action_box))], system.action_box
        return qq.Sessions.read(
            self.frame(),
            step="step",
            state=[f"s{i}" for i in states],
            next_state=[f"n{i}" for i in states],
            reward="reward",
            low=system.low,
            high=system.high,
            end="end" if system.ends else None,
            box=system.box,
            people=self.people,
            action=action,
            actions=actions,
        )

    def unit(self) -> "Steps":
        """The same in the unit box, as methods see it: what lies outside is moved to the nearer end."""
        spaces = self.system.spaces

        def scaled(values: Array, box: Box) -> Array:
            return np.clip((values - box.low) / np.array(box.width), 0.0, 1.0)

        acting = spaces.action_box
        actions = self.actions if acting is None else scaled(self.actions, acting)
        rewards = np.clip((self.rewards - spaces.low) / (spaces.high - spaces.low), 0.0, 1.0)
        return Steps(
            self.system,
            scaled(self.states, spaces.box),
            actions,
            scaled(self.after, spaces.box),
            rewards,
            self.ended,
            self.there,
        )


def _along(rng: Rng, people: Array, states: Array) -> Array:
    """A push in [-1, 1] at random, turned along the speed as often as a person does so."""
    random = rng.uniform(-1, 1, len(states))
    along = np.sign(states[:, 1]) * np.abs(random)
    return np.where(rng.random(len(states)) < people[:, 0], along, random)[:, None]


class CartPole(System):
    """Gymnasium's CartPole-v1: Barto, Sutton & Anderson's equations; people push at random."""

    name, in_gymnasium = "CartPole-v1", True
    box = [(-2.5, 2.5), (-4, 4), (-0.3, 0.3), (-4, 4)]  # noqa: RUF012
    low, high, steps, recorded, planning, actions = 0.0, 1.0, 500, 200, 300, 2

    def start(self, rng: Rng, people: Array) -> Array:
        return rng.uniform(-0.05, 0.05, (len(people), 4))

    def behave(self, rng: Rng, people: Array, states: Array) -> Array:
        return rng.integers(0, 2, len(states))

    def step(self, rng: Rng, people: Array, states: Array, actions: Array) -> Outcome:
        """A cart of mass 1, a pole of mass 0.1 and half length 0.5, pushed by a force of 10, in steps of 0.02 s."""
        _, speed, angle, turn = states.T
        mass, moment = 1.1, 0.1 * 0.5
        force = np.where(actions > 0, 10.0, -10.0)
        pushed = (force + moment * turn**2 * np.sin(angle)) / mass
        tipped = (9.8 * np.sin(angle) - np.cos(angle) * pushed) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / mass))
        moved = pushed - moment * tipped * np.cos(angle) / mass
        after = states + 0.02 * np.stack([speed, moved, turn, tipped], axis=1)
        ended = (np.abs(after[:, 0]) > 2.4) | (np.abs(after[:, 2]) > 12 * np.pi / 180)
        return Outcome(after, np.ones(len(states)), ended)


class Pendulum(System):
    """Gymnasium's Pendulum-v1, whose angle is seen as cosine and sine; people push at random."""

    name, in_gymnasium = "Pendulum-v1", True
    box = [(-1.1, 1.1), (-1.1, 1.1), (-8.5, 8.5)]  # noqa: RUF012
    action_box = [(-2, 2)]  # noqa: RUF012
    low, high, steps, ends, ahead = -16.3, 0.0, 200, False, 25

    @property
    def model(self) -> WorldModel:
        return WorldModel(degree=2)

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


class Glucose(System):
    """A day of insulin doses every half hour, by Bergman's minimal model, with meals and early ends.

    dG/dt = -p1 (G - Gb) - X G + absorbed,  dX/dt = -p2 X + p3 (I - Ib),  dI/dt = -n (I - Ib) + (dose - basal)/V
    (Bergman, Phillips & Cobelli, J. Clin. Invest. 68, 1981; insulin and meals that fade like exp(-t/20 min) as in
    Fisher, IEEE Trans. Biomed. Eng. 38, 1991). States are glucose G (mg/dL), the action X of insulin (1/min), insulin I
    (mU/L) and what of a meal is not absorbed yet (mg/dL). A step is worth 1 at G = 110 and 0 from 50 and 170 on. Below
    54 the episode ends. People differ in how insulin works in them (a tenth), and in how they dose themselves.
    """

    name = "glucose"
    box = [(20, 400), (-0.01, 0.05), (0, 110), (0, 250)]  # noqa: RUF012
    low, high, steps = 0.0, 1.0, 48
    action_box = [(0.0, 3.0)]  # noqa: RUF012 (units of insulin)
    P1, P2, P3, N, VOLUME = 0.01, 0.025, 1.25e-5, 5 / 54, 12.0
    GB, IB = 110.0, 15.0

    @property
    def model(self) -> WorldModel:
        return WorldModel(degree=2)

    def people(self, rng: Rng, number: int) -> Array:
        """Sensitivity, and doses: at rest, for high glucose, for meals."""
        low, high = np.array([0.0, 0.0, 0.0]), np.array([1.6, 1.2, 2.0])
        return np.hstack([np.exp(0.1 * rng.standard_normal((number, 1))), rng.uniform(low, high, (number, 3))])

    def start(self, rng: Rng, people: Array) -> Array:
        number = len(people)
        glucose = rng.uniform(90, 180, number)
        return np.stack([glucose, np.zeros(number), np.full(number, self.IB), self._meal(rng, number)], axis=1)

    def behave(self, rng: Rng, people: Array, states: Array) -> Array:
        glucose, meal = states[:, 0], states[:, 3]
        dose = 0.5 * people[:, 1] + people[:, 2] * (glucose - 110) / 50 + people[:, 3] * meal / 80
        return np.clip(dose * np.exp(0.5 * rng.standard_normal(len(dose))), 0, 3)[:, None]

    def step(self, rng: Rng, people: Array, states: Array, actions: Array) -> Outcome:
        glucose, effect, insulin, meal = states.T
        infusion, basal = 1000 * np.clip(actions[:, 0], 0, 3) / 30, self.N * self.VOLUME * self.IB
        for _ in range(30):  # minutes
            absorbed = 0.05 * meal
            glucose = glucose - self.P1 * (glucose - self.GB) - effect * glucose + absorbed
            effect = effect - self.P2 * effect + self.P3 * people[:, 0] * (insulin - self.IB)
            insulin = insulin - self.N * (insulin - self.IB) + (infusion - basal) / self.VOLUME
            meal = meal - absorbed
        glucose = glucose * np.exp(0.02 * rng.standard_normal(len(glucose)))
        ended = glucose < 54.0
        rewards = np.where(ended, 0.0, np.maximum(0.0, 1 - ((glucose - 110) / 60) ** 2))
        meal = meal + self._meal(rng, len(meal))
        return Outcome(np.stack([glucose, effect, insulin, meal], axis=1), rewards, ended)

    def _meal(self, rng: Rng, number: int) -> Array:
        return np.where(rng.random(number) < 0.1, rng.uniform(40, 160, number), 0.0)


_PLACES = {"c": 0, "s": 1, "C": 2, "S": 3, "v": 4, "V": 5, "u": 6}
_ODD = "s S v V u cS sC cv cV Cv CV SC uC vvv VVV cCv cCV sSv sSV Svv SVV SvV vvV vVV cCS sCC CSvv CSVV CSvV"
_TERMS = sorted(
    (
        tuple(sorted((_PLACES[letter], term.count(letter)) for letter in set(term)))
        for term in (*_ODD.split(), "Cvvv", "CvvV", "CvVV", "CVVV")
    ),
    key=len,
)
"""Cosine, sine and speed of the first link (c, s, v) and of the second (C, S, V), and the torque u."""


class Acrobot(System):
    """Gymnasium's Acrobot-v1; torque is a number. People swing along to some degree, and else act at random."""

    name, in_gymnasium = "Acrobot-v1", True
    box = [(-1, 1)] * 4 + [(-9.0, 9.0), (-15.0, 15.0)]
    low, high, steps, recorded, planning = -1.0, 0.0, 500, 200, 300
    action_box = [(-1.0, 1.0)]  # noqa: RUF012
    items = np.array([[-1.0], [0.0], [1.0]])

    @property
    def model(self) -> WorldModel:
        """Angles follow from speeds, over the step of 0.2 s; how speeds change is learned. The rule of the game, that a
        step costs 1 until the tip is a link's length above the bar, is public.

        Mirrored states move in mirrored ways, so only odd features count; they are the terms of the equations of motion
        and of their change over a step (tried on other people's steps than those reported).
        """
        moves = {i: partial(_turned, i) for i in range(4)}
        features = Polynomials(7, tuple(_TERMS))
        return WorldModel(features=features, moves=moves, reward=self._reward, end=self._end)

    def _end(self, after: Array) -> Array:
        """-cos(one) - cos(one + two) > 1"""
        one, sine, two, other = (after[..., i] for i in range(4))
        return -one - (one * two - sine * other) > 1

    def _reward(self, states: Array, actions: Array, after: Array) -> Array:
        return np.where(self._end(after), 0.0, -1.0)

    def start(self, rng: Rng, people: Array) -> Array:
        return self._seen(rng.uniform(-0.1, 0.1, (len(people), 4)))

    def behave(self, rng: Rng, people: Array, states: Array) -> Array:
        along = np.sign(states[:, 5])
        random = rng.integers(-1, 2, len(states))
        return np.where(rng.random(len(states)) < people[:, 0], along, random)[:, None]

    def step(self, rng: Rng, people: Array, states: Array, actions: Array) -> Outcome:
        angles = np.stack([np.arctan2(states[:, 1], states[:, 0]), np.arctan2(states[:, 3], states[:, 2])], axis=1)
        before, torque = np.hstack([angles, states[:, 4:]]), np.round(np.clip(actions[:, 0], -1, 1))
        k1 = self._slope(before, torque)
        k2 = self._slope(before + 0.1 * k1, torque)
        k3 = self._slope(before + 0.1 * k2, torque)
        k4 = self._slope(before + 0.2 * k3, torque)
        after = before + 0.2 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        after[:, 2:] = np.clip(after[:, 2:], [-4 * np.pi, -9 * np.pi], [4 * np.pi, 9 * np.pi])
        ended = -np.cos(after[:, 0]) - np.cos(after[:, 0] + after[:, 1]) > 1
        return Outcome(self._seen(after), np.where(ended, 0.0, -1.0), ended)

    def _seen(self, state: Array) -> Array:
        one, two, *speeds = state.T
        return np.stack([np.cos(one), np.sin(one), np.cos(two), np.sin(two), *speeds], axis=1)

    def _slope(self, state: Array, torque: Array) -> Array:
        """Sutton & Barto's equations: links of length and mass 1, their centres at 1/2, moments of inertia 1."""
        one, two, fast, faster = state.T
        d1 = 3.5 + np.cos(two)
        d2 = 1.25 + 0.5 * np.cos(two)
        phi2 = 0.5 * 9.8 * np.sin(one + two)
        phi1 = -0.5 * np.sin(two) * faster * (faster + 2 * fast) + 1.5 * 9.8 * np.sin(one) + phi2
        second = (torque + d2 / d1 * phi1 - 0.5 * fast**2 * np.sin(two) - phi2) / (1.25 - d2**2 / d1)
        return np.stack([fast, faster, -(d2 * second + phi1) / d1, second], axis=1)

    def action_there(self, action: Array) -> int:
        return round(float(np.clip(action[0], -1, 1))) + 1


def _turned(wanted: int, states: Array, actions: Array, after: Array) -> Array:
    """A cosine or sine, after a turn by the mean speed of before and after."""
    first, speed = 2 * (wanted // 2), 4 + wanted // 2
    angle = 0.1 * (states[..., speed] + after[..., speed])
    cosine, sine = states[..., first], states[..., first + 1]
    if wanted == first:
        return cosine * np.cos(angle) - sine * np.sin(angle)
    return sine * np.cos(angle) + cosine * np.sin(angle)


class MountainCar(System):
    """Gymnasium's MountainCarContinuous-v0. People push along to some degree, and else act at random.

    That reaching the goal is worth 100, and effort a tenth of its square, is the rule of the game and public; how the
    car moves is learned, but that its place follows its speed is known.
    """

    name, in_gymnasium = "MountainCarContinuous-v0", True
    box = [(-1.25, 0.65), (-0.075, 0.075)]  # noqa: RUF012
    low, high, steps, recorded, planning = -0.1, 100.0, 999, 200, 300
    action_box = [(-1.0, 1.0)]  # noqa: RUF012

    @property
    def model(self) -> WorldModel:
        terms = (*(((i, 1),) for i in range(3)), *(((0, k),) for k in range(2, 7)))
        return WorldModel(
            features=Polynomials(3, terms),
            reward=self._reward,
            end=self._end,
            moves={0: lambda states, actions, after: np.clip(states[..., 0] + after[..., 1], -1.2, 0.6)},
        )

    def _end(self, after: Array) -> Array:
        return (after[..., 0] >= 0.45) & (after[..., 1] >= 0)

    def _reward(self, states: Array, actions: Array, after: Array) -> Array:
        return 100.0 * self._end(after) - 0.1 * actions[..., 0] ** 2

    def start(self, rng: Rng, people: Array) -> Array:
        return np.stack([rng.uniform(-0.6, -0.4, len(people)), np.zeros(len(people))], axis=1)

    def behave(self, rng: Rng, people: Array, states: Array) -> Array:
        return _along(rng, people, states)

    def step(self, rng: Rng, people: Array, states: Array, actions: Array) -> Outcome:
        force = np.clip(actions[:, 0], -1, 1)
        speed = np.clip(states[:, 1] + 0.0015 * force - 0.0025 * np.cos(3 * states[:, 0]), -0.07, 0.07)
        place = np.clip(states[:, 0] + speed, -1.2, 0.6)
        after = np.stack([place, np.where((place == -1.2) & (speed < 0), 0.0, speed)], axis=1)
        ended = np.asarray(self._end(after))
        return Outcome(after, 100.0 * ended - 0.1 * actions[:, 0] ** 2, ended)


class RareHarm(System):
    """Harm, worth -1, comes with probability 0.02 (1 + x); people go to and fro in [0, 1], and it can be gone from."""

    name = "rare harm"
    box = [(0.0, 1.0)]  # noqa: RUF012
    low, high, steps, ends, actions = -1.0, 0.0, 20, False, 2

    def start(self, rng: Rng, people: Array) -> Array:
        return rng.random((len(people), 1))

    def behave(self, rng: Rng, people: Array, states: Array) -> Array:
        return rng.integers(0, 2, len(states))

    def step(self, rng: Rng, people: Array, states: Array, actions: Array) -> Outcome:
        place = states[:, 0]
        harmed = rng.random(len(place)) < 0.02 * (1 + place)
        moved = place + np.where(actions > 0, 0.1, -0.1) + 0.02 * rng.standard_normal(len(place))
        return Outcome(np.clip(moved, 0, 1)[:, None], -harmed.astype(float), np.zeros(len(place), bool))


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
        return _along(rng, people, states)

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
            features=Polynomials(3, terms),
            reward=self._reward,
            end=self._end,
            moves={0: lambda states, actions, after: np.clip(states[..., 0] + after[..., 1], -1.3, 1.3)},
        )

    def _end(self, after: Array) -> Array:
        return np.abs(after[..., 0]) >= 1.1

    def _reward(self, states: Array, actions: Array, after: Array) -> Array:
        return 10.0 * self._end(after) - 0.05 * actions[..., 0] ** 2

    def start(self, rng: Rng, people: Array) -> Array:
        return np.stack([rng.uniform(-0.2, 0.2, len(people)), np.zeros(len(people))], axis=1)

    def behave(self, rng: Rng, people: Array, states: Array) -> Array:
        return _along(rng, people, states)

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


REPORTED: dict[str, System] = {
    one.name: one for one in (CartPole(), Pendulum(), Glucose(), Acrobot(), MountainCar(), RareHarm())
}
DEVELOPMENT: dict[str, System] = {
    one.name: one for one in (RandomLinear(), Tanks(), Spring(), Bowl(), Boiler(), RareFind())
}
