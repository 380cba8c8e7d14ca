"""A task: one piece of an experiment, small enough to be done again if it is lost, and done anywhere with one outcome.

A task is a frozen dataclass of plain values (numbers, words, tuples of them), which are its configuration. `rows` is
all that it finds, as rows of a tidy table: each with the values that it belongs to, and numbers. It depends on the
configuration and the code alone, and runs on one core, so that a thread here and a worker elsewhere find the same bits.
"""

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

Value = str | int | float | bool | None
Row = dict[str, Value]
"""A line of a tidy table."""


@dataclass(frozen=True)
class Task(ABC):
    """What is to be found out, without anything found yet."""

    table: ClassVar[str]
    """The name of the table that its rows belong to."""
    at_home: ClassVar[bool] = False
    """Whether it uses files of this machine, and so is not sent to another."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What it does, in a few words, for the bar."""

    @property
    def program(self) -> str:
        """What it compiles, by any name: tasks of one program follow its first one, so that it is compiled once."""
        return type(self).__qualname__

    @abstractmethod
    def rows(self) -> list[Row]:
        """Does it."""

    def describe(self) -> dict[str, object]:
        """The configuration, in JSON."""
        kind = type(self)
        return {"task": f"{kind.__module__}.{kind.__qualname__}", "settings": dataclasses.asdict(self)}
