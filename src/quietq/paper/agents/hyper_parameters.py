"""Hyper-parameters with a sentence each, which becomes the help of the command line."""

import dataclasses
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from quietq.privacy import InvalidInput
from quietq.privacy.checks import one_of, positive, real, shown

KINDS: dict[Any, tuple[str, str]] = {
    int: ("int", "a whole number"),
    float: ("float", "a number"),
    bool: ("yes|no", "yes or no"),
    str: ("word", "a word"),
    int | None: ("int|none", "a whole number or none"),
    float | None: ("float|none", "a number or none"),
    tuple[int, ...]: ("int,...", "whole numbers with commas between them"),
}
"""What a hyper-parameter may be: as the help has it, and in a sentence. Words from a list are none of these."""


def option(default: Any, sentence: str, check: Callable[[str, Any], object] | None = None) -> Any:
    """Declares a hyper-parameter as a field of a method.

    Args:
        default: Its default.
        sentence: What it is, for help and tables.
        check: What refuses a wrong value, by the name and the value.

    """
    return dataclasses.field(default=default, metadata={"help": sentence, "check": check})


def check_options(method: Any) -> None:
    for name, field in options_of(type(method)).items():
        if (check := field.metadata.get("check")) is not None:
            check(name, getattr(method, name))


def options_of(kind: type) -> dict[str, dataclasses.Field[Any]]:
    """Lists the fields of a method that have a sentence, by name: those that may be set from the command line.

    Args:
        kind: The method's class.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Example:
    ...     gamma: float = option(0.9, "Discount.")
    >>> options_of(Example)["gamma"].metadata["help"]
    'Discount.'

    """
    return {field.name: field for field in dataclasses.fields(kind) if "help" in field.metadata}


def share(name: str, value: object, most: float = 1.0) -> None:
    if not 0 <= real(name, value) <= most:
        raise InvalidInput(f"{name} must lie between 0 and {most:g}, not {value!r}.")


def positive_or_none(name: str, value: object) -> None:
    if value is not None:
        positive(name, value)


def read_options(kind: type, texts: Mapping[str, str]) -> dict[str, Any]:
    """The hyper-parameters of a method by these texts, as its fields want them; a name that it lacks is refused.

    >>> from quietq.paper.agents.deep_q import NoNoise
    >>> read_options(NoNoise, {"widths": "8,4", "clamp": "none", "bootstrap_truncated": "no"})
    {'widths': (8, 4), 'clamp': None, 'bootstrap_truncated': False}
    """
    hints, known = typing.get_type_hints(kind), options_of(kind)
    for name in texts:
        one_of("A hyper-parameter", name, known)
    return {name: _read(name, text, hints[name]) for name, text in texts.items()}


def write_value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value).lower()


def name_kind(kind: type, name: str) -> str:
    """Names the kind of value that a field takes, for the help."""
    short, _ = KINDS.get(typing.get_type_hints(kind)[name], ("word", ""))
    return f"<{short}>"


def _read(name: str, text: str, hint: Any) -> Any:
    if typing.get_origin(hint) is Literal:
        one_of(name, text, typing.get_args(hint))
    given: Any = {"yes": True, "no": False, "none": None}.get(text.lower(), text)
    if hint == tuple[int, ...]:
        given = [part for part in text.split(",") if part.strip()]
    try:
        return msgspec.convert(given, hint, strict=False)
    except msgspec.ValidationError:
        _, wanted = KINDS[hint]
        raise InvalidInput(f"{name} must be {wanted}, not {shown(text)}.") from None
