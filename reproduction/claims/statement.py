"""A printed statement, the rows that were measured about it, and the verdict that follows from them.

The paper numbers definitions, propositions, lemmas, corollaries, claims and theorems by one counter; so do the names
here: Theorem 5 is the privacy of Algorithm 1, Proposition 9 its speed, Proposition 10 its utility.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import SupportsFloat

import numpy as np

from reproduction.experiment import TEXTS, Claim, Decision, Row, Statement, decide

TABLE = "claims_measured"
"""All that was measured, a number a row."""


@dataclass(frozen=True)
class Measurements:
    rows: Sequence[Row]

    def all(self, quantity: str, setting: str | None = None) -> list[float]:
        """Every measurement of a quantity, in the order of the rows."""
        rows = [row for row in self.rows if row["quantity"] == quantity and setting in (None, row["setting"])]
        return [float(row["measured"]) for row in rows]

    def one(self, quantity: str, setting: str | None = None) -> float:
        (value,) = self.all(quantity, setting)
        return value

    def most(self, quantity: str, setting: str | None = None) -> float:
        return max(self.all(quantity, setting))

    def least(self, quantity: str, setting: str | None = None) -> float:
        return min(self.all(quantity, setting))

    def at(self, quantity: str, column: str = "measured") -> list[tuple[float, float]]:
        """A quantity along x: pairs of x and the column's number."""
        return [(float(row["x"]), float(row[column])) for row in self.rows if row["quantity"] == quantity]


@dataclass(frozen=True)
class Lookup:
    """What words look numbers up with: [quantity] or [quantity @ setting]."""

    find: Callable[..., float | list[float]]

    def __getitem__(self, key: str) -> float | list[float]:
        return self.find(*key.split(" @ "))


@dataclass(frozen=True)
class PaperStatement(Statement):
    """A statement that rows of the table name by `claim`."""

    def row(
        self,
        quantity: str,
        measured: SupportsFloat,
        printed: SupportsFloat | None = None,
        *,
        setting: str = "",
        x: SupportsFloat | None = None,
    ) -> Row:
        return {
            "claim": self.name,
            "erratum": self.erratum,
            "quantity": quantity,
            "setting": setting,
            "x": None if x is None else float(x),
            "printed": None if printed is None else float(printed),
            "measured": float(measured),
        }

    def about(self, rows: Sequence[Row]) -> Measurements:
        return Measurements([row for row in rows if row["claim"] == self.name])

    def claim(self, *rows: Sequence[Row]) -> Claim:
        found = self.about(*rows)
        verdict, words = self.decide(found)
        looked_up = {name: Lookup(getattr(found, name)) for name in ("all", "one", "most", "least")}
        return Claim(self.name, self.printed, self.measured.format_map(looked_up | words), verdict, self.shown_by)


def says(name: str) -> Callable[[Callable[[Measurements], Decision]], PaperStatement]:
    return lambda decide: PaperStatement(name, decide, **TEXTS[name])


def at_most(limit: float, *quantities: str) -> Callable[[Measurements], Decision]:
    """Decides by whether each quantity, or [quantity @ setting], is nowhere larger."""
    return lambda found: decide(*(found.most(*quantity.split(" @ ")) <= limit for quantity in quantities))


def power(pairs: Sequence[tuple[float, float]]) -> float:
    """The power of x that y grows with, by least squares of the logarithms.

    >>> round(power([(1, 3), (2, 12), (4, 48)]), 6)
    2.0
    """
    x, y = np.log(np.array(pairs, dtype=float)).T
    return float(np.polyfit(x, y, 1)[0])
