"""Every tutorial as a newcomer follows it: all of its Python and commands, in order, in one empty folder.

Pages that stand on what the demo leaves, or that train for long, are in `test_readme.py`.
"""

import importlib
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


def test_the_certificates_that_are_read_line_by_line_are_real_ones(tmp_path: Path) -> None:
    """All lines of the first one are explained; of the others, all that do not open as one of the first does."""
    pytest.importorskip("jax")
    names: dict[str, object] = {}
    sections = [one for one in text_of("reading-a-certificate").split("\n## ") if "line by line\n" in one]
    assert len(sections) == 3
    openings: tuple[str, ...] = ()
    for section in sections:
        (_, code), (_, shown) = blocks_of(section)
        printed = print_of(tmp_path, lambda code=code: exec(compile(code, "reading-a-certificate.md", "exec"), names))
        assert printed == shown  # to the last digit: no number in it depends on data or noise
        lines, position = shown.splitlines(), -1
        explained = re.findall(r"(?ms)^(\d+\.|-) \*\*(?:(\w+): )?`(.*?)`", section.rpartition("```")[2])
        left = [line for line in lines if not line.startswith(openings)] if openings else lines
        for _, kind, words in explained:
            parts = [re.escape(part) for part in re.sub(r"\s+", " ", words).split(" … ")]
            looked_for = (f"- {kind}: " if kind else "") + ".*" + ".*".join(parts)
            position = next(i for i, line in enumerate(lines) if i > position and re.match(looked_for, line))
            left = [line for line in left if line != lines[position]]
        assert left == []
        if not openings:
            assert [number for number, *_ in explained] == [f"{i}." for i in range(1, 1 + len(lines))]
            openings = tuple(re.findall(r"(?m)^[^\d[\n]{1,30}", shown))  # up to the first number


def test_every_norm_has_a_row_in_the_table_of_fields() -> None:
    from quietq.privacy.norms import NORMS

    for module in ("knots", "k_norm", "weights", "people_mean", "policy_values", "smooth_sensitivity"):
        importlib.import_module(f"quietq.mechanisms.{module}")
    table = text_of("certificate-fields").partition("| `norm` | its fields")[2].partition("\n\n")[0]
    named = set(re.findall(r"`([a-z-]+)`", "".join(re.findall(r"(?m)^\| ([^|]*) \|", table))))
    ours = {kind for kind, norm in NORMS.items() if norm.difference.__module__.startswith("quietq.")}
    assert ours <= named
