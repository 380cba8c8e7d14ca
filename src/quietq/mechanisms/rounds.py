"""Rounds: one model of everybody's rows, fitted by noisy means of clipped per-person gradients.

Theorem. Let each person's vector in round t be a function of their rows and of earlier answers, clipped to length B.
Then replacing one of N people moves the mean by at most 2B/N, whatever the rows say, and by sqrt(2) B/N where no two
vectors can be more than a right angle apart. So the answer with noise N(0, (2B/(N mu_t))^2 I) is mu_t-GDP, and all
rounds together are sqrt(sum mu_t^2)-GDP by adaptive composition. Steps, averages and shrinkage are post-processing of
the answers. Proof: docs/theory.md#mean-of-people.

How it fits. Two queries ask where states lie, coordinate by coordinate and together. By the distribution that they tell
(`basis`) the box is stretched, so that states are about uniform, and features are made orthonormal. Then
each round asks for the mean gradient at the current weights, and `weights - gradient/curvature` is an independent
estimate of the best weights. Estimates are averaged by their known noise (inverse-variance weighting) and shrunk
towards a public prior (empirical Bayes). The bound of the next round follows from how much clipping left of this one
(adaptive clipping; Andrew, Thakkar, McMahan & Ramaswamy 2021). How many features there are is fixed beforehand: as many
as leave the least expected error for this number of people and this budget.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from quietq.feedback.feedback import Feedback
from quietq.feedback.row_statistics import INDICATOR_WEIGHT, ClippedGradient, Loss, Marginals, SecondMoments
from quietq.mechanisms.basis import Basis, StateLaw
from quietq.mechanisms.release import Mechanism, Query, mean_of_people
from quietq.noise.box import Box
from quietq.noise.feature_maps import FeatureMap, variance_left_out
from quietq.privacy import Budget, Certificate, Relation
from quietq.privacy.assumptions import Code
from quietq.released.private_model import PrivateModel


@dataclass(frozen=True)
class RoundSettings:
    """The public numbers that the fit is made with: none of them changes what is promised."""

    rounds: int = 24
    """The most rounds of a fit."""
    fewest_rounds: int = 4
    """The fewest rounds of a fit, however large the noise is."""
    many_people: int = 10_000
    """The number of people from which on noise is small, and time counts."""
    rounds_of_many: int = 8
    """The rounds of a fit to more people than that."""
    bins: int = 8
    """The number of bins between the two ends of each coordinate, in the first query about where states lie."""
    marginals_share: float = 0.05
    """The share of mu squared that is spent on where states lie, coordinate by coordinate."""
    moments_share: float = 0.05
    """The share of mu squared that is spent on how coordinates of states vary together."""
    expected_rows: int = 10
    """The number of rows that a person is expected to have; others may have more or fewer."""
    target_unclipped_fraction: float = 0.4
    """The fraction of a gradient that clipping should leave: between 0.25 and 0.6 it hardly matters."""
    detectable_loss: float = 0.02
    """Where rare answers are to count: if noise cannot tell whether this fraction of a gradient is lost by clipping,
    the bound is as wide as the tolerance allows."""
    tolerated_loss: float = 0.002
    """If noise can tell, this fraction of a gradient is lost at the most."""
    certainty: float = 3.0
    """The number of standard deviations by which a loss must exceed its noise to count."""
    memory: float = 0.95
    """What the weight of earlier estimates is multiplied by in each round: where features are not quite orthonormal,
    estimates from far away are biased, and averages of all would forget them too slowly."""
    shrinking_rounds: int = 30
    """The steps of expectation and maximisation by which the prior of weights is learnt."""


SETTINGS = RoundSettings()


class ModelledRows(NamedTuple):
    """What is public about rows that a model is fitted to, where they are only a part of the feedback (`moments`)."""

    relation: Relation
    box: Box
    loss: Loss
    features: FeatureMap | None = None


class Fitted(NamedTuple):
    """What the rounds come to."""

    basis: Basis
    weights: Float[np.ndarray, " directions"]
    knots: Float[np.ndarray, "d knots"]
    deviation: float
    """The standard deviation of each weight, by noise and by chance in who was asked."""
    kept: Float[np.ndarray, " directions"]
    """The fraction of each weight that survived shrinkage."""


class Rounds(Mechanism):
    """A reward in any dimension, with interactions: a linear model of public features, from everybody's rows."""

    name, feedback_kind = "rounds", "rows"
    asks_code = False
    conditions = (Code.MEANS_OF_PEOPLE(),)
    remarks = (
        "States are modelled as correlated coordinates: if they lie in clusters, the error may be larger than "
        "expected, so try it on synthetic people.",
    )

    def __init__(
        self, rows: Feedback | ModelledRows, budget: Budget, mu: float | None = None, tolerance: float = 0.0
    ) -> None:
        """Divides the budget among rounds, and chooses how many features are fitted.

        Args:
            rows: What is public about the rows that the model is fitted to.
            budget: The (epsilon, delta) that the release may cost.
            mu: What the model may spend, if that is only a part of the budget.
            tolerance: An error, in units of the range, that unbiased answers are worth: with it bounds are as wide as
                noise of that size allows, up to where no gradient is clipped.

        """
        assert rows.loss is not None
        self.relation, self.budget, self.loss, self.box = rows.relation, budget, rows.loss, rows.box
        self.mu = budget.mu if mu is None else mu
        self.largest, self.error = math.sqrt(self.box.dimension) + 2, 1e-12
        self._tolerance = tolerance
        self._has_default_features = rows.features is None
        self._asks_where = rows.features is None or rows.features.stretches
        self.remarks = self._remarks()
        self.every = Basis.of(rows.features, self.box.dimension, self.loss)
        """All directions that there are; `basis` leaves out those that are not worth their noise."""
        # The variance of one coordinate of a person's gradient: of a mean over as many rows as people have.
        people = self.people
        self._variance_of_people = self.loss.spread / SETTINGS.expected_rows
        # Few rounds where noise is large: each must still show which fraction of a gradient was clipped.
        self.rounds = SETTINGS.rounds_of_many
        if people <= SETTINGS.many_people:
            self.rounds = int(np.clip(people * self.mu / 4, SETTINGS.fewest_rounds, SETTINGS.rounds))
        # All rounds have the same mu, and their squares add up to what the queries about states leave.
        left = 1 - SETTINGS.marginals_share - SETTINGS.moments_share if self._asks_where else 1.0
        self._mu_of_round = self.mu * math.sqrt(left / self.rounds)
        # With k weights a gradient's length, and so its bound B, is about sqrt(k) times a coordinate's deviation. Noise
        # of 2B/(N mu), over the curvature and averaged over all rounds, has the variance k times this on each weight.
        scale = (people * self._mu_of_round * self.loss.curvature) ** 2
        self._noise = 4 * self._variance_of_people / scale / self.rounds
        self.basis = self._worthwhile(self.every)

    def _remarks(self) -> tuple[str, ...]:
        remarks = list(self.remarks if self._asks_where else ())
        if self.loss.range is None:
            remarks.append("The reward is in log-odds and up to a constant, which choices do not identify.")
        return tuple(remarks)

    def run(self) -> Generator[Query, np.ndarray, Fitted]:
        # Where states lie: directions that are orthonormal there, in a box that is stretched until they are uniform.
        basis, knots = yield from self._ask_where_states_lie()
        features = partial(basis.features, knots=knots)
        people, curvature = self.people, self.loss.curvature
        # The first bound is half of the length that a gradient is expected to have.
        widest = self._affordable_bound(basis)
        bound = max(0.5 * math.sqrt(basis.size * self._variance_of_people), widest)
        weights = np.zeros(basis.size)
        estimates = np.zeros(basis.size)  # added up, each over its variance
        precision = 0.0  # of all of them: the sum of one over each variance
        kept = np.ones(basis.size)
        for number in range(self.rounds):
            # Rare answers are to count: estimates far from the optimum are biased by more, and are dropped.
            if self._tolerance and number == self.rounds // 4:
                estimates, precision = np.zeros(basis.size), 0.0
            # The mean of people's gradients at the current weights, each clipped to the bound.
            statistic = ClippedGradient(self.loss, features, basis.of_features(weights), bound, basis.matrix)
            query = mean_of_people(statistic, people, self._mu_of_round)
            answer, sigma = (yield query), query.law.sigma
            # The last number tells which fraction clipping left; divided by it, the gradient is about unbiased.
            left = float(np.clip(answer[-1] / INDICATOR_WEIGHT + 0.5, 0.2, 1.0))
            gradient = bound / left * answer[:-1]
            noise = bound / left * sigma
            # A Newton step is one more estimate of the best weights, averaged with earlier ones by its variance.
            variance = (noise**2 + self._variance_of_people / people) / curvature**2
            estimates = SETTINGS.memory * estimates + (weights - gradient / curvature) / variance
            precision = SETTINGS.memory * precision + 1 / variance
            # Empirical Bayes shrinkage of the average.
            kept = kept_by_shrinkage(estimates / precision, 1 / precision, basis)
            weights = estimates / precision * kept
            bound = self._next_bound(bound, left, sigma / INDICATOR_WEIGHT, widest)
        return Fitted(basis, weights, knots, precision**-0.5, kept)

    def _ask_where_states_lie(self) -> Generator[Query, np.ndarray, tuple[Basis, np.ndarray]]:
        """Asks for marginals and second moments; gives directions, and the knots by which the box is stretched."""
        people, dimension = self.people, self.box.dimension
        if not self._asks_where:
            return self.basis, np.tile([0.0, 1.0], (dimension, 1))
        marginals = Marginals(self.loss, dimension, SETTINGS.bins)
        query = mean_of_people(marginals, people, self.mu * math.sqrt(SETTINGS.marginals_share))
        law = StateLaw.from_marginals((yield query), query.law.sigma, SETTINGS.bins)
        moments = SecondMoments(self.loss, law.centred, dimension)
        query = mean_of_people(moments, people, self.mu * math.sqrt(SETTINGS.moments_share))
        law = law.tied((yield query), query.law.sigma, self.loss.compared)
        gram = None
        if self.basis.matrix is None or self.basis.actions == 1:
            gram = law.gram(self.basis.alone, self.loss.compared)
        return self.basis if gram is None else self._worthwhile(self.basis.turned(gram)), law.knots

    def _next_bound(self, bound: float, left: float, noise: float, widest: float) -> float:
        """Adaptive clipping: towards the target fraction or, where rare answers are to count, towards no loss at all,
        as far as noise lets that be seen.
        """
        detected = SETTINGS.certainty * noise
        if self._tolerance and detected < SETTINGS.detectable_loss:
            # Wider by as much as more is lost than may be, and narrower where less is; noise is added to both, so that
            # noise alone changes little.
            lost = max(detected, SETTINGS.tolerated_loss)
            return bound * float(np.clip((1 - left + noise) / (lost + noise), 0.7, 2.0))
        # A bound that leaves more than the target is too wide, in about that proportion.
        return max(bound * float(np.clip(SETTINGS.target_unclipped_fraction / left, 0.5, 2.0)), widest)

    def _affordable_bound(self, basis: Basis) -> float:
        """A bound whose noise is within the tolerance, but none wider than where no gradient is clipped."""
        if not self._tolerance:
            return 0.0
        worth = self.people * self._mu_of_round * math.sqrt(self.rounds)
        # The longest features are looked for at public places, every other one a corner.
        places = 2**10
        points = np.random.default_rng(0).random((places, self.box.dimension))
        points[::2] = np.rint(points[::2])
        lengths = [np.linalg.norm(basis.directions(points, np.full(places, i)), axis=1) for i in range(basis.actions)]
        with_fraction = math.sqrt(1 + INDICATOR_WEIGHT**2 / 4)
        return min(self._tolerance * worth / (2 * with_fraction * math.sqrt(basis.size)), float(np.max(lengths)))

    def _worthwhile(self, basis: Basis) -> Basis:
        """Returns as many directions, largest first, as leave the least expected error.

        A person's gradient grows with the root of their number, and so does the noise on each of them.
        """
        # With k directions each weight has noise of variance `each`. The posterior of a weight of prior variance v that
        # is fitted has the variance v each/(v + each), and one that is left out keeps v: least over k is their sum.
        variances = np.sort(self.loss.rougher * basis.variances)[::-1]
        numbers = np.arange(1, len(variances) + 1)
        each = numbers[:, None] * self._noise
        kept = np.where(numbers <= numbers[:, None], variances * each / (variances + each), variances)
        return basis.first(int(np.argmin(kept.sum(axis=1))) + 1)

    def result(self, released: Fitted, certificate: Certificate) -> PrivateModel:
        weights, offset = released.basis.weights(self.loss.unit * released.weights)
        low, high = self.loss.range or (None, None)
        feature_map = released.basis.feature_map
        return PrivateModel(feature_map, offset, weights, released.knots, low, high, self.box, certificate)  # pyright: ignore[reportArgumentType]

    @cached_property
    def expected_error(self) -> float:
        """Root mean square where people's states lie, for rewards as the prior has them.

        Noise, chance in who was asked (without it, little noise would seem to leave no error) and what is not fitted
        are in it; what given features cannot represent is not, for nobody knows that.
        """
        variances, size = np.sort(self.every.variances)[::-1], self.basis.size
        each = size * self._noise + self._variance_of_people / (self.people * self.loss.curvature**2)
        fitted = variances[:size]
        error = float((fitted * each / (fitted + each)).sum() + variances[size:].sum())
        if self._has_default_features:
            error += self.loss.scale**2 * variance_left_out(self.box.dimension)
        low, high = self.loss.range or (0.0, self.loss.unit)
        return (high - low) * math.sqrt(error)


def kept_by_shrinkage(
    estimates: Float[np.ndarray, " rank"], variance: float, basis: Basis
) -> Float[np.ndarray, " rank"]:
    """The fraction of each weight that the posterior mean is: adaptive shrinkage by empirical Bayes.

    The prior of a weight is a mixture of normals, whose variances are some multiples of the public one. How common each
    multiple is in a group of features is learnt from the group itself, by expectation and maximisation of the
    likelihood (Stephens 2017, "False discovery rates: a new deal"), so that a few strong interactions among many that
    are nothing are kept.
    """
    # The likelihood of each estimate under each component: normal, of prior variance and noise together.
    multiples = np.array([0.03, 0.1, 0.3, 1.0, 3.0, 10.0])
    spread = multiples[:, None] * basis.variances + variance
    density = np.exp(-(estimates**2) / (2 * spread)) / np.sqrt(spread)
    expected = np.exp(-(np.log(multiples) ** 2) / 8)[:, None]  # a multiple of 1 is the likeliest beforehand
    expected /= expected.sum()  # counts as one feature more in each group
    groups = basis.groups
    size = np.bincount(groups) + 1
    common = np.repeat(expected, len(size), axis=1)
    # Expectation: which component each weight comes from. Maximisation: how common each is in its group.
    for _ in range(SETTINGS.shrinking_rounds):
        responsibilities = _normalised(common[:, groups] * density)
        common = (np.stack([np.bincount(groups, one) for one in responsibilities]) + expected) / size
    # The posterior mean of one component shrinks by 1 - noise/(prior and noise); components are averaged.
    return (_normalised(common[:, groups] * density) * (1 - variance / spread)).sum(axis=0)


def _normalised(sizes: Float[np.ndarray, "multiples rank"]) -> Float[np.ndarray, "multiples rank"]:
    return sizes / np.maximum(sizes.sum(axis=0), 1e-300)
