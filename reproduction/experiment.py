"""What an experiment is made of: tasks that find rows, statements that rows decide about, pictures and words."""

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import Any, Literal

Row = dict[str, Any]
"""A line of a tidy table: names, and words, numbers, truth values or None."""
Tables = Mapping[str, Sequence[Row]]
"""All rows, by the name of their table."""
Verdict = Literal["holds", "in part", "fails"]


@dataclass(frozen=True)
class Task:
    """A function that finds rows, and the plain values (numbers, words, tuples of them) that it is called with.

    It is small enough to be done again if it is lost. Its rows depend on these values and the code alone, and it runs
    on one core, so that a thread here and a worker elsewhere find the same bits.
    """

    table: str
    title: str
    """What it does, in a few words, for the bar."""
    measure: Callable[..., list[Row]]
    settings: tuple[tuple[str, Any], ...]
    program: str
    """What it compiles, by any name: tasks of one program follow its first one, so that it is compiled once."""

    def rows(self) -> list[Row]:
        return self.measure(**dict(self.settings))

    def describe(self) -> dict[str, object]:
        return {"task": f"{self.measure.__module__}.{self.measure.__qualname__}", "settings": dict(self.settings)}


def task(table: str, title: str, measure: Callable[..., list[Row]], program: str = "", **settings: Any) -> Task:
    """With the function's own defaults among the settings."""
    called = signature(measure).bind(**settings)
    called.apply_defaults()
    program = program or f"{measure.__module__}.{measure.__qualname__}"
    return Task(table, title, measure, tuple(called.arguments.items()), program)


@dataclass(frozen=True)
class Claim:
    """Something that is printed, beside what was measured."""

    name: str
    printed: str
    measured: str
    verdict: Verdict
    """`in part` where some of it holds, and `measured` says which."""
    shown_by: str


Decision = tuple[Verdict, dict[str, Any]]
"""A verdict, and what its words need."""
TEXTS = tomllib.loads((Path(__file__).parent / "statements.toml").read_text())


@dataclass(frozen=True)
class Statement:
    """What is printed, and how rows decide about it; its words are in `statements.toml`."""

    name: str
    decide: Callable[..., Decision]
    printed: str
    measured: str
    shown_by: str
    erratum: str = ""
    ours: bool = False
    """Our correction is no statement of the paper, and not counted as one."""

    def claim(self, *found: Any) -> Claim:
        verdict, words = self.decide(*found)
        return Claim(self.name, self.printed, self.measured.format_map(words), verdict, self.shown_by)


def statement(name: str) -> Callable[[Callable[..., Decision]], Statement]:
    return lambda decide: Statement(name, decide, **TEXTS[name])


def decide(*parts: bool, **words: Any) -> Decision:
    return verdict(*parts), words


def verdict(*parts: bool) -> Verdict:
    """`holds` if all parts do, `fails` if none does.

    >>> verdict(True, True), verdict(True, False), verdict(False)
    ('holds', 'in part', 'fails')
    """
    return "holds" if all(parts) else "in part" if any(parts) else "fails"


@dataclass(frozen=True)
class Experiment:
    """One of the parts of `python -m reproduction`; its title, captions and further words are in `words.toml`."""

    name: str
    tasks: Callable[[bool], list[Task]]
    """All that is to be done; if it is asked to be quick, less of everything, so that a glance takes two minutes."""
    claims: Callable[[Tables], list[Claim]]
    drawings: Mapping[str, Callable[[Tables, Path], None]] = field(default_factory=dict)
    derive: Callable[[Tables], dict[str, list[Row]]] = lambda tables: {}
    """Tables that are computed every time: from the others, or because they depend on more than the code."""
    after: Callable[[Tables], list[str]] = lambda tables: []
    """What the report has below the pictures, as parts of a page."""


def tables_of(rows: Mapping[Task, list[Row]]) -> dict[str, list[Row]]:
    tables: dict[str, list[Row]] = {}
    for one, found in rows.items():
        tables.setdefault(one.table, []).extend(found)
    return tables


def where(rows: Iterable[Row], **values: Any) -> list[Row]:
    """The rows that have these values.

    >>> where([{"sigma": 0.2}, {"sigma": 0.4}], sigma=0.4)
    [{'sigma': 0.4}]
    """
    return [row for row in rows if all(row[name] == value for name, value in values.items())]
