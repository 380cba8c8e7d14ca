"""Private rewards of synthetic people: correlation with the true mean reward, epsilon = 1, delta = 1e-5."""

import argparse
from dataclasses import replace

import quietq as qq
from benchmarks import families
from benchmarks.study import PACKAGE_ROOMS, ROOT, Case, Numbers, Study

BUDGET = qq.Budget(1, 1e-5)
DIMENSIONS, PEOPLE = (2, 4, 8, 16), (1000, 300)
MADE_OF = (*PACKAGE_ROOMS, ROOT / "benchmarks" / "families.py")
TARGETS: dict[tuple[str, int], dict[int, float]] = {
    ("peak", 1000): {2: 0.98, 4: 0.97, 8: 0.95, 16: 0.93},
    ("bumps", 1000): {2: 0.98, 4: 0.97, 8: 0.95, 16: 0.93},
    ("two-peaks", 1000): {2: 0.98, 4: 0.93, 8: 0.9, 16: 0.65},
    ("interaction", 1000): {2: 0.99, 4: 0.98, 8: 0.97, 16: 0.9},
    ("peak", 300): {2: 0.96, 4: 0.94, 8: 0.9, 16: 0.8},
    ("bumps", 300): {2: 0.96, 4: 0.94, 8: 0.9, 16: 0.8},
    ("two-peaks", 300): {2: 0.96, 4: 0.88, 8: 0.78},
}
"""By family, number of people and dimension, for uniform states."""
ELSEWHERE = 0.93
"""For a corner and for clusters, of 1,000 people, in eight dimensions."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--people", type=int, nargs="+", default=PEOPLE)
    parser.add_argument("--dimension", type=int, nargs="+", default=DIMENSIONS)
    parser.add_argument("--set", choices=("reported", "development"), default="reported", dest="shapes")
    parser.add_argument("--family", nargs="+", choices=families.FAMILIES, default=tuple(families.FAMILIES))
    parser.add_argument("--states", nargs="+", choices=families.STATES, default=tuple(families.STATES))
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=tuple(KINDS))


def study(options: argparse.Namespace) -> Study:
    """Uniform states everywhere; other states, and comparisons, where `_also` says so."""
    reported = options.shapes == "reported"
    shapes = families.REPORTED if reported else families.DEVELOPMENT
    cases = [
        replace(
            _case(kind, states, people, family, dimension),
            wanted=_wanted(options, kind, states, people, family, dimension),
        )
        for kind in KINDS
        for states in (families.REPORTED_STATES if reported else families.DEVELOPMENT_STATES)
        for people in sorted({*PEOPLE, *options.people}, reverse=True)
        for family in shapes
        for dimension in sorted({*DIMENSIONS, *options.dimension})
        if _measured(kind, states, people, dimension)
    ]
    name = "families" if reported else "families-development"
    return Study(
        name, "d", cases, ("20 rows for each person. In brackets: the target. Laws: `benchmarks/families.py`.",)
    )


def _wanted(options: argparse.Namespace, kind: str, states: str, people: int, family: str, dimension: int) -> bool:
    asked = kind in options.kind and states in options.states and family in options.family
    return asked and people in options.people and dimension in options.dimension


def _measured(kind: str, states: str, people: int, dimension: int) -> bool:
    """Everything for uniform states and ratings; the rest where it tells most."""
    if states != "uniform":
        return kind == "ratings" and people == 1000 and dimension == 8
    return kind == "ratings" or (people == 1000 and dimension <= 8)


def _case(kind: str, states: str, people: int, family: str, dimension: int) -> Case:
    target = None
    if kind == "ratings" and states == "uniform":
        target = TARGETS.get((family, people), {}).get(dimension)
    elif states in ("corner", "clusters") and family in families.TARGETED:
        target = ELSEWHERE
    labels = {"kind": kind, "states": states, "people": people, "family": family, "d": dimension}

    def measure(draw: int) -> Numbers:
        return KINDS[kind](family, dimension, people, draw, states)

    return Case(labels, measure, MADE_OF, target)


def _ratings(family: str, dimension: int, people: int, draw: int, states: str) -> Numbers:
    drawn = families.ratings(family, dimension, people, draw, states)
    box = [(0.0, 1.0)] * dimension
    read = qq.Ratings.read(drawn.rows, box=box, low=0, high=1, people=people, state=drawn.states)
    return _numbers(drawn, read, draw)


def _comparisons(family: str, dimension: int, people: int, draw: int, states: str) -> Numbers:
    drawn = families.comparisons(family, dimension, people, draw, states)
    left, right = ([f"{side}{i}" for i in range(dimension)] for side in ("left", "right"))
    read = qq.Comparisons.read(drawn.rows, left=left, right=right, box=[(0.0, 1.0)] * dimension, people=people)
    return _numbers(drawn, read, draw)


KINDS = {"ratings": _ratings, "comparisons": _comparisons}


def _numbers(drawn: families.Draw, read: qq.Ratings | qq.Comparisons, draw: int) -> Numbers:
    score = drawn.score(qq.privatise(read, BUDGET, simulate=draw)(drawn.fresh))
    return {"correlation": score.correlation, "regret": score.regret}
