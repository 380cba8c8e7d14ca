"""Adaptive episodes with forgetting (after Azize & Basu 2022): each of an arm's episodes is twice as long as its last.

An episode's noisy mean comes from its own answers alone; the arm with the highest index gets the next one.

Theorem. Answers are used once, so that all episodes together are epsilon-DP with Laplace noise of scale 1/epsilon on
each sum, and mu-GDP with Gaussian noise of deviation 1/mu. If x is the noisy mean of n answers of mean q, then

    P(q > index(x, n, level)) <= exp(-level),    index = min over l of (1 - exp(-l x - level/n - w(l)))/(1 - exp(-l)),

over 0 < l <= epsilon with w = 0 for Laplace noise, over l > 0 with w = l^2/(2 mu^2 n) for Gaussian noise. At level
a ln(t), for any a > 1, regret is of order ln(T) sum_a (1/gap_a + 1/epsilon). The first two are proved in
docs/theory.md#episodes.

Proof of the regret. Let a best arm have mean m, let x_j be what its j-th episode of n_j = 2^(j-1) answers released, and
X_j the largest level at which the index of x_j is below m; P(X_j > u) <= e^-u. While x_j is current, an arm that is
shown because the best one is underrated is begun at a time t with a ln t < X_j, so t < e^(X_j/a), and its episode ends
by 3t. Because t >= n_j, the expected number of such visits is at most

    3 E[e^(X_j/a); X_j > a ln n_j] <= 3 n_j^-(a-1) a/(a - 1),

and over j that is a geometric series: a constant, whatever T is. Otherwise an arm of gap D gets an episode only if its
own index is at least m. With d(x) = max over l <= epsilon of -l x - ln(1 - m + m e^-l), that takes n d(x) <= a ln T.
Half-way between the two means d >= min(D^2/2, epsilon D/4) (Hoeffding: -ln(1 - m + m e^-l) >= l m - l^2/8; take l =
min(epsilon, 2D)), and x lies above that point with probability at most e^(-n d'), d' >= min(D^2/2, epsilon D/4) by the
same theorem from above. So it has O(ln(T) max(1/D^2, 1/(epsilon D))) visits in expectation, and regret is
O(sum ln(T)/D + arms ln(T)/epsilon).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int

from quietq.online.policy import MOST, UNITS, PrivateBandit, are_counts


def index(
    means: Float[np.ndarray, " arms"],
    answers: Int[np.ndarray, " arms"],
    level: float,
    rate: float,
    mu: float = math.inf,
) -> Float[np.ndarray, " arms"]:
    """At most this is the true mean, except with probability exp(-level). Each slope gives a bound; here are some 100.

    `rate` is the epsilon of Laplace noise on the sums, or infinite; `mu` that of Gaussian noise.
    """
    steepest = min(rate, 30.0)  # beyond it, the bound says nothing more
    slopes = np.geomspace(min(1e-4, steepest), steepest, 100)
    # Chernoff's bound of the noisy mean for each slope l, solved for the true mean; the least of these bounds holds.
    exponent = slopes * means[:, None] + (level + slopes**2 / (2 * mu**2)) / answers[:, None]
    exponent = np.maximum(exponent, -700.0)  # so that nothing overflows; a larger one is a bound too
    return np.min(-np.expm1(-exponent) / -np.expm1(-slopes), axis=1)


EXPLORATION = 1.1
"""The level of an index is this times the logarithm of the number of answers so far: above 1, as the theorem needs."""


@dataclass(eq=False)
class Episodes(PrivateBandit):
    """The policy plays the arm with the highest index for an episode, and needs no number of arrivals."""

    name: ClassVar[str] = "episodes"

    def _start(self) -> SimpleNamespace:
        length, answers, units = np.zeros((3, self.arms), np.int64)
        return SimpleNamespace(
            arm=0,  # of the episode under way; the first episodes go through all arms
            time=0,  # answers so far
            length=length,  # of each arm's last episode, 0 if it had none
            means=np.zeros(self.arms),  # noisy, of that episode
            answers=answers,  # towards each arm's next episode
            units=units,  # PRIVATE: the sums of these answers
        )

    def _choose(self, context: object) -> int:
        return self.state.arm

    @property
    def _needed(self) -> int:
        """Answers that the episode under way ends with."""
        return max(2 * int(self.state.length[self.state.arm]), 1)

    def _take(self, shown: int, units: int, answers: int = 1) -> None:
        """One answer, or the sum of some that end no episode before the last of them."""
        state = self.state
        state.time += answers
        state.answers[shown] += answers  # late answers about another arm wait for its next episode
        state.units[shown] += units
        if state.answers[state.arm] >= self._needed:
            self._end_episode()

    def _end_episode(self) -> None:
        state, arm = self.state, self.state.arm
        taken = int(state.answers[arm])
        state.means[arm] = self._noised(state.units[[arm]] / UNITS)[0] / taken
        # Forgetting: the next mean of this arm has answers of its own, so that each answer is noised once.
        state.length[arm], state.answers[arm], state.units[arm] = taken, 0, 0
        if not state.length.all():
            state.arm = int(np.argmin(state.length))  # the next one that had no episode
            return
        # One person moves a sum by up to `visits`, so noise is as many times larger and its rate as many times less.
        level = EXPLORATION * math.log(state.time)
        rate, mu = (self.budget.epsilon, math.inf) if self.is_pure else (math.inf, self.budget.mu)
        state.arm = int(np.argmax(index(state.means, state.length, level, rate / self.visits, mu / self.visits)))

    def _learned(self) -> int:
        return self.state.time

    def _possible(self) -> Iterator[tuple[str, bool]]:
        state = self.state
        yield "length", are_counts(state.length)
        yield "length", int((state.length > 0).sum()) <= self._drawn
        yield "arm", 0 <= state.arm < self.arms
        began = state.length > 0  # the first episodes go through all arms
        yield "arm", bool(began.all()) or bool((began == (np.arange(self.arms) < state.arm)).all())
        yield "answers", are_counts(state.answers)
        yield "units", are_counts(state.units, state.answers * UNITS)
        yield "time", int(state.length.sum() + state.answers.sum()) <= state.time <= MOST * self.arms
        yield "means", bool(np.all(began | (state.means == 0)))
        yield "means", self._may_be_noisy(state.means * state.length, began, 0, state.length)
        yield from super()._possible()

    def _forget(self) -> None:
        self.state.answers[:], self.state.units[:] = 0, 0
