"""What tests of pages share: their blocks, and a newcomer who follows them, all of them, in order.

Python and commands run in this process, because starting and compiling would take most of the time; a server, a program
of the repository (`python -m ...`) and whatever else is no `quietq` have processes of their own. Each page has a folder
of its own, empty but for what the demo left there where the page stands on it. Python shares its names over a page.

A block that cannot be run has `<!-- not run: why -->` before it; `tests/test_readme.py` lists all of them.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest
from _pytest.mark import ParameterSet
from keys import make_keys

ROOT = Path(__file__).parents[1]
QUICKER = {
    "quietq demo --out runs/demo": "quietq demo --out runs/demo --quick",
    "learn(5_000": "learn(1_000",
    "learn(60_000": "learn(1_000",
    "learn(10_000": "learn(1_000",
    "simulate=60": "simulate=3",
    "range(20)]": "range(2)]",
    "plan_linear(world, steps=500)": "plan_linear(world, steps=50, iterations=3)",
    "for_check, wanted=400, steps=500": "for_check, wanted=40, steps=50",
    "quietq serve": "quietq serve --port 0",  # 8080 may be taken
    "quietq paper audit published --set preset=code --set sigma=0.32 --runs 1000": (
        "quietq paper audit published --set preset=code --set sigma=0.32 --runs 100"
    ),
    "quietq audit all": "quietq audit all --runs 40",
    "quietq paper audit all": "quietq paper audit all --runs 40",
    "--delta 1e-4 --runs 1000": "--delta 1e-4 --runs 40",
    "--people 50 --dimension 4": "--people 50 --dimension 4 --runs 40",
    "--people 500 --steps 200": "--people 50 --steps 50 --draws 1",
    "--view file --runs 200": "--view file --runs 40",
    "--simulate 20": "--simulate 2",
    "--rows 20 --dimension 2 --epsilon 1": "--rows 20 --dimension 2 --epsilon 1 --draws 2",
    "--rows 1000000": "--rows 20000",
    "--rows 10000000": "--rows 20000",
}
"""What is changed in what is run, to save time."""
SLOW = re.compile(
    r"^(methods|worlds): quietq paper train|^methods: .*\.learn\(|"
    r'quietq audit (all|comparisons|sessions)|quietq paper audit (published|all)|make paper|python -m|engine="ray"',
    re.DOTALL,
)
"""What takes minutes, alone or together: how a page's name and a step read."""
ELSEWHERE = {
    ("ledger", "sql"): "ledger/test_ledger_servers.py",
    ("serving", "sh"): "server/test_serve_docs.py",
    ("serving", "python"): "server/test_serve_docs.py",
}
"""Blocks that tests of their own run, by page and language."""
EXACT = ("quietq calibrate",)
"""Commands that print the same every time."""


class Block(NamedTuple):
    """Code between fences, and why it is not run, if so."""

    language: str
    text: str
    not_run: str = ""


def page_named(name: str) -> str:
    """The text of a page of docs/, or of one in the root of the repository (`README.md`)."""
    return (ROOT / name if name.endswith(".md") else ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def blocks_of(page: str) -> list[Block]:
    """All blocks of a page."""
    found = re.findall(r"(?ms)(?:^<!-- not run: ([^\n]*?) -->\n\n)?^```(\w*)\n(.*?)^```$", page)
    assert len(re.findall(r"(?m)^\s*(?:```|~~~)", page)) == 2 * len(found), "a fence is open, or indented"
    return [Block(language, text, reason) for reason, language, text in found]


def commands_of(block: str) -> list[tuple[str, tuple[str, ...]]]:
    """The commands of a console block, each with what the page says that it prints."""
    parts = [command.replace("\\\n", " ").splitlines() for command in re.split(r"(?m)^\$ ", block)[1:]]
    return [(shlex.join(shlex.split(line, comments=True)), tuple(shown)) for line, *shown in parts]


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
    complaints = re.sub(r"quietq: warning: \S+ is (overwritten|replaced)", "", err.getvalue())
    assert "quietq: " not in complaints, complaints
    return out.getvalue()


def shape(line: str) -> str:
    """A line without its numbers and white space, up to its first colon: what is said beyond that may vary."""
    return re.sub(r"-?\d[\d.e+-]*|\s", lambda found: "" if found[0].isspace() else "#", line.partition(": ")[0])


@dataclass(frozen=True)
class Step:
    """Something to run, and what the page says that it prints."""

    page: str
    place: int
    kind: str
    text: str
    shown: tuple[str, ...] = ()

    @property
    def slow(self) -> bool:
        return SLOW.search(f"{self.page}: {self.text}") is not None

    @property
    def name(self) -> str:
        return f"{self.page}-{self.place}-" + " ".join(self.text.split()[:3])

    def check(self, printed: str) -> None:
        """What was printed is what the page shows: of Python all of it, of a command at least those lines."""
        lines, shown = printed.splitlines(), [line for line in self.shown if line.strip() != "..."]
        if self.text.startswith(EXACT):
            assert [line.rstrip() for line in lines[: len(shown)]] == [line.rstrip() for line in shown]
        elif self.kind == "python" and shown:
            assert [shape(line) for line in lines] == [shape(line) for line in shown]
        else:
            assert {shape(line) for line in shown} <= {shape(line) for line in lines}


def steps_of(page: str) -> list[Step]:
    """All of a page that is to be run, in order: each block of Python, each command."""
    steps: list[tuple[str, str, tuple[str, ...]]] = []
    for block in blocks_of(page_named(page)):
        if block.not_run or (page, block.language) in ELSEWHERE:
            continue
        if block.language == "text":
            kind, text, shown = steps.pop()
            steps.append((kind, text, (*shown, *block.text.splitlines())))
        elif block.language == "python":
            steps.append(("python", block.text, ()))
        else:
            assert block.language == "console", f"{page}: nothing runs a block in {block.language!r}"
            steps += [("command", *one) for one in commands_of(block.text)]
    return [Step(page, place, *step) for place, step in enumerate(steps)]


def steps_to_test(pages: Iterable[str]) -> list[ParameterSet]:
    """All steps of these pages, as parameters of a test."""
    return [
        pytest.param(step, marks=[pytest.mark.slow] * step.slow, id=step.name)
        for page in pages for step in steps_of(page)
    ]  # fmt: skip


class Newcomer:
    """Has a folder for each page, and does one step after the other there; what is slow, only when it is asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.outcomes: dict[Step, str | Exception] = {}
        self.names: dict[str, dict[str, object]] = {}
        self.steps: dict[str, list[Step]] = {}

    def after(self, step: Step, demo: Step | None = None) -> str:
        """What a step prints, when all before it on its page are done, where the demo left its files."""
        if demo is not None and demo.page != step.page and not self._folder(step.page).exists():
            self.after(demo)
            shutil.copytree(self._folder(demo.page) / "runs", self._folder(step.page) / "runs")
        self._folder(step.page).mkdir(parents=True, exist_ok=True)
        steps = self.steps.setdefault(step.page, steps_of(step.page))
        for each in steps[: steps.index(step) + 1]:
            needed = not each.slow or each == step or (step.slow and each.kind == "python")
            if each not in self.outcomes and needed:
                try:
                    self.outcomes[each] = self._do(each)
                except Exception as error:  # told where this step is the one that is asked for
                    self.outcomes[each] = error
        outcome = self.outcomes[step]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _folder(self, page: str) -> Path:
        return self.folder / page

    def _do(self, step: Step) -> str:
        text, folder = step.text, self._folder(step.page)
        if text.startswith("make "):
            text = recipe(*shlex.split(text)[1:])
        for long, short in QUICKER.items():
            text = text.replace(long, short)
        if step.kind == "python":
            names = self.names.setdefault(step.page, {"__name__": "__main__"})
            return print_of(folder, lambda: exec(compile(text, step.page, "exec"), names))
        settings: dict[str, str] = {}
        program, *arguments = shlex.split(text)
        while "=" in program:  # variables of the environment, set before the command
            name, value = program.split("=", 1)
            settings[name] = value
            program, *arguments = arguments
        if program == "openssl" and shutil.which(program) is None:
            make_keys(folder / "release-key")
            return ""
        if program in ("python", "openssl"):
            settings["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
            command = [sys.executable if program == "python" else program, *arguments]
            done = subprocess.run(
                command, cwd=folder, env=os.environ | settings, text=True, capture_output=True, check=False
            )
            assert done.returncode == 0, done.stderr
            return done.stdout
        assert program == "quietq", f"nothing runs {program!r}"
        if arguments[0] == "serve":
            return served(arguments, folder)
        return print_of(folder, lambda: run_command(arguments))


def recipe(target: str, *settings: str) -> str:
    """What `make` does at last for a target: `quietq demo ...`, `python -m reproduction ...`."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    found = re.search(rf"(?m)^{target}: .*\n\t@?\$\(BIN\)/(.*)", makefile)
    assert found is not None, f"there is no recipe for make {target}"
    given = dict(re.findall(r"(?m)^(\w+) \?= ?(.*)$", makefile)) | dict(one.split("=", 1) for one in settings)
    return re.sub(r"\$\((\w+)\)", lambda name: given[name[1]], found[1])


def served(arguments: list[str], folder: Path) -> str:
    """What a server says before it has answered once."""
    program = [sys.executable, "-m", "quietq.cli", *arguments]
    with subprocess.Popen(program, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
        try:
            assert server.stdout is not None
            told, address = "", None
            while address is None:
                line = server.stdout.readline()
                assert line, told
                told += line
                address = re.search(r"http://127\.0\.0\.1:\d+", line)
            for page in ("/healthz", "/"):
                with urllib.request.urlopen(address[0] + page, timeout=60) as answer:
                    assert answer.status == 200
        finally:
            server.terminate()
            server.communicate()
    return told
