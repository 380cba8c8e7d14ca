"""Distinguishers: a score for what was seen, and thresholds, all of them fixed before the judged runs are looked at.

Where the best test is known in closed form it is used (`BestTest`). Otherwise a linear score is learned on some runs
(`learn`), by Fisher's discriminant with a shrunken covariance, and judged on others. Thresholds are set where normal
scores would be expected to give the best bounds: a wrong expectation costs power, never validity.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr

from quietq.audit.bounds import Errors, epsilon_lower, mu_lower
from quietq.privacy import InvalidInput

SHRINKAGES = (1e-12, 1e-9, 1e-6, 1e-4, 1e-2, 1.0)
"""Shrinkages of the covariance to choose from: the least of them detect directions that have no noise at all."""
LEARNED_SHARE = 0.25  # of the runs, to learn a score or only its thresholds on; they are not judged
_TRIED = 161
"""Thresholds that are compared by the bounds which they are expected to give."""


@dataclass(frozen=True, eq=False)
class Seen:
    """What the adversary saw of the runs under r and under r': a row a run, or a score, larger where r' is likelier."""

    first: Float[np.ndarray, "runs *numbers"]
    second: Float[np.ndarray, "runs *numbers"]

    def split(self, number: int) -> tuple["Seen", "Seen"]:
        """Returns the first runs of both worlds, and the others."""
        return Seen(self.first[:number], self.second[:number]), Seen(self.first[number:], self.second[number:])

    def scored(self, weights: Float[np.ndarray, " numbers"]) -> "Seen":
        """Returns the score that each run has by these weights of its numbers."""
        return Seen(self.first.astype(np.float64) @ weights, self.second.astype(np.float64) @ weights)

    # Of scores

    def normal(self) -> "Expected":
        """The normal distributions with the means and the deviations of these scores."""
        least = 1e-9 * max(np.ptp(np.concatenate([self.first, self.second])), 1.0)  # so that none has no width
        deviations = [float(np.std(scores)) + least for scores in (self.first, self.second)]
        return Expected(float(np.mean(self.first)), deviations[0], float(np.mean(self.second)), deviations[1])

    def thresholds(self, runs: int, delta: float, confidence: float) -> "Thresholds":
        """Returns where scores of another `runs` runs a world are expected to give the best bounds."""
        together = np.unique(np.concatenate([self.first, self.second]))
        between = (together[1:] + together[:-1]) / 2 if len(together) > 1 else together
        spread = between[np.unique(np.linspace(0, len(between) - 1, _TRIED).round().astype(int))]
        tried = sorted(spread, key=lambda threshold: abs(threshold - np.median(together)))
        size = runs / len(self.first), runs / len(self.second)
        errors = []
        for threshold in tried:
            mine = self.errors(float(threshold))
            alarms, misses = round(mine.false_alarms * size[0]), round(mine.misses * size[1])
            errors.append(Errors(alarms, runs, misses, runs))
        return _best(tried, errors, delta, confidence)

    def errors(self, threshold: float) -> Errors:
        """How often a threshold is wrong about these scores."""
        return Errors.at_threshold(self.first, self.second, threshold)


@dataclass(frozen=True)
class Expected:
    """Scores as they are expected: a normal distribution a world."""

    mean_first: float
    deviation_first: float
    mean_second: float
    deviation_second: float

    @property
    def unit(self) -> float:
        return (self.deviation_first + self.deviation_second) / 2

    def thresholds(self, runs: int, delta: float, confidence: float) -> "Thresholds":
        """Returns the thresholds that are expected to give the best bounds on epsilon and on mu with `runs` a world."""
        low = min(self.mean_first - 5 * self.deviation_first, self.mean_second - 5 * self.deviation_second)
        high = max(self.mean_first + 5 * self.deviation_first, self.mean_second + 5 * self.deviation_second)
        middle = (self.mean_first + self.mean_second) / 2
        tried = sorted(np.linspace(low, high, _TRIED), key=lambda threshold: abs(threshold - middle))
        return _best(tried, [self._errors(float(threshold), runs) for threshold in tried], delta, confidence)

    def _errors(self, threshold: float, runs: int) -> Errors:
        alarms = 1 - ndtr((threshold - self.mean_first) / self.deviation_first)
        misses = ndtr((threshold - self.mean_second) / self.deviation_second)
        return Errors(round(runs * float(alarms)), runs, round(runs * float(misses)), runs)


@dataclass(frozen=True)
class Thresholds:
    """One for the bound on epsilon, one for the bound on mu."""

    epsilon: float
    mu: float


def _best(tried: Sequence[float], errors: list[Errors], delta: float, confidence: float) -> Thresholds:
    """Where nothing is expected to be found, ties go to the first that is tried: the one in the middle."""
    by_epsilon = [epsilon_lower(one, delta, confidence) for one in errors]
    by_mu = [mu_lower(one, confidence) for one in errors]
    return Thresholds(float(tried[int(np.argmax(by_epsilon))]), float(tried[int(np.argmax(by_mu))]))


def learn(seen: Seen) -> tuple[Float[np.ndarray, " numbers"], Expected]:
    """Learns a linear score from runs that will not be judged, and how it is expected to come out on others.

    The shrinkage of the covariance is the one that tells halves of these runs apart best by what the other half taught.

    Args:
        seen: What was observed of the runs, half of them of each kind.

    """
    runs = min(len(seen.first), len(seen.second))
    if runs < 10:
        raise InvalidInput(f"runs must leave at least 10 a world to learn a score from, not {runs}.")
    halves = Seen(seen.first[::2], seen.second[::2]), Seen(seen.first[1::2], seen.second[1::2])
    taught = [_fisher(half) for half in halves]
    crossed = [[halves[1 - i].scored(taught[i][index]).normal() for i in range(2)] for index in range(len(SHRINKAGES))]
    apart = [np.mean([(one.mean_second - one.mean_first) / one.unit for one in both]) for both in crossed]
    best = int(np.argmax(apart))
    weights = _fisher(seen)[best]
    fitted = seen.scored(weights).normal()
    # On fresh runs scores lie less far apart than on those that taught them: as far as the halves said.
    middle, half = (fitted.mean_first + fitted.mean_second) / 2, max(float(apart[best]), 0.0) * fitted.unit / 2
    return weights, replace(fitted, mean_first=middle - half, mean_second=middle + half)


def _fisher(seen: Seen) -> list[Float[np.ndarray, " numbers"]]:
    """(S + s I)^-1 (mean' - mean) in units of each number's own deviation in both worlds, for each shrinkage s."""
    first, second = seen.first.astype(np.float64), seen.second.astype(np.float64)
    difference = second.mean(axis=0) - first.mean(axis=0)
    centred = np.concatenate([first - first.mean(axis=0), second - second.mean(axis=0)])
    unit = np.concatenate([first, second]).std(axis=0)  # of both worlds: what only the world changes teaches the most
    unit = np.where(unit > 1e-12 * max(float(unit.max()), 1e-300), unit, np.inf)  # what never varies teaches nothing
    whole = np.linalg.svd(centred / unit, full_matrices=False)
    sizes, axes = whole.S**2 / len(centred), whole.Vh
    along, scaled = axes @ (difference / unit), difference / unit
    return [(axes.T @ (along / (sizes + s) - along / s) + scaled / s) / unit for s in SHRINKAGES]
