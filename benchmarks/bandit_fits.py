"""How regret grows, with intervals: fits to mean regrets, and bootstrap over the runs that they are means of."""

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.study import Numbers

RESAMPLED = 2000


def power(places: Sequence[float]) -> Callable[[np.ndarray], float]:
    """The slope of the logarithm of regret in that of the place: 1 is linear, 1/2 a root, near 0 a logarithm."""
    logs = np.log(places)
    return lambda means: float(np.polyfit(logs, np.log(means), 1)[0])


def slope(places: Sequence[float]) -> Callable[[np.ndarray], float]:
    """Of regret in the logarithm of the place."""
    logs = np.log(places)
    return lambda means: float(np.polyfit(logs, means, 1)[0])


def later_over_earlier(means: np.ndarray) -> float:
    """Growth from the second place to the third over that from the first: 1 for a logarithm where places are powers."""
    return float((means[2] - means[1]) / (means[1] - means[0]))


def fitted(name: str, fit: Callable[[np.ndarray], float], runs: Sequence[np.ndarray], paired: bool = False) -> Numbers:
    """The fit to mean regrets, one for each group of runs, and where 95% of its resamplings lie.

    Groups that are the same runs at several times are `paired`: they are resampled together.
    """
    generator, found = np.random.default_rng(0), []
    for _ in range(RESAMPLED):
        drawn = [generator.integers(0, len(one), len(one)) for one in (runs[:1] if paired else runs)]
        means = [one[drawn[0 if paired else i]].mean() for i, one in enumerate(runs)]
        found.append(fit(np.array(means)))
    low, high = np.percentile(found, [2.5, 97.5])
    mean = fit(np.array([one.mean() for one in runs]))
    return {name: mean, f"{name}, from": float(low), f"{name}, to": float(high)}
