"""Upper confidence bounds: of sums from noisy binary trees, or of answers that are flipped before they are sent.

Theorem (`TreeUCB`; Mishra & Thakurta 2015, Tossou & Dimitrakakis 2016). Each arm has a tree over its answers in their
order: an answer is in one node on each of its levels, and every node that is full is noised once. Replacing an answer
moves as many sums by at most 1 as there are levels, so Laplace noise of scale levels/epsilon on each is epsilon-DP, all
nodes of all arms together. The sum of the first n answers is that of as many nodes as n has ones in binary (Chan, Shi &
Song 2011; Dwork, Naor, Pitassi & Rothblum 2010).

Theorem (`LocalUCB`, local privacy; Gajane, Urvoy & Kaufmann 2018). `report` makes a coin of the answer, which shows 1
with the answer's place in its range as probability, and passes it on as it is with odds of e^epsilon to 1, else turned
round. Whatever the answer was, the odds of what is sent differ by a factor of at most e^epsilon, so each report is
epsilon-DP by itself, and nobody has to be trusted with an answer. The mean of reports is 1/2 + (p - 1/2) (2 q - 1) for
a mean answer q and p = e^epsilon/(1 + e^epsilon), so arms keep their order, and gaps shrink by 2 p - 1, about
epsilon/2.

Proof: docs/theory.md#trees and docs/theory.md#local.
"""

import math
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from quietq.noise.exact import Enclosure, LazyUniform, RandomBits, decide
from quietq.noise.laws import BallNoise, RoundedLaw
from quietq.online.episodes import EXPLORATION
from quietq.online.policy import UNITS, PrivateBandit, are_counts
from quietq.privacy import Assumption, Code, InvalidInput
from quietq.privacy.norms import Answers, AnyNorm


def levels_for(arrivals: int) -> int:
    """Returns the number of levels of a binary tree with a leaf for each arrival.

    >>> [levels_for(n) for n in (2, 3, 4, 5)]
    [2, 3, 3, 4]
    """
    return (arrivals - 1).bit_length() + 1


@dataclass(eq=False)
class TreeUCB(PrivateBandit):
    """The policy decides anew after every answer, for which each answer pays on every level of its tree."""

    name: ClassVar[str] = "tree"
    pure: ClassVar[bool] = True
    bounded: ClassVar[bool] = True

    @property
    def levels(self) -> int:
        return levels_for(self.arrivals or 2)

    @property
    def norm(self) -> AnyNorm:
        return Answers(self.levels)

    def _start(self) -> SimpleNamespace:
        shape = self.arms, self.levels
        return SimpleNamespace(
            time=0,  # answers so far
            answers=np.zeros(self.arms, np.int64),
            units=np.zeros(shape, np.int64),  # PRIVATE: of the nodes that make up the answers so far
            nodes=np.zeros(shape),  # the same with noise
        )

    def _choose(self, context: object) -> int:
        state = self.state
        if not state.answers.all():
            return int(np.argmin(state.answers))
        ones = np.array([int(n).bit_count() for n in state.answers])
        log = math.log(max(state.time, 2))
        # Each mean is raised by Hoeffding's bound on its sampling error, at probability 1/t, and by Bernstein's on the
        # noise of its nodes, a sum of so many Laplace numbers.
        of_noise = self.sensitivity / self.budget.epsilon * (np.sqrt(4 * ones * log) + log)
        raised = np.sqrt(log / (2 * state.answers)) + of_noise / state.answers
        return int(np.argmax(state.nodes.sum(axis=1) / state.answers + raised))

    def _take(self, shown: int, units: int) -> None:
        state = self.state
        if state.answers[shown] >= (self.arrivals or 0):
            return  # there is no leaf for it
        state.time += 1
        state.answers[shown] += 1
        n, exact, noisy = int(state.answers[shown]), state.units[shown], state.nodes[shown]
        # The lowest one of n in binary: adding 1 to n - 1 carries through all levels below it, whose nodes are full.
        # They become one with the new leaf, and that one is noised.
        level = (n & -n).bit_length() - 1
        exact[level] = exact[:level].sum() + units
        exact[:level], noisy[:level] = 0, 0
        noisy[level] = self._noised(exact[[level]] / UNITS)[0]

    def _learned(self) -> int:
        return self.state.time

    def _possible(self) -> Iterator[tuple[str, bool]]:
        state = self.state
        yield "answers", are_counts(state.answers, self.arrivals or 0)
        yield "time", state.time == state.answers.sum() and state.time <= self._drawn
        # The nodes that n answers are made of have as many leaves as the ones of n in binary stand for.
        of_nodes = state.answers[:, None] & (1 << np.arange(self.levels))
        yield "units", are_counts(state.units, of_nodes * UNITS)
        sums = state.units / UNITS
        yield "nodes", self._may_be_noisy(state.nodes, of_nodes > 0, sums, sums)
        yield from super()._possible()


class FlippedAnswers(BallNoise):
    """The odds by which a device flips an answer; nothing is drawn here."""

    def assumptions(self, largest: float, error: float) -> tuple[Assumption, ...]:
        return (Code.FLIPPED(),)


@dataclass(eq=False)
class LocalUCB(PrivateBandit):
    """Upper confidence bounds (Auer, Cesa-Bianchi & Fischer 2002) on reports.

    `policy.learn(context, arm, policy.report(reward))`: `report` belongs on the person's own device, where the answer
    is; `learn` takes what was reported, 0 or 1.
    """

    name: ClassVar[str] = "local"
    pure: ClassVar[bool] = True
    remarks: ClassVar[tuple[str, ...]] = (
        *PrivateBandit.remarks,
        "Local differential privacy: each answer is flipped before it leaves the person, so nobody is trusted with it.",
    )

    def _start(self) -> SimpleNamespace:
        answers, units = np.zeros((2, self.arms), np.int64)
        return SimpleNamespace(answers=answers, units=units)

    def _choose(self, context: object) -> int:
        """Means raised by Hoeffding's bound at probability t^-EXPLORATION; an arm without an answer comes first."""
        answers = self.state.answers
        n = np.maximum(answers, 1)
        level = EXPLORATION * math.log(max(int(answers.sum()), 1))
        bounds = self.state.units / UNITS / n + np.sqrt(level / (2 * n))
        return int(np.argmax(np.where(answers > 0, bounds, np.inf)))

    def _take(self, shown: int, units: int) -> None:
        self.state.answers[shown] += 1
        self.state.units[shown] += units

    @cached_property
    def law(self) -> RoundedLaw:
        return FlippedAnswers(math.nextafter(self.budget.epsilon / self.sensitivity, 0.0), 1, self.norm)

    def report(self, reward: object) -> int:
        """Returns the bit that can leave the user's device. The flip is exact; the coin before it need not be.

        Args:
            reward: The user's answer, from 0 to 1.

        """
        entropy = self._entropy()
        coin = bool(entropy.uniforms((1,))[0] * UNITS < super()._units(reward))
        odds = self.budget.epsilon / self.visits
        if entropy.reproducible:
            return int(coin == bool(entropy.uniforms((1,))[0] < 1 / (1 + math.exp(-odds))))
        return int(coin == keeps(odds))

    def _units(self, reward: Any) -> int:
        """Returns the units of what `report` gave, or None if nothing was sent: it is no secret, and may be refused."""
        if reward is not None and not (isinstance(reward, int) and reward in (0, 1)):
            raise InvalidInput("reward must be what `report` gave, 0 or 1, or None.")
        return UNITS // 2 if reward is None else UNITS * int(reward)

    def _learned(self) -> int:
        return int(self.state.answers.sum())

    def _possible(self) -> Iterator[tuple[str, bool]]:
        yield "answers", are_counts(self.state.answers)
        yield "units", are_counts(self.state.units, self.state.answers * UNITS)
        yield "units", not (self.state.units % (UNITS // 2)).any()  # zeros and ones, and halves where nothing was sent
        yield from super()._possible()

    def _conditions(self) -> tuple[Assumption, ...]:
        return self._about_visits(self.named)


def keeps(odds: float, random_bits: RandomBits = secrets.randbits) -> bool:
    """True with probability 1/(1 + exp(-odds)), exactly: where ln(u/(1 - u)) is below the odds."""
    uniform = LazyUniform(random_bits)

    def below() -> bool:
        u = uniform.enclosure()
        return (u.log() + -(Enclosure.exactly(1) + -u).log() + -odds).is_below(0)

    return decide(below, [uniform])
