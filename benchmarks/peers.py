"""Other ways to a private reward, on the same rows; their settings are searched for by `peer_study.py`.

Every peer protects all rows of a person at epsilon = 1, delta = 1e-5, and knows the number of people. The relation is
what quietq promises: one person's rows are replaced by any others. Libraries of DP-SGD account for a person who is
added or removed, which allows half the noise.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import polars as pl
from jaxtyping import Float

import quietq as qq
from benchmarks.families import Array, Draw, States
from benchmarks.search import Settings
from quietq.noise.feature_maps import Polynomials
from quietq.noise.smooth_prior import smooth_prior

EPSILON, DELTA = 1.0, 1e-5
BUDGET = qq.Budget(EPSILON, DELTA)
Reward = Callable[[States], Array]


@dataclass(frozen=True)
class People:
    """Each person's ratings, of which all have equally many."""

    states: Float[np.ndarray, "people rows d"]
    y: Float[np.ndarray, "people rows"]
    """Ratings, less 1/2."""

    @classmethod
    def of(cls, draw: Draw) -> "People":
        states = draw.rows.select(draw.states).to_numpy()
        said = draw.rows["rating"].to_numpy()
        return cls(states.reshape(draw.people, -1, draw.dimension), said.reshape(draw.people, -1) - 0.5)

    def polynomials(self, number: int) -> tuple[Polynomials, Float[np.ndarray, " rank"]]:
        """A constant and the features that quietq would take first, and what its public prior gives to each."""
        return _polynomials(self.states.shape[-1], number)


@lru_cache(maxsize=64)
def _polynomials(dimension: int, number: int) -> tuple[Polynomials, Float[np.ndarray, " rank"]]:
    terms, variances = smooth_prior(dimension)
    terms, variances = terms[:number], variances[:number]
    order = sorted(range(len(terms)), key=lambda i: len(terms[i]))
    sizes = [1.0, *(variances[i] for i in order)]
    return Polynomials(dimension, ((), *(terms[i] for i in order))), np.array(sizes)


def quietq(people: People, settings: Settings, seed: int) -> Reward:
    """Nothing has to be set."""
    count, rows, dimension = people.states.shape
    names = [f"x{i}" for i in range(dimension)]
    columns = dict(zip(names, people.states.reshape(-1, dimension).T, strict=True))
    table = pl.DataFrame({"person": np.repeat(np.arange(count), rows), **columns, "rating": people.y.ravel()})
    box = [(0.0, 1.0)] * dimension
    read = qq.Ratings.read(table, box=box, low=-0.5, high=0.5, people=count, state=names)
    return qq.privatise(read, BUDGET, simulate=seed)


def ada_ssp(people: People, settings: Settings, seed: int) -> Reward:
    """Wang (2018), Algorithm 2, with a person for a row: the mean of outer products and of moments over their rows.

    Each is held to a bound. Replacing a person moves a sum of positive matrices by sqrt(2) of the bound, its least
    eigenvalue by the bound, and a sum of vectors by twice the bound. The three queries share mu squared evenly, which
    is less noise than epsilon/3 and delta/3 for each.
    """
    features, prior = people.polynomials(settings["number"])
    size, rank = _sizes(prior, settings["power"]), features.rank
    phi = features(people.states) * size
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
    told_by = np.arange(1, features.rank)  # a constant tells nothing
    generator, count = np.random.default_rng([seed, 2]), len(people.y)
    asked, bound = np.arange(count) % len(told_by), settings["bound"]
    phi = np.take_along_axis(features(people.states), told_by[asked][:, None, None], axis=2)[:, :, 0]
    mean = np.clip((phi * people.y).mean(axis=1) / bound, -1, 1)
    bit = np.where(generator.random(count) < (1 + mean) / 2, 1.0, -1.0)
    told = bit * np.where(generator.random(count) < 1 / (1 + math.exp(-EPSILON)), 1, -1)
    debias = bound / math.tanh(EPSILON / 2)
    answers = np.bincount(asked)
    expected = settings["size"] ** 2 * prior[told_by]
    weights = debias * np.bincount(asked, told) / answers * expected / (expected + debias**2 / answers)
    return lambda x: features(x)[..., told_by] @ weights


def sgd(people: People, settings: Settings, seed: int) -> Reward:
    """Per-person DP-SGD of a network with tanh units, or of polynomials, by jax-privacy."""
    from benchmarks.peer_sgd import train

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
