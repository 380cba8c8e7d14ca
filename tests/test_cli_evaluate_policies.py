"""`quietq evaluate-policies`: rows in, values of policies out."""

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from quietq import InvalidInput, load
from quietq.cli import app

READ = "--people 600 --person who --state x --box 0 1 --action dose --actions low --actions high --reward gain"
ASK = "--low 0 --high 1 --policy careful=low --policy strong=high --returns -2 2 --epsilon 2"
OPTIONS = [*READ.split(), *ASK.split()]


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("sessions") / "rows.csv"
    high = rng.random(600) < 0.5
    columns = {"who": range(600), "x": rng.random(600), "dose": np.where(high, "high", "low"), "chance": 0.5}
    pl.DataFrame({**columns, "gain": (rng.random(600) < np.where(high, 0.9, 0.1)) * 1.0}).write_csv(path)
    return str(path)


def run(*words):
    return CliRunner().invoke(app, ["evaluate-policies", *words], catch_exceptions=True)


def test_values_with_their_certificate(rows, tmp_path):
    out = tmp_path / "values.qq"
    result = run(rows, *OPTIONS, "--delta", "1e-5", "--propensity", "chance", "--out", str(out), "--json")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["values"]["strong"]["low"] > record["values"]["careful"]["high"]
    assert record["certificate"]["standing"] == "certified"
    assert record["not_private"]["transitions"] == 600
    assert load(out)([0.5]).shape == (1, 2)


def test_in_words_and_probabilities_that_are_learnt(rows):
    result = run(rows, *OPTIONS, "--delta", "1e-5", "--behaviour", "learnt", "--against", "careful")
    assert result.exit_code == 0, result.output
    assert "strong" in result.stdout
    assert "Values are advantages over the policy 'careful'." in result.stdout
    assert "(2, 1e-05)-differentially private" in result.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--behaviour", "half"], "--behaviour must be numbers"),
        (["--policy", "strong"], "--policy must be NAME=ACTION"),
        (["--behaviour", "0.5,0.5", "--box", "0", "1"], "not 2 times"),
        ([], "There must be a behaviour"),
    ],
)
def test_refusals(rows, words, sentence):
    error = run(rows, *OPTIONS, "--delta", "1e-5", *words).exception
    assert isinstance(error, InvalidInput)
    assert sentence in str(error)


def test_what_is_missing_is_named(rows):
    assert "--policy, --returns, --epsilon and --delta" in str(run(rows).exception)
    words = ["--policy", "a=low", "--returns", "0", "1", "--epsilon", "1", "--delta", "1e-5"]
    assert "Sessions need --people, --box, --actions, --low and --high." in str(run(rows, *words).exception)
    assert "There must be a file to read" in str(run(*OPTIONS, "--delta", "1e-5").exception)
