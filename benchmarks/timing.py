"""Ratios of running times that hold on a machine shared with others."""

import math
import statistics
from collections.abc import Callable
from time import perf_counter

SHORTEST = 0.01  # seconds; anything quicker is run several times over


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
    run()
    return math.ceil(SHORTEST / seconds(run))
