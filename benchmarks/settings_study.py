"""Settings of the private fit, one changed at a time, on the shapes that settings are chosen on.

Each number is a mean over all shapes of DEVELOPMENT, for epsilon = 1 and delta = 1e-5, with the same people and the
same seeds of the noise for every setting. A setting stays as it is unless another is better by more than chance.
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks import families
from benchmarks.family_study import KINDS, MADE_OF
from benchmarks.study import ROOT, Case, Numbers, Study
from quietq.feedback.loss import Chosen, Squared
from quietq.mechanisms import rounds

NAME = "settings"
CELLS = ((4, 300, "uniform"), (8, 1000, "uniform"), (8, 1000, "middle"))
"""Dimension, people, where states lie."""
CHANGES: dict[str, tuple[Any, str, tuple[float, ...]]] = {
    "rounds at most": (rounds, "ROUNDS", (8, 12, 48)),
    "share of the first look": (rounds, "MARGINALS", (0.025, 0.1, 0.2)),
    "share of the second look": (rounds, "MOMENTS", (0.025, 0.1, 0.2)),
    "left by clipping": (rounds, "LEFT", (0.2, 0.6, 0.8)),
    "kept of earlier looks": (rounds, "KEPT", (0.85, 0.9, 1.0)),
}
"""What is changed, where it is kept, and the other values."""
ROUGHER = {"ratings": (Squared, (1.0, 2.0, 6.0)), "comparisons": (Chosen, (0.2, 1.0, 2.0))}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=tuple(KINDS))


def study(options: argparse.Namespace) -> Study:
    cases = [
        Case(
            {"kind": kind, "setting": setting, "value": value, "states": f"d = {cell[0]}, {cell[1]}, {cell[2]}"},
            _measure(kind, cell, where, name, value),
            (*MADE_OF, ROOT / "benchmarks" / "settings_study.py"),
            wanted=kind in options.kind,
        )
        for kind in KINDS
        for setting, where, name, value in _changes(kind)
        for cell in CELLS
    ]
    remarks = ("The gain is over the settings as they are, which the first line of each kind shows.",)
    return Study(NAME, "states", cases, remarks)


def _changes(kind: str) -> Iterator[tuple[str, Any, str, float]]:
    yield "as it is", rounds, "ROUNDS", rounds.ROUNDS
    for setting, (where, name, values) in CHANGES.items():
        for value in values:
            yield setting, where, name, value
    where, values = ROUGHER[kind]
    for value in values:
        yield "roughness that features are chosen for", where, "rougher", value


def _measure(kind: str, cell: tuple[int, int, str], where: Any, name: str, value: float) -> Callable[[int], Numbers]:
    def measure(draw: int) -> Numbers:
        before = _correlations(kind, cell, draw)
        with _changed(where, name, value):
            after = _correlations.__wrapped__(kind, cell, draw)
        return {"correlation": float(np.mean(after)), "gain": float(np.mean(after) - np.mean(before))}

    return measure


@lru_cache(maxsize=64)
def _correlations(kind: str, cell: tuple[int, int, str], draw: int) -> list[float]:
    dimension, people, states = cell
    return [KINDS[kind](family, dimension, people, draw, states)["correlation"] for family in families.DEVELOPMENT]


@contextmanager
def _changed(where: Any, name: str, value: float) -> Iterator[None]:
    before = getattr(where, name)
    setattr(where, name, value)
    try:
        yield
    finally:
        setattr(where, name, before)
