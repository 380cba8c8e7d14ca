"""What rounding does to a mean of people's functions: no more than `FLOAT64` allows for, whoever they are."""

import copy
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

from quietq import Budget, Ratings
from quietq.feedback.extension import Extension
from quietq.feedback.statistic import Tally
from quietq.mechanisms.candidates import choose
from quietq.noise.box import UNIT
from quietq.noise.rounding import FLOAT64

ROUNDING = Fraction(1, 2**53)
COUNTED = 13
"""roundings of the largest value, by the docstring of FLOAT64"""


class Rounded(NamedTuple):
    """A number of float64, and a bound of its error: each operation that may round adds a rounding of its result."""

    value: float
    error: Fraction = Fraction(0)

    def plus(self, other: "Rounded") -> "Rounded":
        return rounded(self.value + other.value, self.error + other.error)

    def times(self, public: float) -> "Rounded":
        return rounded(self.value * public, self.error * abs(Fraction(public)))


def rounded(value: float, error: Fraction = Fraction(0)) -> Rounded:
    return Rounded(value, error + ROUNDING * abs(Fraction(value)))


def between(left: Rounded, right: Rounded, part: float, cells: int) -> Rounded:
    """A straight line as `numpy.interp` has it, the part a multiple of 2^-20: places are exact, and so are slopes."""
    difference, weight = rounded(right.value - left.value), Fraction(part)
    rise = rounded(difference.value * cells * (part / cells), difference.error * weight)
    return rounded(rise.value + left.value, rise.error + left.error * (1 - weight) + right.error * weight)


def tally_of(extension: Extension, *people: tuple[np.ndarray, np.ndarray]) -> Tally:
    tally, starts = extension.empty(), np.cumsum([0, *(len(x) for x, _ in people[:-1])])
    x, y = (np.concatenate(each) for each in zip(*people, strict=True))
    extension.add(tally, starts, {"x0": x, "rating": y})
    return tally


def ratings_of(extension: Extension, tally: Tally, count: int) -> Ratings:
    public = {"low": extension.low, "high": extension.high, "slope": extension.slope, "not_private": {}}
    return Ratings(box=UNIT, people=count, first=extension, first_sum=tally, rows=None, **public)


def bounded_mean(extension: Extension, tally: Tally, count: int) -> tuple[list[Rounded], list[Fraction]]:
    """At the grid points, as `Extension.mean` computes it with a bound of its error, and in fractions."""
    begin, kinks, left, parts = tally.sums
    unit = 2**extension.bits
    cells = np.append(0, np.cumsum(np.cumsum(kinks))[:-1])
    low, high, people = Fraction(extension.low), Fraction(extension.high), tally.people
    start = people * low + Fraction(int(begin[0]), 2**32) * (high - low)
    middle, step = (extension.low + extension.high) / 2, extension.slope / 2 / 2**extension.levels
    nobody = Rounded(middle).times(count - people)
    found, exact = [], []
    for cell, more, part in zip(cells, np.cumsum(left), np.cumsum(parts), strict=True):
        place = (int(cell) + int(more)) * unit + int(part)
        whole, further = divmod(place, unit)
        rise = Rounded(float(whole)).plus(Rounded(further / unit)).times(step)
        total = rounded(float(start)).plus(rise).plus(nobody)
        found.append(rounded(total.value / count, total.error / count))
        exact.append((start + Fraction(step) * place / unit + (count - people) * Fraction(middle)) / count)
    return found, exact


def crowds() -> list[tuple[Extension, Tally, int]]:
    """From one end of the range to the other: in one cell, or in many; and anybody."""
    rng, levels = np.random.default_rng(0), 4
    found = []
    for low, high in ((-1.0, 0.99), (-0.3, 0.3), (0.1, 0.7), (-7e5, 7e5 + 0.1)):
        for steepness in (1.0, 37.3, 1e4, 9.9e7):
            extension = Extension(low, high, steepness * (high - low), levels)
            jumps = [(np.array([0, 3 / 16, 4 / 16, 7 / 16, 8 / 16, 1]), np.array([low, low, high, high, low, high]))]
            ramps = [(np.linspace(0, 1, 9), np.linspace(low, high, 9))]
            anybody = [(np.sort(rng.random(5)), rng.uniform(low, high, 5)) for _ in range(7)]
            found += [
                (extension, tally_of(extension, *people), len(people) + int(rng.integers(0, 2)))
                for people in (jumps * 7, ramps * 3, jumps * 2 + ramps + anybody, anybody)
            ]
    return found


def test_thirteen_roundings_are_all_there_are() -> None:
    """By a bound that runs along with the computation, which it follows bit by bit; sixteen are allowed for."""
    rng, largest_bound, largest_error = np.random.default_rng(1), Fraction(0), Fraction(0)
    for extension, tally, count in crowds():
        cells, people = 2**extension.levels, ratings_of(extension, tally, count)
        size, mean = Fraction(max(abs(extension.low), abs(extension.high))), people.functions()[0]
        values, exact = bounded_mean(extension, tally, count)
        assert extension.mean(tally, count).tolist() == [one.value for one in values]
        for part in (0.5, 1 - 2.0**-20, int(rng.integers(1, 2**20)) * 2.0**-20):
            lines = [between(values[cell], values[cell + 1], part, cells) for cell in range(cells)]
            assert mean((np.arange(cells) + part) / cells).tolist() == [one.value for one in lines]
            true = [exact[cell] + (exact[cell + 1] - exact[cell]) * Fraction(part) for cell in range(cells)]
            errors = [abs(Fraction(one.value) - other) for one, other in zip(lines, true, strict=True)]
            assert all(error <= one.error for error, one in zip(errors, lines, strict=True))
            largest_bound = max(largest_bound, *(one.error / size for one in lines))
            largest_error = max(largest_error, *(error / size for error in errors))
    assert 12 * ROUNDING < largest_bound <= COUNTED * ROUNDING * (1 + Fraction(1, 10**6)) <= Fraction(FLOAT64)
    assert largest_error > 2 * ROUNDING


@pytest.mark.parametrize("noise", ["path", "k-norm"])
@pytest.mark.parametrize("doublings", [10, 24])
def test_a_crowd_at_the_end_of_its_range_hides_one_who_is_not(noise: str, doublings: int) -> None:
    """All values at 0 are rounded up, so that people who end at the top end above it; with one other they do not."""
    extension, at_zero = Extension(low=0, high=1, slope=2, levels=16), (2**31 + 0.6) / 2**32
    top = np.linspace((1 - at_zero) / 2, 1, 257)
    rising = np.append(0.0, top), np.append(at_zero, np.ones(257))
    crowd, count, query = tally_of(extension, rising), 2**doublings + 1, None
    for _ in range(doublings):
        crowd.merge(copy.deepcopy(crowd))
    looked_at = []
    for person in (rising, (np.linspace(0, 1, 257), np.zeros(257))):
        tally = tally_of(extension, person)
        tally.merge(crowd)
        ratings = ratings_of(extension, tally, count)
        query = next(choose(noise, ratings, Budget(0.9, 1e-9)).run())
        looked_at.append((ratings.functions()[0](top), query.numbers(ratings)))
    (everybody, one), (_, other) = looked_at
    assert 1 < everybody.max() <= ratings.largest <= 1 + 2.0**-32
    assert query is not None
    assert 0.3 < query.law.distance(one - other) / query.sensitivity <= 1
    alone = [extension.mean(tally_of(extension, person), 1) for person in (rising, (top, np.zeros(257)))]
    assert max(np.abs(function).max() for function in alone) <= 1 + 2.0**-33
