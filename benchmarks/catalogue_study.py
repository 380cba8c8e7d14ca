"""A catalogue: 500 items, 2,000 people, 20 ratings each, epsilon = 1, delta = 1e-5."""

import argparse
import math
from collections.abc import Callable

import numpy as np

import quietq as qq
from benchmarks.families import DEVIATION, ITEMS, ROWS, Array, Draw, catalogue
from benchmarks.family_study import BUDGET, MADE_OF
from benchmarks.study import ROOT, Case, Numbers, Study

TARGET = 0.85
DEVIATIONS = (DEVIATION, 0.05)


def add_options(parser: argparse.ArgumentParser) -> None:
    pass


def study(options: argparse.Namespace) -> Study:
    """Items whose true means differ much, and items that are nearly alike."""
    made_of = (*MADE_OF, ROOT / "benchmarks" / "catalogue_study.py")
    cases = [
        Case(
            {"way": name, "standard deviation of the items' means": deviation},
            _measure(way, deviation),
            made_of,
            TARGET if name == "quietq" and deviation == DEVIATION else None,
        )
        for name, way in WAYS.items()
        for deviation in DEVIATIONS
    ]
    return Study("catalogue", "standard deviation of the items' means", cases)


def _measure(way: Callable[[Draw, int], Array], deviation: float) -> Callable[[int], Numbers]:
    def measure(draw: int) -> Numbers:
        drawn = catalogue(draw, deviation=deviation)
        score = drawn.score(way(drawn, draw))
        return {"correlation": score.correlation, "regret of the ten best": score.top}

    return measure


def _quietq(drawn: Draw, seed: int) -> Array:
    read = qq.Ratings.read(drawn.rows, state="item", box=drawn.fresh, low=0, high=1, people=drawn.people)
    return qq.privatise(read, BUDGET, simulate=seed)(drawn.fresh)


def _plain(drawn: Draw, seed: int) -> Array:
    """Noisy sums over noisy counts. A person's 20 centred ratings are at most sqrt(20)/2 long."""
    return _means(drawn, seed, longest=math.sqrt(ROWS) / 2)


def _clipped(drawn: Draw, seed: int) -> Array:
    """The same with each person's ratings clipped to the length that 20 have if they lie 0.15 from the middle."""
    return _means(drawn, seed, longest=DEVIATION * math.sqrt(ROWS))


def _sums(drawn: Draw, seed: int) -> Array:
    """Clipped sums alone, with the whole budget: right if every item is rated equally often, as here."""
    longest, generator = DEVIATION * math.sqrt(ROWS), np.random.default_rng([seed, 4])
    sums, _ = _vectors(drawn)
    sums = sums * np.minimum(1, longest / np.linalg.norm(sums, axis=1, keepdims=True))
    noisy = sums.sum(axis=0) + 2 * longest / BUDGET.mu * generator.normal(size=ITEMS)
    return np.clip(0.5 + noisy / (drawn.people * ROWS / ITEMS), 0, 1)


def _means(drawn: Draw, seed: int, longest: float) -> Array:
    """Half of mu squared for each of sums and counts; replacing a person moves either by twice its length."""
    generator, each = np.random.default_rng([seed, 3]), BUDGET.mu / math.sqrt(2)
    sums, counts = _vectors(drawn)
    sums = sums * np.minimum(1, longest / np.linalg.norm(sums, axis=1, keepdims=True))
    noisy = sums.sum(axis=0) + 2 * longest / each * generator.normal(size=ITEMS)
    noisy_counts = counts.sum(axis=0) + 2 * math.sqrt(ROWS) / each * generator.normal(size=ITEMS)
    return np.clip(0.5 + noisy / np.maximum(noisy_counts, 1), 0, 1)


def _open(drawn: Draw, seed: int) -> Array:
    sums, counts = _vectors(drawn)
    return 0.5 + sums.sum(axis=0) / np.maximum(counts.sum(axis=0), 1)


def _vectors(drawn: Draw) -> tuple[Array, Array]:
    """Each person's centred ratings and how many, item by item."""
    places = {name: place for place, name in enumerate(drawn.fresh)}
    person, item = drawn.rows["person"].to_numpy(), np.array([places[name] for name in drawn.rows["item"]])
    sums, counts = np.zeros((2, drawn.people, ITEMS))
    np.add.at(sums, (person, item), drawn.rows["rating"].to_numpy() - 0.5)
    np.add.at(counts, (person, item), 1.0)
    return sums, counts


WAYS = {
    "quietq": _quietq,
    "sums per item of clipped people, equal counts taken for granted": _sums,
    "means per item of clipped people": _clipped,
    "means per item, plain": _plain,
    "no privacy: means per item": _open,
}
