"""Every tutorial as a newcomer follows it: all of its Python and commands, in order, in one empty folder.

Pages that stand on what the demo leaves, or that train for long, are in `test_readme.py`.
"""

import re
import shlex
from pathlib import Path

import pytest
from pages import ROOT, blocks_of, commands_of, print_of, run_command, shape

for package in ("polars", "matplotlib"):
    pytest.importorskip(package)

TUTORIALS = (
    "ratings", "ratings-in-dimensions", "comparisons", "catalogues", "policy-values", "environment-reward", "functions",
)  # fmt: skip
OTHERS = ("rows",)
JAX = ("environment-reward",)


def text_of(page: str) -> str:
    return (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [*TUTORIALS, *OTHERS])
def test_it_works_as_it_stands(page: str, tmp_path: Path) -> None:
    if page in JAX:
        pytest.importorskip("jax")
    names: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    for language, text in blocks_of(text_of(page)):
        if language == "python":
            code = compile(text, f"docs/{page}.md", "exec")
            printed = print_of(tmp_path, lambda code=code: exec(code, names))
        elif language == "console":
            for command, _ in commands_of(text):
                program, *arguments = shlex.split(command)
                assert program == "quietq"
                print_of(tmp_path, lambda arguments=arguments: run_command(arguments))
        else:
            assert language == "text", f"nothing runs a block in {language!r}"
            assert [shape(line) for line in text.splitlines()] == [shape(line) for line in printed.splitlines()]


@pytest.mark.parametrize("page", TUTORIALS)
def test_it_says_what_comes_in_what_comes_out_and_what_can_go_wrong(page: str) -> None:
    headings = re.findall(r"(?m)^## (.*)", text_of(page))
    assert headings[0] == "What you have"
    assert {"What comes out", "What can go wrong"} <= set(headings)
    assert headings[-1] in ("Where the proof is", "Why one person cannot be found out")
    example = text_of(page).partition("## What you have")[2].partition("\n## ")[0]
    assert len(re.findall(r"(?m)^\|", example)) == 2 + 3, "a table of three rows shows what the data looks like"
    last = text_of(page).rpartition("\n## ")[2]
    assert "(theory.md)" in last


def test_the_certificate_that_is_read_line_by_line_is_a_real_one(tmp_path: Path) -> None:
    page = text_of("reading-a-certificate")
    blocks = blocks_of(page)
    (code,) = (text for language, text in blocks if language == "python")
    (shown,) = (text for language, text in blocks if language == "text")
    printed = print_of(tmp_path, lambda: exec(compile(code, "docs/reading-a-certificate.md", "exec"), {}))
    assert printed == shown  # to the last digit: no number in it depends on data or noise
    section = page.partition("## A real one")[2].partition("\n## ")[0]
    explained = re.findall(r"(?ms)^(\d+)\. \*\*(?:(\w+): )?`(.*?)`", section)
    assert [int(number) for number, *_ in explained] == list(range(1, 1 + len(shown.splitlines())))
    for line, (_, kind, words) in zip(shown.splitlines(), explained, strict=True):
        assert line.startswith(f"- {kind}: " if kind else ""), line
        position = 0
        for part in re.sub(r"\s+", " ", words).split(" … "):
            position = line.index(part, position)
