"""What tests of pages share: their blocks, commands in this process, and lines without their numbers."""

import contextlib
import io
import re
import shlex
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

ROOT = Path(__file__).parents[1]


def blocks_of(page: str) -> list[tuple[str, str]]:
    """Language and text of each block."""
    return re.findall(r"(?ms)^```(\w*)\n(.*?)^```$", page)


def commands_of(block: str) -> list[tuple[str, tuple[str, ...]]]:
    """The commands of a console block, each with what the page says that it prints."""
    parts = [command.replace("\\\n", " ").splitlines() for command in re.split(r"(?m)^\$ ", block)[1:]]
    return [(" ".join(shlex.split(line, comments=True)), tuple(shown)) for line, *shown in parts]


def run_command(arguments: list[str]) -> None:
    from quietq.cli import main

    with (
        mock.patch.object(sys, "argv", [".venv/bin/quietq", *arguments]),
        mock.patch.object(warnings, "showwarning"),  # main replaces it
        pytest.raises(SystemExit) as done,
    ):
        main()
    assert not done.value.code, getattr(sys.stderr, "getvalue", str)()


def print_of(folder: Path, run: Callable[[], object]) -> str:
    """What this prints in a folder; nothing may be complained about but a file that is written again."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        run()
    assert "quietq: " not in re.sub(r"quietq: warning: \S+ is overwritten", "", err.getvalue())
    return out.getvalue()


def shape(line: str) -> str:
    """A line without its numbers and white space, up to its first colon: what is said beyond that may vary."""
    return re.sub(r"-?\d[\d.e+-]*|\s", lambda found: "" if found[0].isspace() else "#", line.partition(": ")[0])
