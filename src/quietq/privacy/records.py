"""Typed records: what certificates, ledgers and releases state, checked in one way wherever it comes from.

A `Record` is a frozen `msgspec.Struct`. A field's type carries its check (`Positive`, `Count`, `Line`, ...), and all
checks and types are looked at when a record is built, be it by a caller or from a file: what cannot be built cannot be
loaded. Records of several kinds are distinguished by their tag, the field `kind` in JSON; a union of them is closed,
and fields that a kind does not have are refused.
"""

import functools
import typing
from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta
from msgspec.structs import force_setattr

from quietq.privacy.checks import Check, count, flag, optional, positive, probability, real, shown
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


def _check_of(hint: Any) -> Check | None:
    """Returns the check that a type carries, be it by itself, beside None, or for each item of a tuple."""
    carried = [one.extra["check"] for one in getattr(hint, "__metadata__", ()) if isinstance(one, Meta) and one.extra]
    if carried:
        return carried[0]
    inner = [check for check in map(_check_of, typing.get_args(hint)) if check is not None]
    if not inner:
        return None
    [check] = set(inner)  # of one tuple, all items have the same
    return _of_each(check) if typing.get_origin(hint) is tuple else optional(check)


def _of_each(check: Check) -> Check:
    """Returns the check of a tuple whose items have this check."""
    return lambda name, value: [check(name, one) for one in value] if isinstance(value, list | tuple) else value


@functools.cache
def _fields(kind: type["Record"]) -> Sequence[tuple[str, Any, Check | None]]:
    """Returns each field's name, its type, and the check that its type carries."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return [(field.name, field.type, _check_of(hints[field.name])) for field in msgspec.structs.fields(kind)]


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """Something stated, immutable, with every field checked when it is built."""

    def __post_init__(self) -> None:
        for name, hint, check in _fields(type(self)):
            value = getattr(self, name)
            try:
                force_setattr(self, name, msgspec.convert(value if check is None else check(name, value), hint))
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
