"""Successive elimination (Sajed & Sheffet 2019): all arms alike in an epoch, from which those clearly behind go.

Theorem. Epoch e = 1, 2, ... asks for R answers about each of the S arms that are left, and looks at the noisy sums of
these alone. Answers are used once, so all epochs together are epsilon-DP with Laplace noise of scale 1/epsilon on each
sum, and mu-GDP with Gaussian noise of deviation 1/mu. With the widths h of sampling and c of noise below and failure
probability b = 1/arrivals, no epoch ever drops a best arm, and each drops all arms of a gap above 2^-e, except with
probability 0.83 b (pi^2/12 b). Regret is of order sum_a ln(T)/gap_a + arms ln(T)/epsilon, which is optimal.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from quietq.learning.bandits.policy import sums_in_answers
from quietq.learning.bandits.private_policy import PrivatePolicy


class Epoch(NamedTuple):
    """What is public of an epoch."""

    answers: int
    """About each arm."""
    sampling: float
    """How far a mean of so many answers is from the truth at the most (h)."""
    noise: float
    """How far the noise moves it at the most (c)."""

    @classmethod
    def of(cls, number: int, arms: int, wrong: float, budget_scale: float, pure: bool) -> "Epoch":
        """`budget_scale` is the size of the noise on a sum: the scale of Laplace's, the deviation of Gaussian noise."""
        gap, log = 2.0**-number, math.log(8 * arms * number**2 / wrong)
        noise = budget_scale * (math.log(4 * arms * number**2 / wrong) if pure else math.sqrt(2 * log))
        answers = math.ceil(max(32 * log / gap**2, 8 * noise / gap)) + 1
        return cls(answers, math.sqrt(log / (2 * answers)), noise / answers)


@dataclass
class _State:
    epoch: int
    left: Bool[np.ndarray, " arms"]
    shown: Int[np.ndarray, " arms"]  # in this epoch
    answers: Int[np.ndarray, " arms"]  # in this epoch
    units: Int[np.ndarray, " arms"]  # PRIVATE: their sums


@dataclass(eq=False)
class Elimination(PrivatePolicy):
    """Drops arms, until one is left.

    >>> from quietq import Budget
    >>> policy = Elimination(3, Budget(1.0, 0.0), arrivals=10_000)
    >>> arm = policy.choose()
    >>> policy.learn(None, arm, 1.0)
    >>> print(str(policy.certificate).splitlines()[0])
    bandit/elimination: is certified to be (1, 0)-differentially private.
    """

    name: ClassVar[str] = "elimination"
    declared: ClassVar[bool] = True

    def _start(self) -> _State:
        zeros = np.zeros(self.arms, np.int64)
        return _State(1, np.ones(self.arms, bool), zeros, zeros.copy(), zeros.copy())

    @property
    def epoch(self) -> Epoch:
        """By what is public alone: the number of the epoch and how many arms are left."""
        scale = self.sensitivity / (self.budget.epsilon if self.is_pure else self.budget.mu)
        return Epoch.of(self.state.epoch, int(self.state.left.sum()), 1 / (self.arrivals or 1), scale, self.is_pure)

    def choose(self, context: object = None) -> int:
        state = self.state
        arm = int(np.argmin(np.where(state.left, state.shown, np.iinfo(np.int64).max)))
        state.shown[arm] += 1
        return arm

    def _ahead(self) -> Int[np.ndarray, " arms"]:
        """How many answers about each arm `_take` may get at once, by their sum; for simulations in blocks."""
        left, state = self.state.left, self.state
        waited = self.epoch.answers - state.answers if left.sum() > 1 else np.full(self.arms, 2**40)
        return np.where(left, waited, 0)

    def _take(self, shown: int, units: int, answers: int = 1) -> None:
        state = self.state
        needed = self.epoch.answers
        if state.left.sum() == 1 or not state.left[shown] or state.answers[shown] >= needed:
            return  # nothing waits for it: an answer that is used never, or once
        state.answers[shown] += answers
        state.units[shown] += units
        if (state.answers[state.left] >= needed).all():
            self._end_epoch()

    def _end_epoch(self) -> None:
        state, epoch = self.state, self.epoch
        left = np.flatnonzero(state.left)
        means = self._noised(sums_in_answers(state.units[left])) / epoch.answers
        state.left[left[means < means.max() - 2 * (epoch.sampling + epoch.noise)]] = False
        state.epoch += 1
        self._forget()

    def _forget(self) -> None:
        for each in (self.state.shown, self.state.answers, self.state.units):
            each[:] = 0
