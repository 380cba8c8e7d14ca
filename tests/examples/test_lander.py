"""The recipe for bodies that touch lands, as its page says."""

import re
from pathlib import Path

import pytest

pytest.importorskip("Box2D")
pytest.importorskip("pygame")

PAGE = Path(__file__).parents[2] / "docs" / "sessions.md"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_recipe_reaches_what_its_page_says():
    """A hundred is far more than people reach, who crash; nine of the ten draws that the page tells of reached it."""
    recipe = PAGE.read_text(encoding="utf-8").partition("## A recipe: bodies that touch")[2]
    found = re.search(r"```python\n(.*?)```", recipe, re.DOTALL)
    assert found is not None
    names: dict = {}
    exec(compile(found[1], str(PAGE), "exec"), names)
    assert len(names["returns"]) == 50
    assert sum(names["returns"]) / 50 >= 100
