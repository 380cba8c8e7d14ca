"""Products of Legendre polynomials: the default map."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from quietq.noise.feature_maps.feature_map import MOST_TERMS, FeatureMap, Moments
from quietq.privacy.checks import count
from quietq.privacy.errors import InvalidInput

Term = tuple[tuple[int, int], ...]
"""What a feature is a product of: pairs (coordinate, degree), with coordinates in rising order; () is the constant."""
MOST_DEGREE = 12
"""The largest degree of a coordinate in a term."""
MOST_FACTORS = 12


@dataclass(frozen=True)
class Polynomials(FeatureMap):
    """Products of Legendre polynomials, orthonormal for states that are uniform in the box.

    >>> import numpy as np
    >>> Polynomials(2, ((), ((0, 1),), ((0, 1), (1, 1))))(np.array([1.0, 0.0])).round(3).tolist()
    [1.0, 1.732, -3.0]
    """

    kind: ClassVar[str] = "polynomials"
    dimension: int
    terms: tuple[Term, ...]
    """By their number of factors, fewest first."""

    def __post_init__(self) -> None:
        count("dimension", self.dimension)
        object.__setattr__(self, "terms", _terms(self.terms))
        for term in self.terms:
            columns = [column for column, _ in term]
            if columns != sorted(set(columns)) or not all(0 <= column < self.dimension for column in columns):
                raise InvalidInput(f"A term's coordinates must rise from 0 to {self.dimension - 1}, not {columns}.")
            if len(term) > MOST_FACTORS or not all(1 <= degree <= MOST_DEGREE for _, degree in term):
                raise InvalidInput(f"A term must have at most {MOST_FACTORS} factors, of degrees 1 to {MOST_DEGREE}.")
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
        """By number of factors, for each factor: where it stands in the table of degrees times coordinates."""
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

    def __call__(self, points: Any, xp: Any = np) -> Any:
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


def _terms(given: Any) -> tuple[Term, ...]:
    if not isinstance(given, tuple) or not all(isinstance(term, tuple) for term in given):
        raise InvalidInput("Terms of polynomials must be lists of pairs of whole numbers.")
    count("the number of terms", len(given), most=MOST_TERMS)
    pairs = [pair for term in given for pair in term]
    if not all(isinstance(pair, tuple) and [type(one) for one in pair] == [int, int] for pair in pairs):
        raise InvalidInput("Terms of polynomials must be lists of pairs of whole numbers.")
    return given
