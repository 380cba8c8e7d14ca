"""Fits: the mean of everybody's own model, each clipped. One look, where `rounds` takes many.

Theorem. As for rounds: each person's vector is a function of their rows and of the first answer, held to length B, so
replacing one of N people moves the mean by at most 2B/N.

Every feature counts alike in a person's own model. If those that are expected to matter more counted more, they would
take up most of the clip, and noise would drown the others; the prior comes in afterwards. A person with a few answers
says nothing about most of the box, so their own model is shrunk to nothing there, least where features are long: at the
edges. What the mean model then is of the true one is a matrix that does not depend on anybody's answers, only on how
many there are and where states lie: it is computed from simulated states, and undone.
"""

import math
from collections.abc import Generator

import numpy as np

from quietq.feedback.row_statistics import TOLD, ClippedFit
from quietq.mechanisms.basis import Stretched
from quietq.mechanisms.feature_model import FeatureModel, held
from quietq.mechanisms.mechanism import Query, Task
from quietq.mechanisms.people_mean import mean_of_people
from quietq.mechanisms.rounds import MARGINALS, ROWS, Fitted, Rounds, law_of_coordinates, shrink

_SIMULATED = 2000
"""People in the public simulation."""
CLIP = 0.25
"""In units of the length that a person's own model is expected to have."""


class Fits(FeatureModel):
    """Everybody's own model, averaged."""

    name = "fits"

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.basis, self._spread = Rounds(task).basis, self.loss.spread / ROWS
        self._share = 1 - MARGINALS if self._looks_first else 1.0
        shown, length = self._simulated()
        self._undo, self._clip = np.linalg.inv(shown), CLIP * length
        noise = 2 * length * math.sqrt(1 + TOLD**2 / 4) / (self.relation.people * self.mu)
        variance, prior = self._variance(noise / math.sqrt(self._share)), self.basis.variances
        left_out = float(self._every.variances.sum() - prior.sum())
        self._error = left_out + float((prior * variance / (prior + variance)).sum())
        queries = ["1 about where states lie"] if self._looks_first else []
        self.conditions = held(1 + len(queries), *queries, "1 of everybody's own model")

    def _fit(self, knots: np.ndarray, clip: float) -> ClippedFit:
        basis = self.basis
        alike = np.full(basis.size, basis.variances.mean())
        return ClippedFit(self.loss, Stretched(basis, knots), alike, clip, basis.matrix)

    def _simulated(self) -> tuple[np.ndarray, float]:
        """What people's own models show of the true one, as a matrix, and how long they are."""
        rng, fit = np.random.default_rng(0), self._fit(self._not_stretched, 1.0)
        rows, size = fit.answers(*self.loss.example(rng, _SIMULATED, ROWS)).design, self.basis.size
        design = rows.reshape(_SIMULATED, -1, size)
        solved, truth = fit.solve(design), np.sqrt(self.basis.variances) * rng.standard_normal((_SIMULATED, size))
        shown = solved.reshape(-1, size).T @ rows / _SIMULATED
        said = np.einsum("paf,pf->pa", design, truth)
        said += math.sqrt(self.loss.noise) * rng.standard_normal(said.shape)
        squares = float((np.einsum("pa,paf->pf", said, solved) ** 2).sum()) / _SIMULATED
        if not self._looks_first:  # where states lie is not known: features are taken for alike
            shown = np.diag(shown).mean() * np.eye(len(shown))
        return shown, math.sqrt(squares)

    def _variance(self, noise: float) -> np.ndarray:
        """Of each weight, if the mean model has this noise on each."""
        return noise**2 * (self._undo**2).sum(axis=1) + self._spread / self.relation.people

    def run(self) -> Generator[Query, np.ndarray, Fitted]:
        knots = (yield from law_of_coordinates(self)).knots if self._looks_first else self._not_stretched
        statistic = self._fit(knots, self._clip)
        query = mean_of_people(statistic, self.relation.people, self.mu * math.sqrt(self._share))
        answer = yield query
        scale = self._clip / float(np.clip(answer[-1] / TOLD + 0.5, 0.2, 1.0))
        looked, variance = self._undo @ (scale * answer[:-1]), self._variance(scale * query.law.sigma)
        return Fitted(self.basis, shrink(looked, variance, self.basis), knots)
