"""People's preferences in a feature space: a ridge fit a person, its length clipped.

Theorem. If each person's weights are a function of that person's rows alone and are clipped to |w_u| <= C, replacing
all of one person's rows, by anything, moves the mean weights of n people by at most 2C/n.

What makes "of that person's rows alone" true to the last bit, where a ridge fit magnifies rounding errors without
limit: the feature map is asked once a person and sees nobody else's rows; a person's rows are put in one order; gram
matrices are added and solved one by one; and clipped weights are rounded towards zero to whole multiples of C/2^40 and
added as whole numbers, in which the order of people does not matter. What is left is the clip's own rounding and that
of the mean, some 1e-15 of C each: the slack in the noise (`knots.SLACK`, a millionth of 2C/n) covers them many times
over for up to 10^8 people. A feature map that remembers what it was asked before is outside of this: it is trusted.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from quietq.noise.kernels import FeatureKernel
from quietq.privacy.checks import instance, positive
from quietq.privacy.errors import InvalidInput

_STEPS = 2**40
_MOST_FEATURES = 1024
_NUMBERS = 2**23
_PEOPLE_AT_ONCE = 4096  # whose weights surely fit, in steps, into an integer of 64 bits


@dataclass(frozen=True)
class ClippedFit:
    """Linear preferences w . phi(state): the features, the longest w, and the ridge of each person's fit."""

    features: FeatureKernel
    norm: float
    """C, the length that every person's weights are clipped to"""
    ridge: float = 0.1
    """pulls the weights of people with few ratings towards 0"""

    def __post_init__(self) -> None:
        instance("features", self.features, FeatureKernel, "FeatureKernel(phi, rank)")
        if self.features.rank > _MOST_FEATURES:
            raise InvalidInput(
                f"A person's preferences have at most {_MOST_FEATURES} features, not {self.features.rank}: use fewer."
            )
        self.features.check_rowwise()
        positive("norm", self.norm)
        if positive("ridge", self.ridge) < 1e-9:
            raise InvalidInput(f"ridge must be at least 1e-9, not {self.ridge!r}.")


@dataclass
class WeightTally:
    """The sum of people's clipped weights. Tallies of disjoint people add up, exactly."""

    weights: list[int]
    """in multiples of norm/2^40"""
    people: int

    @classmethod
    def empty(cls, preferences: ClippedFit) -> "WeightTally":
        """Nobody yet."""
        return cls([0] * preferences.features.rank, 0)

    def add(self, preferences: ClippedFit, starts: np.ndarray, states: np.ndarray, ratings: np.ndarray) -> None:
        """Adds people whose rows stand together; person i's rows begin at starts[i]."""
        ends = np.append(starts[1:], len(ratings))
        first = 0
        while first < len(starts):
            fit = int(np.searchsorted(ends, starts[first] + _rows_at_once(preferences.features.rank), side="right"))
            last = min(max(fit, first + 1), first + _PEOPLE_AT_ONCE)
            rows = slice(starts[first], ends[last - 1])
            fitted = clipped_fits(preferences, starts[first:last] - starts[first], states[rows], ratings[rows])
            steps = np.trunc(fitted / preferences.norm * _STEPS).astype(np.int64)
            self.merge(WeightTally(steps.sum(axis=0).tolist(), last - first))
            first = last

    def merge(self, other: "WeightTally") -> None:
        """Adds another tally, of other people."""
        self.weights = [mine + theirs for mine, theirs in zip(self.weights, other.weights, strict=True)]
        self.people += other.people

    def mean(self, preferences: ClippedFit, people: int) -> Float[np.ndarray, " features"]:
        """The mean over all declared people, those without a row having no preference."""
        return np.array([total / (_STEPS * people) for total in self.weights]) * preferences.norm


def clipped_fits(
    preferences: ClippedFit, starts: np.ndarray, states: np.ndarray, ratings: np.ndarray
) -> Float[np.ndarray, "people features"]:
    """Each person's ridge fit, clipped. Rows whose features are not finite are left out."""
    lengths = np.diff(starts, append=len(ratings))
    columns = states.reshape(len(ratings), -1).T
    order = np.lexsort((ratings, *columns[::-1], np.repeat(np.arange(len(starts)), lengths)))
    states, ratings = states[order], ratings[order]
    phi = np.concatenate([preferences.features.features(rows) for rows in np.split(states, starts[1:])])
    phi[~np.isfinite(phi).all(axis=1)] = 0.0
    rank = phi.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        gram, moment = np.zeros((len(starts), rank * rank)), np.zeros((len(starts), rank))
        at_once = _rows_at_once(rank)
        for begin in range(0, len(phi), at_once):  # in one go, unless it is a single person with many rows
            some, theirs = phi[begin : begin + at_once], ratings[begin : begin + at_once, None]
            products = (some[:, :, None] * some[:, None, :]).reshape(len(some), -1)
            gram += np.add.reduceat(products, starts, axis=0)
            moment += np.add.reduceat(some * theirs, starts, axis=0)
        matrix = gram.reshape(-1, rank, rank) + preferences.ridge * np.eye(rank)
        weights = _solve(matrix, moment)
        weights = np.where(np.isfinite(weights).all(axis=1, keepdims=True), weights, 0.0)
        length = np.linalg.norm(weights, axis=1, keepdims=True)
        return weights * np.minimum(1.0, preferences.norm / np.maximum(length, 1e-300))


def _rows_at_once(rank: int) -> int:
    """Whose products of features fit into memory."""
    return max(1, _NUMBERS // rank**2)


def _solve(matrix: np.ndarray, moment: np.ndarray) -> Float[np.ndarray, "people features"]:
    """Each person's system on its own; nothing for one that has no solution in floating point."""
    try:
        return np.linalg.solve(matrix, moment[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        if len(matrix) == 1:
            return np.zeros_like(moment)
        half = len(matrix) // 2
        return np.concatenate([_solve(matrix[:half], moment[:half]), _solve(matrix[half:], moment[half:])])
