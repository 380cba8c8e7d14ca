"""A release whose noise is held fixed: what moves between two of them is the secret alone.

The theorems of `reward` are of one form: if neighbours are at most 1 apart in some norm, noise of some law is enough,
and noise c times as large is enough for neighbours that are c apart. Here c is read off the release itself, against a
draw of that law from the same seed; and neighbours' distance in that norm from the difference of two releases, less
what the rounding of both can have added to it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.audit.movement import Unprotected
from quietq.noise.rounding import rounding_step

Released = tuple[Float[np.ndarray, " numbers"], float]
"""Released numbers, and the noise's sigma as the release states it, which fixes what they are rounded to."""
_DRAWS = 3  # noise of another law can be the same up to its size once


@dataclass(frozen=True, eq=False)
class FrozenRelease:
    """A release from a seed, as a function of the secret."""

    name: str
    norm: str
    release: Callable[[Any, int], Released]
    """From the secret and the seed of the noise."""
    nothing: Any
    """The secret of which all numbers that are looked at are 0."""
    unit: Callable[[int], Float[np.ndarray, " numbers"]]
    """A seed's noise by the theorem, for neighbours that are 1 apart and the promised budget."""
    length: Callable[[Float[np.ndarray, " numbers"]], float]
    """The theorem's norm."""
    seed: int

    @cached_property
    def stated(self) -> float:
        """How far apart neighbours may be, for the noise that is in the release."""
        seeds = range(self.seed, self.seed + _DRAWS)
        released = [self.release(self.nothing, seed) for seed in seeds]
        noise, unit = np.array([numbers for numbers, _ in released]), np.array([self.unit(seed) for seed in seeds])
        size = float(np.sum(noise * unit) / np.sum(unit**2))
        if not np.allclose(noise, size * unit, rtol=0, atol=rounding_step(released[0][1])):
            raise Unprotected(f"The noise of {self.name} is not of the law that its theorem asks for.")
        return size

    @cached_property
    def _rounding(self) -> float:
        """The most that rounding two releases can add to the length of their difference, by the triangle inequality."""
        numbers, sigma = self.release(self.nothing, self.seed)
        return sum(self.length(row) for row in rounding_step(sigma) * np.eye(len(numbers)))

    def moved(self, one: Any, other: Any) -> float:
        """How far apart two secrets are in the norm, by two releases with the same noise."""
        difference = self.release(one, self.seed)[0] - self.release(other, self.seed)[0]
        return max(self.length(difference) - self._rounding, 0.0)
