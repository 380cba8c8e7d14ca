"""Every tutorial, and other pages that need no files of the demo, as a newcomer follows them."""

import re
from pathlib import Path
from typing import get_args

import pytest
from pages import Newcomer, Step, blocks_of, page_named, print_of, steps_to_test

for package in ("polars", "matplotlib", "stable_baselines3"):
    pytest.importorskip(package)

TUTORIALS = (
    "ratings", "ratings-in-dimensions", "comparisons", "catalogues", "policy-values", "cloning", "environment-reward",
    "functions",
)  # fmt: skip
PAGES = (*TUTORIALS, "rows", "choosing", "sessions", "bandits", "any-rl-library", "scale", "real-people")
JAX = ("environment-reward",)


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Newcomer:
    return Newcomer(tmp_path_factory.mktemp("newcomer"))


@pytest.mark.parametrize("step", steps_to_test(PAGES))
def test_every_block_works_as_it_stands(newcomer: Newcomer, step: Step) -> None:
    if step.page in JAX:
        pytest.importorskip("jax")
    step.check(newcomer.after(step))


@pytest.mark.parametrize("page", TUTORIALS)
def test_it_says_what_comes_in_what_comes_out_and_what_can_go_wrong(page: str) -> None:
    headings = re.findall(r"(?m)^## (.*)", page_named(page))
    assert headings[0] == "What you have"
    assert {"What comes out", "What can go wrong"} <= set(headings)
    assert headings[-1] in ("Where the proof is", "Why one person cannot be found out")
    example = page_named(page).partition("## What you have")[2].partition("\n## ")[0]
    assert len(re.findall(r"(?m)^\|", example)) == 2 + 3, "a table of three rows shows what the data looks like"
    last = page_named(page).rpartition("\n## ")[2]
    assert "(theory.md)" in last


def test_the_certificates_that_are_read_line_by_line_are_real_ones(tmp_path: Path) -> None:
    """All lines of the first one are explained; of the others, all that do not open as one of the first does."""
    pytest.importorskip("jax")
    names: dict[str, object] = {}
    sections = [one for one in page_named("reading-a-certificate").split("\n## ") if "line by line\n" in one]
    assert len(sections) == 3
    openings: tuple[str, ...] = ()
    for section in sections:
        (_, code, _), (_, shown, _) = blocks_of(section)
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
    from quietq.privacy.norms import AnyNorm

    table = page_named("certificate-fields").partition("| `norm` | its fields")[2].partition("\n\n")[0]
    named = set(re.findall(r"`([a-z-]+)`", "".join(re.findall(r"(?m)^\| ([^|]*) \|", table))))
    assert {norm.__struct_config__.tag for norm in get_args(AnyNorm)} <= named
