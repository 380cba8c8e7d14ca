"""Without privacy, to compare with: upper confidence bounds and Thompson sampling."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int

from quietq.learning.bandits.policy import Policy, sums_in_answers
from quietq.privacy.checks import positive


@dataclass
class Counts:
    """Answers about each arm."""

    answers: Int[np.ndarray, " arms"]
    units: Int[np.ndarray, " arms"]

    @classmethod
    def none(cls, arms: int) -> "Counts":
        return cls(np.zeros(arms, np.int64), np.zeros(arms, np.int64))

    def add(self, arm: int, units: int, answers: int) -> None:
        self.answers[arm] += answers
        self.units[arm] += units


def upper_bounds(counts: Counts, exploration: float) -> Float[np.ndarray, " arms"]:
    """Means raised by Hoeffding's bound at probability t^-exploration; infinite where there is no answer."""
    n = np.maximum(counts.answers, 1)
    level = exploration * math.log(max(int(counts.answers.sum()), 1))
    bounds = sums_in_answers(counts.units) / n + np.sqrt(level / (2 * n))
    return np.where(counts.answers > 0, bounds, np.inf)


@dataclass(eq=False)
class UCB(Policy):
    """Upper confidence bounds (Auer, Cesa-Bianchi & Fischer 2002), with the constant that Hoeffding's bound needs."""

    name: ClassVar[str] = "ucb"
    _: KW_ONLY
    exploration: float = 1.1

    def __post_init__(self) -> None:
        self.exploration = positive("exploration", self.exploration)
        super().__post_init__()

    def _start(self) -> Counts:
        return Counts.none(self.arms)

    def choose(self, context: object = None) -> int:
        return int(np.argmax(upper_bounds(self.state, self.exploration)))

    def _take(self, arm: int, units: int, answers: int = 1) -> None:
        self.state.add(arm, units, answers)


@dataclass(eq=False)
class Thompson(Policy):
    """Thompson sampling with a Beta posterior for each arm."""

    name: ClassVar[str] = "thompson"

    def _start(self) -> Counts:
        return Counts.none(self.arms)

    def choose(self, context: object = None) -> int:
        self._drawn += 1
        seed = None if self.simulate is None else [self.simulate, self._drawn]
        ones, answers = sums_in_answers(self.state.units), self.state.answers
        return int(np.argmax(np.random.default_rng(seed).beta(1 + ones, 1 + answers - ones)))

    def _take(self, arm: int, units: int, answers: int = 1) -> None:
        self.state.add(arm, units, answers)
