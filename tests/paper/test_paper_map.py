"""The map in the paper's README leads to files, tests and commands that are there."""

import re
from pathlib import Path

import pytest

import quietq.paper

HERE = Path(quietq.paper.__file__).parent
ROOT = Path(__file__).parents[2]
ROWS = re.findall(r"(?m)^\| (?!in the paper|idea|what is attacked|---)(.*?) \| (.*?) \| (.*?) \| (.*?) \|$",
                  (HERE / "README.md").read_text("utf-8"))  # fmt: skip


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_it_is_a_map_of_the_whole_paper():
    told = " ".join(row[0] for row in ROWS)
    for part in ("Algorithm 1", "Theorem 5", "Figure 1", "Figure 2", "Proposition 10", "Lemma 11", "Claim 17"):
        assert part.rpartition(" ")[2] in told, part
    assert len(ROWS) > 25


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_every_row_leads_somewhere(row: tuple[str, str, str, str]):
    _, files, tests, command = row
    for name in named(files):
        place = HERE.parents[1] / name.replace(".", "/") if name.startswith("quietq.") else HERE / name
        assert place.exists() or place.with_suffix(".py").exists() or (ROOT / name).exists(), name
    assert named(tests)
    for name in named(tests):
        assert (ROOT / "tests" / name).exists(), name
    assert re.match("`?(quietq |python -m reproduction|from Python: `quietq.paper)", command)
