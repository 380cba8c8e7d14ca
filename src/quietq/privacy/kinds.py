"""What is known by its `kind` in JSON: norms and relations, each registered once, by the module that it belongs to."""

import importlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar

from quietq import registry
from quietq.privacy.checks import shown
from quietq.privacy.errors import InvalidInput

Record = Mapping[str, Any]
Known = TypeVar("Known")


class UnknownKind(InvalidInput):
    """A norm or relation of a kind that nobody registered."""


class Kinds(dict[str, Known]):
    """All kinds of one sort, e.g. of norms, each with its `fields` and their checks."""

    def __init__(self, sort: str, unknown: str) -> None:
        self._sort, self._unknown = sort, unknown

    def find(self, record: Record, method: str = "") -> Known:
        """The kind of this JSON, whose fields are checked; UnknownKind if nobody registered it.

        What is unknown may be the `method`'s own, whose module is imported then. The registry is a closed table:
        nothing in a file can name a module.
        """
        try:
            return self._checked(record)
        except UnknownKind:
            module = registry.owner(method)
            if module is None:
                raise
        with suppress(ImportError):  # it may need something that is not installed here
            importlib.import_module(module)
        return self._checked(record)

    def _checked(self, record: Record) -> Known:
        kind = record.get("kind") if isinstance(record, Mapping) else None
        if not isinstance(kind, str) or kind not in self:
            raise UnknownKind(f"{self._unknown}, not {shown(kind)}.")
        found: Any = self[kind]
        names = sorted({"kind", *found.fields})
        if sorted(record) != names:
            raise InvalidInput(f"A {self._sort} of the kind {kind!r} has exactly the fields {names}.")
        for name, check in found.fields.items():
            check(f"The {self._sort}'s {name}", record[name])
        return found
