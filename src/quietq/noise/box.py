"""The public box that states come from, and its map to [0, 1]^d."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from quietq.privacy.checks import count, numbers, plural, positive, real, shown
from quietq.privacy.errors import InvalidInput


@dataclass(frozen=True)
class Box:
    """Lower and upper ends, one pair per coordinate. Public: never taken from private data.

    >>> Box.of((0, 10)).to_unit(2.5)
    array(0.25)
    >>> Box.of([(0, 1), (-1, 1)]).to_unit([[0.5, 0.0]])
    array([[0.5, 0.5]])
    """

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        ends = []
        for name in ("low", "high"):
            given = getattr(self, name)
            if not isinstance(given, tuple | list):
                raise InvalidInput(f"A box's {name} must be a tuple of numbers, one per side, not {shown(given)}.")
            ends.append(tuple(real("domain", end) for end in given))
            object.__setattr__(self, name, ends[-1])
        if not ends[0] or len(ends[0]) != len(ends[1]):
            raise InvalidInput(f"A box needs as many low ends as high ends, not {len(ends[0])} and {len(ends[1])}.")
        for a, b in zip(*ends, strict=True):
            if not a < b:
                raise InvalidInput(f"domain must have low below high, not ({a!r}, {b!r}).")
            positive("domain's high - low", b - a)
            # The last place of a state, over the width: on 2^16 cells it changes a slope by less than 6e-7 of itself.
            if max(math.ulp(a), math.ulp(b)) > (b - a) * 4e-12:
                raise InvalidInput(
                    f"domain ({a!r}, {b!r}) is too narrow for numbers of that size, whose last digits would blur the "
                    "grid: subtract its low end from the states."
                )

    @classmethod
    def of(cls, domain: object) -> "Box":
        """Makes a box of a pair (low, high), of a sequence of such pairs, or of a Box.

        Args:
            domain: The pair, the pairs or the box.

        """
        if isinstance(domain, cls):
            return domain
        try:
            pairs = np.atleast_2d(numbers("domain", domain))
        except InvalidInput:
            pairs = np.empty((0, 0))
        if pairs.ndim != 2 or pairs.shape[-1] != 2 or not len(pairs):
            raise InvalidInput(
                f"domain must be a pair of numbers (low, high), or a sequence of such pairs, not {shown(domain)}."
            )
        low, high = pairs.T.tolist()
        return cls(tuple(low), tuple(high))

    @cached_property
    def dimension(self) -> int:
        return len(self.low)

    @property
    def width(self) -> tuple[float, ...]:
        return tuple(np.subtract(self.high, self.low).tolist())

    @property
    def hair(self) -> Float[np.ndarray, " d"]:
        """How far outside a state may lie and count as an end: a millionth of the width, or what float32 rounds by.

        Environments hold states in float32, which puts the ends of a box where they are not.
        """
        return np.maximum(1e-6 * np.array(self.width), 2.0**-22 * np.maximum(np.abs(self.low), np.abs(self.high)))

    def to_unit(self, states: object) -> Float[np.ndarray, "..."]:
        """Returns states as points of [0, 1]^d; what is NaN, outside or of the wrong shape is refused.

        Args:
            states: In one dimension of any shape, one state an entry; else the last axis holds the coordinates.

        """
        x = numbers("states", states)
        if self.dimension > 1 and (x.ndim == 0 or x.shape[-1] != self.dimension):
            raise InvalidInput(
                f"states must have {self.dimension} coordinates on their last axis, not shape {x.shape}."
            )
        low, high = self._ends()
        inside = (x >= low) & (x <= high)  # False for NaN
        if not inside.all():
            first = float(x[~inside].flat[0])
            raise InvalidInput(f"states must lie within {self}, but one has the value {first!r}.")
        return np.asarray(np.clip((x - low) / (high - low), 0.0, 1.0))

    def from_unit(self, points: np.ndarray) -> Float[np.ndarray, "..."]:
        low, high = self._ends()
        return np.clip(low + points * (high - low), low, high)

    def check_levels(self, levels: int) -> None:
        """Refuses 2^levels cells if rounding both ends of one could steepen slopes by more than a part of 2^-20.

        Each end is rounded by half a last place when it is added to the low end, and by a whole one when the width,
        which may be twice as large as the ends, is multiplied.
        """
        for a, b in zip(self.low, self.high, strict=True):
            if 3 * max(math.ulp(a), math.ulp(b)) * 2.0**levels > (b - a) * 2.0**-20:
                raise InvalidInput(
                    f"levels {levels} is too fine for domain ({a!r}, {b!r}), where last digits of states would blur "
                    "the grid: use fewer levels, or subtract the low end from the states."
                )

    def _ends(self) -> list[np.ndarray]:
        return [np.array(end if self.dimension > 1 else end[0]) for end in (self.low, self.high)]

    def coordinate(self, i: int) -> "Box":
        return Box((self.low[i],), (self.high[i],))

    def __str__(self) -> str:
        return " x ".join(f"[{a:.10g}, {b:.10g}]" for a, b in zip(self.low, self.high, strict=True))


Domain = tuple[float, float] | Sequence[tuple[float, float]] | Box
"""What callers may give for a box."""

UNIT = Box((0.0,), (1.0,))


def box_for(dimension: int, domain: Domain | None) -> Box:
    """The box, or the unit box, checked to be of a kernel's dimension."""
    box = Box((0.0,) * dimension, (1.0,) * dimension) if domain is None else Box.of(domain)
    if box.dimension != dimension:
        raise InvalidInput(f"domain has {plural(box.dimension, 'dimension')}, {box}, but the kernel has {dimension}.")
    return box


def grid_points(box: Box, levels: int) -> Float[np.ndarray, "..."]:
    """The grid's states: (points,) in one dimension, else (points, d) in the table's order."""
    levels = count("levels", levels)
    axis = np.arange(2**levels + 1) * 2.0**-levels
    if box.dimension == 1:
        return box.from_unit(axis)
    mesh = np.meshgrid(*[axis] * box.dimension, indexing="ij")
    return box.from_unit(np.stack(mesh, axis=-1).reshape(-1, box.dimension))
