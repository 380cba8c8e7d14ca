"""Moments: a private world from people's sessions, by noisy second moments of each person's steps.

Theorem. In each query of the dynamics a person is one positive semi-definite matrix of Frobenius norm 1, or 0 without
steps: a function of their rows and of earlier answers. For two such matrices <A, B> >= 0, so |A - B| <= sqrt(2), and
replacing one of N people moves the mean by at most sqrt(2)/N. With noise N(0, 2/(N mu_k)^2 I) on upper triangles (times
root 2 beside the diagonal, so that lengths are Frobenius norms) the answer is mu_k-GDP, and all queries together are
sqrt(sum mu_k^2)-GDP by adaptive composition. No clipping norm has to be declared. Proof: docs/theory.md#moments.

What it learns: the dynamics and the first states by iterated private whitening (`Whitening`), rewards and early ends by
rounds of clipped gradients (`rounds`), because whitening weighs a person by one over the size of their own residuals
and so is biased where these are skewed. Rewards of steps that end an episode have a mean of their own, if the range of
the others is declared (docs/theory.md#end-rewards). What is declared as known (`WorldModel`) is neither learned nor
paid for.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import msgspec
import numpy as np
from jaxtyping import Float
from scipy.special import chdtri

from quietq.feedback.row_statistics import (
    ROOT,
    EndRates,
    EndRewards,
    Ends,
    Looked,
    NormalisedMoments,
    StepRewards,
    first_states,
    moves,
)
from quietq.feedback.sessions import Sessions
from quietq.feedback.spaces import Spaces
from quietq.mechanisms.basis import Basis
from quietq.mechanisms.release import Mechanism, Query, mean_of_people
from quietq.mechanisms.rounds import Fitted, ModelledRows, Rounds
from quietq.noise.box import Box
from quietq.noise.feature_maps import Polynomials
from quietq.privacy import Budget, Certificate, InvalidInput
from quietq.privacy.assumptions import Code
from quietq.released.private_model import PrivateModel
from quietq.released.private_world import Fit, PrivateWorld, WorldErrors, spreads, visited
from quietq.released.world_model import WorldModel

SHARES = {"dynamics": 0.76, "reward": 0.09, "end": 0.11, "start": 0.04}
"""The shares of mu squared that the parts have; what is known leaves its share to the others."""
END_REWARD_SHARE = 0.2
"""The part of the rewards' mu squared for rewards of steps that end an episode, where they are learned separately."""
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
    """The clipping bound on a person's rate of ends, as a multiple of the rate itself, or of its noise."""
    least_variance: float = 1e-10
    """The least variance of states, in the unit box, that counts as more than none."""
    eigenvalue_floor: float = 0.5
    """Whitening floors eigenvalues at this multiple of the largest that noise alone is expected to make."""
    eigenvalue_rounding: float = 1e-12
    """Eigenvalues of the features' moments that are less than this part of the largest are 0, but for rounding."""
    most_of_features: float = 1e4
    """Features that vary by less than one part in this of the box count as constants."""
    most_of_targets: float = 1e5
    """Residuals that are smaller than one part in this of the box count as zero."""
    pooling_rounds: int = 3
    """How often the scales of answers are matched to each other."""
    shrinking_rounds: int = 50
    """How often the size of weights is estimated anew, by expectation and maximisation."""


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
    """The mean reward of steps that end an episode, and its noise, if they are learned separately."""


class Moments(Mechanism):
    """A world of states, actions, rewards and ends."""

    name, feedback_kind = "moments", "sessions"
    releases = "world"
    asks_code = False
    conditions = (Code.WORLD_PARTS(), Code.MEANS_OF_PEOPLE())
    error_unit = "of one query, in units of what one person adds"

    def __init__(self, sessions: Sessions, budget: Budget, world: WorldModel | None = None) -> None:
        """Divides the budget among what has to be learned of the world."""
        self.relation, self.budget, self.box = sessions.relation, budget, sessions.box
        self.largest, self.error = 2.0, 1e-12
        self.spaces = spaces = sessions.spaces
        self.model = asked = world or WorldModel()
        asked.require_circles(spaces.box)
        self.feature_map = asked.feature_map(spaces)  # what has too many features is refused, and not made less
        degree = asked.affordable_degree(spaces, self.people * budget.mu)
        if degree < asked.degree:
            self.model = replace(asked, degree=degree)
            self.feature_map = self.model.feature_map(spaces)
        self.moved = asked.learned(spaces.states)
        """The coordinates whose dynamics are learned."""
        # What is neither known nor absent has its share of mu squared.
        known = asked.known
        parts = {name: share for name, share in SHARES.items() if name not in known}
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
        on_circles = (f"coordinates {i} and {j} on a circle" for i, j in self.model.circles)
        named = ", ".join([*known, *(f"coordinate {i}" for i in self.model.moves), *on_circles])
        if named:
            self.conditions = (*self.conditions, Code.KNOWN_PARTS(named))
        if isinstance(self.feature_map, Polynomials) and self.model.degree == 1 and self.model.features is None:
            self.remarks = (
                "The dynamics are linear in state and action, so that curvature in them is lost. A higher degree has "
                "more features, and all of them more noise, which can cost more than that: compare both on "
                "synthetic sessions.",
            )
        if degree < asked.degree:
            self.remarks = (
                f"The dynamics are polynomials of degree {degree}, where {asked.degree} was asked for: "
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
        loss = StepRewards.of(self.spaces, self.model.step_rewards)
        rewards = ModelledRows(self.relation, Box.of([(0.0, 1.0)] * loss.dimension), loss)
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

    def _whiten(self, looked: Looked, mu: float, rounds: int) -> Generator[Query, np.ndarray, "Whitening"]:
        # At first each number is divided by how large it can be; then by what earlier answers made of it.
        matrix = np.diag(1 / looked.scales)
        query = mean_of_people(NormalisedMoments(looked, matrix), self.people, mu / math.sqrt(rounds))
        whitening = Whitening(looked.features, matrix, self.people, query.law.sigma)
        for _ in range(rounds):
            whitening.take((yield query))
            again = NormalisedMoments(looked, whitening.matrix)  # of the same length, and so with the same noise
            query = query._replace(numbers=partial(Sessions.mean, statistic=again))
        return whitening

    def _ask_for_first_states(self, moves: Fit) -> Generator[Query, np.ndarray, tuple[MeanAndCovariance, float]]:
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
        """Returns what is added to the log-odds of balanced ends, so that there are as many as there were, and the
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
        first, spread = (None, None) if released.first is None else released.first
        return PrivateWorld(
            actions=self.spaces.actions,
            action_box=self.spaces.action_box,
            low=self.spaces.low,
            high=self.spaces.high,
            feature_map=self.feature_map,  # pyright: ignore[reportArgumentType]
            moved=self.moved,
            **released.moves._asdict(),
            first=first,
            spread=spread,
            reward=parts.get("reward"),
            ends=parts.get("ends"),
            rate=released.rate,
            end_reward=None if released.end_reward is None else released.end_reward[0],
            errors=errors,
            box=self.spaces.box,
            certificate=certificate,
            known=self.model.known,
            circles=self.model.circles,
            model=self.model,
        )

    def _errors(self, released: FittedWorld) -> WorldErrors:
        """Returns how far off the world may be, estimated from noisy answers and public numbers."""
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
    """Returns the fraction of the expected variance over states and actions that survived shrinkage."""
    own, every = reward.basis, rewards.every
    rng = np.random.default_rng(0)
    places = 2**10  # public points at which it is asked how much of a direction is a constant
    points = rng.random((places, rewards.box.dimension))
    action = rng.integers(0, every.actions, places) if every.actions > 1 else None

    def varies(basis: Basis) -> np.ndarray:
        return basis.variances * basis.directions(points, action).var(axis=0)

    fitted = varies(own)
    whole = max(float(varies(every).sum()), float(fitted.sum()))
    return min(1.0, float((reward.kept * fitted).sum()) / whole) if whole > 0 else 1.0


# Iterated private whitening: from noisy moments to linear dynamics whose residuals may be far smaller than their noise.
#
# Each round looks at the second moments of T z, for features and targets z, and a matrix T that earlier answers made:
# such that features are white and targets are *residuals of the current fit*, white too. So noise is relative to what
# is not explained yet, and where little is left to explain, the fit gets better by a factor in each round.
#
# All of this is post-processing of answers whose noise is known. Answers of all rounds are brought to the coordinates
# of the last and averaged by their noise; eigenvalues are floored, and slopes shrunk, where noise could have made them.


@dataclass
class Whitening:
    """What is known after some answers."""

    features: int
    """How many of the numbers are features, d; the others are targets."""
    matrix: Float[np.ndarray, "numbers numbers"]
    """T: at first, what divides each number by how large it can be."""
    people: int
    sigma: float
    """The standard deviation of the noise on the moments, in all rounds."""

    def __post_init__(self) -> None:
        self._scales = 1 / np.diag(self.matrix)
        self._answers: list[tuple[np.ndarray, np.ndarray]] = []
        """T and the noisy moments of T z, for each round."""
        self._guess = np.eye(len(self.matrix))
        """The moments as the fit has them, in the coordinates of the last T."""
        self._error = 1.0
        """The standard deviation of a slope, in units of the residual's."""
        self._seen, self._entries = 0.0, 0

    def take(self, answer: Float[np.ndarray, " size"]) -> None:
        """One round: a new T from the noisy upper triangle of moments in coordinates of the old."""
        self._answers.append((self.matrix, square(answer)))
        self._seen += float(answer @ answer) / self.sigma**2
        self._entries += len(answer)
        # Moments by all answers so far: a of features, c of targets, b of each feature with each target.
        d, numbers = self.features, len(self.matrix)
        moments, variance = self._pool()
        a, b, c = moments[:d, :d], moments[:d, d:], moments[d:, d:]
        # Features along the eigenvectors v of their moments. Symmetric noise of deviation s on the diagonal has
        # eigenvalues up to s sqrt(2 d) (Wigner): smaller ones may be noise alone, and are floored before dividing.
        w, v = _floored(a, SETTINGS.eigenvalue_floor * np.sqrt(variance[:d, :d].mean() * 2 * d))
        gram = (v * w) @ v.T
        # Slopes of targets on features, all of a target's shrunk alike (James and Stein).
        along = v.T @ b
        noise = d * variance[:d, d:].mean(axis=0) / 2
        along *= np.maximum(0.0, 1 - noise / np.maximum((along**2).sum(axis=0), 1e-300))
        slopes = (v / w) @ along
        # Moments of the residuals, which are no smaller than noise, or errors of the slopes, make them.
        rest = c - b.T @ slopes - slopes.T @ b + slopes.T @ gram @ slopes
        off = variance[:d, d:].mean() / 2
        least = max(
            SETTINGS.eigenvalue_floor * np.sqrt(variance[d:, d:].mean() * 2 * (numbers - d)), off * (1 / w).sum()
        )
        wr, vr = _floored(rest, least)
        # The next step of T: white features, and white residuals of the new fit in the place of targets.
        white = (vr / np.sqrt(wr)) @ vr.T
        step = np.block([[(v / np.sqrt(w)) @ v.T, np.zeros((d, numbers - d))], [-white @ slopes.T, white]])
        # The deviation of a slope by noise, times that of its feature; both are averaged over directions.
        self._error = float(np.sqrt(off * np.mean(1 / w**2)) * np.mean(np.sqrt(w)))
        # The moments that this fit implies, against which the scales of later answers are matched.
        cross = gram @ slopes
        guess = np.block([[gram, cross], [cross.T, (vr * wr) @ vr.T + slopes.T @ cross]])
        self._advance(step, guess)

    def _advance(self, step: np.ndarray, guess: np.ndarray) -> None:
        """The next T: its scale does not matter, and is fixed by the constant feature."""
        d, matrix = self.features, step @ self.matrix
        scale = np.linalg.norm(matrix[:d, 0])
        matrix, step = matrix / scale, step / scale
        # What is too small against the box counts as nothing: T stretches nothing by more than that.
        for part, most in ((slice(0, d), SETTINGS.most_of_features), (slice(d, None), SETTINGS.most_of_targets)):
            u, sizes, _ = np.linalg.svd(matrix[part, part])
            held = (u * np.minimum(1.0, most / sizes)) @ u.T
            matrix[part], step[part] = held @ matrix[part], held @ step[part]
        self.matrix, self._guess = matrix, step @ guess @ step.T

    def _pool(self) -> tuple[np.ndarray, np.ndarray]:
        """Moments by all answers so far, in the coordinates of the last, and the variance of each."""
        _, last = self._answers[-1]
        if len(self._answers) == 1:
            return last, np.full(last.shape, self.sigma**2)
        back = [np.linalg.solve(self.matrix.T, old.T).T for old, _ in self._answers]  # old T^-1
        moves = [np.linalg.inv(one) for one in back]
        pooled = variance = self._guess
        for _ in range(SETTINGS.pooling_rounds):
            total, weight = np.zeros_like(last), np.zeros_like(last)
            for (_, seen), there, here in zip(self._answers, back, moves, strict=True):
                # People's matrices have length 1, so the scale of an answer is unknown: it is fitted.
                expected = there @ pooled @ there.T
                size = max(float(np.linalg.norm(expected)), 1e-12)
                scale = max(float((seen * expected).sum()) / size**2, 1e-3 / size)
                # The answer in the coordinates of the last, weighted by one over the variance of each entry.
                rows = (here**2).sum(axis=1)
                noise = np.outer(rows, rows) * (self.sigma / scale) ** 2
                total += here @ seen @ here.T / scale / noise
                weight += 1 / noise
            size = float(np.linalg.norm(total / weight))
            pooled, variance = total / weight / size, 1 / (weight * size**2)
        return pooled, variance

    def seen(self) -> float:
        """Returns the z-score of the squares of all answers against noise alone; 0 if it is negative."""
        return max(0.0, (self._seen - self._entries) / (2 * self._entries) ** 0.5)

    def fit(self) -> Fit:
        """The law, with slopes along directions that people's steps say nothing of shrunk to nothing."""
        d, matrix = self.features, self.matrix
        # T z is white, so z has the moments T^-1 T^-T: blockwise, for features and residuals. The constant feature is
        # 1, and its moment sets the scale.
        inner, outer = np.linalg.inv(matrix[:d, :d]), np.linalg.inv(matrix[d:, d:])
        gram, rest = inner @ inner.T, outer @ outer.T
        whole = gram[0, 0]
        gram, rest = gram / whole, rest / whole
        found = -(outer @ matrix[d:, :d]).T
        noise = self._error**2 + 1 / self.people  # of the release, and of people who are drawn by chance
        weights, spread = _shrunk(found, gram, rest, noise, self._scales)
        return Fit(weights, gram, rest, spread, np.linalg.cholesky(rest).T)


def _shrunk(
    found: np.ndarray, gram: np.ndarray, rest: np.ndarray, noise: float, scales: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means of weights, if those of features that are at most 1 in size are about equally large, and a root
    of the posterior's covariance, in units of the residual's.

    How large they are is learned from those that are clear, by expectation and maximisation.
    """
    # Weights, in units of the box, along directions in which their errors are independent.
    features, targets = scales[: len(gram)], scales[len(gram) :]
    a, v = np.linalg.eigh(gram / np.outer(features, features))
    # What was found along directions that features never take, such as off a circle, is rounding divided by nothing.
    a = np.where(a > SETTINGS.eigenvalue_rounding * a[-1], a, 1e-300)
    own, turn = np.linalg.eigh(rest / np.outer(targets, targets))
    looked = v.T @ (found * features[:, None] / targets) @ turn
    variance = noise * own / a[:, None]
    # The size of a target's weights, and which part of each is left of it by the posterior mean.
    size, left = np.full(len(own), 1.0), np.ones_like(variance)
    for _ in range(SETTINGS.shrinking_rounds):
        left = size / (size + variance)
        size = (left**2 * looked**2 + left * variance).mean(axis=0)
    weights = v @ (left * looked) @ turn.T / features[:, None] * targets
    typical = np.sqrt((left * noise / a[:, None]).mean(axis=1))
    return weights, (v * typical) / features[:, None]


def normal_scatter(dimension: int) -> float:
    """Returns the factor on the residual's covariance, where people have one step each and residuals are normal.

    Such a person is z z^T/|z|^2 for z = (1, x), so the fit is that of a Cauchy law, in which large x count less. With
    normal x of variance s for each coordinate, the constant's share of the mean is E 1/(1 + s |x|^2) = 1/(1 + d).

    >>> round(normal_scatter(2), 1)
    2.0
    """
    squares = chdtri(dimension, (np.arange(2000) + 0.5) / 2000)
    low, high = 0.0, 10.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 / (1 + middle * squares)).mean() > 1 / (1 + dimension) else (low, middle)
    return low


def _floored(matrix: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.maximum(values, least), vectors


def square(vector: Float[np.ndarray, " size"]) -> Float[np.ndarray, "n n"]:
    """The symmetric matrix whose upper triangle `feedback.row_statistics.triangle` made this vector of."""
    numbers = int((2 * len(vector)) ** 0.5)
    row, column = np.triu_indices(numbers)
    matrix = np.zeros((numbers, numbers))
    matrix[row, column] = matrix[column, row] = vector / np.where(row == column, 1.0, ROOT)
    return matrix
