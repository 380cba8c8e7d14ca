"""Typed records: what certificates, ledgers and releases state, checked in one way wherever it comes from.

A `Record` is a frozen `msgspec.Struct`. A field's type carries its check (`Positive`, `Count`, `Line`, ...), and all
checks and types are looked at when a record is built, be it by a caller or from a file: what cannot be built cannot be
loaded. Records of several kinds are told apart by their tag, the field `kind` in JSON; a union of them is closed, and
fields that a kind does not have are refused.
"""

import functools
import typing
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta
from msgspec.structs import force_setattr

from quietq.privacy.checks import Check, count, flag, positive, probability, real, shown
from quietq.privacy.errors import InvalidInput

Kept = TypeVar("Kept", bound="Record")


def line(name: str, value: object) -> str:
    """Returns text of one printable line: line breaks and control characters could forge lines of what is printed."""
    if isinstance(value, str) and value.isprintable():
        return value
    raise InvalidInput(f"{name} must be printable text in one line, not {shown(value)}.")


def checked_by(check: Check) -> Meta:
    """Attaches a check to a field's type."""
    return Meta(extra={"check": check})


Positive = Annotated[float, checked_by(positive)]
Real = Annotated[float, checked_by(real)]
Probability = Annotated[float, checked_by(probability)]
Count = Annotated[int, checked_by(count)]
Natural = Annotated[int, checked_by(functools.partial(count, least=0))]
Flag = Annotated[bool, checked_by(flag)]
Line = Annotated[str, checked_by(line)]


@functools.cache
def _checks(kind: type["Record"]) -> Mapping[str, tuple[Check, bool]]:
    """By field, the check of its type, and whether the field may be None instead."""
    found: dict[str, tuple[Check, bool]] = {}
    for name, hint in typing.get_type_hints(kind, include_extras=True).items():
        parts = typing.get_args(hint)
        for part in (hint, *parts):
            for meta in getattr(part, "__metadata__", ()):
                if isinstance(meta, Meta) and meta.extra is not None:
                    found[name] = meta.extra["check"], type(None) in parts
    return found


@functools.cache
def _types(kind: type["Record"]) -> Mapping[str, Any]:
    """By field, its type."""
    return {field.name: field.type for field in msgspec.structs.fields(kind)}


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """Something stated, immutable, with every field checked when it is built."""

    def __post_init__(self) -> None:
        for name, (check, optional) in _checks(type(self)).items():
            value = getattr(self, name)
            if value is not None or not optional:
                force_setattr(self, name, check(name, value))
        for name, hint in _types(type(self)).items():
            try:
                force_setattr(self, name, msgspec.convert(getattr(self, name), hint))
            except msgspec.ValidationError as error:
                raise InvalidInput(f"{name} is of another type than it must be: {error}.") from None

    def to_dict(self) -> dict[str, Any]:
        """Returns the record in JSON's own types."""
        return msgspec.json.decode(msgspec.json.encode(self))


def read_record(kind: type[Kept] | Any, value: object) -> Kept:
    """Builds a record of this kind, or of one of a union, from JSON's own types; refuses whatever does not fit.

    Nothing is left out, even where a field has a default, so that a record says what its JSON says and no more.
    """
    try:
        found = msgspec.convert(value, kind)
        if found.to_dict() == value:
            return found
        sentence, where = "It must state every field of its kind, as it is written", ""
    except (msgspec.ValidationError, RecursionError, OverflowError) as error:
        sentence, _, place = str(error).partition(" - at `$")
        where = place.rstrip("`").lstrip(".")
    said = sentence.rstrip(".")
    raise InvalidInput(f"{where}: {said}." if where else f"{said}.")
