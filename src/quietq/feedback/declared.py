"""What the caller declares about people's rewards. All of it is public; none of it is ever derived from the rows."""

import math
from dataclasses import dataclass

from quietq.noise.box import Box, Domain
from quietq.noise.grid_path import MOST_POINTS
from quietq.privacy.checks import count, positive, real
from quietq.privacy.errors import InvalidInput

_STEEPEST = 1e8  # beyond, ratings would be rounded by more than 2e-8 of the range: see `extension`


@dataclass(frozen=True)
class Declared:
    """Box, range, slope and number of people, and the grid that the mean reward is computed on.

    >>> Declared.of(box=(0, 10), low=0, high=1, slope=2, people=100).width
    1.0
    """

    box: Box
    """where states lie"""
    low: float
    """smallest reward that a person can give"""
    high: float
    """largest reward that a person can give"""
    slope: float
    """most that a person's reward changes over the whole width of the box, in each coordinate"""
    people: int
    """how many people stand behind the reward; people without a usable row count as the neutral middle"""
    levels: int = 16
    """the mean is computed on a grid of 2^levels + 1 points a coordinate"""

    @classmethod
    def of(cls, box: Domain, low: float, high: float, slope: float, people: int, levels: int = 16) -> "Declared":
        """Checks everything, with one sentence for whatever is wrong."""
        low, high = real("low", low), real("high", high)
        if not (high > low and math.isfinite(high - low)):
            raise InvalidInput(f"high must be above low, but high is {high!r} and low is {low!r}.")
        if 2 ** count("levels", levels) > MOST_POINTS:
            raise InvalidInput(f"levels must be at most {int(math.log2(MOST_POINTS))}, not {levels}.")
        if positive("slope", slope) > _STEEPEST * (high - low):
            raise InvalidInput(f"slope must be at most {_STEEPEST:g} times high - low, not {slope!r}.")
        return cls(Box.of(box), low, high, float(slope), count("people", people), levels)

    @property
    def width(self) -> float:
        """The range of one person's reward."""
        return self.high - self.low

    @property
    def middle(self) -> float:
        """The neutral reward."""
        return (self.low + self.high) / 2
