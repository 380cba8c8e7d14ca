"""Without privacy, to compare with: upper confidence bounds and Thompson sampling, from counts of answers."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Int

from quietq.learning.bandits.policy import UNITS, Policy
from quietq.privacy.checks import positive


@dataclass
class _Counts:
    answers: Int[np.ndarray, " arms"]
    units: Int[np.ndarray, " arms"]


@dataclass(eq=False)
class Counting(Policy):
    """What policies share that keep counts of answers and nothing else."""

    def _start(self) -> _Counts:
        return _Counts(np.zeros(self.arms, np.int64), np.zeros(self.arms, np.int64))

    def _take(self, shown: int, units: int) -> None:
        self.state.answers[shown] += 1
        self.state.units[shown] += units


@dataclass(eq=False)
class UCB(Counting):
    """Upper confidence bounds (Auer, Cesa-Bianchi & Fischer 2002), with the constant that Hoeffding's bound needs."""

    fields: ClassVar = {**Policy.fields, "exploration": positive}
    name: ClassVar[str] = "ucb"
    _: KW_ONLY
    exploration: float = 1.1
    """The level of a bound is this times the logarithm of the number of answers so far."""

    def choose(self, context: object = None) -> int:
        """Means raised by Hoeffding's bound at probability t^-exploration; an arm without an answer comes first."""
        answers = self.state.answers
        n = np.maximum(answers, 1)
        level = self.exploration * math.log(max(int(answers.sum()), 1))
        bounds = self.state.units / UNITS / n + np.sqrt(level / (2 * n))
        return int(np.argmax(np.where(answers > 0, bounds, np.inf)))


@dataclass(eq=False)
class Thompson(Counting):
    """Thompson sampling with a Beta posterior for each arm."""

    name: ClassVar[str] = "thompson"

    def choose(self, context: object = None) -> int:
        self._drawn += 1
        seed = None if self.simulate is None else [self.simulate, self._drawn]
        ones, answers = self.state.units / UNITS, self.state.answers
        return int(np.argmax(np.random.default_rng(seed).beta(1 + ones, 1 + answers - ones)))
