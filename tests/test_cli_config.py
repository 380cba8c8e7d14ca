"""Options from a file (--config), for every command that has many; and the command line that repeats a release."""

import json
import shlex
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from quietq.cli import app, main

CALIBRATE = "epsilon = 0.9\ndelta = 1e-4\npeople = 50\nlow = 0\nhigh = 0.5\nslope = 1\nlevel = true\n"
CLONE = """
files = ["rows.parquet"]
people = 60
person = "who"
episode = "visit"
step = "step"
state = "x"
box = [[-1, 1]]
action = "push"
actions = ["left", "right"]
low = 0
high = 1
returns = [0, 12]
epsilon = 60
delta = 1e-5
"""
pytestmark = pytest.mark.filterwarnings("ignore:.*a clone is good by luck alone.*:UserWarning")


def commands(command: Any, *names: str) -> Iterator[tuple[str, Any]]:
    """Every command that does something, by the words that call it."""
    for name, one in getattr(command, "commands", {}).items():
        yield from commands(one, *names, name)
    if not hasattr(command, "commands"):
        yield " ".join(names), command


COMMANDS = dict(commands(typer.main.get_command(app)))


def test_who_has_more_than_seven_options_has_a_file_for_them() -> None:
    for name, command in COMMANDS.items():
        options = {param.name for param in command.params if param.opts[0].startswith("-")} - {"config"}
        assert any(param.name == "config" for param in command.params) == (len(options) > 7), name


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_on_a_page(quietq: Any, name: str) -> None:
    code, out, _ = quietq(f"{name} --help")
    assert (code, len(out.splitlines()) <= 80) == (0, True)


def test_a_file_says_what_was_not_typed(quietq: Any, tmp_path: Path) -> None:
    (tmp_path / "noise.toml").write_text(CALIBRATE)
    typed = "--epsilon 0.9 --delta 1e-4 --low 0 --high 0.5 --slope 1 --level"
    for people in (50, 80):
        of_file = json.loads(quietq(f"calibrate --config noise.toml --people {people} --json")[1])
        assert of_file == json.loads(quietq(f"calibrate {typed} --people {people} --json")[1])
    assert json.loads(quietq("calibrate --config noise.toml --json")[1])["people"] == 50
    (tmp_path / "noise.toml").write_text(CALIBRATE.replace("true", "false"))
    assert not json.loads(quietq("calibrate --config noise.toml --json")[1])["level"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("peple = 3", "--config 'a.toml' has 'peple', which is no option. Did you mean 'people'?"),
        ("config = 'b.toml'", "has 'config', which is no option."),
        ("[people]\nnumber = 3", "has 'people', which is no option."),
        ("people = 3\npeople = 4", "--config must be a TOML file, and 'a.toml' is none:"),
        ("people =", "--config must be a TOML file, and 'a.toml' is none:"),
        (CALIBRATE.replace("50", "'many'"), "--people must be a whole number, not 'many'."),
        (CALIBRATE.replace("50", "0"), "people must be a whole number of at least 1"),
        (CALIBRATE.replace("people = 50", ""), "Missing option '--people'"),
    ],
)
def test_a_mistake_in_a_file_is_one_sentence(quietq: Any, tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "a.toml").write_text(text)
    code, out, err = quietq("calibrate --config a.toml")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sentence in err


def test_a_file_that_is_not_there_is_named(quietq: Any) -> None:
    assert quietq("calibrate --config a.toml") == (2, "", "quietq: No such file or directory: 'a.toml'.\n")


def test_a_release_tells_the_command_that_repeats_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All that stood in the file is in it, so that it needs the file no more, and a shell reads it as it is."""
    pytest.importorskip("polars")
    from skilled_people import logged

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # main replaces it
    logged(60).write_parquet("rows.parquet")
    Path("a.toml").write_text(CLONE)

    def run(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", [*words])
        with pytest.raises(SystemExit) as done:
            main()
        assert not done.value.code
        return json.loads(capsys.readouterr().out)["again"]

    again = run("quietq", "clone", "--config", "a.toml", "--out", "one policy.qq", "--json")
    assert again.startswith("quietq clone rows.parquet --people 60 --person who")
    assert "'one policy.qq'" in again
    assert "config" not in again
    Path("a.toml").unlink()
    assert run(*shlex.split(again)) == again
