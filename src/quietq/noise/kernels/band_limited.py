"""The band-limited kernel sinc(2 W (x - y)): functions without frequencies above W.

Expansion (Gegenbauer): K(x, y) = sum_n (2n + 1) j_n(2 pi W (x - 1/2)) j_n(2 pi W (y - 1/2)) with spherical Bessel
functions j_n. About pi W terms matter; the tail falls faster than any power, and is cut where it adds less than
`tolerance` to the variance. A truncated path has directions without noise, so a function must be *projected on the same
terms* before the noise is added: `project` does that, and says by how much it can stretch a difference.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Float
from scipy.special import spherical_jn

from quietq.noise.kernels.features import FiniteRank
from quietq.privacy.checks import positive
from quietq.privacy.errors import InvalidInput

_RIDGE = 1e-8
_WIDEST = 1000.0  # some 3200 terms; projecting on them already takes the better part of a minute


@dataclass(frozen=True)
class BandLimited(FiniteRank):
    """sinc(2 W (x - y)) with W = half_width, as finitely many features.

    >>> BandLimited(half_width=20.0, tolerance=1e-12).rank
    84
    """

    half_width: float
    tolerance: float = 1e-20
    dimension: int = field(default=1, init=False, repr=False)
    rank: int = field(default=0, init=False)
    """Terms kept: the rest adds at most `tolerance` to the variance, at the ends, where it is largest."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "half_width", positive("half_width", self.half_width))
        object.__setattr__(self, "tolerance", positive("tolerance", self.tolerance))
        if self.half_width > _WIDEST:
            raise InvalidInput(f"half_width must be at most {_WIDEST:g}, not {self.half_width!r}.")
        reach = math.pi * self.half_width
        n = np.arange(math.ceil(reach) + 60 + math.ceil(12 * reach ** (1 / 3)))
        tail = np.cumsum(((2 * n + 1) * spherical_jn(n, reach) ** 2)[::-1])[::-1]
        if not tail[-1] <= self.tolerance <= 0.5:
            raise InvalidInput(f"tolerance must be between {tail[-1]:g} and 0.5, not {self.tolerance!r}.")
        object.__setattr__(self, "rank", int(np.argmax(tail <= self.tolerance)))

    def features(self, x: np.ndarray) -> Float[np.ndarray, "points features"]:
        return _bessel(self.rank, 2 * math.pi * self.half_width * (np.asarray(x, float) - 0.5))

    def describe(self) -> dict[str, object]:
        return {"kind": "band-limited", "half_width": self.half_width, "tolerance": self.tolerance, "rank": self.rank}

    @property
    def sample_points(self) -> Float[np.ndarray, " samples"]:
        """Chebyshev points at which a function is looked at in order to project it."""
        n = 2 * self.rank
        return (1 - np.cos((np.arange(n) + 0.5) * math.pi / n)) / 2

    @cached_property
    def _projection(self) -> np.ndarray:
        e = self.features(self.sample_points)
        return np.linalg.solve(e @ e.T + _RIDGE * np.eye(len(e)), e).T

    def project(self, values: np.ndarray) -> Float[np.ndarray, "features ..."]:
        """Weights of the function that takes `values` at `sample_points`, by ridge: a contraction on the terms."""
        return self._projection @ values

    @property
    def worst_projection(self) -> float:
        """The length that `project` gives to errors of size 1 in the values, its own rounding of such sizes included.

        The matrix is no longer than 1/(2 sqrt ridge), see `stretch`; a sum of so many products in float64 errs by as
        many times 2^-53 of the products' sizes, in each of `rank` weights, and values err by 2^-49 of their size.
        """
        samples = 2 * self.rank
        return math.sqrt(samples) / (2 * math.sqrt(_RIDGE)) * (1 + samples * math.sqrt(self.rank) / 2**4)

    @property
    def stretch(self) -> float:
        """By how much `project` can lengthen a difference of norm 1: 1 + what aliases in from beyond the terms.

        With E the kept terms at the samples, |E'(EE' + ridge)^-1 E| <= 1 and |E'(EE' + ridge)^-1| <= 1/(2 sqrt ridge),
        while the terms left out have size at most sqrt(samples tolerance) there.
        """
        return 1 + math.sqrt(len(self.sample_points) * self.tolerance) / (2 * math.sqrt(_RIDGE))


def _bessel(terms: int, z: np.ndarray) -> np.ndarray:
    n = np.arange(terms)
    sign = np.where(z[:, None] < 0, (-1.0) ** n, 1.0)
    return sign * np.sqrt(2 * n + 1) * spherical_jn(n, np.abs(z)[:, None])
