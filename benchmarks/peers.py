"""Peers on the same people: correlation with the true mean reward, 1,000 people, epsilon = 1, delta = 1e-5.

Every peer protects all rows of a person, and knows the number of people. The relation is what quietq promises: one
person's rows are replaced by any others.

Settings of peers are the best that a search found for each dimension, on other shapes than those that are reported: 96
points of wide grids at random (80 of DP-SGD's), then points around the best four, until none of the best settings was
the least or the most that was tried.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
from jaxtyping import Float

import quietq as qq
from benchmarks import families
from benchmarks.dp_sgd import Descent, Weights
from benchmarks.families import BUDGET, MADE_OF, Array, Draw, States
from benchmarks.study import Case, Numbers, Study, own_files
from quietq.noise.feature_maps import Polynomials, smooth_prior

PEOPLE = 1000
FAMILIES = ("peak", "two-peaks", "interaction", "ravine")
"""Three that have targets and one that was never looked at."""
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
        terms, variances = smooth_prior(self.states.shape[-1])
        order = sorted(range(min(number, len(terms))), key=lambda i: len(terms[i]))
        features = Polynomials(self.states.shape[-1], ((), *(terms[i] for i in order)))
        return features, np.array([1.0, *(variances[i] for i in order)])


def quietq(people: People, seed: int) -> Reward:
    """Nothing has to be set."""
    count, rows, dimension = people.states.shape
    names = [f"x{i}" for i in range(dimension)]
    columns = dict(zip(names, people.states.reshape(-1, dimension).T, strict=True))
    table = pl.DataFrame({"person": np.repeat(np.arange(count), rows), **columns, "rating": people.y.ravel()})
    box = [(0.0, 1.0)] * dimension
    read = qq.Ratings.read(table, box=box, low=-0.5, high=0.5, people=count, state=names)
    return qq.privatise(read, BUDGET, simulate=seed)


@dataclass(frozen=True)
class AdaSSP:
    """Wang (2018), Algorithm 2, with a person for a row: the mean of outer products and of moments over their rows.

    Each is clipped to a bound. Replacing a person moves a sum of positive matrices by sqrt(2) of the bound, its least
    eigenvalue by the bound, and a sum of vectors by twice the bound. The three queries share mu squared evenly, which
    is less noise than epsilon/3 and delta/3 for each.
    """

    number: int
    """Of polynomials."""
    matrix: float
    moment: float
    """The bounds of a person's matrix and of their moments, for features of length 1."""
    ridge: float
    """Times the ridge of the paper."""

    def __call__(self, people: People, seed: int) -> Reward:
        features, _ = people.polynomials(self.number)
        rank, phi = features.rank, features(people.states)
        rows = phi.shape[1]
        lengths = np.linalg.norm(phi @ phi.swapaxes(1, 2), axis=(1, 2)) / rows
        most, longest = self.matrix * rank, self.moment * math.sqrt(rank)
        flat = (phi * np.sqrt(np.minimum(1, most / lengths) / rows)[:, None, None]).reshape(-1, rank)
        matrix = flat.T @ flat
        moments = np.einsum("urk,ur->uk", phi, people.y) / rows
        clipped = moments * np.minimum(1, longest / np.maximum(np.linalg.norm(moments, axis=1, keepdims=True), 1e-300))
        generator, sigma = np.random.default_rng([seed, 1]), math.sqrt(3) / BUDGET.mu
        square = generator.normal(size=(rank, rank))
        noisy = matrix + math.sqrt(2) * most * sigma * (square + square.T) / 2  # off the diagonal 1/sqrt(2) is enough
        noisy_moment = clipped.sum(axis=0) + 2 * longest * sigma * generator.normal(size=rank)
        least = np.linalg.eigvalsh(matrix)[0] + most * sigma * generator.normal()
        least = max(0.0, least - math.sqrt(math.log(6 / BUDGET.delta)) * most * sigma)
        ridge = self.ridge * math.sqrt(2 * rank * math.log(2 * rank**2 / 0.05)) * most * sigma
        weights = np.linalg.lstsq(noisy + max(0.0, ridge - least) * np.eye(rank), noisy_moment, rcond=None)[0]
        return lambda x: features(x) @ weights


@dataclass(frozen=True)
class RandomisedResponse:
    """Nobody is trusted: each person sends one bit of one public feature, and flips it with odds e^epsilon.

    The bit is the mean of what they said times the feature over their rows, clipped to a bound and rounded at random to
    either end. Each feature is told by equally many.
    """

    number: int
    """Of polynomials."""
    bound: float
    size: float
    """Of the reward, by which weights are shrunk."""

    def __call__(self, people: People, seed: int) -> Reward:
        features, prior = people.polynomials(self.number)
        told_by = np.arange(1, features.rank)  # a constant tells nothing
        generator, count = np.random.default_rng([seed, 2]), len(people.y)
        asked = np.arange(count) % len(told_by)
        phi = np.take_along_axis(features(people.states), told_by[asked][:, None, None], axis=2)[:, :, 0]
        mean = np.clip((phi * people.y).mean(axis=1) / self.bound, -1, 1)
        bit = np.where(generator.random(count) < (1 + mean) / 2, 1.0, -1.0)
        told = bit * np.where(generator.random(count) < 1 / (1 + math.exp(-BUDGET.epsilon)), 1, -1)
        debias = self.bound / math.tanh(BUDGET.epsilon / 2)
        answers = np.bincount(asked)
        expected = self.size**2 * prior[told_by]
        weights = debias * np.bincount(asked, told) / answers * expected / (expected + debias**2 / answers)
        return lambda x: features(x)[..., told_by] @ weights


@dataclass(frozen=True)
class PolynomialDescent:
    """DP-SGD of a polynomial, by the mean squared error of a person's rows."""

    number: int
    """Of polynomials."""
    descent: Descent

    def __call__(self, people: People, seed: int) -> Reward:
        features, _ = people.polynomials(self.number)
        weights: Weights = [(jnp.zeros((features.rank, 1)), jnp.zeros(1))]
        ((matrix, bias),) = self.descent.run(_loss, weights, (features(people.states), people.y), BUDGET, seed)
        return lambda x: (features(x) @ np.asarray(matrix, float) + np.asarray(bias, float))[..., 0]


def _loss(weights: Weights, x: jax.Array, y: jax.Array) -> jax.Array:
    matrix, bias = weights[0]
    return jnp.mean(((x @ matrix + bias)[..., 0] - y) ** 2)


PEERS: dict[str, dict[int, Callable[[People, int], Reward]]] = {
    "quietq": {2: quietq, 8: quietq},
    "AdaSSP of people": {2: AdaSSP(30, 0.2, 0.002, ridge=3000.0), 8: AdaSSP(60, 0.2, 0.005, ridge=10.0)},
    "randomised response": {
        2: RandomisedResponse(5, bound=0.1, size=0.2),
        8: RandomisedResponse(20, bound=0.005, size=0.02),
    },
    "DP-SGD, jax-privacy": {
        2: PolynomialDescent(30, Descent(rate=0.003, decay=0, clip=0.0003, steps=400, averaged=0.8, sampling=0.2)),
        8: PolynomialDescent(80, Descent(rate=0.2, decay=0.3, clip=0.2, steps=50, averaged=0.25, adam=False)),
    },
}
"""By dimension, with the best settings of 144 to 200 trials of each (120 of DP-SGD's in eight dimensions)."""


def study() -> Study:
    cases = []
    for d in (2, 8):
        for name, peer in PEERS.items():
            # What quietq's own code gives to peers, polynomials, is held by its tests.
            made_of = (*own_files("families", "dp_sgd", "peers"), *(MADE_OF if name == "quietq" else ()))
            promise = "replace, local" if name == "randomised response" else "replace"
            labels = {"kind": "ratings", "d": d, "peer": name, "promise": promise}
            for family in FAMILIES:
                measure = partial(_measure, peer[d], d, family)
                cases.append(Case({**labels, "family": family}, measure, made_of))
    remark = (
        "Each peer's settings, `PEERS` of `benchmarks/peers.py`, were the best of 120 to 200 trials on eight other "
        "families, for the same kind and dimension; quietq has none to set. DP-SGD's best is of polynomials: networks "
        'were tried, and were behind. "Replace" is what quietq promises.'
    )
    return Study("peers", "family", cases, (remark,))


def _measure(peer: Callable[[People, int], Reward], d: int, family: str, draw: int) -> Numbers:
    """Correlation with the truth at fresh states; 0 for what is no number."""
    drawn = _ratings(family, d, PEOPLE, draw)
    values = peer(People.of(drawn), draw)(drawn.fresh)
    found = families.score(values, drawn.truth)["correlation"] if np.isfinite(values).all() else 0.0
    return {"correlation": found}


_ratings = lru_cache(maxsize=32)(families.ratings)
