"""From a person's ratings to a function that keeps its declared range and slope, whatever the rows say.

Theorem (McShane 1934). With ratings y_i in [low, high] at states x_i of [0, 1] and a slope L, both

    U(x) = min(high, min_i y_i + L |x - x_i|)    and    V(x) = max(low, max_i y_i - L |x - x_i|)

lie in [low, high] and are L-Lipschitz, for *any* ratings, contradictory ones too; hence so is f = (U + V)/2. It passes
through consistent ratings and tends to the neutral middle far from any. Replacing a person's rows, all of them and by
anything, moves the mean of n people by at most (high - low)/n, with a slope of at most 2 L/n.

This is the counterpart of gradient clipping: the bound is enforced, not hoped for.

f is piecewise linear. U falls with slope -L towards each x_i from a point left of it (where it leaves `high`, or meets
its neighbour's cone) and rises to a point right of it; V is its mirror image. The kinks at the x_i themselves cancel in
f, so each row adds four kinks of size L/2, and the mean of any number of people is a sum of kinks: O(rows), not
O(people x grid).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from quietq.rewards.declared import Declared


@dataclass
class Tally:
    """The sum of people's functions on the grid {0, 2^-levels, ..., 1}, as kinks. Tallies of disjoint people add up.

    >>> tally = Tally.empty(levels=2)
    >>> tally.add(np.array([0]), np.array([0.5]), np.array([1.0]), low=0.0, high=1.0, slope=1.0)
    >>> tally.values(low=0.0, high=1.0)
    array([0.75, 0.875, 1. , 0.875, 0.75 ])
    """

    start: float
    """sum of the values at 0"""
    kinks: Float[np.ndarray, " grid"]
    """sum of the changes of slope up to each grid point, since the one before"""
    offsets: Float[np.ndarray, " grid"]
    """what these changes have already added to the value at the grid point"""
    people: int

    @classmethod
    def empty(cls, levels: int) -> "Tally":
        """Nobody yet."""
        return cls(0.0, np.zeros(2**levels + 1), np.zeros(2**levels + 1), 0)

    def add(self, starts: np.ndarray, x: np.ndarray, y: np.ndarray, low: float, high: float, slope: float) -> None:
        """Adds people whose rows are sorted by person, then state; person i's rows begin at starts[i].

        x must lie in [0, 1] and y in [low, high].
        """
        if not len(starts):
            return
        upper_left, upper_right, upper_at_zero = cones(starts, x, y, high, slope)
        lower_left, lower_right, lower_at_zero = cones(starts, x, -y, -low, slope)
        size = len(self.kinks) - 1
        for positions, change in (
            (upper_left, -slope / 2),
            (upper_right, -slope / 2),
            (lower_left, slope / 2),
            (lower_right, slope / 2),
        ):
            inside = positions[positions < 1]
            at = np.ceil(inside * size).astype(np.int64)
            self.kinks += change * np.bincount(at, minlength=size + 1)
            self.offsets += change * np.bincount(at, weights=at / size - inside, minlength=size + 1)
        self.start += float(np.sum(upper_at_zero - lower_at_zero)) / 2
        self.people += len(starts)

    def merge(self, other: "Tally") -> None:
        """Adds another tally, of other people."""
        self.start += other.start
        self.kinks += other.kinks
        self.offsets += other.offsets
        self.people += other.people

    def values(self, low: float, high: float) -> Float[np.ndarray, " grid"]:
        """The sum on the grid; `low` and `high` are one person's range, and only cut rounding errors off."""
        slopes = np.cumsum(self.kinks)
        rises = np.append(0.0, np.cumsum(slopes[:-1]) / (len(slopes) - 1))
        return np.clip(self.start + rises + np.cumsum(self.offsets), self.people * low, self.people * high)

    def mean(self, declared: Declared, share: float = 1.0) -> Float[np.ndarray, " grid"]:
        """The mean over all declared people, those without a row being neutral; `share` scales the range."""
        neutral = (declared.people - self.people) * declared.middle * share
        return (self.values(declared.low * share, declared.high * share) + neutral) / declared.people


def cones(
    starts: np.ndarray, x: np.ndarray, y: np.ndarray, high: float, slope: float
) -> tuple[Float[np.ndarray, " rows"], Float[np.ndarray, " rows"], Float[np.ndarray, " people"]]:
    """For U = min(high, min_i y_i + slope |x - x_i|): where each row's cone begins and ends, and each U(0).

    The intervals of one person are disjoint and in order by construction, so that U keeps its slope exactly.
    """
    lengths = np.diff(np.append(starts, len(x)))
    place = np.arange(len(x)) - np.repeat(starts, lengths)
    rest = np.repeat(lengths, lengths) - 1 - place
    # y as lowered by the person's other rows, from the left and from the right
    from_left = running_minimum(y - slope * x, place) + slope * x
    from_right = running_minimum((y + slope * x)[::-1], rest[::-1])[::-1] - slope * x
    tip = np.minimum(np.minimum(from_left, from_right), high)
    reach = (high - tip) / slope
    left, right = x - reach, x + reach
    meets = np.clip((x[:-1] + x[1:]) / 2 + np.diff(tip) / (2 * slope), x[:-1], x[1:])
    inner = place[1:] > 0
    left[1:] = np.where(inner, np.maximum(left[1:], meets), left[1:])
    right[:-1] = np.where(inner, np.minimum(right[:-1], meets), right[:-1])
    at_zero = np.minimum(high, tip[starts] + slope * x[starts])
    return np.maximum(left, 0.0), right, at_zero


def running_minimum(values: np.ndarray, place: Int[np.ndarray, " rows"]) -> Float[np.ndarray, " rows"]:
    """The minimum of each person's values up to each row; `place` is the row's number within its person.

    By doubling: log2(longest person) passes, exact, no loop over people.
    """
    values = values.copy()
    longest = int(place.max(initial=0)) + 1
    shift = 1
    while shift < longest:
        values[shift:] = np.where(place[shift:] >= shift, np.minimum(values[shift:], values[:-shift]), values[shift:])
        shift *= 2
    return values
