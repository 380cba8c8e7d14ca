"""`clone`: a private policy that imitates the people who did best, by noisy means of one vector per person.

Theorem. Every query is a mean over all N declared people of one vector per person, which is a function of their own
rows, of public numbers and of earlier noisy answers, and is clipped to a bound B. Replacing all sessions of one person
moves it by at most 2B/N, or by sqrt(2) B/N where no two vectors are more than a right angle apart. With Gaussian noise
of that over mu_k, query k is mu_k-GDP, and all together are sqrt(sum mu_k^2)-GDP, however later queries depend on
earlier answers: people below the noisy threshold add a vector of zeros, and are still counted in N
(docs/theory.md#cloning).

What is asked: where states lie (middle and scale, refined round by round), which return the best reach (bisection with
noisy counts), and the gradients of a small network by normalised per-person gradients of those who reach it, in the
manner of DP-SGD (Abadi et al. 2016) with people as the unit. Everything else is post-processing.
"""

import math
import warnings
from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from quietq.feedback.imitation_statistics import (
    ImitationGradient,
    OwnNumber,
    OwnReturns,
    ReachCounts,
    StateMoments,
    layers,
    number_of_weights,
)
from quietq.feedback.sessions import Sessions
from quietq.mechanisms.release import Mechanism, Query, mean_of_people, release_or_simulate
from quietq.privacy import Account, Budget, Certificate, InvalidInput
from quietq.privacy.assumptions import Code
from quietq.privacy.checks import instance, interval, real
from quietq.privacy.errors import shows_nothing
from quietq.released.private_network import PrivatePolicy

STATE_SHARE, THRESHOLD_SHARE = 0.05, 0.05
"""The shares of mu squared that where states lie and the threshold on returns have; gradients have the rest."""
ENOUGH = 1000.0
"""People times mu from which on clones did better than people, on average, on five of six tasks; below, it is luck."""


@dataclass(frozen=True)
class CloneSettings:
    """The public numbers that a policy is fitted with: none of them changes what is promised."""

    state_rounds: int = 4
    """The number of queries about where states lie."""
    threshold_rounds: int = 10
    """The number of queries about the threshold: it is found to 1/1024 of the range of returns."""
    margin: float = 2.0
    """So many standard deviations of its noise must a share exceed what is asked for, so that noise alone does not
    select nobody."""
    clip: float = 4.0
    """How many scales away from the middle a state counts at the most."""
    rows: int = 100
    """How many of a person's own rows each gradient looks at."""
    rate: float = 0.03
    """The step size of the first gradient for a network of 500 weights; it falls to a tenth of that. Others have it by
    one over the root of their number of weights, as the noise of an output grows with that root."""
    momentum: float = 0.9
    squares: float = 0.95
    """The memories of Adam's two averages."""
    floor: float = 1.5
    """Adam divides by no less than this many standard deviations of the noise."""
    averaged: float = 0.5
    """The part of all iterates, the last ones, whose mean is released."""
    hidden: int | None = None
    steps: int | None = None
    """The hidden units of the network and the number of gradients, if not by the public rule."""
    sharpness: float = 2.0
    """What the log-odds of a list of actions are multiplied by: noise and few steps leave them too small. The most
    probable action is the same; numbers are imitated as they are."""


class Clone(NamedTuple):
    """All that the answers came to."""

    normal: Float[np.ndarray, "2 states"]
    threshold: float | None
    weights: Float[np.ndarray, " weights"]


class Cloning(Mechanism):
    """A policy of one hidden layer, and where states lie."""

    name, feedback_kind = "clone", "sessions"
    releases = "policy"
    asks_code = False
    error_unit = "of one query, in units of what one person adds"

    def __init__(
        self,
        sessions: Sessions,
        budget: Budget,
        returns: tuple[float, float] | None,
        best: float,
        settings: CloneSettings | None = None,
    ) -> None:
        """Prepares the queries; only what is public of the sessions is looked at."""
        self.settings = CloneSettings() if settings is None else settings
        self.relation, self.budget, self.box = sessions.relation, budget, sessions.box
        self.largest, self.error = StateMoments.bound_for(sessions.box.dimension), 1e-12
        self.spaces, self.best = sessions.spaces, best
        self.own = None if returns is None else OwnReturns((sessions.spaces.low, sessions.spaces.high), returns)
        self.outputs = self.spaces.actions or self.spaces.numbers
        hidden, steps = network_size(self.people * budget.mu, self.spaces.states + self.outputs)
        self.hidden = self.settings.hidden or hidden
        self.steps = self.settings.steps or steps
        for_threshold = 0.0 if self.own is None else THRESHOLD_SHARE
        self._mu_states = budget.mu * math.sqrt(STATE_SHARE / self.settings.state_rounds)
        self._mu_threshold = budget.mu * math.sqrt(for_threshold / self.settings.threshold_rounds)
        self._mu_gradients = budget.mu * math.sqrt((1 - STATE_SHARE - for_threshold) / self.steps)
        clipped = () if returns is None else (Code.RETURNS_CLIPPED(*returns),)
        self.conditions = (Code.POLICY_CLONED(), Code.MEANS_OF_PEOPLE(), *clipped)
        whom = "all people" if self.own is None else f"the people whose returns are the best {100 * best:.3g} %, about"
        self.remarks = (
            f"The policy imitates {whom}, by a network of {self.hidden} hidden units and {self.steps} noisy "
            "gradients; it cannot do better than good people do.",
        )

    def run(self) -> Generator[Query, np.ndarray, Clone]:
        normal = yield from self._ask_where_states_lie()
        threshold = None
        if self.own is not None:
            # The largest return found that enough people reach. A higher one is taken only if noise is unlikely to
            # explain that: with few people or a small budget it stays low, and everybody is imitated.
            rounds, margin = self.settings.threshold_rounds, self.settings.margin
            threshold = yield from noisy_quantile(
                self.own, self.own.returns, self.best, self.people, self._mu_threshold, rounds, margin
            )
        weights = yield from self._descend(normal, threshold)
        return Clone(normal, threshold, weights)

    def _ask_where_states_lie(self) -> Generator[Query, np.ndarray, Float[np.ndarray, "2 states"]]:
        """The middle and the scale of people's states in the unit box.

        The first guess is the whole box. Each round measures both in units of the guess before, so that noise is small
        beside the scale itself, and a box that is far too wide costs some rounds and no more.
        """
        states = self.spaces.states
        middle, scale = np.full(states, 0.5), np.full(states, 0.5)
        for _ in range(self.settings.state_rounds):
            query = mean_of_people(StateMoments(middle, scale, self.settings.clip), self.people, self._mu_states)
            mean, square = np.split((yield query), 2)
            mean = np.clip(mean, -1.0, 1.0)
            # A variance below its noise cannot be distinguished from 0: the scale shrinks no faster than that.
            variance = np.clip(square - mean**2, min(2 * query.law.sigma, 1.0), self.settings.clip**2)
            middle, scale = np.clip(middle + scale * mean, 0.0, 1.0), scale * np.sqrt(variance)
        return np.stack([middle, scale])

    def _descend(
        self, normal: Float[np.ndarray, "2 states"], threshold: float | None
    ) -> Generator[Query, np.ndarray, Float[np.ndarray, " weights"]]:
        """Noisy gradient descent by Adam, whose denominators never fall below the known noise; the mean of the last
        iterates.
        """
        coins = np.random.default_rng(0)  # public: first weights, and which of their rows people are asked about
        widths = (self.spaces.states, self.hidden, self.outputs)
        weights = first_weights(widths, coins)
        first, second, total = np.zeros_like(weights), np.zeros_like(weights), np.zeros_like(weights)
        steps, rate = self.steps, self.settings.rate * math.sqrt(500 / len(weights))
        averaged = math.ceil(self.settings.averaged * steps)
        for step in range(steps):
            places = (np.arange(self.settings.rows) + coins.random(self.settings.rows)) / self.settings.rows
            statistic = ImitationGradient(
                self.spaces, widths, weights, normal, self.settings.clip, places, self.own, threshold or 0.0
            )
            query = mean_of_people(statistic, self.people, self._mu_gradients)
            gradient = yield query
            first = self.settings.momentum * first + (1 - self.settings.momentum) * gradient
            second = self.settings.squares * second + (1 - self.settings.squares) * gradient**2
            moved = first / (1 - self.settings.momentum ** (step + 1))
            squares = second / (1 - self.settings.squares ** (step + 1))
            size = np.sqrt(np.maximum(squares, (self.settings.floor * query.law.sigma) ** 2))
            weights = weights - rate * (1 - 0.9 * step / steps) * moved / size
            if step >= steps - averaged:
                total += weights / averaged
        return total

    def result(self, released: Clone, certificate: Certificate) -> PrivatePolicy:
        low, width = np.array(self.box.low), np.array(self.box.width)
        widths = (self.spaces.states, self.hidden, self.outputs)
        inner, outer = layers(released.weights, widths)
        acting = self.spaces.action_box
        outer = self.settings.sharpness * outer if acting is None else outer
        return PrivatePolicy(
            "tanh",
            "log-probabilities" if acting is None else "squashed",
            (inner[:-1].T.copy(), outer[:-1].T.copy()),
            (inner[-1].copy(), outer[-1].copy()),
            self.box,
            certificate,
            None if acting is None else np.array([acting.low, acting.high]),
            np.stack([low + released.normal[0] * width, released.normal[1] * width]),
            self.settings.clip,
            released.threshold,
        )


def noisy_quantile(
    own: OwnNumber, within: tuple[float, float], share: float, people: int, mu: float, rounds: int, margin: float = 0.0
) -> Generator[Query, np.ndarray, float]:
    """Asks for the largest number found that at least a share of the people reach, by bisection with noisy counts.

    Each count is the mean of (1, 0) or (0, 1) over all people, so replacing one of N moves it by at most sqrt(2)/N.
    Which number is asked about next depends on earlier answers alone.

    Args:
        own: The number of each person.
        within: The public range that is halved; everybody reaches its low end.
        share: The share of the people who are to reach the number, among those who are there.
        people: The declared number of people.
        mu: What each count may cost.
        rounds: The number of counts: the quantile is found to 1/2^rounds of the range.
        margin: So many standard deviations of its noise must a count exceed what is asked for. Above 0, noise is
            unlikely to make up that enough people reach a number: with few people the quantile found stays low.

    """
    low, high = within
    for _ in range(rounds):
        middle = (low + high) / 2
        query = mean_of_people(ReachCounts(own, middle), people, mu)
        reach, fall_short = yield query
        enough = share * (reach + fall_short) + margin * query.law.sigma
        low, high = (middle, high) if reach >= enough else (low, middle)
    return low


def network_size(people_times_mu: float, numbers: int) -> tuple[int, int]:
    """The public rule for the hidden units and the number of gradients, chosen on development systems.

    The noise of an output grows with the root of the hidden units and of the steps, so both grow with people times mu,
    slowly. Where states and actions are many numbers, there are at most about as many weights as people times mu.
    """
    root = (people_times_mu / 1000) ** (1 / 3)
    hidden = min(29 * root, people_times_mu / (numbers + 1))
    return round(float(np.clip(hidden, 8, 64))), round(float(np.clip(180 * root, 100, 400)))


def first_weights(widths: tuple[int, int, int], coins: np.random.Generator) -> Float[np.ndarray, " weights"]:
    """Public random weights of a size that suits inputs about 1; the last layer's are small, and biases are 0."""
    weights = np.zeros(number_of_weights(widths))
    for matrix, shrunk in zip(layers(weights, widths), (1.0, 0.3), strict=True):
        inputs, outputs = len(matrix) - 1, matrix.shape[1]
        matrix[:-1] = shrunk * coins.normal(0.0, inputs**-0.5, (inputs, outputs))
    return weights


@shows_nothing
def clone(
    sessions: Sessions,
    budget: Budget,
    *,
    returns: tuple[float, float] | None = None,
    best: float = 0.2,
    account: Account | None = None,
    simulate: int | None = None,
) -> PrivatePolicy:
    """Releases a private policy that imitates those of the people whose sessions went best, once.

    Args:
        sessions: People's logged sessions, `Sessions.read(...)`; next states are not needed.
        budget: The (epsilon, delta) that the release may cost.
        returns: The public range that each person's mean return over their episodes is clipped to, declared from what
            you know of the task: the threshold is found to 1/1024 of it.
        best: About which share of the people is imitated, those with the highest returns; 1 for everybody, and then
            returns are not looked at.
        account: An Accountant, or a source's account in a Ledger, which is charged before the draw.
        simulate: A seed to draw from instead, for experiments: protects nobody and is not charged.

    Returns:
        A policy that predicts as Stable-Baselines3's do, and is published, loaded and served like any release.

    """
    instance("sessions", sessions, Sessions, "Sessions.read(...)")
    instance("budget", budget, Budget, "a Budget(epsilon, delta)")
    if not 0 < (best := real("best", best)) <= 1:
        raise InvalidInput(f"best must be a share of the people, above 0 and at most 1, not {best!r}.")
    if budget.is_pure:
        raise InvalidInput("A policy that imitates people has Gaussian noise: delta must be above 0.")
    mechanism = Cloning(sessions, budget, _range_of_returns(sessions, returns, best), best)
    if sessions.people * budget.mu < ENOUGH:
        warnings.warn(
            f"{sessions.people} people times mu = {budget.mu:.3g} is {sessions.people * budget.mu:.3g}, and below "
            f"{ENOUGH:g} a clone is good by luck alone: try it on synthetic sessions first, clone(..., simulate=0).",
            UserWarning,
            stacklevel=3,
        )
    return release_or_simulate(mechanism, sessions, account, simulate)


def _range_of_returns(
    sessions: Sessions, returns: tuple[float, float] | None, best: float
) -> tuple[float, float] | None:
    """The checked range; None where everybody is imitated."""
    if best == 1:
        return None
    if "reward" not in sessions.columns:
        raise InvalidInput(
            "These sessions have no rewards, by which the best would be found: name their column as "
            "Sessions.read(..., reward=...), or imitate everybody, best=1."
        )
    return interval("returns", returns)
