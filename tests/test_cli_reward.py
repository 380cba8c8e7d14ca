"""`quietq reward`, in this process."""

import importlib
import inspect
import json
import subprocess
import sys
from typing import Any
from unittest.mock import create_autospec

import numpy as np
import polars as pl
import pytest

from quietq import InvalidInput, load
from quietq.cli.options import REWARD_FEEDBACK
from quietq.feedback import FEEDBACK

cli_reward = importlib.import_module("quietq.cli.releasing")


@pytest.fixture
def ratings(tmp_path):
    rng = np.random.default_rng(0)
    states = np.linspace(0, 1, 5)
    ideal = rng.random(100)
    frame = pl.DataFrame(
        {
            "who": np.repeat(np.arange(100), 5),
            "where": np.tile(states, 100),
            "score": (1 - np.abs(states[None] - ideal[:, None])).ravel(),
        }
    )
    path = tmp_path / "ratings.csv"
    frame.write_csv(path)
    return path


def words_of(options):
    """Options as they are typed; a list is an option that is given several times, and None leaves it out."""
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            if one is not None:
                yield f"--{name} {one}"


def command(files, target, **change):
    options = {
        "person": "who",
        "state": "where",
        "rating": "score",
        "box": "0 1",
        "low": 0,
        "high": 1,
        "slope": 1,
        "people": 100,
        "epsilon": 0.9,
        "delta": 1e-4,
        "out": target,
        **change,
    }
    return f"reward {files} " + " ".join(words_of(options))


@pytest.fixture
def choices(tmp_path):
    rng = np.random.default_rng(0)
    states = rng.random((300, 4))
    better = states[:, :2].sum(axis=1) > states[:, 2:].sum(axis=1)
    columns = {name: states[:, i] for i, name in enumerate(("ax", "ay", "bx", "by"))}
    frame = pl.DataFrame({"who": np.arange(300) % 100, **columns, "said": np.where(better, "left", "right")})
    frame.write_csv(tmp_path / "choices.csv")
    return tmp_path / "choices.csv"


def compared(files, target, **change):
    columns = {"left": ["ax", "ay"], "right": ["bx", "by"], "choice": "said", "person": "who"}
    options = {"box": "0 1", "people": 100, "epsilon": 0.9, "delta": 1e-4, "out": target, **columns, **change}
    return f"reward {files} --kind comparisons " + " ".join(words_of(options))


@pytest.mark.filterwarnings("always:No row")
def test_decimal_commas_are_named(quietq, tmp_path):
    (tmp_path / "commas.csv").write_text('who,where,score\na,"0,1","0,5"\nb,"0,4","0,9"\n')
    code, _, err = quietq(command(tmp_path / "commas.csv", tmp_path / "reward.qq"))
    # no refusal, which would tell whether somebody with a usable row is there
    assert (code, "a decimal point, not a comma" in err) == (0, True)


def test_a_private_reward_in_a_file(quietq, ratings, tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as continuous integration has it: no bar all the same
    out, plot = tmp_path / "reward.qq", tmp_path / "reward.png"
    code, printed, err = quietq(command(ratings, out, plot=plot) + " --json")
    assert (code, err) == (0, "")
    result = json.loads(printed)
    assert set(result) == {"certificate", "out", "hash", "plot", "not_private"}
    assert (result["out"], result["plot"]) == (str(out), str(plot))
    assert result["certificate"]["standing"] == "certified"
    assert result["not_private"]["people_present"] == 100
    private = load(out)
    assert private.certificate is not None
    assert private.certificate.to_dict() == result["certificate"]
    assert private(np.linspace(0, 1, 11)).shape == (11,)
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_words_for_people(quietq, ratings, tmp_path):
    code, out, _ = quietq(command(ratings, tmp_path / "reward.qq", noise="k-norm", delta=0))
    assert code == 0
    assert "certified to be (0.9, 0)-differentially private" in out
    assert "with Gaussian noise in" not in out
    assert f"May be published: {tmp_path / 'reward.qq'}" in out
    assert "Not private, for you only:" in out


def test_pure_noise_by_name_is_printed_beside_gaussian_noise_which_is_the_default(quietq, ratings, tmp_path):
    code, out, _ = quietq(command(ratings, tmp_path / "pure.qq", noise="k-norm"))
    assert code == 0
    assert "certified to be (0.9, 0)-differentially private" in out
    assert "a guesser is right in at most 71.1 of 100 cases, with Gaussian noise in 55.7." in out
    code, out, _ = quietq(command(ratings, tmp_path / "gaussian.qq"))
    assert code == 0
    assert "certified to be (0.9, 0.0001)-differentially private (mu = 0.28596)" in out
    assert "is right in at most 55.7 of 100" in out
    assert "with Gaussian noise in" not in out


@pytest.mark.parametrize(("box", "ends"), [("0 1", (0.0, 0.0)), (["0 1", "-2 2"], (0.0, -2.0))])
def test_several_files_and_columns(quietq, ratings, tmp_path, box, ends):
    two = tmp_path / "two.parquet"
    pl.read_csv(ratings).with_columns(height=pl.col("where")).write_parquet(two)
    change = {"state": ["where", "height"], "box": box, "slope": None}
    code, _, _ = quietq(command(f"{two} {two}", tmp_path / "reward.qq", **change))
    assert code == 0
    private = load(tmp_path / "reward.qq")
    assert (type(private).__name__, private.box.low) == ("PrivateModel", ends)


def test_embeddings_by_the_start_of_their_columns(quietq, ratings, choices, tmp_path):
    encoded, linear = tmp_path / "encoded.parquet", {"features": "columns", "slope": None}
    pl.read_csv(ratings).with_columns(e1=pl.col("where"), e2=0.5, e3=0.1).write_parquet(encoded)
    assert quietq(command(encoded, tmp_path / "one.qq", state="e*", **linear))[0] == 0
    assert quietq(compared(choices, tmp_path / "two.qq", left="a*", right="b*", features="columns"))[0] == 0
    for name, dimension in (("one", 3), ("two", 2)):
        released: Any = load(tmp_path / f"{name}.qq")
        assert (released.feature_map.to_dict()["kind"], released.box.dimension) == ("columns", dimension)
    code, _, err = quietq(command(encoded, tmp_path / "three.qq", state="f*", **linear))
    assert (code, "No column's name starts with 'f', as 'f*' says." in err) == (2, True)


def test_comparisons(quietq, choices, tmp_path):
    code, out, err = quietq(compared(choices, tmp_path / "reward.qq") + " --json")
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert result["certificate"]["method"] == "reward/rounds"
    assert result["not_private"]["used_rows"] == 300
    code = "import sys, quietq; print(quietq.load(sys.argv[1])([[0.0, 1.0]]).shape)"
    again = [sys.executable, "-c", code, str(tmp_path / "reward.qq")]  # where nothing is known of rounds yet
    assert subprocess.run(again, capture_output=True, text=True, check=True).stdout == "(1,)\n"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"low": 0, "slope": 1}, "comparisons have no --low and --slope: leave them out, or say --kind ratings."),
        ({"engine": "rays"}, "--engine"),
        ({"right": None}, "right"),
        ({"right": "bx"}, "right has 1 columns, but left has 2."),
        ({"right": ["bx", "cy"]}, "no column 'cy'"),
        ({"left": None, "right": None, "option": ["bus=ax,ay", "car=bx"]}, "car has 1 columns, but bus has 2."),
        ({"choice": "bx"}, "must be different columns"),
        ({"box": None, "items": "tea,cake", "left": "ax", "right": "bx"}, "box could not be read from the file"),
        ({"box": None, "items": ["tea", "cake"], "plot": "items.png"}, "`quietq serve` lists items: leave it out."),
        ({"kind": "rankings"}, "'rankings'"),
        ({"delta": 0}, "delta must be above 0"),
        ({"box": ["0 1"] * 3}, "box has 3 dimensions, but a state has 2 columns"),
        ({"people": None}, "comparisons need --people."),
    ],
)
def test_mistakes_about_comparisons(quietq, choices, tmp_path, change, words):
    code, out, err = quietq(compared(choices, tmp_path / "reward.qq", **change))
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert words in err
    assert [path.name for path in tmp_path.iterdir()] == ["choices.csv"]


@pytest.fixture
def told(quietq, monkeypatch, tmp_path):
    """What a kind of feedback is read with by a command line, and what that says."""
    seen = {}

    def refuse(source, **given):
        seen.update(given)
        assert seen.pop("engine") == "local"
        raise InvalidInput("Nobody is counted.")

    (tmp_path / "x.csv").write_text("person\n")

    def reward(kind, words):
        seen.clear()
        read = create_autospec(FEEDBACK[kind].read, side_effect=refuse)
        with monkeypatch.context() as patch:
            patch.setattr(FEEDBACK[kind], "read", read)
            code, out, err = quietq(f"reward x.csv --kind {kind} --people 7 {words} --check")
        assert (code, out) == (2, "")
        return dict(seen), err.removeprefix("quietq: ").rstrip()

    return reward


def test_a_kind_is_read_with_what_was_given(told):
    found, words = told("ratings", "--low 0 --high 1 --box 0 1")
    assert (found, words) == ({"people": 7, "box": [(0.0, 1.0)], "low": 0.0, "high": 1.0}, "Nobody is counted.")
    assert told("comparisons", "--slope 1") == ({}, "comparisons have no --slope: leave it out, or say --kind ratings.")


def test_every_parameter_of_a_kind_is_an_option():
    names = {"options": "option", "source": "files"}
    options = set(inspect.signature(cli_reward.reward).parameters)
    for kind in REWARD_FEEDBACK:
        parameters = set(inspect.signature(FEEDBACK[kind].read).parameters)
        assert {names.get(name, name) for name in parameters} <= options


def test_options_of_several_words(told, tmp_path):
    (tmp_path / "items.txt").write_text("tea\ncake\n")
    rated = "--low 0 --high 1"
    found, _ = told("ratings", f"{rated} --items items.txt --actions stay --actions go")
    assert (found["box"], found["actions"]) == ("items.txt", ["stay", "go"])
    found, _ = told("ratings", f"{rated} --box 0 1 --actions actions.txt")
    assert found["actions"] == "actions.txt"  # a file, which reading refuses if it is not there
    found, _ = told("comparisons", "--option bus=fare,time --option car=cost,hours --box 0 1")
    assert found["options"] == {"bus": ["fare", "time"], "car": ["cost", "hours"]}
    assert found["box"] == [(0.0, 1.0)]
    for wrong in ("bus", "bus=", "=fare", "bus=fare,"):
        said = f"--option must be NAME=COLUMN,COLUMN, e.g. --option bus=fare,time, not {wrong!r}."
        assert told("comparisons", f"--option {wrong}") == ({}, said)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"people": 10}, "more people in the data than the 10"),
        ({"people": 0}, "people must be"),
        ({"state": "there"}, "no column 'there'"),
        ({"low": 1}, "high must be above low"),
        ({"slope": 0}, "slope must be"),
        ({"box": "1 0"}, "low below high"),
        ({"epsilon": -1}, "epsilon must be"),
        ({"delta": 1}, "delta must be"),
        ({"noise": "path", "delta": 0}, "delta must be above 0"),
        ({"box": "0"}, "--box must be two numbers, LOW and HIGH, e.g. --box -1 1, not '0 --low'."),
        ({"box": ["0 1", "0 1"]}, "box has 2 dimensions, but a state has 1 columns"),
        ({"state": ["where", "score"]}, "slope is for one coordinate, and a model"),
        ({"slope": None}, "slope must be declared"),
        ({"features": "linear"}, "'linear'"),
        ({"left": "where"}, "ratings have no --left: leave it out, or say --kind comparisons."),
        ({"epsilon": None, "out": None}, "A private reward needs --epsilon and --out."),
        ({"plot": "picture.pdf"}, "must end in .png or .svg"),
        ({"out": "nowhere/reward.qq"}, "folder"),
    ],
)
def test_mistakes_are_one_sentence_and_leave_nothing_behind(quietq, ratings, tmp_path, change, words):
    code, out, err = quietq(command(ratings, tmp_path / "reward.qq", **change))
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert words in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ratings.csv"]


def test_a_missing_file(quietq, tmp_path):
    code, _, err = quietq(command(tmp_path / "none.csv", tmp_path / "reward.qq"))
    assert code == 2
    assert "no file" in err


def test_results_do_not_overwrite_each_other_or_the_ratings(quietq, ratings, tmp_path):
    before = ratings.read_bytes()
    for change in ({"out": ratings}, {"out": tmp_path / "x.png", "plot": tmp_path / "x.png"}):
        code, _, err = quietq(command(ratings, tmp_path / "reward.qq", **change))
        assert code == 2
        assert "must be different files" in err
    assert ratings.read_bytes() == before


@pytest.mark.filterwarnings("default:No row of the ratings", "always:.*This comes from the raw data:UserWarning")
def test_rows_can_be_counted_before_anything_is_spent(quietq, tmp_path):
    """A wrong box, or too many people, is warned of: to whoever runs it, and nobody else."""
    (tmp_path / "rows.csv").write_text("person,x,y,rating\n" + "".join(f"{i},0.5,5,1\n" for i in range(30)))
    about = f"reward {tmp_path / 'rows.csv'} --state x --state y --low 0 --high 2 --check"
    code, out, err = quietq(f"{about} --people 30 --box 0 1 --box 0 10")
    assert (code, err) == (0, "")
    assert "Nothing was spent" in out
    assert "used rows 30" in out
    code, out, err = quietq(f"{about} --people 900 --box 0 1 --box 4 10")
    assert err.count("Only 30 of 900 people have a usable row: check --people") == 1
    code, out, err = quietq(f"{about} --people 30 --box 0 1")
    assert "No row of the ratings can be used" in err
    assert err.count("Only 0 of 30 rows can be used: 30 have no usable state: check its columns, and --box") == 1
    assert code == 0
