"""The systems that worlds are reported on: dosing, recommending, two of Gymnasium's, and a rare harm.

No setting of any method was chosen on them: for that, see `development_systems.py`.
"""

from functools import partial
from typing import Any, ClassVar

import numpy as np

from benchmarks.session_data import Array, Outcome, Rng, System
from quietq.mechanisms.world_model import WorldModel
from quietq.noise.feature_maps import Polynomials


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
    GB, IB, ABSORPTION = 110.0, 15.0, 0.05
    BASAL = N * VOLUME * IB
    MINUTES, HYPOGLYCAEMIA = 30, 54.0

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
        infusion = 1000 * np.clip(actions[:, 0], 0, 3) / self.MINUTES
        for _ in range(self.MINUTES):
            absorbed = self.ABSORPTION * meal
            glucose = glucose - self.P1 * (glucose - self.GB) - effect * glucose + absorbed
            effect = effect - self.P2 * effect + self.P3 * people[:, 0] * (insulin - self.IB)
            insulin = insulin - self.N * (insulin - self.IB) + (infusion - self.BASAL) / self.VOLUME
            meal = meal - absorbed
        glucose = glucose * np.exp(0.02 * rng.standard_normal(len(glucose)))
        ended = glucose < self.HYPOGLYCAEMIA
        rewards = np.where(ended, 0.0, np.maximum(0.0, 1 - ((glucose - 110) / 60) ** 2))
        meal = meal + self._meal(rng, len(meal))
        return Outcome(np.stack([glucose, effect, insulin, meal], axis=1), rewards, ended)

    def _meal(self, rng: Rng, number: int) -> Array:
        return np.where(rng.random(number) < 0.1, rng.uniform(40, 160, number), 0.0)


def _catalogue() -> Array:
    points = np.random.default_rng(8).standard_normal((100, 8))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


class Recommender(System):
    """A shop with 100 items, known by eight public attributes each; people's tastes follow what they are shown.

    An item v is clicked on with probability 1/(1 + exp(1 - 4 s.v)), and the taste s goes a tenth of the way to it
    (mere exposure). People are shown something at random, or what is near to their taste, some more than others.
    """

    name = "recommender"
    box = [(-1.0, 1.0)] * 8
    low, high, steps, ends = 0.0, 1.0, 20, False
    action_box = [(-1.0, 1.0)] * 8
    items: ClassVar[Array] = _catalogue()  # pyright: ignore[reportIncompatibleVariableOverride]

    def start(self, rng: Rng, people: Array) -> Array:
        taste = rng.standard_normal((len(people), 8))
        return 0.6 * taste / np.linalg.norm(taste, axis=1, keepdims=True)

    def behave(self, rng: Rng, people: Array, states: Array) -> Array:
        near = (states @ self.items.T + 0.5 * rng.standard_normal((len(states), 100))).argmax(axis=1)
        shown = np.where(rng.random(len(states)) < people[:, 0] / 2, near, rng.integers(0, 100, len(states)))
        return self.items[shown]

    def step(self, rng: Rng, people: Array, states: Array, actions: Array) -> Outcome:
        clicked = rng.random(len(states)) < 1 / (1 + np.exp(1 - 4 * (states * actions).sum(axis=1)))
        moved = states + 0.1 * (actions - states) + 0.02 * rng.standard_normal(states.shape)
        return Outcome(np.clip(moved, -1, 1), clicked.astype(float), np.zeros(len(states), bool))


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

    name, gymnasium = "Acrobot-v1", "Acrobot-v1"
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

    def _end(self, after: Any) -> Any:
        """-cos(one) - cos(one + two) > 1"""
        one, sine, two, other = (after[..., i] for i in range(4))
        return -one - (one * two - sine * other) > 1

    def _reward(self, states: Any, actions: Any, after: Any) -> Any:
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

    def action_there(self, action: Array) -> Any:
        return round(float(np.clip(action[0], -1, 1))) + 1


def _turned(wanted: int, states: Any, actions: Any, after: Any) -> Any:
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

    name, gymnasium = "MountainCarContinuous-v0", "MountainCarContinuous-v0"
    box = [(-1.25, 0.65), (-0.075, 0.075)]  # noqa: RUF012
    low, high, steps, recorded, planning = -0.1, 100.0, 999, 200, 300
    action_box = [(-1.0, 1.0)]  # noqa: RUF012

    @property
    def model(self) -> WorldModel:
        terms = (*(((i, 1),) for i in range(3)), *(((0, k),) for k in range(2, 7)))
        return WorldModel(
            features=Polynomials(3, terms), reward=self._reward, end=self._end,
            moves={0: lambda states, actions, after: np.clip(states[..., 0] + after[..., 1], -1.2, 0.6)},
        )  # fmt: skip

    def _end(self, after: Any) -> Any:
        return (after[..., 0] >= 0.45) & (after[..., 1] >= 0)

    def _reward(self, states: Any, actions: Any, after: Any) -> Any:
        return 100.0 * self._end(after) - 0.1 * actions[..., 0] ** 2

    def start(self, rng: Rng, people: Array) -> Array:
        return np.stack([rng.uniform(-0.6, -0.4, len(people)), np.zeros(len(people))], axis=1)

    def behave(self, rng: Rng, people: Array, states: Array) -> Array:
        random = rng.uniform(-1, 1, len(states))
        along = np.sign(states[:, 1]) * np.abs(random)
        return np.where(rng.random(len(states)) < people[:, 0], along, random)[:, None]

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


REPORTED: dict[str, System] = {one.name: one() for one in (Glucose, Recommender, Acrobot, MountainCar, RareHarm)}
