"""`quietq world`, in this process: sessions in, a private world out."""

import json
import os
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import quietq as qq
from quietq.cli import main
from quietq.mechanisms import moments, rounds
from quietq.privacy.relations import OnePerson
from quietq.worlds.private_env import PrivateWorldEnv

PEOPLE, STEPS = 30, 4
PAIRED = "--person who --step step --state x --box 0 1 --action push --actions 0 --actions 1 --low 0 --high 1"
DOUBTS = ".*This comes from the raw data and is for you alone:UserWarning"
PROMISE = "--epsilon 2 --delta 1e-4"


@pytest.fixture(autouse=True)
def _few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "SETTINGS", rounds.RoundSettings(rounds=3))
    fewer = moments.MomentSettings(rounds=3, first_rounds=2, rate_rounds=2)
    monkeypatch.setattr(moments, "SETTINGS", fewer)


def logged() -> pl.DataFrame:
    """A point that is pushed back and forth; the last row of each holds the final state."""
    rng, rows = np.random.default_rng(0), []
    for person in range(PEOPLE):
        x = rng.random()
        for step in range(STEPS + 1):
            push = int(rng.integers(2))
            rows.append((f"p{person}", step, x, push if step < STEPS else None, 2 * push - 1.0, x, 0))
            x = float(np.clip(0.9 * x + 0.1 * push + rng.normal(0, 0.01), 0, 1))
    return pl.DataFrame(rows, schema=["who", "step", "x", "push", "force", "reward", "end"], orient="row")


@pytest.fixture
def rows(tmp_path):
    logged().write_parquet(tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


@pytest.mark.filterwarnings(f"always:{DOUBTS}")
def test_a_private_world_in_a_file(quietq, rows, tmp_path):
    words = f"world rows.parquet {PAIRED} --end end --people 30 {PROMISE} --out world.qq"
    code, out, err = quietq(f"{words} --plot world.png --json")
    assert (code, err.count("warning"), "No complete step is terminal" in err) == (0, 1, True)
    found = json.loads(out)
    world = qq.load(tmp_path / "world.qq")
    assert isinstance(world, qq.PrivateWorld)
    assert found["errors"] == world.errors.to_dict()
    assert (world.spaces.state_names, world.spaces.action_names) == (("x",), ("0", "1"))
    assert found["certificate"] == world.certificate.to_dict()
    assert found["certificate"]["method"] == "world/moments"
    assert world.certificate.mu == qq.Budget(2, 1e-4).mu
    assert [len(found["spreads"][name]) for name in ("coordinates", "noise", "residual", "explained")] == [1] * 4
    assert (found["not_private"]["transitions"], found["not_private"]["people_present"]) == (120, 30)
    assert (found["out"], found["plot"]) == ("world.qq", "world.png")
    assert (tmp_path / "world.png").read_bytes().startswith(b"\x89PNG")
    typed = words.replace("--low 0 --high 1", "--low 0.0 --high 1.0").replace(PROMISE, "--epsilon 2.0 --delta 0.0001")
    assert sorted(found["again"].split()) == sorted(f"quietq {typed} --plot world.png --json".split())
    assert isinstance(world.env(), PrivateWorldEnv)


def test_words_for_people_and_actions_that_are_numbers(quietq, rows, tmp_path):
    logged().write_csv(tmp_path / "rows.csv")
    acting = PAIRED.replace("--action push --actions 0 --actions 1", "--action force --action-box -1 1 --degree 2")
    code, out, err = quietq(f"world rows.csv {acting} --people 30 {PROMISE} --out world.qq")
    assert (code, err) == (0, "")
    world = qq.load(tmp_path / "world.qq")
    assert isinstance(world, qq.PrivateWorld)
    for words in (
        "Steps of x: the expected next value has a standard error from noise of about",
        "Rewards, from 0 to 1: expected error about",
        "Noise alone: about",
        "Episodes never end by themselves.",
        "certified to be (2, 0.0001)-differentially private",
        "- enforced: The parts of a world that were not declared as known are released with noise, and no row:",
        "May be published: world.qq",
        "Not private, for you only: used rows 150",
    ):
        assert words in out
    assert (world.spaces.numbers, world.ends) == (1, None)


@pytest.mark.filterwarnings("default:No row of the sessions", f"always:{DOUBTS}")
def test_rows_can_be_counted_before_anything_is_spent(quietq, rows, tmp_path):
    code, out, err = quietq(f"world rows.parquet {PAIRED} --people 30 --check")
    assert (code, err) == (0, "")
    assert out.startswith("Nothing was spent, and nothing written.")
    assert "transitions 120" in out
    wrong = PAIRED.replace("--box 0 1", "--box 0.8 1").replace("--actions 0 --actions 1", "--actions up --actions down")
    code, out, err = quietq(f"world rows.parquet {wrong} --people 90 --every 2 --check --json")
    assert (code, json.loads(out)["not_private"]["transitions"]) == (0, 0)
    assert "states lie outside what was declared: check --box" in err
    assert "Only 0 of 150 rows begin a whole step: 120 have no usable action: check --action, and --actions" in err
    assert "Only 0 of 90 people have a whole step" in err
    assert os.listdir(tmp_path) == ["rows.parquet"]


def test_a_list_in_one_word_is_told_how_to_be_given(quietq, rows):
    code, _, err = quietq(
        f"world rows.parquet {PAIRED.replace('--actions 0 --actions 1', '--actions 0,1')} --people 30 --check"
    )
    assert (code, "actions could not be read from the file '0,1': it must be such a file" in err) == (
        2,
        True,
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("--people 10", "more people in the data than the 10"),
        ("--state there", "no column 'there'"),
        ("--person somebody", "person= (--person of a command) says which one is meant"),
        ("--box 0", "--box must be two numbers"),
        ("--box 0 1 --box 0 1", "box has 3 dimensions, but state has 1 columns"),
        ("--action-box 0", "--action-box must be two numbers, LOW and HIGH, e.g. --action-box -1 1, not"),
        ("--action-box 0 1", "--actions, a public list, or else an --action-box"),
        ("--action step", "action must be the one column that names one of the actions"),
        ("--next-state x --next-state reward", "next_state has 2 columns"),
        ("--degree 0", "degree must be"),
        ("--degree 99", "degree must be"),
        ("--delta 0", "delta must be above 0"),
        ("--epsilon -1", "epsilon must be"),
        ("--every 0", "every must be"),
        ("--low 1", "high must be above low"),
        ("--out rows.parquet", "must be different files"),
        ("--out nowhere/world.qq", "a folder that exists"),
        ("--plot world.gif", ".png or .svg"),
        ("--plot nowhere/world.png", "plot must name a file in a folder that can be written to"),
        ("--wanted 1", "No such option: --wanted"),
        ("--ledger none.db", "There is no ledger"),
        ("--source people", "--ledger"),
        ("--propensity reward", "No such option: --propensity"),
        ("--engine rays", "--engine"),
    ],
)
def test_mistakes_are_one_sentence_and_leave_nothing_behind(quietq, rows, tmp_path, change, words):
    code, out, err = quietq(f"world rows.parquet {PAIRED} --people 30 {PROMISE} --out world.qq {change}")
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert words in err
    assert os.listdir(tmp_path) == ["rows.parquet"]


def test_what_is_missing_is_named(quietq, rows):
    assert "A private world needs --epsilon, --delta and --out." in quietq("world rows.parquet")[2]
    assert "Sessions need --people, --box, --actions, --low and --high." in quietq("world rows.parquet --check")[2]
    assert "There must be a file to read" in quietq(f"world {PAIRED} --people 30 --check")[2]


def test_a_ledger_is_charged_once_and_a_failure_after_that_is_told(quietq, rows, tmp_path, monkeypatch):
    pytest.importorskip("sqlalchemy")
    assert quietq("ledger create books.db --source them --epsilon 2 --delta 1e-4")[0] == 0
    words = f"world rows.parquet {PAIRED} --people 30 {PROMISE} --ledger books.db --out world.qq"

    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(qq, "publish", fail)
        code, out, err = quietq(words)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "The budget was spent, but the release could not be written to world.qq: " in err
    (charge,) = qq.Ledger(tmp_path / "books.db").balance("them").bookings
    assert (charge.cost.mu, charge.reserved.method) == (qq.Budget(2, 1e-4).mu, "world")
    code, out, err = quietq(words)
    assert (code, out) == (2, "")
    assert "nothing was booked" in err
    assert not (tmp_path / "world.qq").exists()


def test_spreads_are_those_of_the_steps(rows, tmp_path):
    pytest.importorskip("matplotlib")
    from quietq.cli.report.pictures import plot_world
    from quietq.released.private_world import spreads
    from quietq.released.publishable import Labels

    read = {"person": "who", "step": "step", "state": "x", "action": "push", "actions": [0, 1], "reward": "reward"}
    sessions = qq.Sessions.read(rows, **read, box=(0, 1), people=PEOPLE)
    world = qq.privatise(sessions, qq.Budget(50, 1e-4), simulate=0)
    found = spreads(world, world.box, world.moved)
    assert found.residual[0] == pytest.approx(0.01, rel=0.5)
    assert found.explained[0] == pytest.approx(0.06, rel=0.5)  # half a push, and a tenth of how x scatters
    plot_world(replace(world, labels=Labels(("$x$ $",), world.labels.actions)), tmp_path / "world.png")
    assert (tmp_path / "world.png").exists()


def test_the_page_for_users(quietq, tmp_path, monkeypatch):
    """Its commands, on fewer people and steps; `test_readme.py` runs its Python."""
    page = (Path(__file__).parents[1] / "docs" / "sessions.md").read_text(encoding="utf-8")
    blocks = re.findall(r"(?ms)^```console\n(.*?)^```$", page)
    make_up, rehearsal, release = (
        " ".join(one.replace("\\\n", " ").split())
        for block in blocks for one in block.split("$ ")[1:]
    )  # fmt: skip
    check = release.partition(" --epsilon")[0] + " --check"
    rehearsal = f"{rehearsal} --people 40 --steps 15 --draws 1"
    for command in (f"{make_up} --people 40", rehearsal, check, release):
        monkeypatch.setattr(sys, "argv", shlex.split(command))
        with pytest.raises(SystemExit) as done:
            main()
        assert not done.value.code
    world: Any = qq.load(tmp_path / "cartpole.qq")
    assert isinstance(world, qq.PrivateWorld)
    assert world.certificate.relation == OnePerson(500)
    assert world.spaces.state_names == ("position", "velocity", "angle", "spin")
    assert world.certificate.epsilon == pytest.approx(1)
    assert (tmp_path / "world.png").exists()
    code, _, err = quietq(make_up.removeprefix("quietq "))
    assert (code, "which synthetic sessions do not replace" in err) == (2, True)
