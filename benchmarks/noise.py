"""Sample paths, as multiples of the time that NumPy takes for as many independent normals."""

import importlib.util
import math
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measuring import Row, ratio
from quietq.feedback.own_function import OwnFunction
from quietq.mechanisms.path import Path
from quietq.noise import SeededEntropy, SystemEntropy
from quietq.noise.box import UNIT
from quietq.noise.grid_path import draw_grid
from quietq.noise.laws import Gaussian
from quietq.noise.rounding import rounding_step
from quietq.paper.sampler import SortedPath
from quietq.privacy import Budget, Exponential, people
from quietq.privacy.norms import Answers

KERNEL = Exponential(4.0)
TIMES = "x normals"


def rows() -> list[Row]:
    """Every measurement of this module."""
    return [*grid(), *exact(), *beside_opendp(), *growth(), *imports()]


def grid() -> list[Row]:
    """A whole table in one go."""
    points = 2**20
    seeded, system = SeededEntropy(0), SystemEntropy()
    return [
        Row(
            "A path on a grid of 2^20 points, seeded entropy",
            ratio(lambda: draw_grid(KERNEL, 20, (), seeded), normals(points)),
            TIMES,
            limit=6,
            aim=3,
        ),
        Row(
            "A path on a grid of 2^20 points, operating-system entropy",
            ratio(lambda: draw_grid(KERNEL, 20, (), system), normals(points)),
            TIMES,
        ),
    ]


def exact() -> list[Row]:
    """Seconds from values to a release in real numbers, rounded once: the smallest and the largest table of a path."""
    ball, found = people(50, 0, 0.5, 1), []
    for levels in (10, 16):
        law = Path(
            OwnFunction(None, ball, box=UNIT), Budget(0.9, 1e-4), KERNEL, radius=ball.rkhs_radius(KERNEL), levels=levels
        ).law
        values, taken = np.linspace(0, 0.5, 2**levels + 1), []
        for _ in range(5):
            began = time.perf_counter()
            law.add(values, SystemEntropy())
            taken.append(time.perf_counter() - began)
        found.append(Row(f"exact release of a path, {len(values):,} points", min(taken), "s", limit=2))
    return found


def beside_opendp() -> list[Row]:
    """Exact Gaussian noise on 65,537 numbers, as a multiple of OpenDP's time; nothing without OpenDP.

    Both are exact and from secure randomness. Floats are rounded to the same grid, which takes OpenDP a quarter of what
    its default does, the finest grid there is.
    """
    if importlib.util.find_spec("opendp") is None:
        return []
    import opendp.prelude

    dp: Any = opendp.prelude  # whose names its type stubs do not export

    dp.enable_features("contrib")
    step, size, entropy = rounding_step(1.0), 65_537, SystemEntropy()
    law, floats = Gaussian(1.0, Answers()), np.linspace(0, 0.5, size)
    whole = np.arange(size)
    reals = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=size)
    numbers = dp.vector_domain(dp.atom_domain(T="i64"), size=size)
    their_floats = dp.m.make_gaussian(reals, dp.l2_distance(T=float), scale=1.0, k=round(math.log2(step)))
    their_whole = dp.m.make_gaussian(numbers, dp.l2_distance(T="i64"), scale=10.0)
    pairs = {
        "whole numbers": (lambda: whole + entropy.whole_normals((size,), 10.0), lambda: their_whole(whole)),
        "floats": (lambda: law.add(floats, entropy), lambda: their_floats(floats)),
    }
    return [
        Row(f"exact noise on 65,537 {kind}, relative to OpenDP", ratio(ours, theirs, repeats=3), "x OpenDP")
        for kind, (ours, theirs) in pairs.items()
    ]


def growth() -> list[Row]:
    """The exponent p of time ~ n^p for n fresh queries to a sorted path: 1 is linear, a Cholesky factor's is 3."""
    few, many = (np.random.default_rng(0).random(n) for n in (10**3, 10**5))
    grown = ratio(lambda: SortedPath(KERNEL)(many), lambda: SortedPath(KERNEL)(few))
    return [Row("SortedPath, growth from 1e3 to 1e5 queries", math.log(grown) / math.log(100), "(exponent)", limit=1.2)]


def imports() -> list[Row]:
    """Seconds to import the library in a fresh process."""
    pairs = [(_import_seconds("quietq"), _import_seconds("numpy")) for _ in range(5)]
    ours, numpys = (min(column) for column in zip(*pairs, strict=True))
    return [
        Row("import quietq", ours, "s", limit=0.6),
        Row("import quietq, relative to NumPy", ours / numpys, "x import numpy"),
    ]


def normals(n: int) -> Callable[[], object]:
    """What everything is compared with."""
    generator = np.random.default_rng()
    return lambda: generator.standard_normal(n)


def _import_seconds(module: str) -> float:
    code = f"from time import perf_counter as t; a = t(); import {module}; print(t() - a)"
    return float(subprocess.run([sys.executable, "-I", "-c", code], check=True, capture_output=True, text=True).stdout)
