"""Least squares on first-visit returns, and how far replacing one trajectory can move the weights.

n_s trajectories came by cell s; each return lies in [-V, V]; row s of Phi are the cell's features, w_s > 0 its public
weight. Two data sets at distance k have counts that differ by at most k, so a bound of the local sensitivity that never
falls when counts (and Sum w_s n_s) move against us is one at distance k if it is evaluated at n - k (and n + k).

`Weighted` (LSW): theta = A F with A = (W^(1/2) Phi)^+ W^(1/2), F_s the mean return, 0 where nobody came. Whoever is
replaced, F_s moves by b_s = 2V/max(n_s, 1) at most, hence theta by the smaller of |(W^(1/2) Phi)^+| sqrt(Sum w_s b_s^2)
(Balle, Gomrokchi & Precup 2016) and sqrt(b' |A'A| b), absolute values entry by entry.

`Ridge` (LSL): theta = H^-1 Phi' W T with H = Phi' W N Phi + ridge I, T_s the sum of returns, N = diag(n). If H' is the
neighbour's, theta' - theta = H'^-1 Sum_s c_s phi_s exactly, where |c_s| <= C_s = w_s max(2V, V + |phi_s.theta|) and
|phi_s.theta| <= V sqrt(Sum w n) min(sqrt(phi_s' H^-1 phi_s), |phi_s|/(2 sqrt(ridge))). With L = H at counts n - 1,
which is below H and H', that is at most |L^-1| |Phi' c| and sqrt(|L^-1|) Sum_s C_s sqrt(phi_s' L^-1 phi_s).
Where the rows of Phi are orthogonal, cells do not meet, and each moves theta by at most
2 V w_s |phi_s|/(w_s |phi_s|^2 max(n_s, 1) + ridge): the bound of LSW as the ridge goes to 0.
"""

import math
from abc import ABC, abstractmethod

import numpy as np
from jaxtyping import Float, Int

from quietq.feedback.trajectories import Visits

_Counts = Int[np.ndarray, " cells"]
_Distances = Int[np.ndarray, " distances"]
_Bounds = Float[np.ndarray, " distances"]


class LeastSquares(ABC):
    """An estimator from counts and sums of returns, with its local sensitivity."""

    dimension: int
    """Number of weights."""
    _weights: Float[np.ndarray, " cells"]

    @abstractmethod
    def estimate(self, visits: Visits) -> Float[np.ndarray, " weights"]:
        """The weights, without noise."""

    @abstractmethod
    def reach(self, counts: _Counts, distances: _Distances, people: int) -> _Bounds:
        """The most that one replacement moves the weights, for any data within each distance of these counts."""

    def least(self, people: int) -> float:
        """A public number that `reach` is never below, whatever the counts: where everybody came by everywhere."""
        everyone = np.full(len(self._weights), people)
        return float(self.reach(everyone, np.zeros(1, dtype=np.int64), people)[0])


class Weighted(LeastSquares):
    """LSW: the mean return of each cell counts by its public weight, however many came by."""

    def __init__(
        self, features: Float[np.ndarray, "cells weights"], weights: Float[np.ndarray, " cells"], largest: float
    ) -> None:
        root = np.sqrt(weights)
        inverse = np.linalg.pinv(root[:, None] * features)
        self.dimension = features.shape[1]
        self._map = inverse * root
        self._gram = np.abs(self._map.T @ self._map)
        self._norm, self._weights, self._largest = float(np.linalg.norm(inverse, 2)), weights, largest

    def estimate(self, visits: Visits) -> Float[np.ndarray, " weights"]:
        return self._map @ (visits.sums / np.maximum(visits.counts, 1))

    def reach(self, counts: _Counts, distances: _Distances, people: int) -> _Bounds:
        moved = 2 * self._largest / np.maximum(counts - distances[:, None], 1)
        spectral = self._norm * np.sqrt(moved**2 @ self._weights)
        return np.minimum(spectral, np.sqrt(np.sum((moved @ self._gram) * moved, axis=1)))


class Ridge(LeastSquares):
    """LSL: every first visit counts alike, but for its cell's public weight, and `ridge` times |theta|^2 is added."""

    def __init__(
        self,
        features: Float[np.ndarray, "cells weights"],
        weights: Float[np.ndarray, " cells"],
        largest: float,
        ridge: float,
    ) -> None:
        self.dimension = features.shape[1]
        self._features, self._weights, self._largest, self._ridge = features, weights, largest, ridge
        gram = features @ features.T
        self._lengths, self._gram = np.sqrt(np.diag(gram)), np.abs(gram)
        self._norm = float(np.linalg.norm(features * np.sqrt(weights)[:, None], 2))
        self.orthogonal = bool((gram == np.diag(np.diag(gram))).all())
        """Whether no two cells share a feature, so that each can be looked at alone."""

    def estimate(self, visits: Visits) -> Float[np.ndarray, " weights"]:
        pull = self._weights * visits.sums
        if self.orthogonal:
            return self._features.T @ (pull / (self._weights * self._lengths**2 * visits.counts + self._ridge))
        return np.linalg.solve(self._hessians(visits.counts[None, :])[0], self._features.T @ pull)

    def reach(self, counts: _Counts, distances: _Distances, people: int) -> _Bounds:
        if self.orthogonal:
            pull = self._weights * self._lengths
            fewest = np.maximum(counts - distances[:, None], 1)
            return 2 * self._largest * np.linalg.norm(pull / (pull * self._lengths * fewest + self._ridge), axis=1)
        most = np.minimum(counts + distances[:, None], people)
        return self._moved(np.maximum(counts - distances[:, None] - 1, 0), most @ self._weights)

    def least(self, people: int) -> float:
        if self.orthogonal:
            return super().least(people)
        return float(self._moved(np.full((1, len(self._weights)), people - 1), np.zeros(1))[0])

    def _moved(
        self, fewest: Int[np.ndarray, "distances cells"], total: Float[np.ndarray, " distances"]
    ) -> Float[np.ndarray, " distances"]:
        """The bound at the fewest visits and the largest total weight of returns that there may be."""
        values, vectors = np.linalg.eigh(self._hessians(fewest))
        values = np.maximum(values, self._ridge)  # as it is, but for rounding
        leverage = np.sqrt(np.sum((self._features @ vectors) ** 2 / values[:, None, :], axis=2))
        size = np.minimum(leverage, self._lengths / (2 * math.sqrt(self._ridge))) * np.sqrt(total)[:, None]
        residual = self._largest * np.maximum(2, 1 + size)
        moved = self._weights * residual
        together = np.minimum(
            self._norm * np.sqrt(residual**2 @ self._weights), np.sqrt(np.sum((moved @ self._gram) * moved, axis=1))
        )
        lowest = values[:, 0]
        return np.minimum(together / lowest, np.sum(moved * leverage, axis=1) / np.sqrt(lowest))

    def _hessians(self, counts: Int[np.ndarray, "sets cells"]) -> Float[np.ndarray, "sets weights weights"]:
        weighted = (counts * self._weights)[:, :, None] * self._features
        return self._features.T @ weighted + self._ridge * np.eye(self.dimension)
