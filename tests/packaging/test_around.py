"""What newcomers find around the code says what is true: citation, hooks, workflow, advice."""

import re
import shlex
from pathlib import Path

import pytest
import yaml
from environments import ROOT

import quietq


def read(name: str) -> dict:
    return yaml.load((ROOT / name).read_text(encoding="utf-8"), yaml.BaseLoader)  # else `on` would be True


def targets() -> set[str]:
    return set(re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))


def test_the_citation_is_whole():
    """By the format's version 1.2.0: what must be there, and this version of quietq."""
    cited = read("CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()
    assert (cited["cff-version"], cited["type"], cited["license"]) == ("1.2.0", "software", "Apache-2.0")
    assert cited["version"] == quietq.__version__
    assert all(author.keys() & {"name", "family-names"} for author in cited["authors"])
    for reference in cited["references"]:
        assert {"type", "title", "authors"} <= reference.keys()
        assert reference["type"] == "conference-paper"


def test_the_workflow_runs_what_the_makefile_has():
    jobs = read(".github/workflows/tests.yml")["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    named = {command.removeprefix("make ") for command in commands if "${{" not in command}
    named |= set(jobs["others"]["strategy"]["matrix"]["command"])
    assert named == {"programs", "test", "lint", "docs", "packages", "oldest"}
    assert named <= targets()


def test_hooks_are_the_commands_of_make_lint():
    lint = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nlint:")[2].partition("\n\n")[0]
    (local,) = read(".pre-commit-config.yaml")["repos"]
    assert local["repo"] == "local"
    for hook in local["hooks"]:
        program, *_ = shlex.split(hook["entry"])
        assert program.startswith(".venv/bin/")
        assert f"$(BIN)/{Path(program).name}" in lint
        assert hook["language"] == "system"


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", *(f"docs/{one.name}" for one in ROOT.glob("docs/*.md"))]
)
def test_nobody_is_told_to_install_what_no_index_has(page):
    """Nothing was uploaded: what is installed is a checkout, or another package."""
    for command in re.findall(r"pip install ([^`\n&;]*)", (ROOT / page).read_text(encoding="utf-8")):
        assert not re.search(r"(^|\s)['\"]?quietq\b", command), command
