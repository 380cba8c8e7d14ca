"""Every tutorial, and other pages that need no files of the demo, as a newcomer follows them."""

import re
import shlex
from pathlib import Path

import pytest
from pages import Newcomer, Step, page_named, print_of, run_command, steps_of, steps_to_test

for package in ("polars", "matplotlib", "stable_baselines3"):
    pytest.importorskip(package)

TUTORIALS = (
    "ratings", "ratings-in-dimensions", "comparisons", "catalogues", "policy-values", "cloning", "environment-reward",
    "functions", "sessions",
)  # fmt: skip
PAGES = (*TUTORIALS, "rows", "choosing", "bandits", "any-rl-library", "scale", "real-people")
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


def printed_by(page: str, word: str, folder: Path) -> str:
    """What the step with this word prints, after all before it, at the length that the page has."""
    names: dict[str, object] = {"__name__": "__main__"}
    for step in steps_of(page):
        if step.kind == "command":
            arguments = shlex.split(step.text)[1:]
            printed = print_of(folder, lambda arguments=arguments: run_command(arguments))
        else:
            code = compile(step.text, page, "exec")
            printed = print_of(folder, lambda code=code: exec(code, names))
        if word in step.text:
            return printed
    raise AssertionError(f"no step of {page} has {word!r}")


@pytest.mark.slow
def test_a_policy_of_a_private_world_keeps_the_real_pole_up(tmp_path: Path) -> None:
    printed = printed_by("sessions", "evaluate_policy", tmp_path)
    assert float(printed.split()[-2]) >= 475  # of 500; people have 22


@pytest.mark.slow
def test_a_point_is_pushed_to_where_people_like_it(tmp_path: Path) -> None:
    assert float(printed_by("any-rl-library", "np.linalg.norm", tmp_path)) < 0.2  # random actions: 0.46
