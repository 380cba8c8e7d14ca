"""The whole promise hangs on this: whatever one person's rows say, they move the reward by no more than is stated."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quietq import Exponential, Features, InvalidInput, RkhsBall
from quietq.privacy.relations import LipschitzBall
from quietq.rewards import People, ellipsoid, ratings
from quietq.rewards.extension import Tally
from quietq.rewards.k_norm import IncrementBody

LEVELS = 7
GRID = np.arange(2**LEVELS + 1) / 2**LEVELS
ROUNDING = 1 + 1e-6  # what `privatise` allows for

nasty = st.sampled_from([0.0, 1.0, -0.0, 0.5, math.nan, math.inf, -math.inf, 1e308, -1e308, 1e-320, -0.1, 1.1, 2.0])
number = st.floats(-0.2, 1.2) | nasty
state = st.floats(0, 1) | number
row = st.tuples(state, number)
rows = st.lists(row, max_size=8)
bounds = st.tuples(st.floats(-1, 1), st.floats(0.05, 2), st.floats(0.05, 20))


def frame(people: dict[str, list[tuple[float, float]]]) -> pl.DataFrame:
    flat = [(person, x, y) for person, their in people.items() for x, y in their]
    return pl.DataFrame(flat, schema={"person": pl.String, "state": pl.Float64, "rating": pl.Float64}, orient="row")


def mean_reward(people: dict[str, list[tuple[float, float]]], count: int, low: float, width: float, slope: float):
    # one certain row keeps a file in which nothing can be used, which is refused, out of the way
    data = frame({**people, "anchor": [(0.5, low)]})
    read = People.read(data, box=(0, 1), low=low, high=low + width, slope=slope, count=count, levels=LEVELS)
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
        assert IncrementBody(ball, pieces).gauge(np.diff(knots)) <= ROUNDING
        if ball.lipschitz / ball.radius / pieces > 0.05:  # flatter bodies have too many vertices to list
            whitened = np.linalg.solve(ellipsoid.shape(ball, 4), difference[:: 2**LEVELS // 4])
            assert difference[:: 2**LEVELS // 4] @ whitened <= ROUNDING


@settings(max_examples=100)
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


@settings(max_examples=100)
@given(st.lists(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=6), min_size=1, max_size=5))
def test_kinks_add_up_to_the_definition(people):
    named = {str(i): theirs for i, theirs in enumerate(people)}
    read = People.read(frame(named), box=(0, 1), low=0, high=1, slope=1.7, count=len(people) + 1, levels=LEVELS)
    expected = (sum(direct(theirs, 0, 1, 1.7) for theirs in people) + 0.5) / (len(people) + 1)
    np.testing.assert_allclose(read.functions()[0](GRID), expected, atol=1e-12)


def test_consistent_ratings_are_met_and_far_away_is_neutral():
    read = People.read(frame({"a": [(0.2, 0.9), (0.4, 0.8)]}), box=(0, 1), low=0, high=1, slope=2, count=1, levels=10)
    reward = read.functions()[0]
    np.testing.assert_allclose(reward(np.array([0.2, 0.4])), [0.9, 0.8], atol=1e-12)
    assert float(reward(np.array(1.0))) == pytest.approx(0.5)


@pytest.mark.slow
def test_a_million_rows_of_one_person_count_once():
    rng = np.random.default_rng(0)
    rows = 1_000_000
    loud = pl.DataFrame({"person": ["loud"] * rows, "state": rng.random(rows), "rating": rng.uniform(-5, 5, rows)})
    quiet = pl.DataFrame({"person": ["quiet"], "state": [0.5], "rating": [1.0]})
    settings = {"box": (0, 1), "low": 0, "high": 1, "slope": 1, "count": 10, "levels": LEVELS}
    one = People.read([quiet, loud], **settings).functions()[0](GRID)
    other = People.read(quiet, **settings).functions()[0](GRID)
    assert np.abs(one - other).max() <= 0.1 * 0.5 * ROUNDING  # from neutral to anything
    assert np.abs(np.diff(one - other)).max() * 2**LEVELS <= 0.1 * ROUNDING


SAME = {
    "text": ["Ann", " ann", "ANN ", "ann", "\tAnn\n", "\uff21nn"],
    "number": ["7", "7.0", " 7", "+7", "007", "7."],
}


@pytest.mark.parametrize("names", SAME.values(), ids=SAME.keys())
def test_spellings_of_one_name_are_one_person(names):
    data = pl.DataFrame({"person": names, "state": [0.1] * len(names), "rating": [1.0] * len(names)})
    assert People.read(data, box=(0, 1), low=0, high=1, slope=1, count=1).not_private["people_present"] == 1


def test_types_of_one_name_are_one_person():
    numbers = [pl.Int64, pl.Int8, pl.UInt64, pl.Float64, pl.String, pl.Categorical]
    parts: list[object] = [
        pl.DataFrame({"person": pl.Series(["7"]).cast(dtype), "state": [0.1 * i], "rating": [1.0]})
        for i, dtype in enumerate(numbers)
    ]
    parts.append(pd.DataFrame({"person": [7, 7.0], "state": [0.7, 0.8], "rating": [1.0, 1.0]}))
    parts.append(pd.DataFrame({"person": ["7", 7], "state": [0.7, 0.8], "rating": [1.0, 1.0]}))
    assert People.read(parts, box=(0, 1), low=0, high=1, slope=1, count=1).not_private["people_present"] == 1


def test_numbers_too_large_for_an_integer_stay_apart():
    data = pl.DataFrame({"person": [2**64 - 1, 2**64 - 2], "state": [0.1, 0.2], "rating": [1.0, 1.0]})
    assert data.schema["person"] == pl.UInt64
    assert People.read(data, box=(0, 1), low=0, high=1, slope=1, count=2).not_private["people_present"] == 2


@pytest.mark.parametrize("batch", [1, 3, 1000])
def test_a_person_split_over_chunks_and_files_counts_once(tmp_path, monkeypatch, batch):
    monkeypatch.setattr(ratings, "BATCH", batch)
    rng = np.random.default_rng(1)
    data = pl.DataFrame({"person": rng.integers(0, 5, 60), "state": rng.random(60), "rating": rng.random(60)})
    whole = People.read(data, box=(0, 1), low=0, high=1, slope=1, count=6, levels=LEVELS).functions()[0](GRID)
    files = []
    for i in range(4):
        part = data[i::4]
        path = tmp_path / (f"{i}.csv" if i % 2 else f"{i}.parquet")
        part.write_csv(path) if i % 2 else part.write_parquet(path)
        files.append(path)
    split = People.read(files, box=(0, 1), low=0, high=1, slope=1, count=6, levels=LEVELS)
    np.testing.assert_allclose(split.functions()[0](GRID), whole, atol=1e-12)
    assert split.not_private["people_present"] == 5


def test_order_does_not_matter():
    rng = np.random.default_rng(2)
    data = pl.DataFrame({"person": rng.integers(0, 9, 200), "state": rng.random(200), "rating": rng.random(200)})
    kwargs = {"box": (0, 1), "low": 0, "high": 1, "slope": 3, "count": 9, "levels": LEVELS}
    one = People.read(data, **kwargs).functions()[0](GRID)
    other = People.read(data.sample(fraction=1, shuffle=True, seed=1), **kwargs).functions()[0](GRID)
    np.testing.assert_allclose(one, other, atol=1e-12)


def test_bad_rows_are_left_out_and_counted():
    data = pl.DataFrame(
        {
            "person": ["a", None, "", "  ", "b", "b", "b", "c", "c", "d"],
            "state": [0.5, 0.5, 0.5, 0.5, math.nan, None, 1.5, 0.5, 0.5, 0.25],
            "rating": [0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, math.inf, None, 7.0],
        }
    )
    people = People.read(data, box=(0, 1), low=0, high=1, slope=1, count=4, levels=LEVELS)
    assert people.not_private == {
        "rows": 10,
        "used_rows": 2,
        "without_person": 3,
        "bad_state": 3,
        "bad_rating": 2,
        "clipped_ratings": 1,
        "people_present": 2,
    }
    only_good = {"a": [(0.5, 0.5)], "d": [(0.25, 1.0)]}
    same = People.read(frame(only_good), box=(0, 1), low=0, high=1, slope=1, count=4, levels=LEVELS)
    np.testing.assert_allclose(people.functions()[0](GRID), same.functions()[0](GRID), atol=1e-12)


def test_the_box_scales_states_and_the_slope_is_per_width():
    data = pl.DataFrame({"person": ["a"], "state": [15.0], "rating": [1.0]})
    people = People.read(data, box=(10, 20), low=0, high=1, slope=2, count=1, levels=LEVELS)
    reward = people.functions()[0](np.array([15.0, 16.0, 20.0]))
    np.testing.assert_allclose(reward, [1.0, 0.9, 0.5], atol=1e-12)  # 2 per 10: 0.2 a unit, halved by the midpoint


two_dimensional = st.lists(st.tuples(state, state, number), max_size=6)


@settings(max_examples=100)
@given(two_dimensional, two_dimensional, two_dimensional)
def test_additive_functions_keep_the_radius(others, before, after):
    def means(theirs):
        flat = [("other", *r) for r in others] + [("one", *r) for r in theirs] + [("anchor", 0.5, 0.5, 0.0)]
        data = pl.DataFrame(flat, schema=["person", "a", "b", "rating"], orient="row", strict=False)
        people = People.read(
            data, box=[(0, 1), (0, 1)], low=-1, high=1, slope=2, count=4, state=["a", "b"], levels=LEVELS
        )
        return people, [f(GRID) for f in people.functions()]

    people, one = means(before)
    _, other = means(after)
    assert isinstance(people.relation, RkhsBall)
    parts = people.relation.kernel.parts  # pyright: ignore[reportAttributeAccessIssue]
    moved = math.hypot(*(k.norm_on(GRID, a - b) for k, a, b in zip(parts, one, other, strict=True)))
    assert moved <= people.relation.radius * ROUNDING


def hats(x):
    return np.maximum(0, 1 - np.abs(x[:, None] * 4 - np.arange(5)))


@settings(max_examples=100)
@given(rows, rows, rows)
def test_feature_weights_keep_the_radius(others, before, after):
    kernel = Features(hats, rank=5)

    def weights(theirs):
        data = frame({"other": others, "one": theirs, "anchor": [(0.5, 0.0)]})
        people = People.read(
            data, box=(0, 1), low=-1, high=1, slope=1, count=4, features=kernel, norm=0.7, levels=LEVELS
        )
        return people, people.weights()

    people, one = weights(before)
    _, other = weights(after)
    assert isinstance(people.relation, RkhsBall)
    assert people.relation.radius == pytest.approx(2 * 0.7 / 4)
    assert np.linalg.norm(one - other) <= people.relation.radius * ROUNDING


def test_a_ridge_fit_with_many_ratings_finds_the_preference():
    rng = np.random.default_rng(3)
    x, truth = rng.random(4000), np.array([0.1, 0.3, 0.5, 0.2, 0.0])
    data = pl.DataFrame({"person": np.arange(4000) % 20, "state": x, "rating": hats(x) @ truth})
    people = People.read(
        data, box=(0, 1), low=0, high=1, slope=1, count=20, features=Features(hats, rank=5), norm=1.0, ridge=1e-3
    )
    np.testing.assert_allclose(people.weights(), truth, atol=0.01)


def test_pandas_polars_csv_and_parquet_agree(tmp_path):
    rng = np.random.default_rng(4)
    data = pl.DataFrame({"who": [f"p{i % 7}" for i in range(50)], "at": rng.random(50), "score": rng.random(50)})
    data.write_csv(tmp_path / "r.csv")
    data.write_csv(tmp_path / "r.tsv", separator="\t")
    data.write_parquet(tmp_path / "r.parquet")
    kwargs = {
        "box": (0, 1),
        "low": 0,
        "high": 1,
        "slope": 1,
        "count": 7,
        "person": "who",
        "state": "at",
        "rating": "score",
    }
    expected = People.read(data, **kwargs).functions()[0](GRID)
    for source in (
        data.lazy(),
        pd.DataFrame(data.to_dict(as_series=False)),
        tmp_path / "r.csv",
        str(tmp_path / "r.tsv"),
        tmp_path / "r.parquet",
        [tmp_path / "r.csv"],
    ):
        np.testing.assert_allclose(People.read(source, **kwargs).functions()[0](GRID), expected, atol=1e-12)


OK = {"box": (0, 1), "low": 0, "high": 1, "slope": 1, "count": 3}


def refused(source, message, **change):
    with pytest.raises(InvalidInput, match=message):
        People.read(source, **{**OK, **change})


def test_what_cannot_be_read_is_refused_with_a_sentence(tmp_path):
    good = frame({"a": [(0.5, 0.5)]})
    refused(tmp_path / "none.csv", "no file")
    (tmp_path / "empty.csv").write_text("")
    refused(tmp_path / "empty.csv", "could not be read")
    (tmp_path / "header.csv").write_text("person,state,rating\n")
    refused(tmp_path / "header.csv", "No row")
    (tmp_path / "text.csv").write_text("person,state,rating\na,left,good\n")
    refused(tmp_path / "text.csv", "No row")
    (tmp_path / "other.csv").write_text("name,state,rating\na,0.1,0.2\n")
    refused(tmp_path / "other.csv", "no column 'person'; the columns are 'name'")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 this is not parquet")
    refused(tmp_path / "broken.parquet", "could not be read")
    (tmp_path / "ratings.xlsx").write_text("x")
    refused(tmp_path / "ratings.xlsx", "must end in")
    refused(tmp_path, "no file")
    refused([], "no file or data frame")
    refused(12, "must be a data frame or a file")
    refused(good.with_columns(rating=pl.lit(None, dtype=pl.Date)), "must hold numbers")
    refused(good.with_columns(person=pl.lit([1])), "names or numbers")
    refused(pd.DataFrame({"person": ["a"]}), "no column 'state'")


def test_wrong_declarations_are_refused():
    good = frame({"a": [(0.5, 0.5)]})
    refused(good, "high must be above low", high=0)
    refused(good, "slope", slope=0)
    refused(good, "people", count=0)
    refused(good, "domain", box=(1, 0))
    refused(good, "levels", levels=40)
    refused(good, "2 dimensions, but there are 1", box=[(0, 1), (0, 1)])
    refused(good, "belong together", norm=1.0)


def test_more_people_than_declared_are_refused():
    refused(frame({str(i): [(0.5, 0.5)] for i in range(4)}), "more people in the data than the 3")


def test_no_data_in_repr():
    people = People.read(frame({"zorro": [(0.123456, 0.654321)]}), **OK)
    assert "zorro" not in repr(people)
    assert "0.65" not in repr(people)


def test_tallies_merge():
    rng = np.random.default_rng(5)
    x, y = np.sort(rng.random(12)), rng.random(12)
    both, first, second = (Tally.empty(LEVELS) for _ in range(3))
    both.add(np.array([0, 6]), x, y, 0.0, 1.0, 2.0)
    first.add(np.array([0]), x[:6], y[:6], 0.0, 1.0, 2.0)
    second.add(np.array([0]), x[6:], y[6:], 0.0, 1.0, 2.0)
    first.merge(second)
    np.testing.assert_allclose(first.values(0, 1), both.values(0, 1), atol=1e-12)


@pytest.mark.parametrize(
    "names",
    [
        ["1e3", "1000", "1000.0"],
        ["7.5", "7.50", "07.5"],
        ["0" * 30 + "12345678901234567890123", "12345678901234567890123"],
        ["a\u200bnn", "ann", "\ufeffann", "an\u00adn"],
    ],
)
def test_more_spellings_of_one_name(names):
    data = pl.DataFrame({"person": names, "state": [0.1] * len(names), "rating": [1.0] * len(names)})
    assert People.read(data, **OK).not_private["people_present"] == 1


def test_large_ids_that_became_floating_point_numbers_are_refused():
    """10**16 as a float and as an integer would be one person counted twice."""
    blurred = pd.DataFrame({"person": [10.0**16, None], "state": [0.1, 0.2], "rating": [1.0, 1.0]})
    refused(blurred, "which blur")


def test_nullable_pandas_columns_are_read():
    data = pd.DataFrame(
        {
            "person": pd.array([1, None, 2], dtype="Int64"),
            "state": pd.array([0.1, 0.2, None], dtype="Float64"),
            "rating": [1.0, 1.0, 1.0],
        }
    )
    counts = People.read(data, **OK).not_private
    assert (counts["used_rows"], counts["without_person"], counts["bad_state"]) == (1, 1, 1)


def test_columns_may_be_called_anything_but_not_the_same():
    data = pl.DataFrame({"x0": ["a"], "name": [0.5], "number": [0.5]})
    assert People.read(data, **OK, person="x0", state="name", rating="number").not_private["used_rows"] == 1
    refused(data, "different columns", person="x0", state="name", rating="name")


def test_boxes_and_slopes_that_floating_point_cannot_keep_are_refused():
    good = frame({"a": [(0.5, 0.5)]})
    refused(good, "too narrow for numbers of that size", box=(1.7e18, 1.7e18 + 1e6))
    refused(good, "too narrow", box=(1e9, 1e9 + 1e-3))
    refused(good, "slope must be at most", slope=1e9)
    day = pl.DataFrame({"person": ["a"], "state": [1.7e9 + 5.0], "rating": [0.5]})
    People.read(day, **{**OK, "box": (1.7e9, 1.7e9 + 86400)})  # a day in seconds is fine
