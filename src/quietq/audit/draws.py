"""Many simulated draws of a release, from r and from r', told apart by a score: what cheap audits have in common."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.audit.distinguisher import Expected, Scores
from quietq.audit.finding import Attack, Finding, Promise, judge
from quietq.privacy.checks import count

Draw = Callable[[int, int], Any]
"""A simulated release, by side (0 for r, 1 for r') and seed."""
Score = Callable[[Any], float]
"""Of a release: larger where r' is likelier."""
Progress = Callable[[int, int], None]


def audit_draws(
    draw: Draw, score: Score, runs: int, attack: Attack, promise: Promise, *, expected: Expected | None = None,
    seed: int = 0, confidence: float = 0.95, progress: Progress | None = None,
) -> Finding:  # fmt: skip
    """Draws `runs` releases a world and judges them.

    Thresholds are set by what is `expected` of the scores; without that, on as many draws again, which are not judged.
    """
    began, runs = time.monotonic(), count("runs", runs, 20)
    total = runs if expected is not None else 2 * runs

    def scores(side: int) -> Float[np.ndarray, " runs"]:
        found = np.empty(total)
        for run in range(total):
            found[run] = score(draw(side, (seed << 64) + 2 * run + side))
            if progress is not None:
                progress(side * total + run + 1, 2 * total)
        return found

    first, second = scores(0), scores(1)
    if expected is not None:
        thresholds = expected.thresholds(runs, promise.delta, confidence)
    else:
        thresholds = Scores(first[runs:], second[runs:]).thresholds(runs, promise.delta, confidence)
    judged = Scores(first[:runs], second[:runs])
    return judge(judged, thresholds, attack, promise, confidence, total - runs, time.monotonic() - began)
