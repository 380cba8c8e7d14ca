"""The whole promise hangs on this: whatever one person's rows say, they move the reward by no more than is stated."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from people_data import GRID, LEVELS, ROUNDING, frame

from quietq import Exponential
from quietq.feedback import Ratings
from quietq.mechanisms.knots import IncrementNoise, least_shape
from quietq.privacy.relations import LipschitzBall

nasty = st.sampled_from([0.0, 1.0, -0.0, 0.5, math.nan, math.inf, -math.inf, 1e308, -1e308, 1e-320, -0.1, 1.1, 2.0])
number = st.floats(-0.2, 1.2) | nasty
state = st.floats(0, 1) | number
row = st.tuples(state, number)
rows = st.lists(row, max_size=8)
bounds = st.tuples(st.floats(-1, 1), st.floats(0.05, 2), st.floats(0.05, 20))


def mean_reward(people: dict[str, list[tuple[float, float]]], count: int, low: float, width: float, slope: float):
    # one certain row keeps a file in which nothing can be used, which is refused, out of the way
    data = frame({**people, "anchor": [(0.5, low)]})
    read = Ratings.read(data, box=(0, 1), low=low, high=low + width, slope=slope, people=count)
    return read, read.functions()[0](GRID)


@settings(max_examples=100)
@given(st.lists(rows, min_size=1, max_size=4), rows, rows, bounds)
def test_one_person_moves_the_reward_by_no_more_than_stated(others, before, after, bounds):
    low, width, slope = bounds
    count = len(others) + 3
    fixed = {f"other {i}": theirs for i, theirs in enumerate(others)}
    people, one = mean_reward({**fixed, "the one": before}, count, low, width, slope)
    _, other = mean_reward({**fixed, "the one": after}, count, low, width, slope)
    ball = people.relation
    assert isinstance(ball, LipschitzBall)
    difference = one - other
    assert np.abs(difference).max() <= ball.radius * ROUNDING
    assert np.abs(np.diff(difference)).max() * 2**LEVELS <= ball.lipschitz * ROUNDING
    kernel = Exponential(ball.best_beta())
    assert kernel.norm_on(GRID, difference) <= ball.rkhs_radius(kernel) * ROUNDING
    for pieces in (4, 8):
        knots = difference[:: 2**LEVELS // pieces]
        assert IncrementNoise(1.0, ball, pieces).distance(np.diff(knots)) <= ROUNDING
        if ball.lipschitz / ball.radius / pieces > 0.05:  # flatter bodies have too many vertices to list
            increments = np.diff(difference[:: 2**LEVELS // 4])
            assert increments @ np.linalg.solve(least_shape(ball, 4), increments) <= ROUNDING


@settings(max_examples=50)
@given(rows, bounds)
def test_a_persons_function_keeps_its_range_and_slope(theirs, bounds):
    low, width, slope = bounds
    _, alone = mean_reward({"the one": theirs}, 2, low, width, slope)
    _, nobody = mean_reward({}, 2, low, width, slope)
    function = 2 * (alone - nobody) + low + width / 2
    assert function.min() >= low - 1e-9 * width
    assert function.max() <= low + width + 1e-9 * width
    assert np.abs(np.diff(function)).max() * 2**LEVELS <= slope * ROUNDING


def direct(theirs, low, high, slope):
    """The midpoint of the two extensions, by its definition."""
    x, y = np.array(theirs).T
    cones = slope * np.abs(GRID - x[:, None])
    upper = np.minimum(high, (y[:, None] + cones).min(axis=0))
    lower = np.maximum(low, (y[:, None] - cones).max(axis=0))
    return (upper + lower) / 2


@settings(max_examples=50)
@given(st.lists(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=6), min_size=1, max_size=5))
def test_kinks_add_up_to_the_definition(people):
    named = {str(i): theirs for i, theirs in enumerate(people)}
    read = Ratings.read(frame(named), box=(0, 1), low=0, high=1, slope=1.7, people=len(people) + 1)
    expected = (sum(direct(theirs, 0, 1, 1.7) for theirs in people) + 0.5) / (len(people) + 1)
    np.testing.assert_allclose(read.functions()[0](GRID), expected, atol=1e-12)


def test_consistent_ratings_are_met_and_far_away_is_neutral():
    read = Ratings.read(frame({"a": [(0.2, 0.9), (0.4, 0.8)]}), box=(0, 1), low=0, high=1, slope=2, people=1)
    reward = read.functions()[0]
    np.testing.assert_allclose(reward(np.array([0.2, 0.4])), [0.9, 0.8], atol=1e-12)
    assert float(reward(np.array(1.0))) == pytest.approx(0.5)


@pytest.mark.slow
def test_a_million_rows_of_one_person_count_once():
    rng = np.random.default_rng(0)
    rows = 1_000_000
    loud = pl.DataFrame({"person": ["loud"] * rows, "state": rng.random(rows), "rating": rng.uniform(-5, 5, rows)})
    quiet = pl.DataFrame({"person": ["quiet"], "state": [0.5], "rating": [1.0]})
    settings = {"box": (0, 1), "low": 0, "high": 1, "slope": 1, "people": 10}
    one = Ratings.read([quiet, loud], **settings).functions()[0](GRID)
    other = Ratings.read(quiet, **settings).functions()[0](GRID)
    assert np.abs(one - other).max() <= 0.1 * 0.5 * ROUNDING  # from neutral to anything
    assert np.abs(np.diff(one - other)).max() * 2**LEVELS <= 0.1 * ROUNDING
