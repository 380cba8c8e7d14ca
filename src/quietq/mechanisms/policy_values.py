"""What policies would have been worth to the people whose sessions others made.

Theorem. Each person's return under each of m policies is held to a range of half-width C, once over all of their
episodes (`feedback.returns`). Replacing one of N people moves the m means, and beside them `SQUARES` times the
means of squares, by at most 2 sqrt(m) C/N together: Gaussian noise of that over mu is mu-GDP, and squares cost nothing.
Proofs are in `docs/theory.md`, section 13, and so is that of the intervals: they hold the noise and, for people who are
a sample, the sampling error (Maurer & Pontil 2009), all of them together with the stated probability. What the range
cuts off is not in them, and neither is the error of probabilities that had to be learnt.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.feedback.returns import SQUARES, ActionShares, Policy, Returns
from quietq.feedback.row_statistics import COMPANY
from quietq.feedback.trajectories import Cells
from quietq.mechanisms.laws import Gaussian, Independent
from quietq.mechanisms.mechanism import SLACK, Mechanism, Query
from quietq.mechanisms.people_mean import mean_of_people
from quietq.noise.box import Box
from quietq.noise.rounding import rounding_step
from quietq.privacy import Assumption, Budget, Certificate
from quietq.released.evaluated_policies import EvaluatedPolicies

LEARNING = 0.1
"""The share of mu squared that goes into probabilities that have to be learnt."""
LEAST = 0.01
"""Of the probabilities that are learnt: no person's step counts more than a hundred times, or twice as often as there
are actions, if that is more."""


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked of each person; all of it is public."""

    names: tuple[str, ...]
    policies: tuple[Policy, ...]
    behaviour: Policy | Cells | None
    model: Policy | None
    returns: tuple[float, float]
    discount: float
    per_step: bool
    against: tuple[str, Policy] | None
    """What all others are compared with, if anything."""
    sessions: Any = field(repr=False)
    """Only what is public of them is looked at here."""

    @property
    def box(self) -> Box:
        return self.sessions.box

    @property
    def actions(self) -> int:
        return len(self.sessions.actions)

    @property
    def half(self) -> float:
        return (self.returns[1] - self.returns[0]) / 2

    def statistic(self, behaviour: Policy | None) -> Returns:
        rewards = self.sessions.low, self.sessions.high
        return Returns(
            self.policies, behaviour, self.model, self.box, self.actions, rewards, self.returns, self.discount,
            self.per_step, None if self.against is None else self.against[1],
        )  # fmt: skip


class PolicyValues(Mechanism):
    """Gaussian noise on the mean returns, and on the means of their squares."""

    name, releases, takes = "values", "policies", "sessions"

    def __init__(self, question: Question, budget: Budget, confidence: float) -> None:
        self.question, self.budget, self.confidence = question, budget, confidence
        self.relation, self.box = question.sessions.relation, question.box
        self.largest, self.error = math.sqrt(len(question.names) * (1 + SQUARES**2)) + 1, 1e-12
        low, high = question.returns
        self.conditions = (
            Assumption(f"Each person's return was held to [{low:g}, {high:g}], once over all of their episodes.", True),
            Assumption(
                "Policies, probabilities, cells and model look at one state at a time, never fail and keep nothing.",
                False,
            ),
            Assumption(
                "Policies, probabilities, cells and model were not made from these people's data, but for releases "
                "of it, which add up.",
                False,
            ),
        )
        further = " nor the error of probabilities that were learnt," if isinstance(question.behaviour, Cells) else ""
        self.remarks = (
            f"Intervals hold noise and sampling error, all of them together with probability {confidence:g}, but not "
            f"what holding returns to [{low:g}, {high:g}] cuts off,{further} and people without a usable session "
            "count as the middle of that range.",
        )
        if question.against is not None:
            self.remarks = (f"Values are advantages over the policy {question.against[0]!r}.", *self.remarks)

    @property
    def people(self) -> int:
        return self.question.sessions.people

    def run(self) -> Generator[Query, np.ndarray, tuple[np.ndarray, float]]:
        question, mu, behaviour = self.question, self.budget.mu, self.question.behaviour
        if isinstance(behaviour, Cells):
            shares = ActionShares(behaviour, self.box, question.actions)
            answer = yield mean_of_people(shares, self.people, mu * math.sqrt(LEARNING))
            behaviour, mu = LearnedBehaviour.of(answer, behaviour, question.actions), mu * math.sqrt(1 - LEARNING)
        statistic, policies = question.statistic(behaviour), len(question.names)
        company = COMPANY * math.sqrt(statistic.size) * statistic.bound
        sensitivity = 2 * math.sqrt(policies) / self.people * SLACK + company
        law = Gaussian(sensitivity / mu, Independent({"kind": statistic.norm, "policies": policies}))
        return (yield Query(lambda feedback: feedback.mean(statistic), sensitivity, law)), law.sigma

    def result(self, released: Any, certificate: Certificate) -> EvaluatedPolicies:
        (answer, sigma), (low, high) = released, self.question.returns
        middle, half = (low + high) / 2, self.question.half
        mean, width = intervals(answer, sigma, self.people, self.confidence)
        table = np.stack([mean, mean - width, mean + width], axis=-1)
        table = np.clip(middle + half * table, low, high)
        return EvaluatedPolicies(self.question.names, table, self.confidence, half * sigma, self.box, certificate)


def intervals(
    answer: Float[np.ndarray, " twice"], sigma: float, people: int, confidence: float
) -> tuple[Float[np.ndarray, " policies"], Float[np.ndarray, " policies"]]:
    """Means from -1 to 1, and how far each may be from that of all people who could have come, all at once.

    For each policy a twentieth of what may go wrong is left to the noise of the mean, as much to that of the squares,
    and the rest to who came.
    """
    mean, squares = np.split(answer, 2)
    wrong = (1 - confidence) / len(mean)
    step = rounding_step(sigma)
    of_mean = NormalDist().inv_cdf(1 - wrong / 40) * sigma + step
    of_squares = NormalDist().inv_cdf(1 - wrong / 20) * sigma + step
    variance = (squares + of_squares) / SQUARES - np.maximum(np.abs(mean) - of_mean, 0.0) ** 2
    log, others = math.log(4 / (0.9 * wrong)), max(people - 1, 1)
    sampling = np.sqrt(2 * np.clip(variance, 0.0, 1.0) * log / others) + 14 * log / (3 * others)
    return mean, of_mean + sampling


@dataclass(frozen=True, eq=False)
class LearnedBehaviour:
    """Released probabilities of actions, one row for each public cell; all alike where there is no cell."""

    cells: Cells
    table: Float[np.ndarray, "cells_and_none actions"]

    @classmethod
    def of(cls, answer: Float[np.ndarray, " size"], cells: Cells, actions: int) -> "LearnedBehaviour":
        shares = np.maximum(answer.reshape(cells.count, actions), 0.0)
        table = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
        least = min(LEAST, 0.5 / actions)
        table = least + (1 - least * actions) * np.where(shares.any(axis=1, keepdims=True), table, 1 / actions)
        return cls(cells, np.vstack([table, np.full((1, actions), 1 / actions)]))

    def __call__(self, states: np.ndarray) -> np.ndarray:
        return self.table[self.cells.index(states)]
