"""Upper confidence bounds on sums from binary trees (Mishra & Thakurta 2015, Tossou & Dimitrakakis 2016).

Theorem. Each arm has a tree over its answers in their order: an answer is in one node on each of its levels, and every
node that is full is noised once. Replacing an answer moves as many sums by at most 1 as there are levels, so Laplace
noise of scale levels/epsilon on each is epsilon-DP, all nodes of all arms together. The sum of the first n answers is
that of as many nodes as n has ones in binary (Chan, Shi & Song 2011; Dwork, Naor, Pitassi & Rothblum 2010).
"""

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Int

from quietq.learning.bandits.policy import UNITS
from quietq.learning.bandits.private_policy import PrivatePolicy
from quietq.privacy.checks import positive


def levels_for(arrivals: int) -> int:
    """Of a binary tree with a leaf for each of so many.

    >>> [levels_for(n) for n in (2, 3, 4, 5)]
    [2, 3, 3, 4]
    """
    return (arrivals - 1).bit_length() + 1


def enter(n: int, exact: np.ndarray, noisy: np.ndarray, leaf: Any, noised: Callable[[Any], Any]) -> None:
    """The n-th leaf: the nodes below it that are full become one with it, which is noised."""
    level = (n & -n).bit_length() - 1
    exact[level] = exact[:level].sum(axis=0) + leaf
    exact[:level], noisy[:level] = 0, 0
    noisy[level] = noised(exact[level])


@dataclass
class _State:
    time: int  # answers so far
    answers: Int[np.ndarray, " arms"]
    units: Int[np.ndarray, "arms levels"]  # PRIVATE: of the nodes that make up the answers so far
    nodes: Float[np.ndarray, "arms levels"]  # the same with noise


@dataclass(eq=False)
class TreeUCB(PrivatePolicy):
    """Looks again after every answer, for which each answer pays on every level."""

    fields: ClassVar = {**PrivatePolicy.fields, "sampling": positive, "noise": positive}
    name: ClassVar[str] = "tree"
    pure: ClassVar[bool] = True
    bounded: ClassVar[bool] = True
    _: KW_ONLY
    sampling: float = 1.0
    """By how many Hoeffding bounds, at probability 1/t, a mean is raised for its sampling error."""
    noise: float = 1.0
    """By how many bounds on the nodes' noise it is raised."""

    @property
    def levels(self) -> int:
        return levels_for(self.arrivals or 2)

    @property
    def norm(self) -> dict[str, Any]:
        return {"kind": "tree-of-answers", "levels": self.levels}

    def _start(self) -> _State:
        shape = self.arms, self.levels
        return _State(0, np.zeros(self.arms, np.int64), np.zeros(shape, np.int64), np.zeros(shape))

    def choose(self, context: object = None) -> int:
        state = self.state
        if not state.answers.all():
            return int(np.argmin(state.answers))
        ones = np.array([int(n).bit_count() for n in state.answers])
        log = math.log(max(state.time, 2))
        # Bernstein's bound, for sums of so many Laplace numbers
        of_noise = self.sensitivity / self.budget.epsilon * (np.sqrt(4 * ones * log) + log)
        raised = self.sampling * np.sqrt(log / (2 * state.answers)) + self.noise * of_noise / state.answers
        return int(np.argmax(state.nodes.sum(axis=1) / state.answers + raised))

    def _take(self, shown: int, units: int) -> None:
        state = self.state
        if state.answers[shown] >= (self.arrivals or 0):
            return  # there is no leaf for it
        state.time += 1
        state.answers[shown] += 1
        noised = lambda node: self._noised(np.array([node / UNITS]))[0]  # noqa: E731
        enter(int(state.answers[shown]), state.units[shown], state.nodes[shown], units, noised)
