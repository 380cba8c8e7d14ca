"""Many simulated draws of a release, from r and from r', told apart by a score: what cheap audits have in common."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.audit.bounds import MOST_RUNS
from quietq.audit.distinguisher import LEARNED_SHARE, Expected, Scores, Seen, learn
from quietq.audit.finding import Attack, Finding, Promise, judge
from quietq.privacy.checks import count

Draw = Callable[[int, int], Any]
"""A simulated release, by side (0 for r, 1 for r') and seed."""
Score = Callable[[Any], float]
"""Of a release: larger where r' is likelier."""
Progress = Callable[[int, int], None]


def audit_draws(
    draw: Draw, score: Score | None, runs: int, attack: Attack, promise: Promise, *, expected: Expected | None = None,
    seed: int = 0, confidence: float = 0.95, progress: Progress | None = None,
) -> Finding:  # fmt: skip
    """Draws `runs` releases a world and judges them.

    Thresholds are set by what is `expected` of the scores; without that, on a quarter of the draws, which are not
    judged. Without a `score`, for draws that are rows of numbers, a linear one is learned on those too.
    """
    began, runs, seed = time.monotonic(), count("runs", runs, 40, MOST_RUNS), count("seed", seed, 0)
    pilot = 0 if expected is not None else round(LEARNED_SHARE * runs)

    def drawn(side: int) -> Float[np.ndarray, "runs ..."]:
        found = []
        for run in range(runs):
            one = draw(side, (seed << 64) + 2 * run + side)
            found.append(one if score is None else score(one))
            if progress is not None:
                progress(side * runs + run + 1, 2 * runs)
        return np.asarray(found, np.float64)

    first, second = drawn(0), drawn(1)
    if score is None:
        taught, rest = Seen(first, second).split(pilot)
        weights, expected = learn(taught)
        judged = rest.scored(weights)
    else:
        judged = Scores(first[pilot:], second[pilot:])
    known = Scores(first[:pilot], second[:pilot]) if expected is None else expected
    thresholds = known.thresholds(runs - pilot, promise.delta, confidence)
    return judge(judged, thresholds, attack, promise, confidence, pilot, time.monotonic() - began)
