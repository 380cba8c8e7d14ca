"""Hyper-parameters with a sentence each, which becomes the help of the command line."""

import dataclasses
from typing import Any


def option(default: Any, sentence: str) -> Any:
    """A dataclass field with a default and the sentence that explains it."""
    return dataclasses.field(default=default, metadata={"help": sentence})


def options_of(kind: type) -> dict[str, dataclasses.Field[Any]]:
    """The fields of a method that have a sentence, by name: those that may be set from the command line.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Example:
    ...     gamma: float = option(0.9, "Discount.")
    >>> options_of(Example)["gamma"].metadata["help"]
    'Discount.'
    """
    return {field.name: field for field in dataclasses.fields(kind) if "help" in field.metadata}
