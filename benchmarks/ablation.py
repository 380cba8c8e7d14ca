"""What each part of the rounds is worth: correlation with the truth if it is left out, on development shapes.

    python -m benchmarks.ablation --draws 4

A thousand people at epsilon = 1, delta = 1e-5. Settings of the rounds may be chosen by this table, and by no other.
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks import families
from benchmarks.families import Draw
from quietq import Budget, Comparisons, Ratings, privatise
from quietq.mechanisms import rounds
from quietq.mechanisms.basis import Basis
from quietq.mechanisms.state_law import StateLaw

PEOPLE = 1000
TASKS: dict[str, tuple[Callable[..., Draw], tuple[str, ...], int, str]] = {
    "uniform, d = 8": (families.ratings, ("saddle", "tree"), 8, "uniform"),
    "uniform, d = 16": (families.ratings, ("saddle", "sines"), 16, "uniform"),
    "middle, d = 8": (families.ratings, ("saddle", "cone"), 8, "middle"),
    "correlated, d = 8": (families.ratings, ("saddle", "cone"), 8, "correlated"),
    "indicators, d = 8": (families.ratings, ("saddle", "cone"), 8, "indicators"),
    "pairs, correlated, d = 6": (families.comparisons, ("waves", "saddle"), 6, "correlated"),
    "pairs, indicators, d = 6": (families.comparisons, ("waves", "saddle"), 6, "indicators"),
}


def _indicators(d: int, generator: np.random.Generator) -> families.Law:
    """Every other coordinate is 0 or 1."""
    even = np.arange(d) % 2 == 0
    return lambda n: np.where(even, generator.random((n, d)) < 0.35, generator.random((n, d)))


def _one_scale(looked: Any, variance: Any, basis: Basis) -> Any:
    """The likeliest scale of each group, instead of a mixture."""
    scales, prior, groups = rounds._SCALES, basis.variances, basis.groups
    spread = scales[:, None] * prior + variance
    likelihood = -(np.log(spread) + looked**2 / spread) / 2
    together = np.stack([np.bincount(groups, one) for one in likelihood]) - np.log(scales)[:, None] ** 2 / 8
    scaled = scales[np.argmax(together, axis=0)][groups] * prior
    return looked * scaled / (scaled + variance)


def _even(answer: Any, sigma: float, bins: int) -> StateLaw:
    return StateLaw(np.pad(np.full((answer.size // (bins + 2), bins), 1 / bins), ((0, 0), (1, 1))))


PARTS: dict[str, list[tuple[Any, str, Any]]] = {
    "all": [],
    "one scale a group": [(rounds, "shrink", _one_scale)],
    "coordinates not tied": [(StateLaw, "tied", lambda self, *_: self)],
    "features as they are": [(StateLaw, "gram", lambda *_: None)],
    "states not looked at": [(StateLaw, "of", _even), (StateLaw, "tied", lambda self, *_: self)],
    "all looks alike": [(rounds, "KEPT", 1.0)],
}


def correlation(draw: Draw, seed: int) -> float:
    """Of one simulated release with the truth, at fresh states."""
    d = draw.dimension
    box = [(0, 1)] * d
    if "rating" in draw.rows.columns:
        people = Ratings.read(draw.rows, box=box, low=0, high=1, people=PEOPLE, state=draw.states)
    else:
        left, right = ([f"{side}{i}" for i in range(d)] for side in ("left", "right"))
        people = Comparisons.read(draw.rows, left=left, right=right, box=box, people=PEOPLE)
    return draw.score(privatise(people, Budget(1, 1e-5), simulate=seed)(draw.fresh)).correlation


def table(draws: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Task by task, the mean over shapes and draws with each part left out."""
    with patch.dict(families.STATES, {"indicators": _indicators}):
        for task, (kind, shapes, d, states) in TASKS.items():
            drawn = [(i, kind(shape, d, PEOPLE, i, states)) for shape in shapes for i in range(draws)]
            yield task, {part: _mean(drawn, changes) for part, changes in PARTS.items()}


def _mean(drawn: list[tuple[int, Draw]], changes: list[tuple[Any, str, Any]]) -> float:
    with ExitStack() as stack:
        for where, name, instead in changes:
            stack.enter_context(patch.object(where, name, instead))
        return float(np.mean([correlation(draw, seed) for seed, draw in drawn]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=4)
    draws = parser.parse_args().draws
    print("| left out | " + " | ".join(PARTS) + " |", "|---" * (len(PARTS) + 1) + "|", sep="\n")
    for task, found in table(draws):
        print(f"| {task} | " + " | ".join(f"{value:.3f}" for value in found.values()) + " |", flush=True)


if __name__ == "__main__":
    main()
