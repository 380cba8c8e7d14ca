"""A statement of the paper, the rows that were measured about it, and the verdict that follows from them.

The paper numbers definitions, propositions, lemmas, corollaries, claims and theorems by one counter; so do the names
here: Theorem 5 is the privacy of Algorithm 1, Proposition 9 its speed, Proposition 10 its utility.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import SupportsFloat

import numpy as np

from paper.experiment import Claim, Verdict
from paper.task import Row

TABLE = "claims_measured"
"""All that was measured, a number a row."""


@dataclass(frozen=True)
class Found:
    """The rows about one statement."""

    rows: Sequence[Row]

    def all(self, quantity: str, setting: str | None = None) -> list[float]:
        """Every measurement of a quantity, in the order of the rows."""
        rows = [row for row in self.rows if row["quantity"] == quantity]
        kept = rows if setting is None else [row for row in rows if row["setting"] == setting]
        return [number(row, "measured") for row in kept]

    def one(self, quantity: str, setting: str | None = None) -> float:
        """The only measurement of a quantity."""
        (value,) = self.all(quantity, setting)
        return value

    def at(self, quantity: str, column: str = "measured") -> list[tuple[float, float]]:
        """A quantity along x: pairs of x and the column's number."""
        return [(number(row, "x"), number(row, column)) for row in self.rows if row["quantity"] == quantity]

    def settings(self) -> list[str]:
        """What it was measured for."""
        return list(dict.fromkeys(str(row["setting"]) for row in self.rows))


def number(row: Row, column: str) -> float:
    """A number of a row."""
    value = row[column]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{column} of {row['claim']} is {value!r}, which is no number.")
    return float(value)


Judge = Callable[[Found], tuple[Verdict, str]]


@dataclass(frozen=True)
class Statement:
    """What is printed, and how rows decide about it."""

    name: str
    printed: str
    shown_by: str
    judge: Judge
    erratum: str = ""
    """Its number in `docs/errata.md`; `also` for those at the end, nothing where there is none."""
    ours: bool = False
    """Whether it is our correction and not printed: then it is no statement of the paper, and not counted as one."""

    def row(
        self,
        quantity: str,
        measured: SupportsFloat,
        printed: SupportsFloat | None = None,
        *,
        setting: str = "",
        x: SupportsFloat | None = None,
    ) -> Row:
        """One measured number, beside the printed one if there is one."""
        return {
            "claim": self.name,
            "erratum": self.erratum,
            "quantity": quantity,
            "setting": setting,
            "x": None if x is None else float(x),
            "printed": None if printed is None else float(printed),
            "measured": float(measured),
        }

    def claim(self, rows: Sequence[Row]) -> Claim:
        """The verdict on it."""
        verdict, measured = self.judge(Found([row for row in rows if row["claim"] == self.name]))
        return Claim(self.name, self.printed, measured, verdict, self.shown_by)


def power(pairs: Sequence[tuple[float, float]]) -> float:
    """The power of x that y grows with, by least squares of the logarithms.

    >>> round(power([(1, 3), (2, 12), (4, 48)]), 6)
    2.0
    """
    x, y = np.log(np.array(pairs, dtype=float)).T
    return float(np.polyfit(x, y, 1)[0])


def verdict(*parts: bool) -> Verdict:
    """`holds` if all parts do, `fails` if none does.

    >>> verdict(True, True), verdict(True, False), verdict(False)
    ('holds', 'in part', 'fails')
    """
    return "holds" if all(parts) else "in part" if any(parts) else "fails"
