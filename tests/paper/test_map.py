"""The map of the paper, `src/quietq/paper/README.md`: every file, test and command that it names is there."""

import importlib.util
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from quietq import paper
from quietq.paper.method_table import METHOD_TABLE
from reproduction.__main__ import PARTS

Command = Callable[[str], tuple[int, str, str]]
ROOT = Path(__file__).parents[2]
HOME = ROOT / "src" / "quietq" / "paper"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (HOME / "README.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith(("| in the paper", "| idea", "| what is attacked"))
]
PRINTED = (
    *(f"Proposition {number}" for number in (3, 4, 9, 10)),
    *(f"Lemma {number}" for number in (6, 8, 11)),
    *(f"Claim {number}" for number in (12, 13)),
    "Algorithm 1",
    "Theorem 5",
    "Corollary 7",
    "Lemmas 14 and 16",
    "Claims 15 and 17",
    "Figure 1",
    "Figure 2",
    *(f"appendix {name}" for name in ("B", "D", "E.1", "E.2", "E.3")),
    "actor-critic",
    "band-limited",
    "several dimensions, replay, ε-greedy, other intervals",
)
"""What the paper numbers, and the extensions that its Discussion names."""


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def is_there(name: str) -> bool:
    if name.startswith("quietq."):
        module, _, attribute = name.rpartition(".")
        return hasattr(paper, attribute) if module == "quietq.paper" else importlib.util.find_spec(name) is not None
    return any((place / name).exists() for place in (HOME, ROOT))


def test_all_that_the_paper_numbers_is_on_the_map() -> None:
    first = " ".join(row[0] for row in ROWS)
    assert [words for words in PRINTED if words not in first] == []


@pytest.mark.parametrize("row", ROWS, ids=[row[0][:40] for row in ROWS])
def test_files_tests_and_commands_are_there(row: list[str], quietq: Command) -> None:
    _, files, tests, commands = row
    for cell in (files, tests, commands):
        assert quoted(cell)
    assert [name for name in quoted(files) if not is_there(name)] == []
    assert [name for name in quoted(tests) if not (ROOT / "tests" / name).is_file()] == []
    for command in quoted(commands):
        check_command(shlex.split(command), quietq)


def check_command(words: list[str], quietq: Command) -> None:
    if words[0] == "python":
        assert words[:3] == ["python", "-m", "reproduction"]
        assert words[3] in PARTS
        return
    if words[0].startswith("quietq."):
        assert is_there(words[0])
        return
    groups = 3 if words[1] == "paper" else 2
    if words[1:3] in (["paper", "train"], ["paper", "audit"]):
        assert words[3] in (*METHOD_TABLE, "all")
    assert quietq(" ".join([*words[1:groups], "--help"]))[0] == 0


def test_every_file_of_the_room_is_named_or_lies_in_a_named_folder() -> None:
    named = {name for row in ROWS for name in quoted(row[1])}
    folders = {name for name in named if name.endswith("/")}
    helpers = {"methods.py", "method_table.py", "attacks/attack_plan.py", "attacks/trajectories_attack.py"}
    files = {file.relative_to(HOME).as_posix() for file in HOME.rglob("*.py") if file.name != "__init__.py"}
    left = {file for file in files - named - helpers if not any(file.startswith(folder) for folder in folders)}
    assert left == set()
