"""README.md and the first pages as a newcomer follows them: every block, in order, on what the demo leaves there.

A block in Python shares its names with the other blocks of its section and with nothing else. A server has a process of
its own; all else runs in this one, because starting and compiling would take most of the time. `QUICKER` says what is
changed to save time, and nothing else is.
"""

import ast
import importlib
import os
import re
import shlex
import subprocess
import sys
import tomllib
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest
from pages import ROOT, blocks_of, commands_of, print_of, run_command, shape

import quietq

for package in ("statsmodels", "polars", "matplotlib", "jax", "stable_baselines3", "fastapi", "sqlalchemy"):
    pytest.importorskip(package)

from quietq.worlds.made_up_sessions import write_made_up_sessions  # noqa: E402

QUICKER = {
    "quietq demo --out runs/demo": "quietq demo --out runs/demo --quick",
    'DQN("MlpPolicy", env).learn(5_000)': 'DQN("MlpPolicy", env).learn(200)',
    "agent.learn(5_000, seeds=3)": "agent.learn(500, seeds=3)",
    "quietq serve runs/demo/agent.qq": "quietq serve runs/demo/agent.qq --port 0",  # 8080 may be taken
    "quietq audit published --preset code --sigma 0.32 --runs 1000": (
        "quietq audit published --preset code --sigma 0.32 --runs 100"
    ),
    "--delta 1e-4 --runs 1000": "--delta 1e-4 --runs 40",
    "--rows 20 --dimension 2 --epsilon 1": "--rows 20 --dimension 2 --epsilon 1 --draws 2",
    "python -m paper comparison": "python -m paper comparison --quick",
}
SLOW = ("quietq audit published", "make paper", "python -m paper")
EXACT = ("quietq calibrate", "quietq limits")
"""Commands that print the same every time."""


@dataclass(frozen=True)
class Step:
    """Something to run, and what the page says that it prints."""

    kind: str
    text: str
    shown: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return " ".join(self.text.split()[:3])


def steps_of(page: str) -> list[Step]:
    """All of a page, in order: Python by section, each command by itself."""
    steps = []
    for section in re.split(r"(?m)^## ", page):
        blocks = blocks_of(section)
        assert section.count("```") == 2 * len(blocks)
        python = "\n".join(text for language, text in blocks if language == "python")
        printed = tuple(line for language, text in blocks if language == "text" for line in text.splitlines())
        if "make demo    #" in section:
            recipe = re.search(r"\$\(BIN\)/(quietq demo.*)", (ROOT / "Makefile").read_text(encoding="utf-8"))
            assert recipe is not None
            steps.append(Step("console", recipe[1], printed))
        elif python:
            steps.append(Step("python", python, printed))
        else:
            assert not printed
        for language, text in blocks:
            assert language in ("python", "console", "text"), f"nothing runs a block in {language!r}"
            steps += [Step("console", *one) for one in commands_of(text)] if language == "console" else []
    return steps


PAGES = ("README.md", "docs/agents.md", "docs/quick-start.md", "docs/choosing.md")
"""In the order in which one stands on what another left."""
STEPS = [step for page in PAGES for step in steps_of((ROOT / page).read_text(encoding="utf-8"))]


class Newcomer:
    """Has a folder, and does one step after the other there; what is slow, only when it is asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.outcomes: dict[Step, str | Exception] = {}

    def after(self, step: Step) -> str:
        """What a step prints, when all before it are done."""
        for each in STEPS[: STEPS.index(step) + 1]:
            if each not in self.outcomes and (each == step or not each.text.startswith(SLOW)):
                try:
                    self.outcomes[each] = self._do(each)
                except Exception as error:  # told where this step is the one that is asked for
                    self.outcomes[each] = error
        outcome = self.outcomes[step]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _do(self, step: Step) -> str:
        text = step.text
        for long, short in QUICKER.items():
            text = text.replace(long, short)
        if step.kind == "python":
            return self.follow(text)
        program, *arguments = shlex.split(text)
        if program == "make":  # make paper PAPER='all --quick'
            program, arguments = "python", ["-m", "paper", *shlex.split(arguments[1].removeprefix("PAPER="))]
        if program == "python":
            places = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
            done = subprocess.run(
                [sys.executable, *arguments], cwd=self.folder, env=os.environ | {"PYTHONPATH": places}, text=True,
                capture_output=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            return done.stdout
        assert program == "quietq"
        if arguments[0] == "serve":
            return self._serve(arguments)
        return print_of(self.folder, lambda: run_command(arguments))

    def follow(self, python: str) -> str:
        """What this prints, with names of its own."""
        return print_of(self.folder, lambda: exec(compile(python, "page", "exec"), {"__name__": "__main__"}))

    def _serve(self, arguments: list[str]) -> str:
        program = [sys.executable, "-m", "quietq.cli", *arguments]
        with subprocess.Popen(
            program, cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as server:
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


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Newcomer:
    return Newcomer(tmp_path_factory.mktemp("newcomer"))


@pytest.mark.parametrize(
    "step",
    [pytest.param(step, marks=[pytest.mark.slow] * step.text.startswith(SLOW), id=step.name) for step in STEPS],
)
def test_every_block_works_as_it_stands(newcomer: Newcomer, step: Step) -> None:
    printed = newcomer.after(step).splitlines()
    if step.text.startswith(EXACT):
        shown = [line.rstrip() for line in step.shown]
        if shown[-1].strip() == "...":
            shown.pop()
        assert [line.rstrip() for line in printed[: len(shown)]] == shown
        return
    shapes = {shape(line) for line in printed}
    assert [line for line in step.shown if line.strip() != "..." and shape(line) not in shapes] == []


QUICKER_SESSIONS = {
    "model.learn(60_000)": "model.learn(1_000)",
    "plan_linear(world, steps=500)": "plan_linear(world, steps=50, iterations=3)",
    "plan, 400, for_check, steps=500": "plan, 40, for_check, steps=50",
}
"""What is changed to save time in the page on sessions."""


@pytest.mark.parametrize("page", ["what-is-protected", "sessions", "release", "ledger", "any-rl-library"])
def test_pages_for_users_work_as_they_stand(newcomer: Newcomer, page: str) -> None:
    newcomer.after(STEPS[0])  # the demo
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    python = "\n".join(block for language, block in blocks_of(text) if language == "python")
    if page == "sessions":
        assert [long for long in QUICKER_SESSIONS if python.count(long) != 1] == []
        assert "$ quietq world --made-up sessions.csv\n" in text
        write_made_up_sessions(newcomer.folder / "sessions.csv", 500)  # as that command does
        for long, short in QUICKER_SESSIONS.items():
            python = python.replace(long, short)
    newcomer.follow(python)


def test_what_is_made_quicker_is_there() -> None:
    everything = "\n".join(step.text for step in STEPS)
    assert [long for long in QUICKER if everything.count(long) != 1] == []
    assert [start for start in (*SLOW, *EXACT) if f"\n{start}" not in everything] == []


def test_all_pages_that_are_pointed_to_are_there() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    pointers = [
        (page.name, target)
        for page in pages
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert pointers == []


def test_sections_that_are_pointed_to_are_there() -> None:
    """A link into a page, whose words all stand in one of its headings, as both the site and hosts of code write it."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    lost = []
    for page in pages:
        for target, place in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text(encoding="utf-8")):
            headings = re.findall(
                r"(?m)^#+ (.*)", (page.parent / target if target else page).read_text(encoding="utf-8")
            )
            if place not in (re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", one).strip().lower()) for one in headings):
                lost.append((page.name, target, place))
    assert lost == []


def test_the_site_has_every_page() -> None:
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f": {page.name}\n" not in menu] == []


ROOMS = ("privacy", "ledger", "noise", "noise.feature_maps", "noise.kernels", "feedback", "mechanisms", "worlds",
         "learning", "learning.bandits", "publishing", "audit")  # fmt: skip


def offered(room: str) -> set[str]:
    """What a room's `__init__.py` re-exports (`import X as X`) or defines itself."""
    names = set()
    for node in ast.parse((ROOT / "src/quietq" / room.replace(".", "/") / "__init__.py").read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            names |= {one.name for one in node.names if one.name == one.asname}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return {name for name in names if not name.startswith("_")}


def test_the_reference_has_every_public_name() -> None:
    def find(path: str) -> object:
        module, _, name = path.rpartition(".")
        return getattr(importlib.import_module(module), name)

    listed = re.findall(r"(?m)^::: ([\w.]+)$", (ROOT / "docs" / "reference.md").read_text(encoding="utf-8"))
    assert len(set(listed)) == len(listed)
    documented = {id(find(path)): path for path in listed}
    public = {f"quietq.{name}": getattr(quietq, name) for name in quietq.__all__ if name != "__version__"}
    public |= {f"quietq.{room}.{name}": find(f"quietq.{room}.{name}") for room in ROOMS for name in offered(room)}
    del public["quietq.privacy.interactive"]  # a module, imported for what it registers
    assert [name for name, thing in public.items() if id(thing) not in documented] == []
    things = {id(thing) for thing in public.values()}
    assert [path for thing, path in documented.items() if thing not in things] == []


def test_badges_say_what_the_package_says() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = [one.rpartition(" ")[2] for one in project["classifiers"] if re.search(r"Python :: 3\.\d+$", one)]
    assert " | ".join(versions) in (ROOT / "docs" / "python.svg").read_text(encoding="utf-8")
    assert project["license"] in (ROOT / "docs" / "licence.svg").read_text(encoding="utf-8")
