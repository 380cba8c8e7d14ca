"""What a public feature map is, and what several of them need."""

import functools
import operator
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from quietq.privacy.checks import count, real
from quietq.privacy.errors import InvalidInput

MOST_TERMS = 4096
Moments = tuple[Float[np.ndarray, " rank"], Float[np.ndarray, "..."]]


class FeatureMap(ABC):
    """A public map from a state to `rank` numbers: a dataclass whose fields are JSON."""

    kind: ClassVar[str]
    dimension: int
    stretches: ClassVar[bool] = True
    """Whether it may look at the box as it is stretched to make states uniform."""
    clips: ClassVar[bool] = False
    """Whether a coordinate outside the box is moved to its nearer end, instead of being refused."""

    @property
    @abstractmethod
    def rank(self) -> int:
        """How many features there are."""

    @abstractmethod
    def __call__(self, points: Any, xp: Any = np) -> Any:
        """The features of points in [0, 1]^d."""

    def sized(self, dimension: int) -> "FeatureMap":
        """The map for states of so many coordinates; refused if it is for another number."""
        if self.dimension != dimension:
            raise InvalidInput(f"features look at {self.dimension} coordinates, but states have {dimension}.")
        return self

    def moments(self) -> Moments:
        """Mean and covariance of the features over uniform states; of uncorrelated ones the variances alone."""
        from scipy.stats import qmc

        values = self(qmc.Sobol(self.dimension, scramble=False).random(2**12))
        return values.mean(axis=0), np.cov(values.T, bias=True).reshape(self.rank, self.rank)

    def describe(self) -> dict[str, Any]:
        """The map in JSON."""
        return {"kind": self.kind, **{field.name: _listed(getattr(self, field.name)) for field in fields(self)}}  # type: ignore[arg-type]


def check_dimension(given: object) -> None:
    """A number of coordinates, or the whole number 0 for one that is not known yet."""
    if type(given) is not int or given != 0:
        count("dimension", given, most=MOST_TERMS)


def table_of(name: str, given: Any) -> tuple[tuple[float, ...], ...]:
    """Rows of as many numbers each."""
    rows = given.tolist() if isinstance(given, np.ndarray) else given
    if not isinstance(rows, tuple | list) or not rows or not all(isinstance(row, tuple | list) and row for row in rows):
        raise InvalidInput(f"{name} must be rows of numbers, one per feature.")
    count(f"the number of {name}", len(rows), most=MOST_TERMS)
    if len({len(row) for row in rows}) > 1:
        raise InvalidInput(f"{name} must all have the same number of coordinates.")
    return tuple(tuple(real(name, one) for one in row) for row in rows)


def summed(points: Any, table: np.ndarray, part: Any) -> Any:
    """A sum over coordinates of a part for each feature, in the same order for every state."""
    return functools.reduce(operator.add, (part(points[..., i : i + 1], one) for i, one in enumerate(table.T)))


def _listed(value: Any) -> Any:
    return [_listed(one) for one in value] if isinstance(value, Sequence) and not isinstance(value, str) else value
