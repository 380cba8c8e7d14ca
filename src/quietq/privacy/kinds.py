"""What is known by its `kind` in JSON: norms and relations, each registered once, by the module that it belongs to."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from quietq.privacy.checks import shown
from quietq.privacy.errors import InvalidInput

if TYPE_CHECKING:
    from quietq.privacy.relations import Relation

Record = Mapping[str, Any]
Known = TypeVar("Known")


class UnknownKind(InvalidInput):
    """A norm or relation of a kind that nobody registered."""


class Kinds(dict[str, Known]):
    """All kinds of one sort, e.g. of norms, each with its `fields` and their checks."""

    def __init__(self, sort: str, unknown: str) -> None:
        self._sort, self._unknown = sort, unknown

    def find(self, record: Record) -> Known:
        """The kind of this JSON, whose fields are checked; UnknownKind if nobody registered it."""
        kind = record.get("kind") if isinstance(record, Mapping) else None
        kind = kind if isinstance(kind, str) else None
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


RELATIONS: "Kinds[type[Relation]]" = Kinds("relation", "A certified relation must be one of those that are known here")


def sup_radius(record: Record) -> float:
    """The most that one reward can differ between neighbours of a relation; refused where nothing bounds it."""
    return RELATIONS.find(record).sup_radius(record)
