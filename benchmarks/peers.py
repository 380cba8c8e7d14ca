"""Other ways to a private reward, on the same rows; their settings are in `peer_grids.py`.

Every peer protects all rows of a person at epsilon = 1, delta = 1e-5, and knows the number of people. "replace" is what
quietq promises: one person's rows are replaced by any others. "add or remove" is what libraries account; it allows
half the noise, or 1/sqrt(2) of it for matrices, so those peers are given more than the same promise would leave them.
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
from quietq.noise.kernels import FeatureKernel

EPSILON, DELTA = 1.0, 1e-5
BUDGET = qq.Budget(EPSILON, DELTA)
Settings = dict[str, Any]
Reward = Callable[[States], Array]


@dataclass(frozen=True)
class People:
    """Each person's rows, of which all have equally many; ratings are centred to [-1/2, 1/2]."""

    x: Float[np.ndarray, "people rows d"]
    y: Float[np.ndarray, "people rows"]

    @classmethod
    def of(cls, draw: Draw) -> "People":
        x = draw.rows.select(draw.states).to_numpy().reshape(draw.people, -1, draw.dimension)
        return cls(x, draw.rows["rating"].to_numpy().reshape(draw.people, -1) - 0.5)

    @property
    def dimension(self) -> int:
        return self.x.shape[2]


@lru_cache(maxsize=64)
def polynomials(dimension: int, number: int, constant: bool = True) -> tuple[Polynomials, Float[np.ndarray, " rank"]]:
    """The features that quietq would take first, and what its public prior gives to each."""
    terms, variances = smooth_prior(dimension)
    terms, variances = terms[:number], variances[:number]
    order = sorted(range(len(terms)), key=lambda i: len(terms[i]))
    first = ((),) if constant else ()
    sizes = [*([1.0] if constant else []), *(variances[i] for i in order)]
    return Polynomials(dimension, (*first, *(terms[i] for i in order))), np.array(sizes)


def quietq(people: People, settings: Settings, seed: int) -> Reward:
    return qq.privatise(_read(people), BUDGET, simulate=seed)


def mean_of_fits(people: People, settings: Settings, seed: int) -> Reward:
    """Each person's own ridge fit, clipped; the mean of them is released once."""
    if settings["features"] == "polynomials":
        features = polynomials(people.dimension, settings["number"])[0]
    else:
        features = _Fourier(people.dimension, settings["number"])
    kernel = FeatureKernel(features, features.rank, people.dimension)
    read = _read(people, features=kernel, norm=settings["norm"], ridge=settings["ridge"])
    return qq.privatise(read, BUDGET, simulate=seed)


def ada_ssp(people: People, settings: Settings, seed: int) -> Reward:
    """Wang (2018), Algorithm 2, with a person for a row: the mean of outer products and of moments over their rows.

    Features are clipped to length `length` sqrt(rank), so that a person's matrix and moment have bounds; the three
    queries share mu squared evenly, which is less noise than epsilon/3 and delta/3 for each.
    """
    features, _ = polynomials(people.dimension, settings["number"])
    phi = features(people.x)
    longest = settings["length"] * math.sqrt(features.rank)
    phi = phi * np.minimum(1, longest / np.linalg.norm(phi, axis=-1, keepdims=True))
    rows = phi.reshape(-1, features.rank)
    matrix = rows.T @ rows / people.y.shape[1]
    moment = rows.T @ people.y.ravel() / people.y.shape[1]
    generator, sigma, rank = np.random.default_rng([seed, 1]), math.sqrt(3) / BUDGET.mu, features.rank
    square = generator.normal(size=(rank, rank))
    noisy = matrix + longest**2 * sigma * (square + square.T) / 2  # off the diagonal 1/sqrt(2) is enough
    noisy_moment = moment + longest / 2 * sigma * generator.normal(size=rank)
    least = np.linalg.eigvalsh(matrix)[0] + longest**2 * sigma * generator.normal()
    least = max(0.0, least - math.sqrt(math.log(6 / DELTA)) * longest**2 * sigma)
    ridge = settings["ridge"] * math.sqrt(rank * math.log(2 * rank**2 / 0.05)) * longest**2 * sigma
    weights = np.linalg.lstsq(noisy + max(0.0, ridge - least) * np.eye(rank), noisy_moment, rcond=None)[0]
    return lambda x: features(x) @ weights


def randomised_response(people: People, settings: Settings, seed: int) -> Reward:
    """Nobody is trusted: each person sends one bit of one public feature, and flips it with odds e^epsilon.

    The bit is the mean of rating times feature over their rows, held to a bound and rounded at random to either end.
    """
    features, prior = polynomials(people.dimension, settings["number"], constant=False)
    generator, count = np.random.default_rng([seed, 2]), len(people.y)
    asked, bound = np.arange(count) % features.rank, settings["bound"]
    phi = np.take_along_axis(features(people.x), asked[:, None, None], axis=2)[:, :, 0]
    mean = np.clip((phi * people.y).mean(axis=1) / bound, -1, 1)
    bit = np.where(generator.random(count) < (1 + mean) / 2, 1.0, -1.0)
    told = bit * np.where(generator.random(count) < 1 / (1 + math.exp(-EPSILON)), 1, -1)
    debias = bound / math.tanh(EPSILON / 2)
    answers = np.bincount(asked)
    looked = debias * np.bincount(asked, told) / answers
    expected = settings["size"] ** 2 * prior
    weights = looked * expected / (expected + debias**2 / answers)
    return lambda x: features(x) @ weights


def pooled_ridge(people: People, settings: Settings, seed: int) -> Reward:
    """No privacy at all: one ridge fit of everybody's rows."""
    features, prior = polynomials(people.dimension, settings["number"])
    phi = features(people.x).reshape(-1, features.rank)
    matrix = phi.T @ phi / len(phi) + settings["ridge"] / len(phi) * np.diag(1 / prior)
    weights = np.linalg.solve(matrix, phi.T @ people.y.ravel() / len(phi))
    return lambda x: features(x) @ weights


def sgd_network(people: People, settings: Settings, seed: int) -> Reward:
    """Per-person DP-SGD of a network with tanh units, by jax-privacy."""
    from benchmarks.peer_sgd import train

    return train(people, settings, seed, lambda x: 2 * x - 1, settings["widths"], replace=False)


def sgd_polynomials(people: People, settings: Settings, seed: int, replace: bool = False) -> Reward:
    """The same of a linear model of polynomials."""
    from benchmarks.peer_sgd import train

    features, _ = polynomials(people.dimension, settings["number"])
    return train(people, settings, seed, features, (), replace)


def opacus_network(people: People, settings: Settings, seed: int) -> Reward:
    """The same network, by Opacus; a person is one example, a sequence of rows."""
    from benchmarks.peer_opacus import train

    return train(people, settings, seed)


def _read(people: People, **options: Any) -> qq.Ratings:
    count, rows, dimension = people.x.shape
    flat = people.x.reshape(-1, dimension)
    columns = {f"x{i}": flat[:, i] for i in range(dimension)}
    table = pl.DataFrame({"person": np.repeat(np.arange(count), rows), "rating": people.y.ravel(), **columns})
    return qq.Ratings.read(
        table, box=[(0.0, 1.0)] * dimension, low=-0.5, high=0.5, count=count, state=list(columns), **options
    )


class _Fourier:
    """Random cosines of a Gaussian kernel of width 0.35 sqrt(d), the same for all."""

    def __init__(self, dimension: int, rank: int) -> None:
        generator = np.random.default_rng(0)
        self.rank, self.phases = rank, generator.uniform(0, 2 * np.pi, rank)
        self.frequencies = generator.normal(0, 1 / (0.35 * math.sqrt(dimension)), (dimension, rank))

    def __call__(self, x: States) -> Array:
        return math.sqrt(2 / self.rank) * np.cos(x @ self.frequencies + self.phases)
