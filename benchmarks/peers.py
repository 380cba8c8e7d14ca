"""Other ways to a private reward, on the same rows; their settings are in `peer_grids.py`.

Every peer protects all rows of a person at epsilon = 1, delta = 1e-5, and knows the number of people. "replace" is what
quietq promises: one person's rows are replaced by any others. "add or remove" is what libraries of DP-SGD account for;
it allows half the noise.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl
from jaxtyping import Float

import quietq as qq
from benchmarks.families import Array, Draw, States
from quietq.mechanisms.smooth_prior import smooth_prior
from quietq.noise.feature_maps import Polynomials

EPSILON, DELTA = 1.0, 1e-5
BUDGET = qq.Budget(EPSILON, DELTA)
Settings = dict[str, Any]
Reward = Callable[[States], Array]


@dataclass(frozen=True)
class People:
    """Each person's rows, of which all have equally many; a row rates one state or compares two."""

    states: Float[np.ndarray, "people rows compared d"]
    y: Float[np.ndarray, "people rows"]
    """Ratings, less 1/2; or 1/2 where the first state was chosen, and -1/2 where the second was."""

    @classmethod
    def of(cls, draw: Draw) -> "People":
        rates = "rating" in draw.rows.columns
        sides = ("x",) if rates else ("left", "right")
        columns = [[f"{side}{i}" for i in range(draw.dimension)] for side in sides]
        states = np.stack([draw.rows.select(names).to_numpy() for names in columns], axis=1)
        said = draw.rows["rating"].to_numpy() if rates else (draw.rows["choice"] == "left").to_numpy()
        return cls(states.reshape(draw.people, -1, len(sides), draw.dimension), said.reshape(draw.people, -1) - 0.5)

    @property
    def dimension(self) -> int:
        return self.states.shape[3]

    @property
    def compare(self) -> bool:
        return self.states.shape[2] == 2

    def design(self, features: Callable[[States], Array]) -> Float[np.ndarray, "people rows rank"]:
        """Features of the state, or what those of two states differ by."""
        found = features(self.states)
        return found[:, :, 0] - found[:, :, 1] if self.compare else found[:, :, 0]

    def polynomials(self, number: int) -> tuple[Polynomials, Float[np.ndarray, " rank"]]:
        """The features that quietq would take first, and what its public prior gives to each."""
        return _polynomials(self.dimension, number, constant=not self.compare)


@lru_cache(maxsize=64)
def _polynomials(dimension: int, number: int, constant: bool) -> tuple[Polynomials, Float[np.ndarray, " rank"]]:
    terms, variances = smooth_prior(dimension)
    terms, variances = terms[:number], variances[:number]
    order = sorted(range(len(terms)), key=lambda i: len(terms[i]))
    first = ((),) if constant else ()
    sizes = [*([1.0] if constant else []), *(variances[i] for i in order)]
    return Polynomials(dimension, (*first, *(terms[i] for i in order))), np.array(sizes)


def quietq(people: People, settings: Settings, seed: int, noise: str = "auto") -> Reward:
    """Nothing has to be set."""
    count, rows, compared, dimension = people.states.shape
    flat = people.states.reshape(-1, compared, dimension)
    sides = ("left", "right") if people.compare else ("x",)
    names = [[f"{side}{i}" for i in range(dimension)] for side in sides]
    columns = {name: flat[:, j, i] for j, one in enumerate(names) for i, name in enumerate(one)}
    table = pl.DataFrame({"person": np.repeat(np.arange(count), rows), **columns})
    box, said = [(0.0, 1.0)] * dimension, people.y.ravel()
    if people.compare:
        table = table.with_columns(choice=np.where(said > 0, "left", "right"))
        read = qq.Comparisons.read(table, left=names[0], right=names[1], box=box, people=count)
    else:
        table = table.with_columns(rating=said)
        read = qq.Ratings.read(table, box=box, low=-0.5, high=0.5, people=count, state=names[0])
    return qq.privatise(read, BUDGET, noise=noise, simulate=seed)


def mean_of_fits(people: People, settings: Settings, seed: int) -> Reward:
    """Each person's own ridge fit, clipped; the mean of them is released once, and shrunk by its noise."""
    features, prior = people.polynomials(settings["number"])
    size = _sizes(prior, settings["power"])
    phi = people.design(features) * size
    gram = phi @ phi.swapaxes(1, 2) + settings["ridge"] * np.eye(phi.shape[1])
    fits = np.einsum("urk,ur->uk", phi, np.linalg.solve(gram, people.y[:, :, None])[:, :, 0])
    noise = 2 * settings["clip"] / (len(fits) * BUDGET.mu)
    told = _clipped(fits, settings["clip"]).mean(axis=0)
    told += noise * np.random.default_rng([seed, 3]).normal(size=len(told))
    expected = (settings["size"] * settings["clip"]) ** 2 * prior / prior.max()
    weights = size * told * expected / (expected + noise**2)
    return lambda x: features(x) @ weights


def ada_ssp(people: People, settings: Settings, seed: int) -> Reward:
    """Wang (2018), Algorithm 2, with a person for a row: the mean of outer products and of moments over their rows.

    Each is held to a bound. Replacing a person moves a sum of positive matrices by sqrt(2) of the bound, its least
    eigenvalue by the bound, and a sum of vectors by twice the bound. The three queries share mu squared evenly, which
    is less noise than epsilon/3 and delta/3 for each.
    """
    features, prior = people.polynomials(settings["number"])
    size, rank = _sizes(prior, settings["power"]), features.rank
    phi = people.design(features) * size
    rows = phi.shape[1]
    lengths = np.linalg.norm(phi @ phi.swapaxes(1, 2), axis=(1, 2)) / rows
    most, longest = settings["matrix"] * rank, settings["moment"] * math.sqrt(rank)
    flat = (phi * np.sqrt(np.minimum(1, most / lengths) / rows)[:, None, None]).reshape(-1, rank)
    matrix = flat.T @ flat
    moment = _clipped(np.einsum("urk,ur->uk", phi, people.y) / rows, longest).sum(axis=0)
    generator, sigma = np.random.default_rng([seed, 1]), math.sqrt(3) / BUDGET.mu
    square = generator.normal(size=(rank, rank))
    noisy = matrix + math.sqrt(2) * most * sigma * (square + square.T) / 2  # off the diagonal 1/sqrt(2) is enough
    noisy_moment = moment + 2 * longest * sigma * generator.normal(size=rank)
    least = np.linalg.eigvalsh(matrix)[0] + most * sigma * generator.normal()
    least = max(0.0, least - math.sqrt(math.log(6 / DELTA)) * most * sigma)
    ridge = settings["ridge"] * math.sqrt(2 * rank * math.log(2 * rank**2 / 0.05)) * most * sigma
    weights = size * np.linalg.lstsq(noisy + max(0.0, ridge - least) * np.eye(rank), noisy_moment, rcond=None)[0]
    return lambda x: features(x) @ weights


def randomised_response(people: People, settings: Settings, seed: int) -> Reward:
    """Nobody is trusted: each person sends one bit of one public feature, and flips it with odds e^epsilon.

    The bit is the mean of what they said times the feature over their rows, held to a bound and rounded at random to
    either end. Each feature is told by equally many.
    """
    features, prior = people.polynomials(settings["number"])
    told_by = np.arange(1, features.rank) if prior[0] == 1 else np.arange(features.rank)  # a constant tells nothing
    generator, count = np.random.default_rng([seed, 2]), len(people.y)
    asked, bound = np.arange(count) % len(told_by), settings["bound"]
    phi = np.take_along_axis(people.design(features), told_by[asked][:, None, None], axis=2)[:, :, 0]
    mean = np.clip((phi * people.y).mean(axis=1) / bound, -1, 1)
    bit = np.where(generator.random(count) < (1 + mean) / 2, 1.0, -1.0)
    told = bit * np.where(generator.random(count) < 1 / (1 + math.exp(-EPSILON)), 1, -1)
    debias = bound / math.tanh(EPSILON / 2)
    answers = np.bincount(asked)
    expected = settings["size"] ** 2 * prior[told_by]
    weights = debias * np.bincount(asked, told) / answers * expected / (expected + debias**2 / answers)
    return lambda x: features(x)[..., told_by] @ weights


def pooled_ridge(people: People, settings: Settings, seed: int) -> Reward:
    """No privacy at all: one ridge fit of everybody's rows."""
    features, prior = people.polynomials(settings["number"])
    phi = people.design(features).reshape(-1, features.rank)
    matrix = phi.T @ phi / len(phi) + settings["ridge"] / len(phi) * np.diag(1 / prior)
    weights = np.linalg.solve(matrix, phi.T @ people.y.ravel() / len(phi))
    return lambda x: features(x) @ weights


def sgd(people: People, settings: Settings, seed: int, replace: bool = True) -> Reward:
    """Per-person DP-SGD of a network with tanh units, or of polynomials, by jax-privacy."""
    from benchmarks.peer_sgd import train

    return train(people, *model(people, settings), settings, seed, replace)


def opacus(people: People, settings: Settings, seed: int) -> Reward:
    """The same by Opacus; a person is one example, a sequence of rows."""
    from benchmarks.peer_opacus import train

    return train(people, *model(people, settings), settings, seed)


def model(people: People, settings: Settings) -> tuple[Callable[[States], Array], tuple[int, ...]]:
    """Public inputs, and the widths of hidden layers: none for a linear model."""
    if "widths" in settings:
        return lambda x: settings["scale"] * (2 * x - 1), tuple(settings["widths"])
    features, prior = people.polynomials(settings["number"])
    size = _sizes(prior, settings["power"])
    return lambda x: features(x) * size, ()


def _sizes(prior: Float[np.ndarray, " rank"], power: float) -> Float[np.ndarray, " rank"]:
    """What features are multiplied by: nothing for power 0, for 1 what they are expected to matter."""
    return (prior / prior.max()) ** (power / 2)


def _clipped(vectors: Float[np.ndarray, "people rank"], most: float) -> Float[np.ndarray, "people rank"]:
    return vectors * np.minimum(1, most / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300))
