"""However many rows a person has and however steep the slope, nothing adds up beyond the declared range and slope."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from people_data import ROUNDING, SCHEMA

from quietq.feedback import Ratings
from quietq.feedback.buckets import MOST_ROWS
from quietq.feedback.extension import _ROWS_AT_ONCE, Extension
from quietq.feedback.feedback import read_people
from quietq.mechanisms.knots import IncrementNoise
from quietq.noise.box import UNIT
from quietq.privacy.relations import LipschitzBall

KNOTS = np.linspace(0, 1, 5)
START = 2.0**-32  # the value at 0 is rounded, once a person


def mean_with(states, ratings, slope, count, levels=16):
    """The reward of one person with these rows, all others neutral."""
    rows = pl.DataFrame({"person": np.zeros(len(states), np.int64), "state": states, "rating": ratings})
    rows = pl.concat([rows, pl.DataFrame({"person": [1], "state": [0.5], "rating": [0.5]})])
    if levels == 16:
        return Ratings.read(rows, box=(0, 1), low=0, high=1, slope=slope, people=count)
    extension = Extension(0.0, 1.0, slope, levels)
    read = read_people(rows, SCHEMA, extension, count)
    return Ratings(box=UNIT, low=0.0, high=1.0, slope=extension.slope, **read)


@pytest.mark.parametrize("rows", [1_000, MOST_ROWS - len(KNOTS)])  # no person has more rows than that
def test_places_that_all_round_the_same_way_do_not_add_up(rows):
    """Neighbouring states are such that the middle between any two, in floating point, is rounded up."""
    slope, count, last_bit = 1e8, 10, 2.0**-53
    step = int(4e-9 / last_bit) // 4 * 4
    k = np.arange(rows)
    states = (int(0.501 / last_bit) // 4 * 4 + k * step + np.where(k % 2 == 0, 1, 2)) * last_bit
    signs = np.array([1, -1, 1, 1, 1])
    loud = mean_with(np.concatenate([states, KNOTS]), np.concatenate([np.zeros(rows), signs > 0]), slope, count)
    other = mean_with(KNOTS, (signs < 0) * 1.0, slope, count)
    moved = loud.functions()[0](KNOTS) - other.functions()[0](KNOTS)
    np.testing.assert_allclose(moved * count, signs, rtol=0, atol=1e-7)
    assert np.abs(moved).max() * count <= 1 + 2 * START
    ball = loud.relation
    assert isinstance(ball, LipschitzBall)
    assert IncrementNoise(1.0, ball, 4).distance(np.diff(moved)) <= ROUNDING


def by_definition(rows, slope, x):
    """The midpoint of the two extensions at x, in exact arithmetic."""
    upper = min(1, min(y + slope * abs(x - at) for at, y in rows))
    lower = max(0, max(y - slope * abs(x - at) for at, y in rows))
    return (upper + lower) / 2


place = st.integers(0, 2**53) | st.integers(2**52, 2**52 + 40) | st.integers(2**53 - 40, 2**53)
theirs = st.lists(st.tuples(place, st.integers(0, 2**20)), min_size=1, max_size=12)


@pytest.mark.slow
@settings(max_examples=200)
@given(theirs, st.integers(-3, 26), st.integers(1, 12))
def test_each_person_is_the_exact_extension_of_rows_rounded_to_a_public_unit(rows, power, levels):
    states, ratings = np.array(rows).T * np.array([[2.0**-53], [2.0**-20]])
    unit = 2 ** min(52, 46 + levels)
    rounded = [(Fraction(round(Fraction(x) * unit), unit), Fraction(y)) for x, y in zip(states, ratings, strict=True)]
    read = mean_with(states, ratings, 2.0**power, 2, levels)
    where = sorted({0, 2**levels, *(int(x * 2**levels) for x in states[:4])})
    points = [Fraction(i, 2**levels) for i in where]
    neutral = [by_definition([(Fraction(1, 2), Fraction(1, 2))], Fraction(2) ** power, point) for point in points]
    expected = [by_definition(rounded, Fraction(2) ** power, point) for point in points]
    found = read.functions()[0](np.array([float(point) for point in points]))
    for mean, one, other in zip(found, expected, neutral, strict=True):
        # ratings are rounded to multiples of slope times the unit; all else is exact but for the start
        assert abs(2 * Fraction(float(mean)) - one - other) <= Fraction(START) + Fraction(2) ** power / unit


@settings(max_examples=50)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=30), st.floats(-99, 8))
def test_any_slope_keeps_the_range_and_the_slope(rows, power):
    slope = 10.0**power
    states, ratings = np.array(rows).T
    grid = np.arange(2**10 + 1) / 2**10
    alone = mean_with(states, ratings, slope, 2, 10).functions()[0](grid)
    nobody = mean_with([0.5], [0.5], slope, 2, 10).functions()[0](grid)
    function = 2 * (alone - nobody) + 0.5
    assert function.min() >= -2 * START
    assert function.max() <= 1 + 2 * START
    assert np.abs(np.diff(function)).max() * 2**10 <= slope * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("levels", [1, 4, 5, 6, 16])
def test_many_people_at_one_place_do_not_overflow(levels):
    """All kinks lie just right of a grid point, so that each has nearly a whole cell of parts."""
    people, extension = 3 * _ROWS_AT_ONCE, Extension(0.0, 1.0, 1.0, levels)
    columns = {"x0": np.full(people, 0.5 + 2.0 ** (1 - extension.bits - levels)), "rating": np.zeros(people)}
    everybody, one = extension.empty(), extension.empty()
    extension.add(everybody, np.arange(people), columns)
    extension.add(one, np.arange(1), {name: column[:1] for name, column in columns.items()})
    np.testing.assert_allclose(extension.mean(everybody, people), extension.mean(one, 1), rtol=0, atol=1e-15)
