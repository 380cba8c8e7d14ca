"""Ratings from files and frames of every kind: what is read, what is left out, what is refused."""

import io
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from people_data import GRID, OK, SCHEMA, frame, refused

from quietq import Budget, InvalidInput
from quietq.feedback import Ratings
from quietq.feedback.extension import Extension
from quietq.feedback.rows import pieces
from quietq.mechanisms import privatise


def test_order_does_not_matter():
    rng = np.random.default_rng(2)
    data = pl.DataFrame({"person": rng.integers(0, 9, 200), "state": rng.random(200), "rating": rng.random(200)})
    kwargs = {"box": (0, 1), "low": 0, "high": 1, "slope": 3, "people": 9}
    one = Ratings.read(data, **kwargs).functions()[0](GRID)
    other = Ratings.read(data.sample(fraction=1, shuffle=True, seed=1), **kwargs).functions()[0](GRID)
    np.testing.assert_allclose(one, other, atol=1e-12)


def test_bad_rows_are_left_out_and_counted():
    data = pl.DataFrame(
        {
            "person": ["a", None, "", "  ", "b", "b", "b", "c", "c", "d"],
            "state": [0.5, 0.5, 0.5, 0.5, math.nan, None, 1.5, 0.5, 0.5, 0.25],
            "rating": [0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, math.inf, None, 7.0],
        }
    )
    people = Ratings.read(data, box=(0, 1), low=0, high=1, slope=1, people=4)
    assert people.not_private == {
        "rows": 10,
        "used_rows": 2,
        "without_person": 3,
        "blank_state": 2,
        "bad_state": 0,
        "outside_state": 1,
        "blank_rating": 1,
        "bad_rating": 1,
        "clipped_ratings": 1,
        "people_present": 2,
    }
    only_good = {"a": [(0.5, 0.5)], "d": [(0.25, 1.0)]}
    same = Ratings.read(frame(only_good), box=(0, 1), low=0, high=1, slope=1, people=4)
    np.testing.assert_allclose(people.functions()[0](GRID), same.functions()[0](GRID), atol=1e-12)


def test_the_box_scales_states_and_the_slope_is_per_width():
    data = pl.DataFrame({"person": ["a"], "state": [15.0], "rating": [1.0]})
    people = Ratings.read(data, box=(10, 20), low=0, high=1, slope=2, people=1)
    reward = people.functions()[0](np.array([15.0, 16.0, 20.0]))
    np.testing.assert_allclose(reward, [1.0, 0.9, 0.5], atol=1e-12)  # 2 per 10: 0.2 a unit, halved by the midpoint


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
        "people": 7,
        "person": "who",
        "state": "at",
        "rating": "score",
    }
    expected = Ratings.read(data, **kwargs).functions()[0](GRID)
    for source in (
        data.lazy(),
        pd.DataFrame(data.to_dict(as_series=False)),
        tmp_path / "r.csv",
        str(tmp_path / "r.tsv"),
        tmp_path / "r.parquet",
        [tmp_path / "r.csv"],
    ):
        np.testing.assert_allclose(Ratings.read(source, **kwargs).functions()[0](GRID), expected, atol=1e-12)


def test_what_cannot_be_read_is_refused_with_a_sentence(tmp_path):
    good = frame({"a": [(0.5, 0.5)]})
    refused(tmp_path / "none.csv", "no file")
    (tmp_path / "empty.csv").write_text("")
    refused(tmp_path / "empty.csv", "could not be read")
    (tmp_path / "other.csv").write_text("name,state,rating\na,0.1,0.2\n")
    refused(
        tmp_path / "other.csv", "no column 'person'; the columns are 'name'.*: person= .--person of a command. says"
    )
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
    refused(good, "people", people=0)
    refused(good, "domain", box=(1, 0))
    refused(good, "2 dimensions, but a state has 1", box=[(0, 1), (0, 1)])


def test_no_data_in_repr():
    people = Ratings.read(frame({"zorro": [(0.123456, 0.654321)]}), **OK)
    assert "zorro" not in repr(people)
    assert "0.65" not in repr(people)


def test_tallies_merge():
    rng = np.random.default_rng(5)
    x, y = np.sort(rng.random(12)), rng.random(12)
    extension = Extension(low=0, high=1, slope=2)
    both, first, second = (extension.empty() for _ in range(3))
    extension.add(both, np.array([0, 6]), {"x0": x, "rating": y})
    extension.add(first, np.array([0]), {"x0": x[:6], "rating": y[:6]})
    extension.add(second, np.array([0]), {"x0": x[6:], "rating": y[6:]})
    first.merge(second)
    assert np.array_equal(extension.mean(first, 2), extension.mean(both, 2))


def test_nullable_pandas_columns_are_read():
    data = pd.DataFrame(
        {
            "person": pd.array([1, None, 2], dtype="Int64"),
            "state": pd.array([0.1, 0.2, None], dtype="Float64"),
            "rating": [1.0, 1.0, 1.0],
        }
    )
    counts = Ratings.read(data, **OK).not_private
    assert (counts["used_rows"], counts["without_person"], counts["blank_state"]) == (1, 1, 1)


def test_columns_may_be_called_anything_but_not_the_same():
    data = pl.DataFrame({"x0": ["a"], "name": [0.5], "number": [0.5]})
    assert Ratings.read(data, **OK, person="x0", state="name", rating="number").not_private["used_rows"] == 1
    refused(data, "different columns", person="x0", state="name", rating="name")


def test_boxes_and_slopes_that_floating_point_cannot_keep_are_refused():
    good = frame({"a": [(0.5, 0.5)]})
    refused(good, "too narrow for numbers of that size", box=(1.7e18, 1.7e18 + 1e6))
    refused(good, "too narrow", box=(1e9, 1e9 + 1e-3))
    refused(good, "slope must be at most", slope=1e9)
    day = pl.DataFrame({"person": ["a"], "state": [1.7e9 + 5.0], "rating": [0.5]})
    Ratings.read(day, **{**OK, "box": (1.7e9, 1.7e9 + 86400)})  # a day in seconds is fine


def test_a_parquet_file_is_the_one_of_that_name_and_no_pattern(tmp_path, monkeypatch):
    good = frame({"a": [(0.5, 1.0)]})
    good.with_columns(rating=pl.lit(0.0)).write_parquet(tmp_path / "r1.parquet")
    for name in ("r[1].parquet", "r*.parquet", "r?.parquet"):
        (tmp_path / name).write_bytes(_parquet(good))
        people = Ratings.read(tmp_path / name, **OK)
        assert people.not_private["rows"] == 1
        assert people.functions()[0](np.array([0.5])) == (1 + 0.5 + 0.5) / 3
        assert sum(piece().height for piece in pieces(tmp_path / name, SCHEMA, in_memory=False)) == 1  # as on Ray
    monkeypatch.chdir(tmp_path)
    (tmp_path / "~").mkdir()
    (tmp_path / "~" / "r.parquet").write_bytes(_parquet(good))
    assert Ratings.read("~/r.parquet", **OK).not_private["rows"] == 1


def _parquet(data):
    file = io.BytesIO()
    data.write_parquet(file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ann;0.5;0.7\nbob;0.1;0.2\n", "separated by ';', where a comma is needed"),
        ("person;state;rating\nann;0.5;0.7\n", "separated by ';', where a comma is needed"),
        ("ann\t0.5\t0.7\n", "separated by '.t', where a comma is needed"),
        ("ann,0:30,7/10\n", "among the 3: the first line must name the columns"),
        ("ann,left,very good\n", "among the 3: the first line must name the columns"),
        ("ann,'0.5','0.7'\n", "among the 3: the first line must name the columns"),
        ("state,0.5,0.7\n", "among the 3: the first line must name the columns"),
        ("state\n", "no column 'person'; the columns are 'state'"),
        ("persons,state,rating\n", "Did you mean 'persons'?"),
    ],
)
def test_a_first_line_that_may_be_somebodys_is_never_shown(tmp_path, text, says):
    path = tmp_path / "ratings.csv"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=says) as caught:
        Ratings.read(path, **OK)
    assert not any(word in str(caught.value) for word in ("ann", "0.5", "0:30", "left"))
    if ";" not in text and "\t" not in text:
        with pytest.raises(InvalidInput, match=says):
            Ratings.read(pd.read_csv(path), **OK)


@pytest.mark.parametrize("rows", ["", "a,left,good\n", 'a,"0,5","0,7"\n', "a,7,1\n"])
def test_without_a_usable_row_everybody_is_neutral_and_the_operator_is_told(tmp_path, rows):
    """A refusal would tell whether the one person with a usable row is there."""
    path = tmp_path / "ratings.csv"
    path.write_text("person,state,rating\n" + rows)
    with pytest.warns(UserWarning, match="No row of the ratings can be used, so all 50 people count as neutral"):
        people = Ratings.read(path, **{**OK, "people": 50})
    assert (people.functions()[0](GRID) == 0.5).all()
    private = privatise(people, Budget(0.9, 1e-4), noise="path")
    path.write_text("person,state,rating\na,0.5,1\n")
    other = privatise(Ratings.read(path, **{**OK, "people": 50}), Budget(0.9, 1e-4), noise="path")
    assert private.certificate.to_json() == other.certificate.to_json()
