"""Shows the examples in docstrings (`>>>`) as code on the site, which takes them for quotations otherwise."""

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"(?m)^>>> .*(?:\n.+)*")


class Doctests(griffe.Extension):
    """Puts a fence around each example."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring:
            obj.docstring.value = _EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", obj.docstring.value)
