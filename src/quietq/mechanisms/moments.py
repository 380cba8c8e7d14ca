"""Moments: a private world from people's sessions, by noisy means of what each person's steps look like.

Theorem. In each look at the dynamics a person is one positive semi-definite matrix of Frobenius norm 1, or 0 without
steps: a function of their rows and of earlier answers. For two such matrices <A, B> >= 0, so |A - B| <= sqrt(2), and
replacing one of N people moves the mean by at most sqrt(2)/N. With noise N(0, 2/(N mu_k)^2 I) on upper triangles (times
root 2 beside the diagonal, so that lengths are Frobenius norms) the answer is mu_k-GDP, and all looks together are
sqrt(sum mu_k^2)-GDP by adaptive composition. No clipping norm has to be declared. Proof: docs/theory.md#moments.

What it learns: the dynamics and the first states by iterated private whitening (`whitening`), rewards and early ends by
rounds of clipped gradients (`rounds`), because whitening weighs a person by one over the size of their own residuals
and so is biased where these are skewed. Rewards of steps that end an episode have a mean of their own, if the range of
the others is declared (docs/theory.md#end-rewards). What is declared as known (`WorldModel`) is neither learned nor
paid for.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import msgspec
import numpy as np

from quietq.feedback.row_statistics import Ends, StepRewards
from quietq.feedback.sessions import Sessions
from quietq.feedback.spaces import Spaces
from quietq.feedback.transition_statistics import EndRates, EndRewards, Looked, NormalisedMoments, first_states, moves
from quietq.mechanisms.basis import Basis
from quietq.mechanisms.iterated_whitening import Whitening, normal_scatter
from quietq.mechanisms.release import Mechanism, Query, mean_of_people
from quietq.mechanisms.rounds import Fitted, ModelledRows, Rounds
from quietq.noise.box import Box
from quietq.noise.feature_maps import Polynomials
from quietq.privacy import Budget, Certificate, InvalidInput
from quietq.privacy.assumptions import Assumption, Code
from quietq.released.private_model import PrivateModel
from quietq.released.private_world import Fit, PrivateWorld, WorldErrors, spreads, visited
from quietq.released.world_model import WorldModel

SHARES = {"dynamics": 0.76, "reward": 0.09, "end": 0.11, "start": 0.04}
"""The shares of mu squared that the parts have; what is known leaves its share to the others."""
END_REWARD_SHARE = 0.2
"""The part of the rewards' mu squared that rewards of steps that end an episode have, where they are learned apart."""
MeanAndCovariance = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class MomentSettings:
    """The public numbers that a world is fitted with: none of them changes what is promised."""

    rounds: int = 24
    """The number of queries about the dynamics."""
    first_rounds: int = 6
    """The number of queries about first states."""
    rate_rounds: int = 3
    """The number of queries about how often episodes end."""
    rate_share: float = 0.2
    """The part of the ends' budget that is spent on their overall rate."""
    certainty: float = 2.0
    """So many standard deviations of its noise must the share of people with ends be, or rewards at ends shrink."""
    reward_tolerance: float = 0.01
    """An error of rewards, in units of their range, that it is worth not to clip rare ones."""
    steepness: float = 3.0
    """What the slopes of ends are multiplied by: ends mostly lie beyond an edge, which few rounds and shrinkage make
    too flat."""
    margin: float = 4.0
    """The bound on a person's rate of ends is so many times the rate itself, or its noise."""
    least_variance: float = 1e-10
    """The least variance of states, in the unit box, that is told from none."""


SETTINGS = MomentSettings()
_NOTHING = Certificate(method="world/moments", standing="none")


class FittedWorld(NamedTuple):
    """All that the answers came to."""

    moves: Fit
    first: MeanAndCovariance | None
    """Mean and covariance of first states."""
    starts_seen: float | None
    """The z-score of first states against noise alone."""
    reward: Fitted | None
    ends: Fitted | None
    rate: float
    """What is added to the log-odds of an end, so that there are as many as there were."""
    ends_noise: float | None
    """The standard deviation of the noise on log-odds of ends."""
    end_reward: tuple[float, float] | None
    """The mean reward of steps that end an episode, and its noise, if they are learned apart."""


class Moments(Mechanism):
    """A world of states, actions, rewards and ends."""

    name, feedback_kind = "moments", "sessions"
    releases = "world"
    asks_code = False
    error_unit = "of one query, in units of what one person adds"

    def __init__(self, sessions: Sessions, budget: Budget, world: WorldModel | None = None) -> None:
        """Divides the budget among what has to be learned of the world."""
        self.relation, self.budget, self.box = sessions.relation, budget, sessions.box
        self.largest, self.error = 2.0, 1e-12
        self.spaces = spaces = sessions.spaces
        asked = world or WorldModel()
        asked.require_circles(spaces.box)
        asked.feature_map(spaces)  # what has too many features is refused, and not made less
        self.model = asked.affordable(spaces, self.people * budget.mu)
        self.feature_map = self.model.feature_map(spaces)
        self.moved = self.model.learned(spaces.states)
        """The coordinates whose dynamics are learned."""
        # What is neither known nor absent has its share of mu squared.
        parts = {name: share for name, share in SHARES.items() if name not in self.model.known}
        if "next" not in spaces.told or ("reward" in parts and "reward" not in spaces.told):
            raise InvalidInput("A world is made of next states and rewards: read them, or declare a known reward.")
        if "end" not in spaces.told:
            parts.pop("end", None)  # episodes never end by themselves
        if self.model.step_rewards is not None:
            self._require_ends_of_their_own(*self.model.step_rewards)
            parts["end reward"] = END_REWARD_SHARE * parts["reward"]
            parts["reward"] -= parts["end reward"]
        whole = sum(parts.values())
        self._mu = {name: budget.mu * math.sqrt(share / whole) for name, share in parts.items()}
        self.conditions = self._conditions()
        if isinstance(self.feature_map, Polynomials) and self.model.degree == 1 and self.model.features is None:
            self.remarks = (
                "The dynamics are linear in state and action, so that curvature in them is lost. A higher degree has "
                "more features, and all of them more noise, which can cost more than that: compare both on "
                "synthetic sessions.",
            )
        if self.model.degree < asked.degree:
            self.remarks = (
                f"The dynamics are polynomials of degree {self.model.degree}, where {asked.degree} was asked for: "
                f"people times mu = {self.people * budget.mu:.3g} are too few for its features.",
            )

    def _require_ends_of_their_own(self, low: float, high: float) -> None:
        spaces = self.spaces
        if "end" not in spaces.told:
            raise InvalidInput("step_rewards needs to know which steps end an episode: read their column, end=...")
        if not spaces.low <= low < high <= spaces.high:
            raise InvalidInput(
                f"step_rewards must lie in the range of all rewards, {spaces.low:g} to {spaces.high:g}, not {low:g} to "
                f"{high:g}."
            )

    @cached_property
    def _reward(self) -> Rounds | None:
        """Rewards, as a model of state and action; None where they are known."""
        if "reward" not in self._mu:
            return None
        joint = Box.of([(0.0, 1.0)] * (self.spaces.states + self.spaces.numbers))
        rewards = ModelledRows(self.relation, joint, StepRewards.of(self.spaces, self.model.step_rewards))
        return Rounds(rewards, self.budget, self._mu["reward"], SETTINGS.reward_tolerance)

    @cached_property
    def _ends(self) -> Rounds | None:
        """Log-odds of ends, as a model of the state alone; None where they are known, or there are none."""
        if "end" not in self._mu:
            return None
        unit = Box.of([(0.0, 1.0)] * self.spaces.states)
        # Ends lie at the edges of where states are, so squares matter as much as slopes.
        quadratic = WorldModel(degree=2).feature_map(Spaces(unit, 1))
        ends = ModelledRows(self.relation, unit, Ends(self.spaces.states), quadratic)
        return Rounds(ends, self.budget, self._mu["end"] * math.sqrt(1 - SETTINGS.rate_share))

    def _conditions(self) -> tuple[Assumption, ...]:
        on_circles = (f"coordinates {i} and {j} on a circle" for i, j in self.model.circles)
        known = ", ".join([*self.model.known, *(f"coordinate {i}" for i in self.model.moves), *on_circles])
        declared = (Code.KNOWN_PARTS(known),) if known else ()
        return Code.WORLD_PARTS(), Code.MEANS_OF_PEOPLE(), *declared

    def run(self) -> Generator[Query, np.ndarray, FittedWorld]:
        # The dynamics, by iterated private whitening of features and of what they leave unexplained.
        of_dynamics = moves(self.spaces, self.feature_map, self.moved)
        whitening = yield from self._whiten(of_dynamics, self._mu["dynamics"], SETTINGS.rounds)
        dynamics = whitening.fit()
        # First states, in coordinates in which all states are about white.
        first = seen = None
        if "start" in self._mu:
            first, seen = yield from self._ask_for_first_states(dynamics)
        # Rewards, by rounds of clipped gradients.
        reward = None
        if self._reward is not None:
            reward = yield from self._reward.run()
        end_reward = None
        if "end reward" in self._mu:
            end_reward = yield from self._ask_for_end_reward()
        # Ends: a logistic model as if there were as many of them as of other steps; then its intercept, by how many
        # there are.
        ends = noise = None
        rate = 0.0
        if self._ends is not None:
            ends = yield from self._ends.run()
            ends = ends._replace(weights=SETTINGS.steepness * ends.weights)
            rate, off = yield from self._ask_for_rate(self._ends.result(ends, _NOTHING))
            slopes = SETTINGS.steepness * self._ends.loss.unit * math.sqrt(ends.basis.size) * ends.deviation
            noise = math.hypot(slopes, off)
        return FittedWorld(dynamics, first, seen, reward, ends, rate, noise, end_reward)

    def _whiten(self, looked: Looked, mu: float, rounds: int) -> Generator[Query, np.ndarray, Whitening]:
        # At first each number is divided by how large it can be; then by what earlier answers made of it.
        matrix = np.diag(1 / looked.scales)
        query = mean_of_people(NormalisedMoments(looked, matrix), self.people, mu / math.sqrt(rounds))
        whitening = Whitening(looked.features, matrix, self.people, query.law.sigma)
        for _ in range(rounds):
            whitening.take((yield query))
            again = NormalisedMoments(looked, whitening.matrix)  # of the same length, and so with the same noise
            query = query._replace(numbers=partial(Sessions.mean, statistic=again))
        return whitening

    def _ask_for_first_states(
        self, moves: Fit
    ) -> Generator[Query, np.ndarray, tuple[tuple[np.ndarray, np.ndarray], float]]:
        """Mean and covariance of first states, and their z-score against noise alone."""
        # The mean and covariance of all states are already in the moments of the dynamics' features.
        middle, spread = visited(self.feature_map, self.spaces.states, moves.gram)
        values, vectors = np.linalg.eigh(spread)
        root = vectors * np.sqrt(np.maximum(values, SETTINGS.least_variance))
        first = first_states(middle, np.linalg.inv(root))
        seen = yield from self._whiten(first, self._mu["start"], SETTINGS.first_rounds)
        found = seen.fit()
        # The covariance, as if each person had begun one episode, in a normal state.
        scatter = normal_scatter(self.spaces.states) * found.residual
        return (middle + root @ found.weights[0], root @ scatter @ root.T), seen.seen()

    def _ask_for_end_reward(self) -> Generator[Query, np.ndarray, tuple[float, float]]:
        """The mean reward of steps that end an episode, and the standard deviation of its noise."""
        query = mean_of_people(EndRewards(), self.people, self._mu["end reward"])
        total, share = yield query
        # A ratio of two noisy means, shrunk to the middle of the range where it may be that nobody has an end.
        sigma, share = query.law.sigma, max(float(share), 0.0)
        per_share = share / (share**2 + (SETTINGS.certainty * sigma) ** 2)
        mean = float(np.clip(per_share * total, -1.0, 1.0))
        half = (self.spaces.high - self.spaces.low) / 2
        noise = half * min(sigma * math.hypot(1.0, mean) / max(share, sigma), 1.0)
        return self.spaces.low + half * (1 + mean), noise

    def _ask_for_rate(self, ends: PrivateModel) -> Generator[Query, np.ndarray, tuple[float, float]]:
        """What is to be added to the log-odds of balanced ends, so that there are as many as there were, and the
        standard deviation of its noise, which is that of the last query.
        """
        rate, bound, off = 0.0, 1.0, 0.0
        mu = self._mu["end"] * math.sqrt(SETTINGS.rate_share / SETTINGS.rate_rounds)
        for _ in range(SETTINGS.rate_rounds):
            # Rates of ends, by the model so far and as they were, each person's clipped to the bound.
            statistic = EndRates(partial(log_odds, ends, rate), self.spaces.states, bound)
            query = mean_of_people(statistic, self.people, mu)
            # An intercept with an error of c makes e^c times too many rare ends, so log(found/expected) corrects it.
            noise = bound * query.law.sigma
            expected, found = np.maximum(bound * (yield query), noise)
            rate += math.log(found / expected)
            off = noise * math.hypot(1 / found, 1 / expected)
            # Rare ends need a narrow bound, or noise hides them.
            bound = min(bound, SETTINGS.margin * max(found, noise))
        return rate, off

    def result(self, released: FittedWorld, certificate: Certificate) -> PrivateWorld:
        errors = self._errors(released)
        # The certificate states what noise does to a step: post-processing of its own answers.
        names = [self.spaces.state_names[i] for i in self.moved]
        certificate = certificate.with_remark(" ".join(errors.of_steps(names)))
        parts: dict[str, PrivateModel] = {}
        for name, rounds, found in (("reward", self._reward, released.reward), ("ends", self._ends, released.ends)):
            if rounds is not None and found is not None:
                parts[name] = rounds.result(found, certificate)
        return PrivateWorld.of(
            self.spaces,
            self.feature_map,
            self.moved,
            released.moves,
            released.first,
            parts,
            self.model,
            certificate,
            rate=released.rate,
            end_reward=None if released.end_reward is None else released.end_reward[0],
            errors=errors,
        )

    def _errors(self, released: FittedWorld) -> WorldErrors:
        """How far off the world may be, estimated from noisy answers and public numbers."""
        found = spreads(released.moves, self.box, self.moved)
        of_steps = WorldErrors(
            ends_noise=released.ends_noise,
            end_reward_noise=None if released.end_reward is None else released.end_reward[1],
            starts_seen=released.starts_seen,
            step_noise=tuple(found.noise.tolist()),
            step_scatter=tuple(found.residual.tolist()),
        )
        rewards, reward = self._reward, released.reward
        if rewards is None or reward is None:
            return of_steps
        # Noise before shrinkage; then what shrinkage leaves of it, with what is expected of directions not fitted.
        assert rewards.loss.range is not None
        low, high = rewards.loss.range
        width = high - low
        noise = reward.basis.size**0.5 * reward.deviation
        left_out = max(float(rewards.every.variances.sum() - reward.basis.variances.sum()), 0.0)
        after = (float(reward.kept.sum() * reward.deviation**2) + left_out) ** 0.5
        error = max(width * after, rewards.expected_error)
        return msgspec.structs.replace(
            of_steps, reward_noise=width * noise, reward_kept=_fraction_kept(rewards, reward), reward_error=error
        )

    @cached_property
    def expected_error(self) -> float:
        """The noise of one query, in units of what a person adds."""
        return math.sqrt(2) / (self.people * self._mu["dynamics"])


def log_odds(ends: PrivateModel, rate: float, points: np.ndarray) -> np.ndarray:
    """The log-odds of an end in states, by a model of balanced ends and what is added to it."""
    return ends.read(points, ends.offset, ends.weights, ends.knots) + rate


def _fraction_kept(rewards: Rounds, reward: Fitted) -> float:
    """Of the variance from state to state and action to action that was expected, the part that survived shrinkage."""
    own, every = reward.basis, rewards.every
    rng = np.random.default_rng(0)
    places = 2**10  # public points at which it is asked how much of a direction is a constant
    points = rng.random((places, rewards.box.dimension))
    action = rng.integers(0, every.actions, places) if every.actions > 1 else None

    def varies(basis: Basis) -> np.ndarray:
        return basis.variances * basis.directions(points, action).var(axis=0)

    whole = max(float(varies(every).sum()), float(varies(own).sum()))
    return min(1.0, float((reward.kept * varies(own)).sum()) / whole) if whole > 0 else 1.0
