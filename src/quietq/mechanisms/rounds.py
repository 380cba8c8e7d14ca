"""Rounds: one model of everybody's rows, fitted by noisy means of clipped per-person gradients.

Theorem. Let each person's vector in round t be a function of their rows and of earlier answers, held to length B. Then
replacing one of N people moves the mean by at most 2B/N, whatever the rows say, and by sqrt(2) B/N where no two vectors
can be more than a right angle apart. So the answer with noise N(0, (2B/(N mu_t))^2 I) is mu_t-GDP, and all rounds
together are sqrt(sum mu_t^2)-GDP by adaptive composition. Steps, averages and shrinkage are post-processing of the
answers. See `docs/theory.md`, section 11.

How it fits: two queries ask where states lie, coordinate by coordinate and together. By the law that they tell
(`state_law`) the box is stretched, so that states are about uniform, and features are made orthonormal. So each round
is an independent look at the best weights, `weights - gradient/curvature`; looks are averaged by their known noise and
shrunk towards a public prior. How many features there are is fixed by which number leaves the least expected error for
so many people and this budget.
"""

import math
from collections.abc import Generator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from quietq.feedback.row_statistics import TOLD, ClippedGradient, Marginals, SecondMoments
from quietq.mechanisms.basis import Basis, Stretched
from quietq.mechanisms.feature_model import FeatureModel, held
from quietq.mechanisms.mechanism import Query, Task
from quietq.mechanisms.people_mean import mean_of_people
from quietq.mechanisms.state_law import StateLaw

ROUNDS = 24
FEWER_ROUNDS = 8
"""For more than ten thousand people: noise is small then, and time counts."""
BINS = 8
MARGINALS, MOMENTS = 0.05, 0.05
"""The shares of mu squared that go into where states lie, coordinate by coordinate and together."""
ROWS = 10
"""How many rows a person is expected to have; others may have more or fewer."""
LEFT = 0.4
"""What fraction of a gradient clipping should leave: between 0.25 and 0.6 it hardly matters."""
CLIPPED, LOST = 0.02, 0.002
"""Where rare answers are to count: if noise cannot tell whether so much of a gradient is lost by clipping, clips are as
wide as the tolerance allows; if it can, at the most so much is to be lost."""
_SURE = 3.0
"""Deviations."""
KEPT = 0.95
"""Of the weight that earlier looks have, in each round: where features are not quite orthonormal, looks from far away
are off, and averages of all looks forget them too slowly."""
_SCALES = np.array([0.03, 0.1, 0.3, 1.0, 3.0, 10.0])
"""What the prior's variances may have to be multiplied by: 1 is the likeliest beforehand."""
_PLACES = 2**10
"""Where it is looked for the longest features: public places, every other one a corner."""
_STEPS = 30
"""Of expectation and maximisation."""


class Fitted(NamedTuple):
    """What rounds come to."""

    basis: Basis
    weights: Float[np.ndarray, " directions"]
    knots: Float[np.ndarray, "d knots"]
    deviation: float = 0.0
    """Of each weight: how far noise, and chance in who was asked, may have moved it."""
    kept: Float[np.ndarray, " directions"] | None = None
    """Which part of each weight shrinkage left."""


class Rounds(FeatureModel):
    """A model that is fitted in rounds."""

    name = "rounds"

    def __init__(self, task: Task, mu: float | None = None, tolerance: float = 0.0) -> None:
        """`tolerance` is an error, in units of the range, that unbiased answers are worth: with it clips are as wide as
        noise of that size allows, up to where nobody's gradient is clipped.
        """
        super().__init__(task, mu)
        self._tolerance, people, loss = tolerance, self.relation.people, self.loss
        self._spread = loss.spread / ROWS
        self.rounds = _number_of_rounds(people, self.mu)
        self._share = 1 - MARGINALS - MOMENTS if self._looks_first else 1.0
        self._each = self.mu * math.sqrt(self._share / self.rounds)
        self._noise = 4 * self._spread / (people * self._each * loss.curvature) ** 2 / self.rounds
        self.basis = self._worthwhile(self._every)
        self._error = self._expected(self._every.variances)
        self.queries = {"2 about where states lie": 2} if self._looks_first else {}
        self.queries |= {f"{self.rounds} rounds of the fit": self.rounds}
        self.conditions = held(sum(self.queries.values()), *self.queries)

    def run(self) -> Generator[Query, np.ndarray, Fitted]:
        basis, knots = yield from self._look_at_states()
        curvature, features = self.loss.curvature, Stretched(basis, knots)
        weights, looks, precision = np.zeros(basis.size), np.zeros(basis.size), 0.0
        kept = np.ones(basis.size)
        least = self._affordable(basis)
        clip = max(0.5 * math.sqrt(basis.size * self._spread), least)
        for number in range(self.rounds):
            if self._tolerance and number == self.rounds // 4:  # looks from far away are off by more than that
                looks, precision = np.zeros(basis.size), 0.0
            statistic = ClippedGradient(self.loss, features, basis.of_features(weights), clip, basis.matrix)
            query = mean_of_people(statistic, self.relation.people, self._each)
            answer = yield query
            left = float(np.clip(answer[-1] / TOLD + 0.5, 0.2, 1.0))
            gradient, noise = clip / left * answer[:-1], clip / left * query.law.sigma
            variance = (noise**2 + self._spread / self.relation.people) / curvature**2
            looks = KEPT * looks + (weights - gradient / curvature) / variance
            precision = KEPT * precision + 1 / variance
            kept = kept_by_shrinkage(looks / precision, 1 / precision, basis)
            weights = looks / precision * kept
            clip = self._next_clip(clip, left, query.law.sigma / TOLD, least)
        return Fitted(basis, weights, knots, precision**-0.5, kept)

    def _next_clip(self, clip: float, left: float, noise: float, least: float) -> float:
        """So that clipping leaves what it should: all, if noise lets that be told, where rare answers are to count."""
        if self._tolerance and _SURE * noise < CLIPPED:
            lost = max(_SURE * noise, LOST)
            return clip * float(np.clip((1 - left + noise) / (lost + noise), 0.7, 2.0))
        return max(clip * float(np.clip(LEFT / left, 0.5, 2.0)), least)

    def _affordable(self, basis: Basis) -> float:
        """A clip whose noise is within the tolerance, but none wider than where nobody's gradient is clipped."""
        if not self._tolerance:
            return 0.0
        worth = self.relation.people * self._each * math.sqrt(self.rounds)
        rng = np.random.default_rng(0)
        points = rng.random((_PLACES, self.box.dimension))
        points[::2] = np.rint(points[::2])
        lengths = [np.linalg.norm(basis.directions(points, np.full(_PLACES, i)), axis=1) for i in range(basis.actions)]
        bound = math.sqrt(1 + TOLD**2 / 4)
        return min(self._tolerance * worth / (2 * bound * math.sqrt(basis.size)), float(np.max(lengths)))

    @property
    def every(self) -> Basis:
        """All directions that there are; those that are not worth their noise are left out."""
        return self._every

    def _look_at_states(self) -> Generator[Query, np.ndarray, tuple[Basis, np.ndarray]]:
        """Directions that are orthonormal where states lie, and the knots by which the box is stretched."""
        if not self._looks_first:
            return self.basis, self._not_stretched
        law = yield from law_of_coordinates(self)
        statistic = SecondMoments(self.loss, law.centred, self.box.dimension)
        query = mean_of_people(statistic, self.relation.people, self.mu * math.sqrt(MOMENTS))
        law = law.tied((yield query), query.law.sigma, self.loss.compared)
        gram = None
        if self.basis.matrix is None or self.basis.actions == 1:
            gram = law.gram(self.basis.alone, self.loss.compared)
        return self.basis if gram is None else self._worthwhile(self.basis.turned(gram)), law.knots

    def _worthwhile(self, basis: Basis) -> Basis:
        """The directions that are worth their noise."""
        return basis.first(_worth_their_noise(self.loss.rougher * basis.variances, self._noise))

    def _expected(self, variances: np.ndarray) -> float:
        """The mean square error of so many weights as are fitted: noise and chance, shrunk, and all that is left out.

        Chance is which people and states were asked: without it, little noise would seem to leave no error.
        """
        variances, size = np.sort(variances)[::-1], self.basis.size
        each = size * self._noise + self._spread / (self.relation.people * self.loss.curvature**2)
        fitted = variances[:size]
        return float((fitted * each / (fitted + each)).sum() + variances[size:].sum())


def law_of_coordinates(model: FeatureModel) -> Generator[Query, np.ndarray, StateLaw]:
    """The first query: where states lie, each coordinate for itself."""
    statistic = Marginals(model.loss, model.box.dimension, BINS)
    query = mean_of_people(statistic, model.relation.people, model.mu * math.sqrt(MARGINALS))
    return StateLaw.of((yield query), query.law.sigma, BINS)


def _number_of_rounds(people: int, mu: float) -> int:
    """Few where noise is large: each round must still show how much of a gradient clipping leaves."""
    return FEWER_ROUNDS if people > 10_000 else int(np.clip(people * mu / 4, 4, ROUNDS))


def _worth_their_noise(variances: np.ndarray, noise: float) -> int:
    """How many directions, largest first, leave the least expected error.

    A person's gradient grows with the root of their number, and so does the noise on each of them.
    """
    variances = np.sort(variances)[::-1]
    numbers = np.arange(1, len(variances) + 1)
    each = numbers[:, None] * noise
    kept = np.where(numbers <= numbers[:, None], variances * each / (variances + each), variances)
    return int(np.argmin(kept.sum(axis=1))) + 1


def kept_by_shrinkage(
    looked: Float[np.ndarray, " rank"], variance: float | Float[np.ndarray, " rank"], basis: Basis
) -> Float[np.ndarray, " rank"]:
    """Which part of each weight the posterior mean is.

    How common each scale is in a group of features is learnt from the group itself by likelihood (Stephens 2017, "False
    discovery rates: a new deal"), so that a few strong interactions among many that are nothing are kept.
    """
    prior, groups = basis.variances, basis.groups
    spread = _SCALES[:, None] * prior + variance
    density = np.exp(-(looked**2) / (2 * spread)) / np.sqrt(spread)
    expected = np.exp(-(np.log(_SCALES) ** 2) / 8)[:, None]
    expected /= expected.sum()  # counts as one feature more in each group
    size = np.bincount(groups) + 1
    common = np.repeat(expected, len(size), axis=1)
    for _ in range(_STEPS):
        belongs = _shares(common[:, groups] * density)
        common = (np.stack([np.bincount(groups, one) for one in belongs]) + expected) / size
    return (_shares(common[:, groups] * density) * (1 - variance / spread)).sum(axis=0)


def _shares(sizes: Float[np.ndarray, "scales rank"]) -> Float[np.ndarray, "scales rank"]:
    return sizes / np.maximum(sizes.sum(axis=0), 1e-300)
