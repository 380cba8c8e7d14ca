"""Successive elimination (Sajed & Sheffet 2019): all arms alike in an epoch, from which those clearly behind go.

Theorem. Epoch e = 1, 2, ... asks for R answers about each of the S arms that are left, and looks at the noisy sums of
these alone. Answers are used once, so all epochs together are epsilon-DP with Laplace noise of scale 1/epsilon on each
sum, and mu-GDP with Gaussian noise of deviation 1/mu. With the widths h of sampling and c of noise below and failure
probability b = 1/arrivals, no epoch ever drops a best arm, and each drops all arms of a gap above 2^-e, except with
probability 0.83 b (pi^2/12 b). Regret is of order sum_a ln(T)/gap_a + arms ln(T)/epsilon, which is optimal.

Proof: docs/theory.md#elimination.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar, NamedTuple

import numpy as np

from quietq.online.policy import MOST, UNITS, PrivateBandit, are_counts


class Epoch(NamedTuple):
    """An epoch's length and widths are public: they follow from its number and how many arms are left."""

    answers: int
    """About each arm."""
    sampling: float
    """Returns how far a mean of this number of answers is from the truth at the most (h)."""
    noise: float
    """How far the noise moves it at the most (c)."""

    @classmethod
    def of(cls, number: int, arms: int, wrong: float, budget_scale: float, pure: bool) -> "Epoch":
        """`budget_scale` is the scale of Laplace noise on a sum, or the deviation of Gaussian noise."""
        # Epoch e is to drop all arms of a gap above 2^-e. Its failure probability is wrong/e^2 up to a constant, so
        # that those of all epochs add up to less than `wrong`; the union over arms gives the factor `arms`.
        gap, log = 2.0**-number, math.log(8 * arms * number**2 / wrong)
        noise = budget_scale * (math.log(4 * arms * number**2 / wrong) if pure else math.sqrt(2 * log))
        # So many that both widths are below gap/8: twice their sum is then below gap/2, and the means of two arms that
        # are a gap apart differ by more than it.
        answers = math.ceil(max(32 * log / gap**2, 8 * noise / gap)) + 1
        return cls(answers, math.sqrt(log / (2 * answers)), noise / answers)


@dataclass(eq=False)
class Elimination(PrivateBandit):
    """The policy shows all arms equally often and drops those clearly behind, until one is left.

    >>> from quietq import Budget
    >>> policy = Elimination(3, Budget(1.0, 0.0), arrivals=10_000)
    >>> arm = policy.choose()
    >>> policy.learn(None, arm, 1.0)
    >>> print(str(policy.certificate).splitlines()[0])
    bandit/elimination: is certified to be (1, 0)-differentially private.
    """

    name: ClassVar[str] = "elimination"
    declared: ClassVar[bool] = True

    def _start(self) -> SimpleNamespace:
        shown, answers, units = np.zeros((3, self.arms), np.int64)
        return SimpleNamespace(
            epoch=1,
            left=np.ones(self.arms, bool),
            shown=shown,  # in this epoch, by arm
            answers=answers,  # likewise
            units=units,  # PRIVATE: the sums of these answers
        )

    @property
    def epoch(self) -> Epoch:
        """Returns the epoch, by what is public alone: its number and how many arms are left."""
        return self._epoch(self.state.epoch, int(self.state.left.sum()))

    def _epoch(self, number: int, arms: int) -> Epoch:
        scale = self.sensitivity / (self.budget.epsilon if self.is_pure else self.budget.mu)
        return Epoch.of(number, arms, 1 / (self.arrivals or 1), scale, self.is_pure)

    def _choose(self, context: object) -> int:
        state = self.state
        # Round robin: of the arms that are left, the one that was shown least in this epoch.
        arm = int(np.argmin(np.where(state.left, state.shown, np.iinfo(np.int64).max)))
        state.shown[arm] += 1
        return arm

    def _take(self, shown: int, units: int, answers: int = 1) -> None:
        """One answer, or the sum of some that end no epoch before the last of them."""
        state, needed = self.state, self.epoch.answers
        if state.left.sum() == 1 or not state.left[shown] or state.answers[shown] >= needed:
            return  # nothing waits for it: an answer that is used never, or once
        state.answers[shown] += answers
        state.units[shown] += units
        if (state.answers[state.left] >= needed).all():
            self._end_epoch()

    def _end_epoch(self) -> None:
        state, epoch = self.state, self.epoch
        left = np.flatnonzero(state.left)
        sums = state.units[left] / UNITS
        self._forget()  # before the draw: whatever interrupts it, no answer can be noised twice
        means = self._noised(sums) / epoch.answers
        # Both means are within h + c of the truth, so whoever is more than twice that behind is not the best arm.
        state.left[left[means < means.max() - 2 * (epoch.sampling + epoch.noise)]] = False
        state.epoch += 1

    def _learned(self) -> int:
        """Returns the least number of answers learned: earlier epochs had at least as many arms, and two."""
        arms = max(int(self.state.left.sum()), 2)
        before = sum(self._epoch(number, arms).answers for number in range(1, self.state.epoch))
        return arms * before + int(self.state.answers.sum())

    def _possible(self) -> Iterator[tuple[str, bool]]:
        state = self.state
        yield "left", bool(state.left.any())
        arms = int(state.left.sum())
        # Each epoch takes four times as many answers as the last, or twice as many, and more than 32.
        yield "epoch", 1 <= state.epoch <= 30 and state.epoch - 1 <= self._drawn
        yield "epoch", state.epoch == 1 or self._epoch(state.epoch - 1, max(arms, 2)).answers <= MOST
        yield "left", state.epoch > 1 or arms == self.arms
        yield "shown", are_counts(state.shown, np.where(state.left, np.iinfo(np.int64).max, 0))
        needed = self.epoch.answers if arms > 1 else 0
        yield "answers", are_counts(state.answers, np.where(state.left, needed, 0))
        yield "answers", arms == 1 or bool(state.answers[state.left].min() < needed)  # else the epoch had ended
        yield "units", are_counts(state.units, state.answers * UNITS)
        yield from super()._possible()

    def _forget(self) -> None:
        self.state.shown[:], self.state.answers[:], self.state.units[:] = 0, 0, 0
