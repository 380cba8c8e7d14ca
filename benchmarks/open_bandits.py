"""Bandits without privacy, to compare with: upper confidence bounds, without contexts and with them."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from quietq.online.linear import confidence


class UCB:
    """Upper confidence bounds (Auer, Cesa-Bianchi & Fischer 2002), with the constant that Hoeffding's bound needs."""

    def __init__(self, arms: int, exploration: float = 1.1) -> None:
        self.exploration = exploration
        self.answers, self.sums = np.zeros((2, arms))

    def choose(self, context: object = None) -> int:
        n = np.maximum(self.answers, 1)
        level = self.exploration * math.log(max(self.answers.sum(), 1))
        bounds = self.sums / n + np.sqrt(level / (2 * n))
        return int(np.argmax(np.where(self.answers > 0, bounds, np.inf)))

    def learn(self, context: object, arm: int, reward: float) -> None:
        self.answers[arm] += 1
        self.sums[arm] += reward


@dataclass
class LinUCB:
    """Least squares raised by their widths (Abbasi-Yadkori, Pal & Szepesvari 2011), for rows of length at most 1."""

    arms: int
    dimension: int
    width: float = 0.1
    weights: float = 0.5
    wrong: float = 0.05

    def __post_init__(self) -> None:
        self.steps = 0
        self.gram, self.moment = np.zeros((self.dimension, self.dimension)), np.zeros(self.dimension)

    def choose(self, context: Any) -> int:
        shift, width = confidence(self.dimension, self.steps, 0.0, self.wrong, self.weights)
        inverse = np.linalg.inv(self.gram + shift * np.eye(self.dimension))
        raised = np.sqrt(np.einsum("ai,ij,aj->a", context, inverse, context))
        return int(np.argmax(context @ inverse @ self.moment + self.width * width * raised))

    def learn(self, context: np.ndarray, arm: int, reward: float) -> None:
        self.steps += 1
        self.gram += np.outer(context[arm], context[arm])
        self.moment += (reward - 0.5) * context[arm]
