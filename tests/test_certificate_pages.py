"""The pages that explain certificates are made of real releases and of the records, and say what these say."""

import importlib.util
import typing
from pathlib import Path

import pytest

from quietq.privacy import Code
from quietq.privacy.certificate import AnsweredQuery, Certificate
from quietq.privacy.explain import explain
from quietq.privacy.norms import AnyNorm
from quietq.privacy.relations import AnyRelation

pytest.importorskip("polars")
TOOL = Path(__file__).parents[1] / "tools" / "certificate_pages.py"
spec = importlib.util.spec_from_file_location("certificate_pages", TOOL)
assert spec is not None
assert spec.loader is not None
pages = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pages)


@pytest.mark.parametrize("name", pages.PAGES)
def test_a_page_is_what_the_code_says(name: str) -> None:
    there = (pages.DOCS / name).read_text(encoding="utf-8")
    assert pages.PAGES[name]() == there, "run `python tools/certificate_pages.py`"


def test_every_line_that_asks_something_is_on_the_page() -> None:
    page = (pages.DOCS / "reading-a-certificate.md").read_text(encoding="utf-8")
    names: dict[str, typing.Any] = {}
    exec(compile(pages.EXAMPLE, "example", "exec"), names)
    lines = [*explain(names["certificate"], "signer"), *explain(names["certificate"], "engineer")]
    assert all(line.text in page and line.ask in page for line in lines if line.ask)
    assert {line.mark for line in lines if not line.ask} <= {"enforced", "note"}


def test_every_field_and_kind_and_code_is_on_the_page() -> None:
    page = (pages.DOCS / "certificate-fields.md").read_text(encoding="utf-8")
    for kind in (*typing.get_args(AnyNorm), *typing.get_args(AnyRelation)):
        assert f"| `{kind.__struct_config__.tag}` |" in page
        assert pages.first(kind)
    for record in (Certificate, AnsweredQuery):
        said = dict(pages.documented(record))
        assert set(record.__struct_fields__) <= set(said)
        assert all(said[name] for name in record.__struct_fields__)
    for code in Code:
        for_whom = "(for the engineer) " if code.reader == "engineer" else ""
        entry = f"`{code.value}`" if code.enforced else f"- `{code.value}`: {for_whom}{code.sentence} *{code.question}*"
        assert entry in page


@pytest.mark.parametrize("code", Code)
def test_what_is_trusted_has_a_question_and_nothing_else_does(code: Code) -> None:
    assert bool(code.question) is not code.enforced
