"""`quietq evaluate-policies`: rows in, values of policies out."""

import json

import numpy as np
import polars as pl
import pytest

from quietq import load

READ = "--people 600 --person who --state x --box 0 1 --action dose --actions low --actions high --reward gain"
ASK = "--low 0 --high 1 --policy careful=low --policy strong=high --returns -2 2 --epsilon 2 --delta 1e-5"


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("sessions") / "rows.csv"
    high = rng.random(600) < 0.5
    columns = {"who": range(600), "x": rng.random(600), "dose": np.where(high, "high", "low"), "chance": 0.5}
    pl.DataFrame({**columns, "gain": (rng.random(600) < np.where(high, 0.9, 0.1)) * 1.0}).write_csv(path)
    return str(path)


def test_values_with_their_certificate(quietq, rows, tmp_path):
    code, out, err = quietq(f"evaluate-policies {rows} {READ} {ASK} --propensity chance --out values.qq --json")
    assert (code, err) == (0, "")
    record = json.loads(out)
    assert record["values"]["strong"]["low"] > record["values"]["careful"]["high"]
    assert record["certificate"]["standing"] == "certified"
    assert record["not_private"]["transitions"] == 600
    assert load(tmp_path / "values.qq")([0.5]).shape == (1, 2)


def test_in_words_and_probabilities_that_are_learnt(quietq, rows):
    code, out, err = quietq(f"evaluate-policies {rows} {READ} {ASK} --behaviour learnt --against careful")
    assert (code, err) == (0, "")
    assert "strong" in out
    assert "Values are advantages over the policy 'careful'." in out
    assert "(2, 1e-05)-differentially private" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--behaviour half", "--behaviour must be numbers"),
        ("--policy strong", "--policy must be NAME=ACTION"),
        ("--behaviour 0.5,0.5 --box 0 1", "box has 2 dimensions, but state has 1 columns"),
        ("", "There must be a behaviour"),
        ("--behaviour 0.5,0.5 --out nowhere/values.qq", "a folder that exists"),
    ],
)
def test_refusals(quietq, rows, words, sentence):
    code, out, err = quietq(f"evaluate-policies {rows} {READ} {ASK} {words}")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sentence in err


def test_what_is_missing_is_named(quietq, rows):
    assert "--policy, --returns, --epsilon and --delta" in quietq(f"evaluate-policies {rows}")[2]
    words = "--policy a=low --returns 0 1 --epsilon 1 --delta 1e-5"
    missing = "Sessions need --people, --box, --actions, --low and --high."
    assert missing in quietq(f"evaluate-policies {rows} {words}")[2]
    assert "There must be a file to read" in quietq(f"evaluate-policies {READ} {ASK}")[2]
