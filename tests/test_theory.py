"""Theorems are two steps away in both directions: docs/theory.md names modules, and modules name its anchors."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "quietq"
THEORY = (ROOT / "docs" / "theory.md").read_text()
ANCHOR = re.compile(r'<a id="([a-z0-9-]+)"></a>')
LINK = re.compile(r"theory\.md#([A-Za-z0-9_-]+)")
SPEAKS = re.compile(r"\b(theorem|proof|lemma)s?\b|theory\.md", re.IGNORECASE)
MODULES = sorted(PACKAGE.rglob("*.py"))


def modules_by_anchor() -> dict[str, list[str]]:
    """By anchor, the modules that its `Code:` line names; the line stands between this anchor and the next."""
    _, *parts = ANCHOR.split(THEORY)
    found = {}
    for anchor, below in zip(parts[::2], parts[1::2], strict=True):
        lines = re.findall(r"^ *Code: (.*)\.$", below, re.MULTILINE)
        assert len(lines) == 1, f"{anchor} has {len(lines)} lines of code."
        found[anchor] = re.findall(r"`([^`]+)`", lines[0])
    return found


def words_of(text: str) -> str:
    """A module's docstrings and comments."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    strings = [ast.get_docstring(one) or "" for one in ast.walk(ast.parse(text)) if isinstance(one, documented)]
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = [one.string for one in tokens if one.type == tokenize.COMMENT]
    return "\n".join([*strings, *comments])


def test_an_anchor_is_there_once():
    anchors = ANCHOR.findall(THEORY)
    assert len(anchors) > 40
    assert len(anchors) == len(set(anchors))
    assert THEORY.count("Code: ") == len(anchors)


@pytest.mark.parametrize(("anchor", "modules"), modules_by_anchor().items())
def test_a_theorem_names_modules_that_link_it(anchor, modules):
    assert modules
    for module in modules:
        assert anchor in LINK.findall((PACKAGE / module).read_text()), f"{module} does not link {anchor}."


def test_what_links_the_theory_links_an_anchor_that_is_there():
    anchors = set(ANCHOR.findall(THEORY))
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    outside = [
        one for folder in ("benchmarks", "reproduction", "tests", "tools") for one in ROOT.glob(f"{folder}/**/*.py")
    ]
    for path in [*MODULES, *pages, *outside]:
        unknown = set(LINK.findall(path.read_text())) - anchors
        assert not unknown, f"{path.relative_to(ROOT)} links {unknown}."


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_that_speaks_of_a_theorem_links_it(path):
    text = path.read_text()
    if SPEAKS.search(words_of(text)):
        assert LINK.search(text), "It speaks of a theorem: link its anchor in docs/theory.md."


def test_every_section_that_proves_something_has_an_anchor():
    for section in re.split(r"^##+ ", THEORY, flags=re.MULTILINE)[1:]:
        if "∎" in section or "Theorem" in section:
            assert ANCHOR.search(section), f"No anchor in {section.splitlines()[0]!r}."
