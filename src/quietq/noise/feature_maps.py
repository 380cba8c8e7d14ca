"""Public feature maps, which are data and travel inside a release, and how much each feature is expected to matter.

A map looks at one state at a time, and a state's features are the same bits in whatever batch. It is written once
against the array module `xp`, NumPy or jax.numpy: points of the unit box have shape (..., d), features (..., rank). A
map is a record, and a file can name those of the union `AnyFeatureMap` and no others.
"""

import functools
import heapq
import math
import operator
from functools import cache, cached_property, lru_cache
from types import ModuleType
from typing import Annotated, Any, ClassVar

import numpy as np
from jaxtyping import Float
from msgspec.structs import replace

from quietq.privacy.checks import Count, Record, checked_by, count, positive, real
from quietq.privacy.errors import InvalidInput

Array = Any
"""A NumPy or a JAX array."""
Moments = tuple[Float[np.ndarray, " rank"], Float[np.ndarray, "..."]]
Term = tuple[tuple[int, int], ...]
"""What a polynomial feature is a product of: pairs (coordinate, degree), with coordinates in rising order; () is the
constant."""
MOST_TERMS = 4096
MOST_DEGREE = 12
"""The largest degree of a coordinate in a term, and the largest number of factors."""
MOST_ITEMS = 2**14


def _table(name: str, given: object) -> tuple[tuple[float, ...], ...]:
    """Rows of as many numbers each."""
    rows = given.tolist() if isinstance(given, np.ndarray) else given
    if not isinstance(rows, tuple | list) or not rows or not all(isinstance(row, tuple | list) and row for row in rows):
        raise InvalidInput(f"{name} must be rows of numbers, one per feature.")
    count(f"the number of {name}", len(rows), most=MOST_TERMS)
    if len({len(row) for row in rows}) > 1:
        raise InvalidInput(f"{name} must all have the same number of coordinates.")
    return tuple(tuple(real(name, one) for one in row) for row in rows)


Table = Annotated[tuple[tuple[float, ...], ...], checked_by(_table)]
Dimension = Annotated[int, checked_by(functools.partial(count, least=0, most=MOST_TERMS))]
"""A number of coordinates; 0 until it is known from the states."""


class FeatureMap(Record, frozen=True, dict=True):
    """A public map from a state to `rank` numbers."""

    stretches: ClassVar[bool] = True
    """Whether it may look at the box as it is stretched to make states uniform."""
    clips: ClassVar[bool] = False
    """Whether a coordinate outside the box is clipped, instead of being refused."""

    @property
    def dimension(self) -> int:
        """How many coordinates a state has; 0 until it is known from the states."""
        raise NotImplementedError

    @property
    def rank(self) -> int:
        """How many features there are."""
        raise NotImplementedError

    def __call__(self, points: Array, xp: ModuleType = np) -> Array:
        """The features of points in [0, 1]^d."""
        raise NotImplementedError

    def sized(self, dimension: int) -> "FeatureMap":
        """Returns the map for states of this dimension; it is refused if it is for another one."""
        if not self.dimension:
            return replace(self, dimension=dimension)
        if self.dimension != dimension:
            raise InvalidInput(f"features take {self.dimension} coordinates, but states have {dimension}.")
        return self

    def moments(self) -> Moments:
        """Returns mean and covariance of the features over uniform states; of uncorrelated ones the variances alone."""
        from scipy.stats import qmc

        values = self(qmc.Sobol(self.dimension, scramble=False).random(2**12))
        return values.mean(axis=0), np.cov(values.T, bias=True).reshape(self.rank, self.rank)


class Polynomials(FeatureMap, frozen=True, dict=True, tag="polynomials"):
    """Products of Legendre polynomials, orthonormal for states that are uniform in the box: the default map.

    >>> import numpy as np
    >>> Polynomials(2, ((), ((0, 1),), ((0, 1), (1, 1))))(np.array([1.0, 0.0])).round(3).tolist()
    [1.0, 1.732, -3.0]
    """

    dimension: Count  # pyright: ignore[reportIncompatibleMethodOverride]
    terms: tuple[Term, ...]
    """The terms, ordered by their number of factors, fewest first."""

    def __post_init__(self) -> None:
        super().__post_init__()
        count("the number of terms", len(self.terms), most=MOST_TERMS)
        for term in self.terms:
            columns = [column for column, _ in term]
            if columns != sorted(set(columns)) or not all(0 <= column < self.dimension for column in columns):
                raise InvalidInput(f"A term's coordinates must rise from 0 to {self.dimension - 1}, not {columns}.")
            if len(term) > MOST_DEGREE or not all(1 <= degree <= MOST_DEGREE for _, degree in term):
                raise InvalidInput(f"A term must have at most {MOST_DEGREE} factors, of degrees 1 to {MOST_DEGREE}.")
        if sorted(self.terms, key=len) != list(self.terms) or len(set(self.terms)) < len(self.terms):
            raise InvalidInput("Terms must be all different, those with the fewest factors first.")

    @property
    def rank(self) -> int:
        return len(self.terms)

    @cached_property
    def _most(self) -> int:
        return max((degree for term in self.terms for _, degree in term), default=1)

    @cached_property
    def _factors(self) -> list[list[np.ndarray]]:
        """Returns, by number of factors, where each factor stands in the table of degrees times coordinates."""
        by_number: dict[int, list[Term]] = {}
        for term in self.terms:
            by_number.setdefault(len(term), []).append(term)
        return [
            [np.array([term[i][1] * self.dimension + term[i][0] for term in terms]) for i in range(number)]
            if number
            else [np.zeros(len(terms), int)]  # degree 0 is 1 everywhere
            for number, terms in by_number.items()
        ]

    @cached_property
    def _all_factors(self) -> np.ndarray:
        """The same in one table, a row for each factor; where a term has fewer, they are 1."""
        most = max(map(len, self._factors))
        return np.hstack([np.pad(factors, ((0, most - len(factors)), (0, 0))) for factors in self._factors])

    def moments(self) -> Moments:
        constant = np.array([not term for term in self.terms], float)
        return constant, np.diag(1 - constant)

    def __call__(self, points: Array, xp: ModuleType = np) -> Array:
        # Coordinates and features come first in memory, so that each product runs along all states.
        one = points.ndim == 1
        u = 2 * (points if one else xp.stack([points[..., i] for i in range(self.dimension)])) - 1
        degrees = [xp.ones_like(u), math.sqrt(3) * u]
        for k in range(2, self._most + 1):
            first, second = math.sqrt(4 * k * k - 1) / k, (k - 1) / k * math.sqrt((2 * k + 1) / (2 * k - 3))
            degrees.append((first * u) * degrees[-1] - second * degrees[-2])
        table = xp.concatenate(degrees)
        if one and xp is np:
            return np.multiply.reduce(table.take(self._all_factors), axis=0)
        blocks = []
        for factors in self._factors:
            block = xp.take(table, factors[0], axis=0)
            for factor in factors[1:]:
                block *= xp.take(table, factor, axis=0)
            blocks.append(block)
        found = blocks[0] if len(blocks) == 1 else xp.concatenate(blocks)
        return found if one else xp.moveaxis(found, 0, -1)


class Fourier(FeatureMap, frozen=True, dict=True, tag="fourier"):
    """Random Fourier features: sqrt(2) cos(2 pi w.x) and sqrt(2) sin(2 pi w.x) for each frequency w.

    >>> Fourier.draw(dimension=2, number=50, width=0.3).rank
    100
    """

    frequencies: Table

    @classmethod
    def draw(cls, dimension: int, number: int, width: float, seed: int = 0) -> "Fourier":
        """Draws frequencies of a Gaussian kernel.

        Args:
            dimension: The number of coordinates.
            number: The number of frequencies.
            width: The kernel's width, in widths of the box.
            seed: The map is public, so a seed determines it.

        """
        size = (count("number", number, most=MOST_TERMS // 2), count("dimension", dimension))
        drawn = np.random.default_rng(seed).normal(size=size) / (2 * math.pi * positive("width", width))
        return cls(tuple(map(tuple, drawn.tolist())))

    @property
    def dimension(self) -> int:
        return len(self.frequencies[0])

    @property
    def rank(self) -> int:
        return 2 * len(self.frequencies)

    def __call__(self, points: Array, xp: ModuleType = np) -> Array:
        # Coordinate by coordinate, so that the sum is in the same order for every state.
        waves = (points[..., i : i + 1] * one for i, one in enumerate(np.array(self.frequencies).T))
        angles = 2 * math.pi * functools.reduce(operator.add, waves)
        return math.sqrt(2) * xp.concatenate([xp.cos(angles), xp.sin(angles)], axis=-1)


class Columns(FeatureMap, frozen=True, dict=True, tag="columns"):
    """The coordinates themselves, from -1 to 1: for embeddings that a public, frozen encoder made.

    `features=Columns(prefix="e")` takes all columns whose names start with e; a coordinate outside the box is clipped.
    """

    stretches: ClassVar[bool] = False
    clips: ClassVar[bool] = True
    prefix: str = ""
    dimension: Dimension = 0  # pyright: ignore[reportIncompatibleMethodOverride]

    @property
    def rank(self) -> int:
        return self.dimension

    def __call__(self, points: Array, xp: ModuleType = np) -> Array:
        return 2 * points - 1

    def moments(self) -> Moments:
        return np.zeros(self.rank), np.full(self.rank, 1 / 9)  # a standard deviation of a third of the way to the end


class Categorical(FeatureMap, frozen=True, dict=True, tag="categorical"):
    """One of a public list of items: a feature for each, 1 for the state's own item and 0 for all others.

    Items lie evenly in the unit interval, the first at 0 and the last at 1.
    """

    dimension: ClassVar[int] = 1  # pyright: ignore[reportIncompatibleMethodOverride]
    stretches: ClassVar[bool] = False
    items: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        given, most_bytes = self.items, 2**18
        if not 2 <= len(given) <= MOST_ITEMS or len(set(given)) < len(given):
            raise InvalidInput(f"items must be between 2 and {MOST_ITEMS} different names, not {len(given)}.")
        if not all(item.isprintable() for item in given):
            raise InvalidInput("items must be names that can be printed, without tabs, line breaks or half characters.")
        if sum(len(item.encode()) + 8 for item in given) > most_bytes:  # so that they fit into a release
            raise InvalidInput(f"items' names must have at most {most_bytes} bytes together: shorten them.")

    @property
    def rank(self) -> int:
        return len(self.items)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {item: i for i, item in enumerate(self.items)}

    def numbers_of(self, states: object) -> object:
        """Places in the list, from names of items; numbers are places already, and must be whole."""
        given = np.asarray(states)
        if given.dtype.kind not in "UOT":
            if given.dtype.kind == "f" and (between := given[np.isfinite(given) & (given != np.rint(given))]).size:
                raise InvalidInput(
                    f"states must be items, by name or by their whole place in the list, from 0 on, not {between[0]}."
                )
            return states
        unknown = [str(name) for name in given.flat if name not in self._places]
        if unknown:
            raise InvalidInput(f"states must be items of the public list, and {unknown[0]!r} is none of them.")
        return np.array([self._places[name] for name in given.flat], dtype=np.int64).reshape(given.shape)

    def __call__(self, points: Array, xp: ModuleType = np) -> Array:
        which = xp.rint(points * (self.rank - 1))
        return xp.where(which == np.arange(self.rank), 1.0, 0.0)

    def moments(self) -> Moments:
        share = np.full(self.rank, 1 / self.rank)
        return np.zeros(self.rank), share  # around 0, because the constant is one of what items can say


AnyFeatureMap = Polynomials | Fourier | Categorical | Columns


def is_data(features: FeatureMap) -> bool:
    """Says whether it is one of the maps here, and not a class that somebody derived from them."""
    return type(features) in (Polynomials, Fourier, Categorical, Columns)


def stretch(points: Array, knots: Array, xp: ModuleType = np) -> Array:
    """Moves each coordinate of points of the unit box along straight lines through its knots; two knots move nothing.

    A model looks at features of stretched points, which are about uniform where people's states are.
    """
    if knots.shape[1] == 2:
        return points
    grid = _grid(knots.shape[1]) if xp is np else xp.linspace(0.0, 1.0, knots.shape[1])
    moved = [xp.interp(points[..., i], grid, ends) for i, ends in enumerate(knots)]
    return np.array(moved) if xp is np and points.ndim == 1 else xp.stack(moved, axis=-1)


@cache
def _grid(number: int) -> Float[np.ndarray, " number"]:
    return np.linspace(0.0, 1.0, number)


# A public prior: which polynomials are expected to matter in a reward before anybody was asked, and how much. Rewards
# are taken for a mixture: Gaussian kernels of several length scales (in product polynomials these are nearly diagonal),
# additive kernels of several length scales, and a linear part. One length scale would be too smooth for rough rewards,
# or too rough for smooth ones.

ACTIONS_OWN_SHARE = 0.5
"""How much of a reward's variance is expected to differ between actions."""


@lru_cache(maxsize=32)
def smooth_prior(dimension: int, most: int = 300) -> tuple[tuple[Term, ...], Float[np.ndarray, " terms"]]:
    """The `most` terms of largest variance, without the constant, largest first; all variances together are at most 1.

    >>> terms, variances = smooth_prior(2)
    >>> terms[0], bool(0.9 < variances.sum() <= 1)
    (((0, 1),), True)
    """
    # Of the variance, joint kernels have a half, additive ones a quarter, and a linear part the other quarter.
    joint = [_variances(scale * dimension**0.5) for scale in (0.15, 0.3, 0.6, 1.2)]
    single = [_variances(scale) for scale in (0.1, 0.2, 0.4)]
    terms = {((column, degree),) for column in range(dimension) for degree in range(1, MOST_DEGREE + 1)}
    for variances in joint:
        terms |= _largest_products(variances, dimension, most)
    ordered = sorted(terms)
    total = np.zeros(len(ordered))
    for variances in joint:
        products = np.array([np.prod([variances[degree] for _, degree in term]) for term in ordered])
        total += 0.5 / len(joint) * products / (variances.sum() ** dimension - 1)
    alone = np.array([term[0][1] if len(term) == 1 else 0 for term in ordered])
    for variances in single:
        parts = np.where(alone > 0, variances[alone], 0.0)
        total += 0.25 / len(single) * parts / (dimension * variances[1:].sum())
    total += 0.25 * (alone == 1) / dimension
    order = np.argsort(-total, kind="stable")[:most]
    return tuple(ordered[i] for i in order), total[order]


def variance_left_out(dimension: int) -> float:
    """The part of the variance that the prior expects of terms that are none of those.

    >>> [round(variance_left_out(dimension), 4) for dimension in (2, 4, 8)]
    [0.0, 0.0021, 0.0419]
    """
    return max(1.0 - float(smooth_prior(dimension)[1].sum()), 0.0)


def _variances(scale: float) -> Float[np.ndarray, " degrees"]:
    """Returns what a Gaussian kernel of this length scale on [0, 1] gives to each degree, relative to the constant."""
    nodes, weights = np.polynomial.legendre.leggauss(48)
    basis = np.polynomial.legendre.legvander(nodes, MOST_DEGREE) * np.sqrt(2 * np.arange(MOST_DEGREE + 1) + 1)
    weighted = basis * (weights / 2)[:, None]
    kernel = np.exp(-((nodes[:, None] - nodes) ** 2) / (8 * scale**2))  # nodes lie in [-1, 1]
    found = np.einsum("ik,ij,jk->k", weighted, kernel, weighted)
    return np.maximum(found / found[0], 1e-12)


def _largest_products(variances: np.ndarray, dimension: int, most: int) -> set[Term]:
    """The terms whose products of variances are largest: a best-first search, for variances fall with the degree."""
    heap: list[tuple[float, Term]] = [(-variances[1], ((column, 1),)) for column in range(dimension)]
    heapq.heapify(heap)
    found: set[Term] = set()
    while heap and len(found) < most:
        size, term = heapq.heappop(heap)
        found.add(term)
        column, degree = term[-1]
        if degree < MOST_DEGREE:
            ratio = variances[degree + 1] / variances[degree]
            heapq.heappush(heap, (size * ratio, (*term[:-1], (column, degree + 1))))
        if len(term) < 6:
            for further in range(column + 1, dimension):
                heapq.heappush(heap, (size * variances[1], (*term, (further, 1))))
    return found
