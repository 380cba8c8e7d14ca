"""Coordinates as they are: embeddings."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from quietq.noise.feature_maps.feature_map import FeatureMap, Moments, check_dimension
from quietq.privacy.errors import InvalidInput


@dataclass(frozen=True)
class Columns(FeatureMap):
    """The coordinates themselves, from -1 to 1: for embeddings that a public, frozen encoder made.

    `features=Columns(prefix="e")` takes all columns whose names start with e; a coordinate outside the box is moved to
    its nearer end.
    """

    kind: ClassVar[str] = "columns"
    stretches: ClassVar[bool] = False
    clips: ClassVar[bool] = True
    prefix: str = ""
    dimension: int = 0
    """0 until it is known from the states."""

    def __post_init__(self) -> None:
        if not isinstance(self.prefix, str):
            raise InvalidInput(f"prefix must be text, not {self.prefix!r}.")
        check_dimension(self.dimension)

    def sized(self, dimension: int) -> FeatureMap:
        return replace(self, dimension=dimension) if not self.dimension else super().sized(dimension)

    @property
    def rank(self) -> int:
        return self.dimension

    def __call__(self, points: Any, xp: Any = np) -> Any:
        return 2 * points - 1

    def moments(self) -> Moments:
        return np.zeros(self.rank), np.full(self.rank, 1 / 9)  # a standard deviation of a third of the way to the end
