"""What a person wants, in public features: a ridge fit of their ratings, held to a length.

A ridge fit magnifies rounding errors without limit. What makes it a function of one person's rows to the last bit: the
feature map is asked once per person and sees nobody else's rows; a person's rows are put in one order; gram matrices
are added and solved one by one. A feature map that remembers what it was asked before is outside of this: it is
trusted.
"""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from quietq.feedback.statistic import Columns, Starts, Vector
from quietq.noise.kernels import FeatureKernel
from quietq.privacy.checks import instance, positive
from quietq.privacy.errors import InvalidInput

_MOST_FEATURES = 1024
_NUMBERS = 2**23


@dataclass(frozen=True)
class RidgeFit(Vector):
    """Weights w of w . phi(state): the features, the longest w, and the ridge of each person's fit."""

    features: FeatureKernel
    bound: float
    ridge: float = 0.1
    """pulls the weights of people with few ratings towards 0"""
    size: int = field(init=False)
    rows_at_once: int = field(init=False)
    """whose products of features fit into memory"""

    def __post_init__(self) -> None:
        instance("features", self.features, FeatureKernel, "FeatureKernel(phi, rank)")
        if self.features.rank > _MOST_FEATURES:
            raise InvalidInput(f"A person has at most {_MOST_FEATURES} features, not {self.features.rank}: use fewer.")
        self.features.check_rowwise()
        positive("norm", self.bound)
        if positive("ridge", self.ridge) < 1e-9:
            raise InvalidInput(f"ridge must be at least 1e-9, not {self.ridge!r}.")
        object.__setattr__(self, "size", self.features.rank)
        object.__setattr__(self, "rows_at_once", max(1, _NUMBERS // self.size**2))

    def of_people(self, starts: Starts, columns: Columns) -> Float[np.ndarray, "people features"]:
        """Rows whose features are not finite are left out."""
        *places, ratings = columns.values()
        lengths = np.diff(starts, append=len(ratings))
        order = np.lexsort((ratings, *places[::-1], np.repeat(np.arange(len(starts)), lengths)))
        states, ratings = np.stack([place[order] for place in places], axis=-1), ratings[order]
        states = states[:, 0] if len(places) == 1 else states
        phi = np.concatenate([self.features.features(rows) for rows in np.split(states, starts[1:])])
        phi[~np.isfinite(phi).all(axis=1)] = 0.0
        rank, at_once = phi.shape[1], self.rows_at_once
        gram, moment = np.zeros((len(starts), rank * rank)), np.zeros((len(starts), rank))
        with np.errstate(over="ignore", invalid="ignore"):
            for begin in range(0, len(phi), at_once):  # in one go, unless it is a single person with many rows
                some, theirs = phi[begin : begin + at_once], ratings[begin : begin + at_once, None]
                products = (some[:, :, None] * some[:, None, :]).reshape(len(some), -1)
                gram += np.add.reduceat(products, starts, axis=0)
                moment += np.add.reduceat(some * theirs, starts, axis=0)
            return _solve(gram.reshape(-1, rank, rank) + self.ridge * np.eye(rank), moment)


def _solve(matrix: np.ndarray, moment: np.ndarray) -> Float[np.ndarray, "people features"]:
    """Each person's system on its own; nothing for one that has no solution in floating point."""
    try:
        return np.linalg.solve(matrix, moment[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        if len(matrix) == 1:
            return np.zeros_like(moment)
        half = len(matrix) // 2
        return np.concatenate([_solve(matrix[:half], moment[:half]), _solve(matrix[half:], moment[half:])])
