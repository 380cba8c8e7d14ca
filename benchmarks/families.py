"""Synthetic people, by fixed laws: what they rate, compare and choose is known, so a private reward can be scored.

A draw is a shape of reward g on [0, 1]^d, people who each have a taste of their own, and rows of what they gave:

- taste: person u rewards state x with g(x - s_u), held to [0, 1]; s_u is normal with deviation 0.1 in each coordinate.
- ratings: 20 for each person, of states of their own; each has normal noise of deviation 0.1, and is held to [0, 1].
- comparisons: 20 pairs of states for each person; the left one is chosen with log-odds 4 (g(left - s) - g(right - s)).
- states: one of STATES. The states that a reward is scored on are fresh and of the same law.
- truth: the mean reward of people, over 128 tastes (64 and their mirror images), at each state that is scored.
- catalogue: 500 items whose true means are normal with mean 0.5 and deviation 0.15, held to [0, 1]; 2,000 people rate
  20 different items each. A person's level is shifted by their own normal number of deviation 0.1; noise as above.

Two disjoint sets of shapes: settings are chosen on DEVELOPMENT and DEVELOPMENT_STATES alone, results are reported on
REPORTED and REPORTED_STATES. Four of those, TARGETED, have targets; shapes like them, a corner and clusters were known
when the estimator was designed. No setting of `rounds` was chosen by UNSEEN; that "auto" takes no network was decided
after looking at it.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from jaxtyping import Float
from scipy.special import expit, ndtr

Array = np.ndarray
States = Float[np.ndarray, "*rows d"]
Shape = Callable[[States], Float[np.ndarray, "*rows"]]
Law = Callable[[int], States]
"""So many states."""

ROWS, SPREAD, NOISE, LOG_ODDS = 20, 0.1, 0.1, 4.0
FRESH, TASTES = 2000, 128
ITEMS, CATALOGUE_PEOPLE, DEVIATION = 500, 2000, 0.15


@dataclass(frozen=True)
class Draw:
    """What people gave, and what a reward that is made of it is held against."""

    rows: pl.DataFrame
    """person; x0, x1, ... and rating; or left0, ..., right0, ... and choice; or item and rating."""
    fresh: Any
    """States of the same law, or all items: what the reward is scored on."""
    truth: Float[np.ndarray, " rows"]
    people: int
    dimension: int
    reward: Shape | None = None
    """The true mean reward as a function of the state; items have none."""

    @property
    def states(self) -> list[str]:
        return [f"x{i}" for i in range(self.dimension)]

    def score(self, reward: Float[np.ndarray, " rows"]) -> "Score":
        return score(reward, self.truth)


@dataclass(frozen=True)
class Score:
    correlation: float
    """With the truth at fresh states; 0 for a constant."""
    regret: float
    """What the state that the reward likes best falls short of the best one; 1 is as good as a random state."""
    top: float
    """The same for the ten that it likes best against the ten best."""


def score(reward: Float[np.ndarray, " rows"], truth: Float[np.ndarray, " rows"]) -> Score:
    correlation = float(np.corrcoef(reward, truth)[0, 1]) if np.ptp(reward) > 0 else 0.0
    liked, best, mean = truth[np.argsort(-reward, kind="stable")], -np.sort(-truth), truth.mean()
    regrets = [float((best[:k].mean() - liked[:k].mean()) / (best[:k].mean() - mean)) for k in (1, 10)]
    return Score(correlation, *regrets)


# Where states lie. Each law is drawn once a draw: fresh states have the same centres as people's.


def _uniform(d: int, generator: np.random.Generator) -> Law:
    return lambda n: generator.random((n, d))


def _corner(d: int, generator: np.random.Generator) -> Law:
    return lambda n: generator.beta(1, 3, (n, d))


def _clusters(d: int, generator: np.random.Generator) -> Law:
    """Four, of deviation 0.12, around uniform centres, held to the box."""
    centres = generator.random((4, d))
    return lambda n: np.clip(centres[generator.integers(0, 4, n)] + 0.12 * generator.normal(size=(n, d)), 0, 1)


def _correlated(d: int, generator: np.random.Generator) -> Law:
    """Uniform in each coordinate; the normal numbers behind any two have correlation 0.8, with random signs."""
    signs = generator.choice([-1, 1], d)

    def law(n: int) -> States:
        common, own = generator.normal(size=(n, 1)), generator.normal(size=(n, d))
        return ndtr(signs * np.sqrt(0.8) * common + np.sqrt(0.2) * own)

    return law


def _middle(d: int, generator: np.random.Generator) -> Law:
    """Half of all states crowd around one point, with deviation 0.2 and held to the box; the others are uniform."""
    centre = generator.uniform(0.2, 0.8, d)

    def law(n: int) -> States:
        crowd = np.clip(centre + 0.2 * generator.normal(size=(n, d)), 0, 1)
        return np.where(generator.random((n, 1)) < 0.5, crowd, generator.random((n, d)))

    return law


STATES: dict[str, Callable[[int, np.random.Generator], Law]] = {
    "uniform": _uniform,
    "corner": _corner,
    "clusters": _clusters,
    "correlated": _correlated,
    "middle": _middle,
}
DEVELOPMENT_STATES = ("uniform", "correlated", "middle")
REPORTED_STATES = ("uniform", "corner", "clusters")

# Shapes with targets.


def _peak(d: int, generator: np.random.Generator) -> Shape:
    return _bell(generator.uniform(0.2, 0.8, d), 0.35 * np.sqrt(d))


def _bumps(d: int, generator: np.random.Generator) -> Shape:
    """Some 3 + d/2 bells of width 0.4 sqrt(d), up and down."""
    number = 3 + d // 2
    bells = [_bell(centre, 0.4 * np.sqrt(d)) for centre in generator.random((number, d))]
    heights = generator.normal(size=number)
    return _to_unit(lambda x: np.stack([bell(x) for bell in bells], axis=-1) @ heights, d, generator)


def _two_peaks(d: int, generator: np.random.Generator) -> Shape:
    """Two bells of width 0.2 sqrt(d), a half apart in each coordinate, on a random diagonal."""
    sign = generator.choice([-1, 1], d)
    one, other = (_bell(0.5 + side * 0.25 * sign, 0.2 * np.sqrt(d)) for side in (1, -1))
    return lambda x: np.maximum(one(x), other(x))


def _interaction(d: int, generator: np.random.Generator) -> Shape:
    """The mean of products of two centred coordinates, for up to four disjoint pairs."""
    pairs = _pairs(d, 4, generator)
    return lambda x: 0.5 + 0.5 * np.mean([(2 * x[..., i] - 1) * (2 * x[..., j] - 1) for i, j in pairs], axis=0)


# Shapes that nobody tuned on.


def _ring(d: int, generator: np.random.Generator) -> Shape:
    """Best at one distance from a centre, which is what most states have; nearer or farther is worse."""
    centre, radius = generator.uniform(0.35, 0.65, d), np.sqrt(d / 12)
    return _to_unit(lambda x: np.exp(-((_distance(x, centre) - radius) ** 2) / (2 * 0.15**2)), d, generator)


def _weakest(d: int, generator: np.random.Generator) -> Shape:
    """The least of all coordinates' own values, each of its own weight and direction."""
    weight, up = generator.uniform(1, 3, d), generator.random(d) < 0.5
    return _to_unit(lambda x: np.min(weight * np.where(up, x, 1 - x), axis=-1), d, generator)


def _pair(d: int, generator: np.random.Generator) -> Shape:
    """A peak of width 0.25 in two coordinates; the others don't matter."""
    i, j = generator.permutation(d)[:2]
    bell = _bell(generator.uniform(0.2, 0.8, 2), 0.25)
    return lambda x: bell(x[..., [i, j]])


def _ravine(d: int, generator: np.random.Generator) -> Shape:
    """Good where one coordinate is the square of another, for up to four disjoint pairs."""
    pairs = _pairs(d, 4, generator)
    return _to_unit(lambda x: -np.mean([np.abs(x[..., i] - x[..., j] ** 2) for i, j in pairs], axis=0), d, generator)


# Shapes that settings may be chosen on.


def _ridge(d: int, generator: np.random.Generator) -> Shape:
    """A wave of length 1.5 along a random direction."""
    direction, phase = _direction(d, generator), generator.uniform(0, 2 * np.pi)
    return _to_unit(lambda x: np.sin(2 * np.pi / 1.5 * (x @ direction) + phase), d, generator)


def _sines(d: int, generator: np.random.Generator) -> Shape:
    """Products of sines of two coordinates, for up to four disjoint pairs."""
    pairs, phases = _pairs(d, 4, generator), generator.uniform(0, 2 * np.pi, d)

    def shape(x: States) -> Array:
        waves = np.sin(1.5 * np.pi * x + phases)
        return np.mean([waves[..., i] * waves[..., j] for i, j in pairs], axis=0)

    return _to_unit(shape, d, generator)


def _step(d: int, generator: np.random.Generator) -> Shape:
    """Two half spaces, one good and one bad, with a soft edge near the centre."""
    direction, edge = _direction(d, generator), generator.normal(0, 0.1)
    return lambda x: expit(((x - 0.5) @ direction - edge) / 0.05)


def _saddle(d: int, generator: np.random.Generator) -> Shape:
    """A quadratic form up and down in equally many directions, interactions included."""
    axes, centre = _axes(d, generator), generator.uniform(0.3, 0.7, d)
    sign = np.where(np.arange(d) % 2, 1.0, -1.0)
    return _to_unit(lambda x: (((x - centre) @ axes) ** 2) @ sign, d, generator)


def _cone(d: int, generator: np.random.Generator) -> Shape:
    """Falls with the distance from a centre."""
    centre = generator.uniform(0.2, 0.8, d)
    return _to_unit(lambda x: -_distance(x, centre), d, generator)


def _tree(d: int, generator: np.random.Generator) -> Shape:
    """Sixteen leaves behind four questions, each of whether one coordinate is above a number."""
    asked, edges = generator.integers(0, d, 15), generator.uniform(0.3, 0.7, 15)
    leaves = generator.normal(size=16)

    def shape(x: States) -> Array:
        node = np.zeros(x.shape[:-1], int)
        for _ in range(4):
            above = np.take_along_axis(x, asked[node][..., None], axis=-1)[..., 0] > edges[node]
            node = 2 * node + 1 + above
        return leaves[node - 15]

    return _to_unit(shape, d, generator)


def _bowl(d: int, generator: np.random.Generator) -> Shape:
    """A quadratic form with one best state, of random axes and of widths that differ by up to three times."""
    axes, centre, steep = _axes(d, generator), generator.uniform(0.2, 0.8, d), generator.uniform(1, 9, d)
    return _to_unit(lambda x: -((((x - centre) @ axes) ** 2) @ steep), d, generator)


def _waves(d: int, generator: np.random.Generator) -> Shape:
    """A sum of one wave for each coordinate, of half a period to one and a half."""
    size, often = generator.normal(size=d), generator.uniform(0.5, 1.5, d)
    phases = generator.uniform(0, 2 * np.pi, d)
    return _to_unit(lambda x: np.sin(2 * np.pi * often * x + phases) @ size, d, generator)


Family = Callable[[int, np.random.Generator], Shape]
TARGETED: dict[str, Family] = {"peak": _peak, "bumps": _bumps, "two-peaks": _two_peaks, "interaction": _interaction}
UNSEEN: dict[str, Family] = {"ring": _ring, "weakest": _weakest, "pair": _pair, "ravine": _ravine}
REPORTED: dict[str, Family] = TARGETED | UNSEEN
DEVELOPMENT: dict[str, Family] = {
    "ridge": _ridge,
    "sines": _sines,
    "step": _step,
    "saddle": _saddle,
    "cone": _cone,
    "tree": _tree,
    "bowl": _bowl,
    "waves": _waves,
}
FAMILIES: dict[str, Family] = REPORTED | DEVELOPMENT


def ratings(family: str, dimension: int, people: int, draw: int, states: str = "uniform") -> Draw:
    """People who rate; the same numbers give the same draw."""
    world = _World(family, dimension, people, draw, states)
    person, x = np.repeat(np.arange(people), ROWS), world.law(people * ROWS)
    rating = world.reward(x, world.tastes[person]) + NOISE * world.generator.normal(size=len(x))
    rows = {"person": person, **_columns("x", x), "rating": np.clip(rating, 0, 1)}
    return world.draw(rows)


def comparisons(family: str, dimension: int, people: int, draw: int, states: str = "uniform") -> Draw:
    """People who choose between two states."""
    world = _World(family, dimension, people, draw, states)
    person, left, right = np.repeat(np.arange(people), ROWS), world.law(people * ROWS), world.law(people * ROWS)
    tastes = world.tastes[person]
    odds = LOG_ODDS * (world.reward(left, tastes) - world.reward(right, tastes))
    chosen = np.where(world.generator.random(len(odds)) < expit(odds), "left", "right")
    return world.draw({"person": person, **_columns("left", left), **_columns("right", right), "choice": chosen})


def catalogue(draw: int, items: int = ITEMS, people: int = CATALOGUE_PEOPLE, deviation: float = DEVIATION) -> Draw:
    """People who rate items; what is scored is the reward of every item."""
    generator = _generator("catalogue", items, people, draw)
    truth = np.clip(generator.normal(0.5, deviation, items), 0, 1)
    names = [f"item-{i:03d}" for i in range(items)]
    seen = np.argsort(generator.random((people, items)), axis=1)[:, :ROWS].ravel()
    person, level = np.repeat(np.arange(people), ROWS), SPREAD * generator.normal(size=people)
    rating = np.clip(truth[seen] + level[person] + NOISE * generator.normal(size=len(seen)), 0, 1)
    rows = pl.DataFrame({"person": person, "item": np.array(names)[seen], "rating": rating})
    return Draw(rows, names, truth, people, 1)


class _World:
    """A shape, a law of states and people's tastes, from one stream of random numbers."""

    def __init__(self, family: str, dimension: int, people: int, draw: int, states: str) -> None:
        self.generator = _generator(family + states, dimension, people, draw)
        self.dimension, self.people = dimension, people
        self.shape = FAMILIES[family](dimension, self.generator)
        self.law = STATES[states](dimension, self.generator)
        self.tastes = SPREAD * self.generator.normal(size=(people, dimension))

    def reward(self, x: States, tastes: States) -> Array:
        return np.clip(self.shape(x - tastes), 0, 1)

    def draw(self, rows: dict[str, Array]) -> Draw:
        fresh, half = self.law(FRESH), SPREAD * self.generator.normal(size=(TASTES // 2, self.dimension))
        tastes = np.vstack([half, -half])

        def mean_reward(x: States) -> Array:
            return self.reward(x[..., None, :], tastes).mean(axis=-1)

        return Draw(pl.DataFrame(rows), fresh, mean_reward(fresh), self.people, self.dimension, mean_reward)


def _generator(name: str, *numbers: int) -> np.random.Generator:
    return np.random.default_rng([zlib.crc32(name.encode()), *numbers])


def _columns(prefix: str, x: States) -> dict[str, Array]:
    return {f"{prefix}{i}": column for i, column in enumerate(x.T)}


def _bell(centre: Array, width: float) -> Shape:
    return lambda x: np.exp(-((x - centre) ** 2).sum(axis=-1) / (2 * width**2))


def _distance(x: States, centre: Array) -> Array:
    return np.sqrt(((x - centre) ** 2).sum(axis=-1))


def _direction(d: int, generator: np.random.Generator) -> Array:
    direction = generator.normal(size=d)
    return direction / np.linalg.norm(direction)


def _axes(d: int, generator: np.random.Generator) -> Array:
    return np.linalg.qr(generator.normal(size=(d, d)))[0]


def _pairs(d: int, most: int, generator: np.random.Generator) -> Array:
    number = min(d // 2, most)
    return generator.permutation(d)[: 2 * number].reshape(number, 2)


def _to_unit(shape: Shape, d: int, generator: np.random.Generator) -> Shape:
    """Moved and stretched so that its values at 2,000 uniform states just fill [0, 1]."""
    values = shape(generator.random((2000, d)))
    low, high = values.min(), values.max()
    return lambda x: (shape(x) - low) / (high - low)
