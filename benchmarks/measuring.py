"""A measured number and what it is held to; and ratios of running times that hold on a machine shared with others."""

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Literal

HEADINGS = ("name", "measured", "limit", "aim", "verdict")


@dataclass(frozen=True)
class Row:
    """Smaller is better; without a limit the number is only reported."""

    name: str
    value: float
    unit: str
    limit: float | None = None
    aim: float | None = None

    @property
    def verdict(self) -> Literal["ok", "over", ""]:
        """Whether the limit is kept; NaN is over."""
        if self.limit is None:
            return ""
        return "ok" if self.value <= self.limit else "over"

    def cells(self) -> tuple[str, ...]:
        """Texts for HEADINGS."""
        return self.name, self._text(self.value), self._text(self.limit), self._text(self.aim), self.verdict

    def _text(self, number: float | None) -> str:
        if number is None:
            return ""
        digits = f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"
        return f"{digits} {self.unit}".strip()


def ratio(measured: Callable[[], object], reference: Callable[[], object], repeats: int = 9) -> float:
    """Time of `measured` over time of `reference`: the median over pairs that are run right after each other.

    Whatever slows the machine for a while slows both halves of a pair. Each is run once beforehand to warm up.
    """
    loops = [_loops(run) for run in (measured, reference)]
    pairs = [(seconds(measured, loops[0]), seconds(reference, loops[1])) for _ in range(repeats)]
    return statistics.median(a / b for a, b in pairs)


def seconds(run: Callable[[], object], loops: int = 1) -> float:
    """Seconds a run, the mean of `loops` runs."""
    start = perf_counter()
    for _ in range(loops):
        run()
    return (perf_counter() - start) / loops


def _loops(run: Callable[[], object]) -> int:
    """How often something is run to take a hundredth of a second."""
    run()
    return math.ceil(0.01 / seconds(run))
