"""Features of a Gaussian kernel of one width: waves, and bumps."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from quietq.noise.feature_maps.feature_map import MOST_TERMS, FeatureMap, summed, table_of
from quietq.privacy.checks import count, positive


@dataclass(frozen=True)
class Fourier(FeatureMap):
    """Cosines and sines, sqrt(2) cos(2 pi w.x) and sqrt(2) sin(2 pi w.x) for each frequency w.

    >>> Fourier.draw(dimension=2, number=50, width=0.3).rank
    100
    """

    kind: ClassVar[str] = "fourier"
    frequencies: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "frequencies", table_of("frequencies", self.frequencies))

    @classmethod
    def draw(cls, dimension: int, number: int, width: float, seed: int = 0) -> "Fourier":
        """Frequencies of a Gaussian kernel of this width, in widths of the box."""
        size = (count("number", number, most=MOST_TERMS // 2), count("dimension", dimension))
        drawn = np.random.default_rng(seed).normal(size=size) / (2 * math.pi * positive("width", width))
        return cls(tuple(map(tuple, drawn.tolist())))

    @property
    def dimension(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.frequencies[0])

    @property
    def rank(self) -> int:
        return 2 * len(self.frequencies)

    def __call__(self, points: Any, xp: Any = np) -> Any:
        angles = 2 * math.pi * summed(points, np.array(self.frequencies), lambda x, w: x * w)
        return math.sqrt(2) * xp.concatenate([xp.cos(angles), xp.sin(angles)], axis=-1)


@dataclass(frozen=True)
class Radial(FeatureMap):
    """Gaussian bumps exp(-|x - c|^2 / (2 width^2)) around centres c, in widths of the box."""

    kind: ClassVar[str] = "radial"
    centres: tuple[tuple[float, ...], ...]
    width: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "centres", table_of("centres", self.centres))
        object.__setattr__(self, "width", positive("width", self.width))

    @classmethod
    def spread(cls, dimension: int, number: int, width: float) -> "Radial":
        """Centres that fill the box evenly."""
        from scipy.stats import qmc

        places = qmc.Halton(count("dimension", dimension), scramble=False)
        return cls(tuple(map(tuple, places.random(count("number", number, most=MOST_TERMS)).tolist())), width)

    @property
    def dimension(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.centres[0])

    @property
    def rank(self) -> int:
        return len(self.centres)

    def __call__(self, points: Any, xp: Any = np) -> Any:
        return xp.exp(-summed(points, np.array(self.centres), lambda x, c: (x - c) ** 2) / (2 * self.width**2))
