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
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from quietq.feedback.row_statistics import COMPANY, TOLD, ClippedGradient, Marginals, SecondMoments
from quietq.feedback.statistic import Vector
from quietq.mechanisms.basis import Basis, Stretched
from quietq.mechanisms.laws import Gaussian
from quietq.mechanisms.mechanism import SLACK, Mechanism, Query, Task
from quietq.mechanisms.private_model import PrivateModel
from quietq.mechanisms.state_law import StateLaw
from quietq.mechanisms.weights import Independent
from quietq.noise.box import Box
from quietq.noise.feature_maps import Splines
from quietq.privacy.certificate import Assumption, Certificate
from quietq.privacy.checks import positive
from quietq.privacy.errors import InvalidInput
from quietq.privacy.norms import NORMS, Norm, Record

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


class Rounds(Mechanism):
    """A reward in any dimension, with interactions, from rows of ratings."""

    name, takes = "rounds", "rows"
    remarks = (
        "Where states lie is taken for correlated coordinates: if they lie in clusters, the model may be farther off "
        "than expected, so try it on a simulation.",
    )

    def __init__(self, task: Task, tolerance: float = 0.0) -> None:
        """`tolerance` is an error, in units of the range, that unbiased answers are worth: with it clips are as wide as
        noise of that size allows, up to where nobody's gradient is clipped.
        """
        self._tolerance = tolerance
        relation, loss, self.box = task.relation, task.loss, Box.of(task.domain)
        self.relation, self.budget, self.loss, dimension = relation, task.budget, loss, self.box.dimension
        self.largest, self.error = math.sqrt(dimension) + 2, 1e-12
        self._spread = loss.spread / ROWS
        self._not_stretched = np.tile([0.0, 1.0], (dimension, 1))
        self.rounds = _number_of_rounds(relation.people, self.budget.mu)
        self._looks_first = task.features is None or task.features.stretches
        if not self._looks_first:
            self.remarks = ()
        self._share = 1 - MARGINALS - MOMENTS if self._looks_first else 1.0
        self._noise = 4 * self._spread / (relation.people * self.budget.mu * loss.curvature) ** 2 / self._share
        self._every = Basis.of(task.features, dimension, loss)
        self.basis = self._worthwhile(self._every)
        self._error = _worth_their_noise(self._every.variances, self._noise)[1]
        if isinstance(task.features, Splines) and task.features.additive:
            self.remarks = (*self.remarks, "The model is a sum of one function per coordinate: it has no interactions.")
        self.conditions = (
            Assumption(
                f"Each of {self.rounds} rounds took the mean of one vector per person, held to its bound, noised once, "
                "and saw earlier answers only.",
                True,
            ),
        )

    def run(self) -> Generator[Query, np.ndarray, Fitted]:
        basis, knots = yield from self._look_at_states()
        each = self.budget.mu * math.sqrt(self._share / self.rounds)
        curvature, features = self.loss.curvature, Stretched(basis, knots)
        weights, looks, precision = np.zeros(basis.size), np.zeros(basis.size), 0.0
        least = self._affordable(basis)
        clip = max(0.5 * math.sqrt(basis.size * self._spread), least)
        for number in range(self.rounds):
            if self._tolerance and number == self.rounds // 4:  # looks from far away are off by more than that
                looks, precision = np.zeros(basis.size), 0.0
            query = self._query(
                ClippedGradient(self.loss, features, basis.of_features(weights), clip, basis.matrix), each
            )  # fmt: skip
            answer = yield query
            left = float(np.clip(answer[-1] / TOLD + 0.5, 0.2, 1.0))
            gradient, noise = clip / left * answer[:-1], clip / left * query.law.sigma
            variance = (noise**2 + self._spread / self.relation.people) / curvature**2
            looks = KEPT * looks + (weights - gradient / curvature) / variance
            precision = KEPT * precision + 1 / variance
            weights = shrink(looks / precision, 1 / precision, basis)
            clip = self._next_clip(clip, left, query.law.sigma / TOLD, least)
        return Fitted(basis, weights, knots, precision**-0.5)

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
        worth = self.relation.people * self.budget.mu * math.sqrt(self._share)
        rng = np.random.default_rng(0)
        points = rng.random((_PLACES, self.box.dimension))
        points[::2] = np.rint(points[::2])
        lengths = [np.linalg.norm(basis.directions(points, np.full(_PLACES, i)), axis=1) for i in range(basis.actions)]
        bound = math.sqrt(1 + TOLD**2 / 4)
        return min(self._tolerance * worth / (2 * bound * math.sqrt(basis.size)), float(np.max(lengths)))

    def _look_at_states(self) -> Generator[Query, np.ndarray, tuple[Basis, np.ndarray]]:
        """Directions that are orthonormal where states lie, and the knots by which the box is stretched."""
        law = yield from self._law_of_coordinates()
        if law is None:
            return self.basis, self._not_stretched
        statistic = SecondMoments(self.loss, law.centred, self.box.dimension)
        query = self._query(statistic, self.budget.mu * math.sqrt(MOMENTS))
        law = law.tied((yield query), query.law.sigma, self.loss.compared)
        gram = None
        if self.basis.matrix is None or self.basis.actions == 1:
            gram = law.gram(self.basis.alone, self.loss.compared)
        return self.basis if gram is None else self._worthwhile(self.basis.turned(gram)), law.knots

    def _law_of_coordinates(self) -> Generator[Query, np.ndarray, StateLaw | None]:
        """Where states lie, each coordinate for itself; nothing for maps that take the box as it is."""
        if not self._looks_first:
            return None
        query = self._query(Marginals(self.loss, self.box.dimension, BINS), self.budget.mu * math.sqrt(MARGINALS))
        return StateLaw.of((yield query), query.law.sigma, BINS)

    def _worthwhile(self, basis: Basis) -> Basis:
        """The directions that are worth their noise."""
        return basis.first(_worth_their_noise(self.loss.rougher * basis.variances, self._noise)[0])

    def _query(self, statistic: Vector, mu: float) -> Query:
        return mean_query(statistic, self.relation.people, mu)

    def result(self, released: Any, certificate: Certificate) -> PrivateModel:
        basis, fitted, knots, _ = released
        (weights, offset), (low, high) = basis.weights(self.loss.unit * fitted), self.loss.range or (None, None)
        return PrivateModel(basis.feature_map, offset, weights, knots, low, high, self.box, certificate)

    def expected_error(self) -> float:
        """In units of the range: root mean square over states, for rewards as the prior has them."""
        return math.sqrt(self._error)

    @classmethod
    def propose(cls, task: Task) -> list["Rounds"]:
        if task.budget.is_pure:
            raise InvalidInput("A model of everybody's rows has Gaussian noise: delta must be above 0.")
        return [cls(task)]


def mean_query(statistic: Vector, people: int, mu: float) -> Query:
    """The noisy mean of a vector of each of so many people, at this price: by the theorem above."""
    company = COMPANY * math.sqrt(statistic.size) * statistic.bound
    sensitivity = _FARTHEST[statistic.norm] * statistic.bound / people * SLACK + company
    law = Gaussian(sensitivity / mu, Independent({"kind": statistic.norm, "bound": statistic.bound}))
    return Query(lambda feedback: feedback.mean(statistic), sensitivity, law)


def _number_of_rounds(people: int, mu: float) -> int:
    """Few where noise is large: each round must still show how much of a gradient clipping leaves."""
    return FEWER_ROUNDS if people > 10_000 else int(np.clip(people * mu / 4, 4, ROUNDS))


def _worth_their_noise(variances: np.ndarray, noise: float) -> tuple[int, float]:
    """How many directions, largest first, leave the least expected error; and that error.

    A person's gradient grows with the root of their number, and so does the noise on each of them.
    """
    variances = np.sort(variances)[::-1]
    numbers = np.arange(1, len(variances) + 1)
    each = numbers[:, None] * noise
    kept = np.where(numbers <= numbers[:, None], variances * each / (variances + each), variances)
    errors = kept.sum(axis=1)
    best = int(np.argmin(errors))
    return best + 1, float(errors[best])


def shrink(
    looked: Float[np.ndarray, " rank"], variance: float | Float[np.ndarray, " rank"], basis: Basis
) -> Float[np.ndarray, " rank"]:
    """The posterior mean, if the prior's variance is to be multiplied by one of several scales, feature by feature.

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
    return looked * (_shares(common[:, groups] * density) * (1 - variance / spread)).sum(axis=0)


def _shares(sizes: Float[np.ndarray, "scales rank"]) -> Float[np.ndarray, "scales rank"]:
    return sizes / np.maximum(sizes.sum(axis=0), 1e-300)


_FARTHEST = {"mean-of-people": 2.0, "mean-within-right-angles": math.sqrt(2)}
"""How far apart the vectors of two people can be, in units of the bound."""


def _difference(norm: Record, relation: Record) -> float | None:
    if relation["kind"] != "one-person":
        return None
    return _FARTHEST[norm["kind"]] * norm["bound"] / relation["people"]


NORMS["mean-of-people"] = Norm(
    fields={"bound": positive},
    difference=_difference,
    words=lambda norm: f"the length of a mean of people's vectors, each held to {norm['bound']:g}",
    families=("gaussian",),
)
NORMS["mean-within-right-angles"] = Norm(
    fields={"bound": positive},
    difference=_difference,
    words=lambda norm: (
        f"the length of a mean of people's vectors, each held to {norm['bound']:g}, no two of which are more than a "
        "right angle apart"
    ),
    families=("gaussian",),
)
