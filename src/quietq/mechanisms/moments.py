"""Moments: a private world from people's sessions, by noisy means of what each person's steps look like.

Theorem. In each look at the dynamics a person is one positive semi-definite matrix of Frobenius norm 1, or 0 without
steps: a function of their rows and of earlier answers. For two such matrices <A, B> >= 0, so |A - B| <= sqrt(2), and
replacing one of N people moves the mean by at most sqrt(2)/N. With noise N(0, 2/(N mu_k)^2 I) on upper triangles (times
root 2 beside the diagonal, so that lengths are Frobenius norms) the answer is mu_k-GDP, and all looks together are
sqrt(sum mu_k^2)-GDP by adaptive composition. No clipping norm has to be declared. See `docs/theory.md`, section 12.

What it learns: the dynamics and the first states by iterated private whitening (`whitening`), rewards and early ends by
rounds of clipped gradients (`rounds`), because whitening weighs a person by one over the size of their own residuals
and so is biased where these are skewed. What is declared as known (`WorldModel`) is neither learned nor paid for.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from quietq.feedback.loss import Ends, StepRewards
from quietq.feedback.spaces import Spaces
from quietq.feedback.transition_statistics import EndRates, FirstStates, Looked, Moves, NormalisedMoments
from quietq.mechanisms.estimated_errors import estimate_errors
from quietq.mechanisms.iterated_whitening import Whitening, normal_scatter
from quietq.mechanisms.mechanism import Mechanism, Query, Task
from quietq.mechanisms.people_mean import mean_of_people
from quietq.mechanisms.rounds import Fitted, Rounds
from quietq.noise.box import Box
from quietq.noise.feature_maps import Polynomials
from quietq.privacy import InvalidInput
from quietq.privacy.certificate import Assumption, Certificate
from quietq.released.private_model import PrivateModel
from quietq.released.private_world import Fit, PrivateWorld, visited
from quietq.released.world_model import WorldModel

SHARES = {"dynamics": 0.76, "reward": 0.09, "end": 0.11, "start": 0.04}
"""Of mu squared; what is known leaves its share to the others."""
_PARTS = {
    "dynamics": "dynamics (how states move, and where they lie)", "reward": "rewards", "end": "ends of episodes",
    "start": "first states",
}  # fmt: skip
RATES = 0.2
"""Of the share of ends, for how often there are any."""
TOLERANCE = 0.01
"""An error of rewards, in units of their range, that is worth it if rare ones are not clipped away."""
STEEPER = 3.0
"""Ends mostly lie beyond an edge, which few rounds and shrinkage make too flat."""
RATE_ROUNDS = 3
_SURE = 4.0
"""A clip is so many times what it is to hold, or the noise of it."""
ROUNDS = 24
LEAST = 1e-10
"""The least variance of states, in the unit box, that is told from none."""
FIRST_ROUNDS = 6
"""Looks at the dynamics, and at first states."""
_NOTHING = Certificate(method="world/moments", standing="none", sigma=1.0)


class Released(NamedTuple):
    """All that the answers came to."""

    moves: Fit
    first: tuple[np.ndarray, np.ndarray] | None
    reward: Fitted | None
    ends: Fitted | None
    rate: float
    ends_noise: float | None
    starts_seen: float | None
    """On log-odds of ends."""


class Moments(Mechanism):
    """A world of states, actions, rewards and ends."""

    name, takes, releases, asks_code = "moments", "sessions", "world", False
    error_unit = "of one look, in units of what one person adds"

    def __init__(self, task: Task) -> None:
        self.relation, self.budget, self.box = task.relation, task.budget, Box.of(task.domain)
        self.largest, self.error = 2.0, 1e-12
        spaces: Spaces = task.spaces
        self.spaces, self.model = spaces, task.world or WorldModel()
        self.feature_map, self.moved = self.model.feature_map(spaces), self.model.learned(spaces.states)
        parts = {name: share for name, share in SHARES.items() if name not in self.model.known}
        if "next" not in spaces.told or ("reward" in parts and "reward" not in spaces.told):
            raise InvalidInput("A world is made of next states and rewards: read them, or declare a known reward.")
        if "end" not in spaces.told:
            parts.pop("end", None)  # episodes never end by themselves
        self._mu = {
            name: task.budget.mu * math.sqrt(share / sum(parts.values())) for name, share in parts.items()
        }  # fmt: skip
        self._reward = self._ends = None
        if "reward" in parts:
            joint = Box.of([(0.0, 1.0)] * (spaces.states + spaces.numbers))
            self._reward = self._rounds("reward", replace(task, domain=joint, loss=StepRewards.of(spaces)))
        if "end" in parts:
            unit = Box.of([(0.0, 1.0)] * spaces.states)
            self._ends = self._rounds(
                "end", replace(task, domain=unit, loss=Ends(spaces.states), features=_quadratic(spaces.states))
            )
        self.conditions = self._conditions()
        if isinstance(self.feature_map, Polynomials) and self.model.degree == 1 and self.model.features is None:
            self.remarks = (
                "The dynamics are linear in state and action, so that what bends in them is lost. A higher degree has "
                "more features, and all of them more noise, which can cost more than that: compare both on sessions "
                "that are made up.",
            )

    def _rounds(self, name: str, task: Task) -> Rounds:
        mu = self._mu[name] * (math.sqrt(1 - RATES) if name == "end" else 1.0)
        return Rounds(replace(task, gives="rows"), mu, TOLERANCE if name == "reward" else 0.0)

    def _conditions(self) -> tuple[Assumption, ...]:
        *parts, last = (name for part, name in _PARTS.items() if part in self._mu)
        released = f"{', '.join(parts)} and {last}" if parts else last
        laws = f"Released are laws of all people's sessions, noised, and no row of them: {released}."
        held = (
            "Each look at the steps took the mean of one vector per person, held to its bound, noised once, and saw "
            "earlier answers only; all episodes of a person are in one vector."
        )
        known = ", ".join([*self.model.known, *(f"coordinate {i}" for i in self.model.moves)])
        public = Assumption(f"What was declared as known is public, and not taken from these people: {known}.", False)
        return (Assumption(laws, True), Assumption(held, True), *([public] if known else []))

    def run(self) -> Generator[Query, np.ndarray, Released]:
        moves = Moves(self.spaces, self.feature_map, self.moved)
        fitted = (yield from self._whiten(moves, self._mu["dynamics"], ROUNDS)).fit()
        first = clear = reward = ends = noise = None
        rate = 0.0
        if "start" in self._mu:
            first, clear = yield from self._begin(fitted)
        if self._reward is not None:
            reward = yield from self._reward.run()
        if self._ends is not None:
            ends = yield from self._ends.run()
            ends = ends._replace(weights=STEEPER * ends.weights)
            rate, off = yield from self._rate(self._ends.result(ends, _NOTHING))
            slopes = STEEPER * self._ends.loss.unit * math.sqrt(ends.basis.size) * ends.deviation
            noise = math.hypot(slopes, off)
        return Released(fitted, first, reward, ends, rate, noise, clear)

    def _whiten(self, looked: Looked, mu: float, rounds: int) -> Generator[Query, np.ndarray, Whitening]:
        whitening = Whitening(looked.features, np.diag(1 / looked.scales()), self.relation.people)
        for _ in range(rounds):
            statistic = NormalisedMoments(looked, whitening.matrix)
            query = mean_of_people(statistic, self.relation.people, mu / math.sqrt(rounds))
            whitening.take((yield query), query.law.sigma)
        return whitening

    def _begin(self, moves: Fit) -> Generator[Query, np.ndarray, tuple[tuple[np.ndarray, np.ndarray], float]]:
        """Mean and covariance of first states, seen in coordinates in which all states are about white; and how clearly
        they were seen.
        """
        middle, spread = visited(self.feature_map, self.spaces.states, moves.gram)
        values, vectors = np.linalg.eigh(spread)
        root = vectors * np.sqrt(np.maximum(values, LEAST))
        seen = yield from self._whiten(FirstStates(middle, np.linalg.inv(root)), self._mu["start"], FIRST_ROUNDS)
        found = seen.fit()
        scatter = normal_scatter(self.spaces.states) * found.residual
        return (middle + root @ found.weights[0], root @ scatter @ root.T), seen.seen()

    def _rate(self, ends: PrivateModel) -> Generator[Query, np.ndarray, tuple[float, float]]:
        """What is to be added to the log-odds of balanced ends, so that there are as many as there were, and the
        deviation of its noise, which is that of the last look.
        """
        rate, clip, off = 0.0, 1.0, 0.0
        for _ in range(RATE_ROUNDS):
            odds = _Odds(ends, rate)
            query = mean_of_people(
                EndRates(odds, self.spaces.states, clip), self.relation.people,
                self._mu["end"] * math.sqrt(RATES / RATE_ROUNDS),
            )  # fmt: skip
            expected, found = clip * np.maximum((yield query), query.law.sigma)
            rate += math.log(found / expected)
            off = clip * query.law.sigma * math.hypot(1 / found, 1 / expected)
            clip = min(clip, _SURE * max(found, clip * query.law.sigma))
        return rate, off

    def result(self, released: Released, certificate: Certificate) -> PrivateWorld:
        moves, first, reward, ends, rate, noise, clear = released
        parts: dict[str, PrivateModel] = {}
        for name, rounds, found in (("reward", self._reward, reward), ("ends", self._ends, ends)):
            if rounds is not None:
                parts[name] = rounds.result(found, certificate)
        return PrivateWorld.of(
            self.spaces, self.feature_map, self.moved, moves, first, parts, self.model, certificate, rate=rate,
            errors=estimate_errors(self.spaces.high - self.spaces.low, self._reward, reward, noise, clear),
        )  # fmt: skip

    def expected_error(self) -> float:
        """Of one look, in units of what a person adds."""
        return math.sqrt(2) / (self.relation.people * self._mu["dynamics"])

    @classmethod
    def propose(cls, task: Task) -> list["Moments"]:
        if task.spaces is None:
            return task.refuse("Noise 'moments' is for Sessions.")  # type: ignore[return-value]
        if task.budget.is_pure:
            raise InvalidInput("A world of everybody's steps has Gaussian noise: delta must be above 0.")
        return [cls(task)]


@dataclass(frozen=True, eq=False)
class _Odds:
    """Log-odds of an end: a value that can be sent to other processes."""

    ends: PrivateModel
    rate: float

    def __call__(self, points: np.ndarray) -> np.ndarray:
        ends = self.ends
        return ends.read(points, ends.offset, ends.weights, ends.knots) + self.rate


def _quadratic(dimension: int) -> Polynomials:
    """Ends lie at the edges of where states are, so squares matter as much as slopes."""
    return Polynomials(dimension, WorldModel(degree=2).feature_map(Spaces(Box.of([(0.0, 1.0)] * dimension), 1)).terms)  # type: ignore[attr-defined]
