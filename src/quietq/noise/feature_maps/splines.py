"""Piecewise linear functions on a grid."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from quietq.noise.feature_maps.feature_map import MOST_TERMS, FeatureMap, check_dimension
from quietq.privacy.checks import count
from quietq.privacy.errors import InvalidInput

MOST_DIMENSION = 12
"""Of products, whatever the number of pieces."""


@dataclass(frozen=True)
class Splines(FeatureMap):
    """Piecewise linear functions on a grid: of each coordinate alone, summed, or products of them.

    `additive=True` must be asked for by name, because it misleads where a reward has interactions: of two peaks in a
    plane it makes one between them. Products, `additive=False`, are for few coordinates: there are (pieces + 1)^d.
    """

    kind: ClassVar[str] = "splines"
    additive: bool
    pieces: int = 4
    dimension: int = 0
    """0 until it is known from the states."""

    def __post_init__(self) -> None:
        if not isinstance(self.additive, bool):
            raise InvalidInput(f"additive must be True or False, not {self.additive!r}.")
        count("pieces", self.pieces, most=MOST_TERMS)
        check_dimension(self.dimension)
        if (not self.additive and self.dimension > MOST_DIMENSION) or self.rank > MOST_TERMS:
            raise InvalidInput(
                f"Splines with {self.pieces} pieces in {self.dimension} coordinates are more than {MOST_TERMS} "
                "features: take fewer pieces, or leave features out."
            )

    def sized(self, dimension: int) -> FeatureMap:
        return replace(self, dimension=dimension) if not self.dimension else super().sized(dimension)

    @property
    def rank(self) -> int:
        knots = self.pieces + 1
        return self.dimension * knots if self.additive else knots**self.dimension

    def __call__(self, points: Any, xp: Any = np) -> Any:
        grid = np.arange(self.pieces + 1)
        hats = [xp.maximum(0.0, 1 - xp.abs(points[..., i : i + 1] * self.pieces - grid)) for i in range(self.dimension)]
        if self.additive:
            return xp.concatenate(hats, axis=-1)
        product = hats[0]
        for hat in hats[1:]:
            product = (product[..., :, None] * hat[..., None, :]).reshape((*points.shape[:-1], -1))
        return product
