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
        kind = record.get("kind") if isinstance(record, Mapping) else None
        kind = kind if isinstance(kind, str) else None
        module = registry.owner(method)
        unknown = kind not in self or "of" in record  # of several, each of which may be the method's own
        # Methods that noise as they train are known in `privacy.interactive`; their own modules load JAX.
        if unknown and module is not None and not module.startswith("quietq.learning."):
            with suppress(ImportError):  # it may need something that is not installed here
                importlib.import_module(module)
        if kind is None or kind not in self:
            raise UnknownKind(f"{self._unknown}, not {shown(kind)}.")
        found: Any = self[kind]
        names = sorted({"kind", *found.fields})
        if sorted(record) != names:
            raise InvalidInput(f"A {self._sort} of the kind {kind!r} has exactly the fields {names}.")
        for name, check in found.fields.items():
            check(f"The {self._sort}'s {name}", record[name])
        return found


def thaw(value: Any) -> Any:
    """JSON as plain dictionaries and lists, whatever kept it from being changed."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    return [thaw(item) for item in value] if isinstance(value, list | tuple) else value
