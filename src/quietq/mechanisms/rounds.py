"""Rounds: one model of everybody's rows, fitted by noisy means of clipped per-person gradients.

Theorem. Let each person's vector in round t be a function of their rows and of earlier answers, held to length B. Then
replacing one of N people moves the mean by at most 2B/N, whatever the rows say, so the answer with noise
N(0, (2B/(N mu_t))^2 I) is mu_t-GDP, and all rounds together are sqrt(sum mu_t^2)-GDP by adaptive composition. Steps,
averages and shrinkage are post-processing of the answers. See `docs/theory.md`, section 9.

How it fits: a first query asks where states lie, coordinate by coordinate, and stretches the box so that they are about
uniform. The features are then about orthonormal, so each round is an independent look at the best weights, `weights -
gradient/curvature`; looks are averaged by their known noise and shrunk towards a public prior. How many features there
are is fixed beforehand, by which number leaves the least expected error for so many people and this budget.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from quietq.feedback.row_statistics import COMPANY, TOLD, ClippedGradient, Marginals
from quietq.feedback.statistic import Vector
from quietq.mechanisms.laws import Gaussian
from quietq.mechanisms.mechanism import SLACK, Mechanism, Query, Task
from quietq.mechanisms.private_model import PrivateModel, stretch
from quietq.mechanisms.smooth_prior import smooth_prior
from quietq.mechanisms.weights import Independent
from quietq.noise.box import Box
from quietq.noise.feature_maps import Polynomials
from quietq.privacy.certificate import Assumption, Certificate
from quietq.privacy.checks import positive
from quietq.privacy.errors import InvalidInput
from quietq.privacy.norms import NORMS, Norm, Record

ROUNDS = 24
FEWER_ROUNDS = 12
"""For more than ten thousand people: noise is small then, and time counts."""
BINS = 8
MARGINALS = 0.1
"""The share of mu squared that goes into where states lie."""
ROWS = 10
"""How many rows a person is expected to have; others may have more or fewer."""
LEFT = 0.4
"""What fraction of a gradient clipping should leave: where noise and bias balance, over many kinds of rewards."""
ROUGHER = 3.0
"""Features are chosen for a reward with so many times the variance that is expected: its weight may lie in few of them,
and shrinkage takes back what is not there."""
_SCALES = np.array([0.03, 0.1, 0.3, 1.0, 3.0, 10.0])


class Rounds(Mechanism):
    """A reward in any dimension, with interactions, from rows of ratings."""

    name, takes = "rounds", "rows"
    remarks = (
        "The model is made for states whose coordinates are about independent: where they are strongly correlated it "
        "may be far off, so try it on a simulation.",
    )

    def __init__(self, task: Task) -> None:
        relation, loss, self.box = task.relation, task.loss, Box.of(task.domain)
        self.relation, self.budget, self.loss, dimension = relation, task.budget, loss, self.box.dimension
        self.largest, self.error = math.sqrt(dimension) + 2, 1e-12
        self._spread = loss.spread / ROWS
        self.rounds = ROUNDS if relation.people <= 10_000 else FEWER_ROUNDS
        share = math.sqrt(1 - MARGINALS)
        noise = 4 * self._spread / (relation.people * self.budget.mu * share * loss.curvature) ** 2
        terms, variances = smooth_prior(dimension)
        variances = loss.scale**2 * variances
        if loss.constant:
            terms, variances = ((), *terms), np.append(1 / 16, variances)
        number, _ = _worth_their_noise(ROUGHER * variances, noise)
        self._error = _worth_their_noise(variances, noise)[1]
        order = sorted(range(number), key=lambda i: len(terms[i]))
        self.features = Polynomials(dimension, tuple(terms[i] for i in order))
        self.variances = variances[order]
        self.groups = _groups(self.features)
        self.conditions = (
            Assumption(
                f"Each of {self.rounds} rounds took the mean of one vector per person, held to its bound, noised once, "
                "and saw earlier answers only.",
                True,
            ),
        )

    def run(self) -> Generator[Query, np.ndarray, tuple[np.ndarray, np.ndarray]]:
        mu = self.budget.mu
        first = self._query(Marginals(self.loss, self.box.dimension, BINS), mu * math.sqrt(MARGINALS))
        answer = yield first
        knots = _even_out(answer.reshape(self.box.dimension, BINS), first.law.sigma)
        each = mu * math.sqrt((1 - MARGINALS) / self.rounds)
        rank, curvature = self.features.rank, self.loss.curvature
        weights, looks, precision = np.zeros(rank), np.zeros(rank), 0.0
        clip = 0.5 * math.sqrt(rank * self._spread)
        for _ in range(self.rounds):
            query = self._query(ClippedGradient(self.loss, Stretched(self.features, knots), weights, clip), each)
            answer = yield query
            left = float(np.clip(answer[-1] / TOLD + 0.5, 0.2, 1.0))
            gradient, noise = clip / left * answer[:-1], clip / left * query.law.sigma
            variance = (noise**2 + self._spread / self.relation.people) / curvature**2
            looks, precision = looks + (weights - gradient / curvature) / variance, precision + 1 / variance
            weights = _shrink(looks / precision, 1 / precision, self.variances, self.groups)
            clip *= float(np.clip(LEFT / left, 0.5, 2.0))
        return weights, knots

    def _query(self, statistic: Vector, mu: float) -> Query:
        company = COMPANY * math.sqrt(statistic.size) * statistic.bound
        sensitivity = 2 * statistic.bound / self.relation.people * SLACK + company
        law = Gaussian(sensitivity / mu, Independent({"kind": "mean-of-people", "bound": statistic.bound}))
        return Query(lambda feedback: feedback.mean(statistic), sensitivity, law)

    def result(self, released: Any, certificate: Certificate) -> PrivateModel:
        weights, knots = released
        low, high = self.loss.range or (None, None)
        return PrivateModel(self.features, weights, knots, low, high, self.box, certificate)

    def expected_error(self) -> float:
        """In units of the range: root mean square over states, for rewards as the prior has them."""
        return math.sqrt(self._error)

    @classmethod
    def propose(cls, task: Task) -> list["Rounds"]:
        if task.budget.is_pure:
            raise InvalidInput("A model of everybody's rows has Gaussian noise: delta must be above 0.")
        return [cls(task)]


@dataclass(frozen=True, eq=False)
class Stretched:
    """Features of states after they were stretched; it can be sent to other machines."""

    features: Polynomials
    knots: Float[np.ndarray, "d knots"]

    def __call__(self, points: np.ndarray) -> np.ndarray:
        return self.features(stretch(points, self.knots))


def _worth_their_noise(variances: np.ndarray, noise: float) -> tuple[int, float]:
    """How many features, largest first, leave the least expected error; and that error.

    A person's gradient grows with the root of the number of features, and so does the noise on each of them.
    """
    numbers = np.arange(1, len(variances) + 1)
    each = numbers[:, None] * noise
    kept = np.where(numbers <= numbers[:, None], variances * each / (variances + each), variances)
    errors = kept.sum(axis=1)
    best = int(np.argmin(errors))
    return best + 1, float(errors[best])


def _groups(features: Polynomials) -> Int[np.ndarray, " rank"]:
    """Features of one number of factors and one total degree are shrunk alike."""
    keys = [(len(term), sum(degree for _, degree in term)) for term in features.terms]
    known = {key: i for i, key in enumerate(sorted(set(keys)))}
    return np.array([known[key] for key in keys])


def _even_out(counts: Float[np.ndarray, "d bins"], sigma: float) -> Float[np.ndarray, "d knots"]:
    """Distribution functions from noisy shares: each coordinate is shrunk to uniform by what its noise is worth."""
    bins = counts.shape[1]
    beyond = counts - counts.mean(axis=1, keepdims=True)
    size = np.maximum((beyond**2).sum(axis=1, keepdims=True), 1e-300)
    shares = 1 / bins + beyond * np.maximum(0.0, 1 - (bins - 1) * sigma**2 / size)
    shares = np.maximum(shares, 0.1 / bins)
    risen = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)
    risen[:, -1] = 1.0
    return np.hstack([np.zeros((len(counts), 1)), risen])


def _shrink(
    looked: Float[np.ndarray, " rank"], variance: float, prior: Float[np.ndarray, " rank"], groups: np.ndarray
) -> Float[np.ndarray, " rank"]:
    """The posterior mean, with a scale of the prior for each group: the likeliest, under a wide prior of its own."""
    spread = _SCALES[:, None] * prior + variance
    likelihood = -(np.log(spread) + looked**2 / spread) / 2
    together = np.stack([np.bincount(groups, one) for one in likelihood]) - np.log(_SCALES)[:, None] ** 2 / 8
    scaled = _SCALES[np.argmax(together, axis=0)][groups] * prior
    return looked * scaled / (scaled + variance)


def _difference(norm: Record, relation: Record) -> float | None:
    return 2 * norm["bound"] / relation["people"] if relation["kind"] == "one-person" else None


NORMS["mean-of-people"] = Norm(
    fields={"bound": positive},
    difference=_difference,
    words=lambda norm: f"the length of a mean of people's vectors, each held to {norm['bound']:g}",
    families=("gaussian",),
)
