"""The commands: a few as a user runs them, in a process of their own, the others in this one."""

import json
import os
import subprocess
import sys
from typing import Any
from unittest.mock import Mock

import polars as pl
import pytest

from quietq import Budget, Ratings, privatise

CALIBRATE = "calibrate --epsilon 0.9 --delta 1e-4 --people 50 --low 0 --high 0.5 --slope 1"


def run(arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "quietq.cli", *arguments.split()]
    surroundings = os.environ | environment
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=surroundings)


def test_calibrate(quietq):
    code, out, err = quietq(CALIBRATE + " --level --json")
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert result["mu"] == pytest.approx(0.28596, abs=5e-6)
    assert result["beta"] == 4
    assert result["radius"] == 0.01
    assert result["sensitivity"] == pytest.approx(0.01 * 5**0.5, rel=2e-6)
    assert result["sigma"] == pytest.approx(0.0782, abs=5e-5)


@pytest.mark.parametrize("level", [False, True])
def test_calibrate_tells_what_privatise_draws(quietq, level):
    ratings = pl.DataFrame({"person": range(50), "state": [0.5] * 50, "rating": [0.5] * 50})
    reading: dict[str, Any] = {"box": (0, 1), "low": 0, "high": 0.5, "slope": 1, "people": 50}
    told = json.loads(quietq(f"{CALIBRATE} {'--level' * level} --json")[1])
    drawn = [
        privatise(Ratings.read(ratings, **reading), Budget(0.9, 1e-4), noise=noise, level=level).certificate
        for noise in ("path", "auto")
    ]
    assert told["sigma"] == pytest.approx(drawn[0].sigma, rel=1e-9)
    assert (told["beta"],) == drawn[0].queries[0].norm.betas
    assert drawn[1].method == f"reward/{told['auto']['noise']}"
    assert told["auto"]["error"] < told["error"] or level


def test_tables_for_people(quietq):
    calibration = quietq(CALIBRATE)[1]
    assert "0.10597" in calibration
    assert "0.055402" in calibration
    assert "50 people" in calibration
    assert "Noise 'knots' with 6 pieces is less: error 0.050871" in calibration
    assert "release(s)" not in calibration
    assert "DP, 1 person" in quietq(CALIBRATE.replace("50", "1"))[1]


def test_where_a_letter_cannot_be_shown_the_rest_is():
    done = run("limites≥", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("quietq: No such command 'limites?'.")


@pytest.mark.filterwarnings("always")
def test_a_weak_delta_is_told_on_stderr_and_in_json(quietq):
    code, out, err = quietq(CALIBRATE.replace("1e-4", "0.05") + " --json")
    assert code == 0
    assert "not below 1/people" in err
    assert "not below 1/people" in json.loads(out)["warnings"][0]


def check_refusal(code, out, err, words):
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert "Traceback" not in err
    for word in words:
        assert word in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (CALIBRATE.replace("0.9", "0"), ("epsilon", "above 0")),
        (CALIBRATE.replace("0.9", "-3"), ("epsilon", "-3")),
        (CALIBRATE.replace("0.9", "nan"), ("epsilon", "nan")),
        (CALIBRATE.replace("1e-4", "1"), ("delta", "below 1")),
        (CALIBRATE.replace("1e-4", "0"), ("delta", "pure")),
        (CALIBRATE.replace("50", "0"), ("people", "at least 1")),
        (CALIBRATE.replace("50", "2.5"), ("people", "2.5")),
        (CALIBRATE.replace("--high 0.5", "--high 0"), ("high", "low")),
        (CALIBRATE + " --colour red", ("--colour",)),
        ("calibrate --epsilon 1", ("Missing option", "--delta")),
        ("calibrat", ("calibrat",)),
        (CALIBRATE + " --people=2.5", ("people", "'2.5'")),
        (CALIBRATE + " --people 2.5 --people 3.5", ("people", "'3.5'")),
        (CALIBRATE + " --people 1" + "0" * 400, ("people", "at most")),
        (CALIBRATE + " --people 1" + "0" * 5000, ("people",)),
        (CALIBRATE + " --high 1e300", ("high", "1e+300")),
        (CALIBRATE + " --high 1e-320", ("high - low", "1e-320")),
        (CALIBRATE + " --slope 1e-320", ("slope", "1e-320")),
        (CALIBRATE + " --delta 1e-320", ("delta", "1e-320")),
        (CALIBRATE + " --epsilon 1e300", ("epsilon", "1e+300")),
        (CALIBRATE + " --slope 1e100", ("2 slope/(high - low)",)),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_code_2(quietq, arguments, words):
    code, out, err = quietq(arguments)
    check_refusal(code, out, err, words)


def test_so_it_is_in_a_process_of_its_own():
    done = run(CALIBRATE.replace("0.9", "-3"))
    check_refusal(done.returncode, done.stdout, done.stderr, ("epsilon", "-3"))


def test_without_a_command_there_is_help(quietq):
    code, out, err = quietq("")
    assert (code, err) == (0, "")
    assert "calibrate" in out


def test_what_no_check_foresaw_is_still_one_sentence(monkeypatch, capsys):
    from quietq.cli import main

    for error in (OverflowError, ZeroDivisionError, MemoryError):
        fails = Mock(side_effect=error("secret"))
        monkeypatch.setattr(sys.modules[main.__module__], "app", fails)
        with pytest.raises(SystemExit, match="2"):
            main()
        assert capsys.readouterr().err.startswith("quietq: these numbers are too large")


def test_version_and_help(quietq):
    from quietq import __version__

    assert quietq("--version")[1].strip() == __version__
    assert "calibrate" in quietq("--help")[1]


def test_help_has_every_command_in_one_group():
    from quietq.cli import app

    panels = [one.rich_help_panel for one in (*app.registered_commands, *app.registered_groups)]
    assert len(panels) == 14
    assert all(isinstance(panel, str) for panel in panels)


def test_a_mistyped_world_is_asked_about(quietq):
    for typed, meant in (("wlak", "walk"), ("cartpole-v1", "CartPole-v1")):
        assert quietq(f"paper train none {typed}")[2].rstrip().endswith(f"Did you mean {meant!r}?")
