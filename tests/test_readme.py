"""README.md and pages that stand on what the demo leaves, as a newcomer follows them; and no page is left out."""

import ast
import importlib
import inspect
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import test_tutorials
from pages import (
    ELSEWHERE,
    EXACT,
    QUICKER,
    ROOT,
    Newcomer,
    Step,
    blocks_of,
    page_named,
    print_of,
    recipe,
    run_command,
    steps_of,
    steps_to_test,
)

import quietq
from quietq import paper

for package in ("statsmodels", "polars", "matplotlib", "jax", "stable_baselines3", "fastapi", "sqlalchemy"):
    pytest.importorskip(package)

PAGES = (
    "README.md", "quick-start", "what-is-protected", "release", "ledger", "methods", "audit",
    "reconstruction", "worlds", "reproduction",
)  # fmt: skip
[DEMO] = [step for step in steps_of("README.md") if step.text.startswith("make demo")]


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Newcomer:
    return Newcomer(tmp_path_factory.mktemp("newcomer"))


@pytest.mark.parametrize("step", steps_to_test(PAGES))
def test_every_block_works_as_it_stands(newcomer: Newcomer, step: Step) -> None:
    step.check(newcomer.after(step, DEMO))


@pytest.mark.slow  # sixty thousand steps of PPO; the test above takes a thousand
def test_the_example_ends_with_the_score_that_it_says(tmp_path: Path) -> None:
    _, data, example, *_ = steps_of("README.md")
    print_of(tmp_path, lambda: run_command(shlex.split(data.text)[1:]))
    printed = print_of(tmp_path, lambda: exec(compile(example.text, "README.md", "exec"), {"__name__": "__main__"}))
    [promised] = re.findall(r"# (.*)$", example.text.strip())
    assert printed.strip() == promised


NOT_RUN = {
    "quick-start": ["it installs"],
    "real-people": ["it installs", "it takes hours, and writes into the repository"],
}
"""Every block that is not run, and why."""
CODE = r"(?:\$ |(?:quietq|python|pip|make|curl|import|from) |qq\.|>>>)"


def all_pages() -> dict[str, str]:
    names = [*(page.name for page in ROOT.glob("*.md")), *(page.stem for page in (ROOT / "docs").glob("*.md"))]
    return {name: page_named(name) for name in names}


def test_no_block_is_left_out() -> None:
    run = {*PAGES, *test_tutorials.PAGES, *(page for page, _ in ELSEWHERE)}
    assert all(page in (ROOT / "tests" / test).read_text("utf-8") for (page, _), test in ELSEWHERE.items())
    marked = {}
    for name, page in all_pages().items():
        blocks = blocks_of(page)
        steps_of(name)  # which fails where nothing runs a language
        assert not blocks or name in run, f"nothing runs the blocks of {name}"
        if reasons := [block.not_run for block in blocks if block.not_run]:
            marked[name] = reasons
        assert page.count("<!-- not run") == len(reasons), f"{name}: a mark that no block follows after an empty line"
        fenced = re.sub(r"(?ms)^```.*?^```$", "", page)
        assert not re.search(rf"\n\n {{4}}{CODE}", fenced), f"{name}: code that has no fence, and so is not run"
    assert marked == NOT_RUN


def test_what_is_made_quicker_is_there() -> None:
    everything = [recipe("demo"), *(step.text for page in (*PAGES, *test_tutorials.PAGES) for step in steps_of(page))]
    assert [long for long in QUICKER if not any(long in text for text in everything)] == []
    assert [start for start in EXACT if not any(text.startswith(start) for text in everything)] == []


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
    """A link into a page goes to one of its anchors, or to a heading as both the site and hosts of code write it."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    lost = []
    for page in pages:
        for target, place in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text(encoding="utf-8")):
            text = (page.parent / target if target else page).read_text(encoding="utf-8")
            headings = re.findall(r"(?m)^#+ (.*)", text)
            places = {re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", one).strip().lower()) for one in headings}
            if place not in places | set(re.findall(r'<a id="([^"]+)">', text)):
                lost.append((page.name, target, place))
    assert lost == []


def test_the_site_has_every_page() -> None:
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f": {page.name}\n" not in menu] == []


ROOMS = (
    "privacy", "ledger", "noise", "feedback", "released", "mechanisms", "worlds",
    "online", "publishing", "audit", "paper.agents", "paper.attacks",
)  # fmt: skip


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
    public |= {f"quietq.paper.{name}": getattr(paper, name) for name in paper.__all__}
    public = {name: thing for name, thing in public.items() if not inspect.ismodule(thing)}  # which register norms
    assert [name for name, thing in public.items() if id(thing) not in documented] == []
    things = {id(thing) for thing in public.values()}
    assert [path for thing, path in documented.items() if thing not in things] == []


def test_every_public_function_lists_its_arguments() -> None:
    listed = re.findall(r"(?m)^::: ([\w.]+)$", (ROOT / "docs" / "reference.md").read_text(encoding="utf-8"))
    functions = {}
    for path in listed:
        module, _, name = path.rpartition(".")
        if inspect.isfunction(thing := getattr(importlib.import_module(module), name)):
            functions[path] = thing
    assert len(functions) > 60
    for path, function in functions.items():
        arguments = [name for name in inspect.signature(function).parameters if not name.startswith("_")]
        said = (function.__doc__ or "").partition("Args:")[2]
        assert [name for name in arguments if not re.search(rf"(?m)^ +{name}: \S", said)] == [], path


def test_badges_say_what_the_package_says() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = [one.rpartition(" ")[2] for one in project["classifiers"] if re.search(r"Python :: 3\.\d+$", one)]
    assert " | ".join(versions) in (ROOT / "docs" / "python.svg").read_text(encoding="utf-8")
    assert project["license"] in (ROOT / "docs" / "licence.svg").read_text(encoding="utf-8")


def test_the_paper_is_run_as_quickly_as_the_page_says() -> None:
    """Arguments with spaces stay whole: without `--quick` it would be all of the paper, ten times as long."""
    [step] = [step for step in steps_of("reproduction") if step.text.startswith("make paper ")]
    assert shlex.split(step.text) == ["make", "paper", "PAPER=all --quick"]
