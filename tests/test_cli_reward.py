"""`quietq reward`, in this process."""

import json

import numpy as np
import polars as pl
import pytest

from quietq import load


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


def command(ratings, target, **change):
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
    return f"reward {ratings} " + " ".join(f"--{name} {value}" for name, value in options.items())


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
    assert f"May be published: {tmp_path / 'reward.qq'}" in out
    assert "Not private, for you only:" in out


def test_several_files_and_columns(quietq, ratings, tmp_path):
    two = tmp_path / "two.parquet"
    pl.read_csv(ratings).with_columns(height=pl.col("where")).write_parquet(two)
    assert quietq(command(f"{two} {two}", tmp_path / "reward.qq") + " --state height --json")[0] == 0
    assert len(load(tmp_path / "reward.qq").box.low) == 2


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
        ({"noise": "path", "delta": 0}, "needs delta above 0"),
        ({"box": "0"}, "'0 --low', where 2 values are needed"),
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
