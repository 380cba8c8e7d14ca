"""A person's ratings become a function that keeps its declared range and slope, whatever the rows say.

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

A rounding error in the place of a kink would stay in f from there on, and those of millions of rows would add up. So
there are none: states become multiples of a unit 2^-k, and ratings multiples of L 2^-k above the person's lowest (below
the highest, for V); after that, all arithmetic is exact.

Proof. Let k <= 52. In units of L, heights above the person's lowest rating may be cut at 1 without changing U, since
the lowest rating's cone stays below 1 in the whole of [0, 1]; and so may `high`. So all that `cones` adds, subtracts
and compares are multiples of 2^-k of size 2 at the most, hence multiples of 2^-52 below 2^53 of them: exact in float64.
Two cones meet at ((x_i + x_j) + (t_j - t_i))/2 with |t_j - t_i| <= |x_j - x_i|: a multiple of 2^-53 in [0, 1], exact
too. So the kinks are those of the U and V of the rounded rows, to which the theorem applies; `high` and `low` were
rounded inwards. They are binned in whole numbers, without rounding, as 2^-(k+1) is a part of a cell. What remains is
one number per person, the value at 0: it is rounded by 2^-33 of the range, once, and a few times by 2^-53, however many
rows there are. The slack in the noise, a millionth, covers that many times over. The mean is not clipped to the range
after that: people who all end on it would be clipped by as much as all of their roundings, which one other person in
their midst would undo, and that is more than a millionth of one of 10,000 people.
QED.

Proof: docs/theory.md#people and docs/theory.md#sums-over-people.
"""

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Float

from quietq.feedback.statistic import Columns, Starts, Statistic, Tally
from quietq.noise.grid_path import MOST_POINTS
from quietq.privacy.checks import count, ends, positive
from quietq.privacy.errors import InvalidInput

_ROWS_AT_ONCE = 2**14
"""Few enough that their arrays are small: the operating system takes longer to find memory for large ones than NumPy
takes to fill them."""
_SHARES = 2**32
"""A person's value at 0 is a whole number of such shares of the range."""
_BEYOND = 1 / _SHARES
"""A part of the range. Rounding its value at 0 moves a function by half a share at the most, and so beyond its range by
no more. Cutting that off would move the mean of people who all end up there by as much, unless one of them did not."""
_STEEPEST = 1e8
"""Beyond, ratings would be rounded by more than 2e-8 of the range."""


@dataclass(frozen=True)
class Extension(Statistic):
    """Each person's function on the grid {0, 2^-levels, ..., 1}, summed as kinks.

    In floating point the kernel's norm would amplify the rounding errors of a million people beyond what one of them
    can do, so sums are whole numbers, and no kink's place is rounded: each function keeps its range and slope exactly,
    however many rows there are. The four sums are the values at 0 above the lowest, in shares of the range; the changes
    of slope up to each grid point since the one before, in units of slope/2; and how far left of the grid point these
    changes lie in all, in cells and parts of a cell.
    """

    low: float
    """smallest reward that a person can give"""
    high: float
    """largest reward that a person can give"""
    slope: float
    """most that a person's reward changes over the whole width of the box"""
    levels: int = 16

    def __post_init__(self) -> None:
        low, high = ends(self.low, self.high)
        for name, value in {"low": low, "high": high, "slope": positive("slope", self.slope)}.items():
            object.__setattr__(self, name, value)
        if 2 ** count("levels", self.levels) > MOST_POINTS:
            raise InvalidInput(f"levels must be at most {int(math.log2(MOST_POINTS))}, not {self.levels}.")
        if self.slope > _STEEPEST * (self.high - self.low):
            raise InvalidInput(f"slope must be at most {_STEEPEST:g} times high - low, not {self.slope!r}.")

    def empty(self) -> Tally:
        kinks, cells, parts = np.zeros((3, 2**self.levels + 1), np.int64)
        return Tally(0, [np.zeros(1, object), kinks, cells, parts])

    @property
    def bits(self) -> int:
        """A part of a cell is 2^-bits of it, and 2^-53 of the box or more: places of kinks are whole numbers of it.

        So coarse that those of `_ROWS_AT_ONCE` rows fit into an integer of 64 bits.
        """
        return min(53 - self.levels, 47)

    def add(self, tally: Tally, starts: Starts, columns: Columns) -> None:
        """Adds people whose rows are in the order of x0, which must lie in [0, 1], with ratings in the range."""
        x, y = columns.values()
        slope, unit = self.slope, 2.0 ** (1 - self.bits - self.levels)
        at_zero, kinks, cells, parts = tally.sums
        fit, since = 2 ** (61 - self.bits), 0  # rows whose kinks' parts surely fit into an integer of 64 bits
        lengths = np.diff(starts, append=len(x))
        for length in np.unique(lengths):
            # People with as many rows as each other are one matrix, with a column for each.
            those, at_once = starts[lengths == length], max(1, _ROWS_AT_ONCE // length)
            for some in (those[i : i + at_once] for i in range(0, len(those), at_once)):
                rows = some + np.arange(length)[:, None]
                states, ratings = np.rint(x[rows] / unit) * unit, y[rows]
                lowest, highest = ratings.min(axis=0), ratings.max(axis=0)
                *falls, upper_at_zero = cones(states, ratings - lowest, self.high - lowest, slope, unit)
                *rises, lower_at_zero = cones(states, highest - ratings, highest - self.low, slope, unit)
                above = (lowest - self.low + slope * upper_at_zero) / (self.high - self.low)
                below = (highest - self.low - slope * lower_at_zero) / (self.high - self.low)
                shares = np.clip((above + below) / 2, 0.0, 1.0)
                at_zero += int(np.rint(shares * _SHARES).astype(np.int64).sum())
                self._add_kinks(np.subtract, kinks, parts, falls)
                self._add_kinks(np.add, kinks, parts, rises)
                since += rows.size
                if since > fit - _ROWS_AT_ONCE:
                    self._carry(cells, parts)
                    since = 0
        self._carry(cells, parts)
        tally.people += len(starts)

    def mean(self, tally: Tally, count: int) -> Float[np.ndarray, " grid"]:
        """Returns the mean to some places of float64 (`noise.rounding.FLOAT64`), which counts what is rounded here."""
        begin, kinks, cells, parts = tally.sums
        carried, parts = np.divmod(parts, 2**self.bits)
        over, parts = np.divmod(np.cumsum(parts), 2**self.bits)
        cells = np.cumsum(cells + carried) + over
        cells[1:] += np.cumsum(np.cumsum(kinks)[:-1])
        rises = self.slope / 2 / 2**self.levels * (cells + parts / 2**self.bits)
        span = Fraction(self.high) - Fraction(self.low)
        start = float(tally.people * Fraction(self.low) + Fraction(begin.item(), _SHARES) * span)
        middle = (self.low + self.high) / 2
        # Nothing reaches these ends, as long as tallies are what they seem: no refusal may hang on a sum.
        least, most = self.low - self.beyond, self.high + self.beyond
        return np.clip((start + rises + (count - tally.people) * middle) / count, least, most)

    @property
    def beyond(self) -> float:
        """How far beyond the range a mean may be, for rounding's sake."""
        return (self.high - self.low) * _BEYOND

    def _add_kinks(self, add: np.ufunc, kinks: np.ndarray, parts: np.ndarray, places: list[np.ndarray]) -> None:
        """Adds how many places lie just left of each grid point or on it, and by how many parts of a cell in all."""
        for place in places:
            from_zero = (place * 2.0 ** (self.bits + self.levels)).astype(np.int64).ravel()
            grid = -(-from_zero >> self.bits)
            add.at(kinks, grid, 1)
            add.at(parts, grid, (grid << self.bits) - from_zero)

    def _carry(self, cells: np.ndarray, parts: np.ndarray) -> None:
        """Makes whole cells of parts."""
        cells += parts >> self.bits
        parts &= 2**self.bits - 1


def cones(
    x: Float[np.ndarray, "rows people"],
    y: Float[np.ndarray, "rows people"],
    high: Float[np.ndarray, " people"],
    slope: float,
    unit: float,
) -> tuple[Float[np.ndarray, "rows people"], Float[np.ndarray, "rows people"], Float[np.ndarray, " people"]]:
    """For U = min(high, min_i y_i + slope |x - x_i|): where each row's cone begins and ends, and each U(0)/slope.

    A column is a person, its rows in the order of x, which are multiples of the unit; the lowest y of each is 0. From
    the second line on nothing is rounded, by the proof above.
    """
    top = np.floor(np.minimum(high, slope) / slope / unit) * unit
    y = np.rint(np.minimum(y, slope) / slope / unit) * unit
    # y as lowered by the person's other rows, from the left and from the right
    tip = _running_minimum(y - x)
    tip += x
    from_right = y + x
    _running_minimum(from_right[::-1])
    from_right -= x
    np.minimum(tip, from_right, out=tip)
    np.minimum(tip, top, out=tip)
    reach = top - tip
    left, right = x - reach, x + reach
    meets = (x[:-1] + x[1:] + np.diff(tip, axis=0)) / 2
    np.maximum(left[1:], meets, out=left[1:])
    np.minimum(right[:-1], meets, out=right[:-1])
    np.maximum(left, 0.0, out=left)
    np.minimum(right, 1.0, out=right)
    return left, right, np.minimum(top, tip[0] + x[0])


def _running_minimum(heights: np.ndarray) -> np.ndarray:
    """Down each column, in place; row by row, which is many times faster where there are many columns."""
    rows, columns = heights.shape
    if rows > columns:
        return np.minimum.accumulate(heights, axis=0, out=heights)
    for above, below in itertools.pairwise(heights):
        np.minimum(above, below, out=below)
    return heights
