"""The public box that states come from, and its map to [0, 1]^d."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from quietq.privacy.checks import real
from quietq.privacy.errors import InvalidInput


@dataclass(frozen=True)
class Box:
    """Lower and upper ends, one pair a coordinate. Public: never taken from private data.

    >>> Box.of((0, 10)).to_unit(2.5)
    array(0.25)
    >>> Box.of([(0, 1), (-1, 1)]).to_unit([[0.5, 0.0]])
    array([[0.5, 0.5]])
    """

    low: tuple[float, ...]
    high: tuple[float, ...]

    @classmethod
    def of(cls, domain: object) -> "Box":
        """From (low, high), from a sequence of such pairs, or a Box as it is."""
        if isinstance(domain, cls):
            return domain
        try:
            pairs = np.atleast_2d(np.asarray(domain, dtype=float))
        except (TypeError, ValueError):
            pairs = np.empty((0, 0))
        if pairs.ndim != 2 or pairs.shape[-1] != 2 or not len(pairs):
            raise InvalidInput(f"domain must be a pair (low, high) or a sequence of such pairs, not {domain!r}.")
        low, high = (tuple(real("domain", x) for x in column) for column in pairs.T.tolist())
        for a, b in zip(low, high, strict=True):
            if not (a < b and math.isfinite(b - a)):
                raise InvalidInput(f"domain must have low below high, not ({a!r}, {b!r}).")
        return cls(low, high)

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return len(self.low)

    def to_unit(self, states: object) -> Float[np.ndarray, "..."]:
        """States as points of [0, 1]^d; NaN, outside or of the wrong shape is refused.

        In one dimension any shape goes, one state an entry; else the last axis holds the coordinates.
        """
        try:
            x = np.asarray(states, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInput("states must be numbers.") from error
        if self.dimension > 1 and (x.ndim == 0 or x.shape[-1] != self.dimension):
            raise InvalidInput(
                f"states must have {self.dimension} coordinates on their last axis, not shape {x.shape}."
            )
        low, high = (np.array(end if self.dimension > 1 else end[0]) for end in (self.low, self.high))
        inside = (x >= low) & (x <= high)  # False for NaN
        if not inside.all():
            first = x[~inside].flat[0]
            raise InvalidInput(f"states must lie within {self}, but one has the value {first!r}.")
        return np.asarray(np.clip((x - low) / (high - low), 0.0, 1.0))

    def from_unit(self, points: np.ndarray) -> Float[np.ndarray, "..."]:
        """Points of [0, 1]^d as states."""
        low, high = (np.array(end if self.dimension > 1 else end[0]) for end in (self.low, self.high))
        return np.clip(low + points * (high - low), low, high)

    def coordinate(self, i: int) -> "Box":
        """The i-th side as a box of its own."""
        return Box((self.low[i],), (self.high[i],))

    def __str__(self) -> str:
        return " x ".join(f"[{a:g}, {b:g}]" for a, b in zip(self.low, self.high, strict=True))


Domain = tuple[float, float] | Sequence[tuple[float, float]] | Box
"""What callers may give for a box."""

UNIT = Box((0.0,), (1.0,))


def box_for(dimension: int, domain: Domain | None) -> Box:
    """The box, or the unit box, checked to be of a kernel's dimension."""
    box = Box((0.0,) * dimension, (1.0,) * dimension) if domain is None else Box.of(domain)
    if box.dimension != dimension:
        raise InvalidInput(f"domain has {box.dimension} dimensions, but the kernel has {dimension}.")
    return box
