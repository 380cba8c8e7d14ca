"""An experiment: which tasks it has, and what their rows say about what the paper printed."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar, Literal

from paper.task import Row, Task

Verdict = Literal["holds", "in part", "fails"]
Tables = Mapping[str, Sequence[Row]]
"""All rows, by the name of their table."""


@dataclass(frozen=True)
class Claim:
    """Something that is printed, beside what was measured."""

    name: str
    printed: str
    """What the paper says, in short."""
    measured: str
    """What was found, in a sentence with its numbers."""
    verdict: Verdict
    """`in part` where some of it holds, and `measured` says which."""
    shown_by: str
    """The test or command that shows it to others."""

    def to_dict(self) -> dict[str, str]:
        """All of it in JSON."""
        return asdict(self)


class Experiment(ABC):
    """One of the parts of `python -m paper`."""

    name: ClassVar[str]
    title: ClassVar[str]

    @abstractmethod
    def tasks(self, quick: bool) -> list[Task]:
        """All that is to be done; `quick` does less of everything, so that a glance takes two minutes."""

    @abstractmethod
    def claims(self, tables: Tables) -> list[Claim]:
        """What the rows say about what the paper printed; none if it printed nothing about it."""

    def further(self, tables: Tables) -> dict[str, list[Row]]:
        """Tables that are made anew every time: from the others, or because they depend on more than the code."""
        return {}


def tables_of(done: Mapping[Task, list[Row]]) -> dict[str, list[Row]]:
    """The rows of all tasks, by the name of their table."""
    tables: dict[str, list[Row]] = {}
    for task, rows in done.items():
        tables.setdefault(task.table, []).extend(rows)
    return tables
