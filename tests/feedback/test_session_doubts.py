"""What looks like a mistake is said to whoever reads sessions, in Python as by the command, and refuses nothing."""

import warnings

import polars as pl
import pytest

from quietq import Budget, InvalidInput, Ratings, Sessions, evaluate_policies
from quietq.feedback.schema import Number
from quietq.feedback.spaces import Spaces
from quietq.feedback.transitions import Steps
from quietq.noise.box import Box
from quietq.privacy.checks import LONGEST_NAME

COUNTS = {"rows": 100, "transitions": 90, "starts": 10, "ends": 5, "people_present": 10}
STEPS = Steps("sessions", "who", {"end": Number("end", "end")})


def read(rows: dict, **options) -> Sessions:
    given: dict = {"person": "who", "state": "x", "action": "go", "actions": ["left", "right"], "box": (0, 1)}
    return Sessions.read(pl.DataFrame(rows), **{**given, "people": 2, **options})


def rows_of(**changes) -> dict:
    rows = {"who": ["a"] * 3 + ["b"] * 3, "x": [0.1, 0.2, 0.3] * 2, "go": ["left", "right", None] * 2, "end": [0] * 6}
    return {**rows, **changes}


@pytest.mark.filterwarnings("error")
def test_nothing_is_said_of_what_is_as_it_should_be(capsys):
    assert STEPS.doubts(COUNTS, 10) == []
    found = read(rows_of())
    assert capsys.readouterr().err == ""
    assert (found.spaces.state_names, found.spaces.action_names) == (("x",), ("left", "right"))


@pytest.mark.parametrize(
    ("changes", "people", "words"),
    [
        ({"transitions": 70}, 10, "only 70 of 100 rows begin a whole step"),
        (
            {"transitions": 70, "bad_action": 20},
            10,
            "a whole step: 20 have no usable action: check `action`, and `actions`",
        ),
        ({"transitions": 70, "bad_action": 1, "blank_reward": 30}, 10, "a whole step: 20 have no usable reward"),
        ({"transitions": 70, "blank_action": 10}, 10, "check the columns, `step` and `episode`"),
        ({"transitions": 90, "starts": 0}, 10, "no first state was observed"),
        ({"steps_again": 2}, 10, "begin anew within a person: name the column of the `episode`"),
        ({"ends": 0}, 10, "no complete step is terminal"),
        ({"clipped_next_states": 11}, 10, "11 next states lie outside what was declared: check `box`"),
        ({"clipped_rewards": 11}, 10, "check `low` and `high`"),
        ({"clipped_actions": 11}, 10, "check `actions`"),
        ({}, 21, "only 10 of 21 people have a whole step"),
    ],
)
def test_each_doubt_is_one_sentence_for_the_operator(changes, people, words):
    (said,) = STEPS.doubts(COUNTS | changes, people)
    assert words in said


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        ({"x": [1.1, 1.2, 1.3] * 2}, {}, "states lie outside what was declared: check `box`"),
        ({"go": ["up", "down", None] * 2}, {"people": 4}, "rows begin a whole step: 4 have no usable action"),
        ({}, {"end": "end"}, "complete step is terminal"),
        ({}, {"people": 9}, "Only 2 of 9 people have a whole step: check `people`, because noise is made for"),
        ({"t": [0, 0, 1, 0, 1, 1]}, {"step": "t"}, "begin anew within a person: name the column of the `episode`"),
        ({"t": [0, 0, 1, 0, 0, 1]}, {"step": "t"}, "No first state was observed, so start states are not learned"),
    ],
)
@pytest.mark.filterwarnings("ignore:No row of the sessions")
def test_python_says_what_the_command_says(rows, options, words):
    with pytest.warns(UserWarning, match=f"{words}.*This comes from the raw data and is for you alone."):
        assert read(rows_of(**rows), **options).people == options.get("people", 2)


def test_nothing_is_refused_where_warnings_are_errors(capsys):
    """Or a refusal would tell something of the data."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(rows_of(x=[1.1, 1.2, 1.3] * 2), people=9).people == 9
        said = capsys.readouterr().err
        assert "states lie outside what was declared" in said
        assert "Only 2 of 9 people have a whole step" in said
        nobody = pl.DataFrame(
            {"person": ["a"], "state": [None], "rating": [1.0]}, schema_overrides={"state": pl.Float64}
        )
        assert Ratings.read(nobody, box=(0, 1), low=0, high=1, slope=1, people=5).people == 5
        assert "No row of the ratings can be used" in capsys.readouterr().err


def test_nothing_is_refused_where_showing_a_warning_fails(monkeypatch):
    def fails(*_, **__):
        raise OSError("no room on the disk")

    monkeypatch.setattr(warnings, "showwarning", fails)
    monkeypatch.setattr("sys.stderr", None)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert read(rows_of(), people=9).people == 9


@pytest.mark.filterwarnings("ignore:No row of the sessions")
def test_no_rows_at_all_are_read_too():
    """Whatever the data is, nothing may fail: that would tell of it."""
    empty = pl.DataFrame(rows_of()).clear()
    with pytest.warns(UserWarning, match="Only 0 of 2 people have a whole step"):
        assert Sessions.read(
            [empty], person="who", state="x", action="go", actions=["left", "right"], box=(0, 1), people=2
        ).people == 2  # fmt: skip
    assert STEPS.doubts({}, 2)


@pytest.mark.parametrize("names", [["a", "b" * (LONGEST_NAME + 1)], ["a", "b\nc"], ["a", "a"], ["a", " "]])
def test_names_that_could_not_travel_are_refused(names):
    with pytest.raises(InvalidInput, match=r"name|must differ"):
        read(rows_of(), actions=names)


def test_names_keep_to_their_line():
    accent, circle, joiner = "\u0301", "\u20dd", "\u200d"
    for name in (accent * 80, f"a{accent * 3}", accent, f" {accent}", f"a{circle}", f"a{joiner}b"):
        with pytest.raises(InvalidInput, match=r"marks on each, such as accents|printable letters"):
            Spaces(Box.of((0, 1)), 1, action_names=("go",), state_names=(name,))
    for name in (
        f"e{accent}",
        "Vi\u1ec7t",
        "Vie\u0323\u0302t",
        "\u0e17\u0e35\u0e48",
        "\u0938\u094d\u0925\u093f\u0924\u093f",
    ):
        assert Spaces(Box.of((0, 1)), 1, action_names=("go",), state_names=(name,)).state_names == (name,)


def counts(rows: dict, *names: str, **options) -> list[int]:
    found = read(rows, **options).not_private
    return [found[name] for name in names]


def test_counts_say_what_they_count():
    """A cell that was given and is none, one that is blank, and rows of which a step is made."""
    names = ("used_rows", "bad_action", "blank_action", "transitions")
    assert counts(rows_of(), *names) == [6, 0, 2, 4]
    assert counts(rows_of(go=["up", "right", None, "left", "right", None]), *names) == [5, 1, 2, 3]
    assert counts(rows_of(go=[None, "right", "", "left", "right", " "]), *names) == [5, 0, 3, 3]
    rewards = rows_of(r=["1", "many", "", "1", "1", "nan"])
    assert counts(rewards, "bad_reward", "blank_reward", "used_rows", reward="r") == [1, 2, 5]
    assert counts(rows_of(x=[0.1, None, 0.3, float("nan"), 1, float("inf")]), "bad_state", "blank_state") == [1, 2]
    after = rows_of(y=[0.2, 0.3, 0.4] * 2, go=["left", "right", "up"] * 2)
    assert counts(after, "used_rows", "bad_action", next_state="y") == [4, 2]
    assert counts(rows_of(t=[0, 0, 1, 0, 1, 2]), "used_rows", "steps_again", step="t") == [5, 1]


def test_nobody_s_numbers_are_an_error_where_warnings_are():
    """Not even those that overflow on the way to the bound that they are held to."""
    rows = {"person": [0, 1, 2], "x": [0.1, 0.2, 0.3], "go": [0, 1, 1], "y": [1.0, 1e308, -1e308]}
    frame = pl.DataFrame({**rows, "p": [0.5, 5e-324, 5e-324]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sessions = Sessions.read(
            frame, state="x", next_state=[], action="go", actions=[0, 1], reward="y", propensity="p", box=(0, 1),
            people=3,
        )  # fmt: skip
        found = evaluate_policies(sessions, {"go": "1"}, Budget(1, 1e-5), returns=(-2, 2), simulate=1)
    assert -2 <= found["go"].value <= 2
