"""What looks like a mistake is said to whoever reads ratings or comparisons, in Python as by the command."""

import re

import polars as pl
import pytest

from quietq import Comparisons, InvalidInput, Ratings

PEOPLE = 10
ROWS = {
    "person": [*range(PEOPLE)],
    "x": [i / 10 for i in range(PEOPLE)],
    "y": [i / 5 for i in range(PEOPLE)],
    "rating": [i / 2 for i in range(PEOPLE)],
    "z": [1.0] * PEOPLE,
    "choice": ["left", "right"] * 5,
}


def rate(**options) -> Ratings:
    given = {"state": ["x", "y"], "box": [(0, 1), (0, 2)], "low": 0, "high": 5, "people": PEOPLE}
    return Ratings.read(pl.DataFrame(ROWS), **{**given, **options})


def compare(**options) -> Comparisons:
    given = {"left": "x", "right": "y", "box": (0, 2), "people": PEOPLE}
    return Comparisons.read(pl.DataFrame(ROWS), **{**given, **options})


@pytest.mark.filterwarnings("error")
def test_nothing_is_said_of_what_is_as_it_should_be(capsys):
    assert rate().people == compare().people == PEOPLE
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("read", "options", "words"),
    [
        (rate, {"box": [(0, 0.2), (0, 2)]}, "Only 3 of 10 rows can be used: 7 have no usable state: check its columns"),
        (rate, {"high": 1}, "7 ratings lie outside what was declared: check `low` and `high`"),
        (rate, {"people": 100}, "Only 10 of 100 people have a usable row: check `people`, because noise is made for"),
        (compare, {"people": 21}, "one that is too large understates the error"),
        (compare, {"box": (0, 0.2)}, "Only 2 of 10 rows can be used: 8 have no usable state"),
        (compare, {"options": {"a": "x", "b": "y"}, "left": None, "right": None}, "10 have no usable choice"),
    ],
)
@pytest.mark.filterwarnings("ignore:No row of the comparisons")
def test_each_doubt_is_one_sentence_for_the_operator(read, options, words):
    with pytest.warns(UserWarning, match=f"{words}.*This comes from the raw data and is for you alone.") as said:
        assert read(**options).people == options.get("people", PEOPLE)
    assert len([one for one in said if words in str(one.message)]) == 1


def test_one_pair_is_the_box_of_all_columns():
    assert rate(box=(0, 2)).box == rate(box=[(0, 2), (0, 2)]).box
    assert compare(left=["x", "y"], right=["rating", "z"], box=[(0, 5)]).box == rate(box=[(0, 5)]).box
    with pytest.raises(InvalidInput, match="box has 3 dimensions, but a state has 2 columns"):
        rate(box=[(0, 2)] * 3)


def test_what_nothing_uses_is_refused():
    with pytest.raises(InvalidInput, match="slope is for one coordinate"):
        rate(slope=1)


@pytest.mark.parametrize(
    ("read", "options", "words"),
    [
        (rate, {"person": "who"}, "person= (--person of a command) says"),
        (rate, {"rating": "stars"}, "rating= (--rating of a command) says"),
        (compare, {"left": "there"}, "left= or right= (--left or --right of a command) says"),
        (
            compare,
            {"options": {"a": "x", "b": "there"}, "left": None, "right": None},
            "options= (--option of a command) says",
        ),
    ],
)
def test_a_column_that_is_not_there_is_told_with_its_argument(read, options, words):
    with pytest.raises(InvalidInput, match=re.escape(words)):
        read(**options)


def test_if_no_row_can_be_used_one_warning_says_all_of_it():
    with pytest.warns(UserWarning, match="No row of the ratings") as said:
        rate(box=(7, 8), people=100)
    (one,) = said
    for words in ("No row of the ratings can be used, so all 100", "10 have no usable state", "check `people`"):
        assert words in str(one.message)
