"""Fits: the mean of everybody's own model, each clipped. One look, where `rounds` takes many.

Theorem. As for rounds: each person's vector is a function of their rows and of the first answer, held to length B, so
replacing one of N people moves the mean by at most 2B/N.

A person with a few answers says nothing about most of the box, so their own model is shrunk to nothing there, and so is
the mean. By how much, feature by feature, does not depend on anybody's answers but only on how many there are and where
states lie: it is computed from simulated states, and undone as far as the noise allows.
"""

import math
from collections.abc import Generator

import numpy as np

from quietq.feedback.row_statistics import TOLD, ClippedFit
from quietq.mechanisms.basis import Basis, Stretched
from quietq.mechanisms.mechanism import Query, Task
from quietq.mechanisms.rounds import MARGINALS, ROWS, Fitted, Rounds, shrink
from quietq.privacy.certificate import Assumption

_SIMULATED = 100
"""People in the public simulation."""
_NUMBERS = (8, 16, 32, 64, 128, 256, 512)
"""How many features may be fitted."""


class Fits(Rounds):
    """A reward in any dimension from everybody's own model of it, averaged."""

    name = "fits"

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        every = self._every
        sizes = {every.first(min(number, every.size)).size for number in _NUMBERS}
        alternatives = [every.first(size) for size in sorted(sizes)]
        self.rounds = 1
        self._share = 1 - MARGINALS if self._looks_first else 1.0
        found = [self._planned(basis) for basis in alternatives]
        best = min(range(len(found)), key=lambda i: found[i][2])
        self.basis, (self._shrunk, self._clip, kept) = alternatives[best], found[best]
        self._error = kept + float(every.variances.sum())
        held = "The mean of one vector per person, their own model, held to its bound, was noised once."
        self.conditions = (Assumption(held, True),)

    def _planned(self, basis: Basis) -> tuple[np.ndarray, float, float]:
        """What is left of each weight, the clip, and how much less than without a model is the expected error."""
        rng = np.random.default_rng(0)
        starts, columns = self.loss.example(rng, _SIMULATED, ROWS)
        statistic = ClippedFit(
            self.loss, Stretched(basis, self._not_stretched), basis.variances, 1.0, basis.matrix
        )  # fmt: skip
        answers = statistic.answers(starts, columns)
        shrunk = np.mean([statistic.kept(one) for one in np.split(answers.design, answers.starts[1:])], axis=0)
        length = math.sqrt(float((shrunk * basis.variances).sum()))  # what is left of a person's model
        clip, noise = length / 2, length * self._noise_at(1.0)
        variance = (noise / np.maximum(shrunk, 1e-12)) ** 2
        return shrunk, clip, -float((basis.variances**2 / (basis.variances + variance)).sum())

    def _noise_at(self, length: float) -> float:
        bound = math.sqrt(1 + TOLD**2 / 4)
        return 2 * length * bound / (self.relation.people * self.budget.mu * math.sqrt(self._share))

    def run(self) -> Generator[Query, np.ndarray, Fitted]:
        law = yield from self._law_of_coordinates()
        basis, knots = self.basis, self._not_stretched if law is None else law.knots
        statistic = ClippedFit(self.loss, Stretched(basis, knots), basis.variances, self._clip, basis.matrix)
        query = self._query(statistic, self.budget.mu * math.sqrt(self._share))
        answer = yield query
        left = float(np.clip(answer[-1] / TOLD + 0.5, 0.2, 1.0))
        scale = self._clip / left / np.maximum(self._shrunk, 1e-12)
        return Fitted(basis, shrink(scale * answer[:-1], (scale * query.law.sigma) ** 2, basis), knots)
