"""Network: a small network, fitted by noisy means of clipped per-person gradients.

Theorem. As for rounds: in each round a person's vector is a function of their rows and of earlier answers, held to
length B, so replacing one of N people moves the mean by at most 2B/N, and rounds with noise N(0, (2B/(N mu_t))^2 I) are
together sqrt(sum mu_t^2)-GDP. Everybody takes part in every round, so there is no sampling to account for. See
`docs/theory.md`, section 11.

How it fits: a part of the budget goes into a model of features, by `rounds`. The network learns that released model at
public random states, which costs nothing, and goes on from there with gradients of what people said. So it keeps what
features can hold, and adds what they cannot. Steps (Adam) and averages are post-processing of the answers.
"""

import math
from collections.abc import Generator
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.feedback.network_gradient import NetworkGradient, backward, forward, layers, number_of_weights
from quietq.feedback.row_statistics import TOLD
from quietq.mechanisms.feature_model import held
from quietq.mechanisms.mechanism import Mechanism, Query, Task
from quietq.mechanisms.network_reward import NetworkReward
from quietq.mechanisms.people_mean import mean_of_people
from quietq.mechanisms.rounds import LEFT, ROWS, Rounds
from quietq.privacy.certificate import Certificate

HIDDEN = (64,)
"""How wide the hidden layers are."""
TIMES = 60
"""Rounds of the network's own."""
FIRST = 0.25
"""The share of mu squared that goes into the model of features."""
RATE = 0.01
"""The largest step of a weight, from which steps fall to 0."""
LESSONS, STATES, FASTER = 2000, 512, 0.02
"""How often the network looks at the model of features, at how many states, and with which steps."""
_MEMORY = (0.9, 0.99)
"""Of gradients and of their squares, by round."""
_LAST = 0.25
"""The share of rounds, at the end, whose weights are averaged."""


class Network(Mechanism):
    """A reward in any dimension from rows of ratings or choices, as a small network. For many people."""

    name, takes = "network", "rows"
    remarks = (
        "A network is made for tens of thousands of people and rewards with fine detail; for others 'rounds' is "
        "better: try both on a simulation.",
    )

    def __init__(self, task: Task) -> None:
        self.relation, self.budget, self.loss = task.relation, task.budget, task.loss
        self.first = Rounds(task, self.budget.mu * math.sqrt(FIRST))
        self._own = math.sqrt(self.budget.mu**2 - self.first.mu**2)
        self.box, self.largest, self.error = self.first.box, self.first.largest, self.first.error
        self.widths = (self.box.dimension, *HIDDEN, self.loss.actions)
        queries = self.first.queries | {f"{TIMES} rounds of the network": TIMES}
        self.conditions = held(sum(queries.values()), *queries)

    def run(self) -> Generator[Query, np.ndarray, Float[np.ndarray, " weights"]]:
        weights = self._learn((yield from self.first.run()))
        descent, each = _Descent(RATE, TIMES), self._own / math.sqrt(TIMES)
        clip = 0.5 * math.sqrt(self.loss.spread / ROWS * (HIDDEN[-1] + 1))
        for _ in range(TIMES):
            query = mean_of_people(NetworkGradient(self.loss, self.widths, weights, clip), self.relation.people, each)
            answer = yield query
            left = float(np.clip(answer[-1] / TOLD + 0.5, 0.1, 1.0))
            weights = descent.step(weights, clip / left * answer[:-1], clip / left * query.law.sigma)
            clip *= float(np.clip(LEFT / left, 0.5, 2.0))
        return descent.average

    def _learn(self, released: Any) -> Float[np.ndarray, " weights"]:
        """Weights of a network that does as the model of features, at random states that lie about as people's do."""
        model = self.first.result(released, Certificate(method="reward/rounds", standing="none", sigma=1.0))
        grid, (low, high) = np.linspace(0, 1, model.knots.shape[1]), self.loss.range or (0.0, self.loss.unit)
        middle = 0.0 if self.loss.range is None else 0.5
        rng, weights = np.random.default_rng(0), np.zeros(number_of_weights(self.widths))
        for matrix in layers(weights, self.widths)[:-1]:
            matrix[:] = rng.normal(size=matrix.shape) / math.sqrt(len(matrix) - 1)
        descent = _Descent(FASTER, LESSONS)
        for _ in range(LESSONS):
            places = rng.random((self.box.dimension, STATES))
            points = np.stack([np.interp(*one, grid) for one in zip(places, model.knots, strict=True)], axis=-1)
            states = self.box.from_unit(points if self.box.dimension > 1 else points[:, 0])
            wanted = (model(states) - low) / (high - low) - middle
            matrices = layers(weights, self.widths)
            given, outputs = forward(2 * points[None] - 1, matrices)
            slope = (outputs - wanted.reshape(outputs.shape)) / STATES
            weights = descent.step(weights, backward(slope, given, matrices)[0])
        return descent.average

    def result(self, released: np.ndarray, certificate: Certificate) -> NetworkReward:
        weights, (low, high) = released.copy(), self.loss.range or (None, None)
        layers(weights, self.widths)[-1] *= self.loss.unit
        return NetworkReward(self.widths, weights, low, high, self.box, certificate)

    def expected_error(self) -> float:
        """That of the features that it starts from: what a network adds depends on the reward."""
        return self.first.expected_error()

    @classmethod
    def propose(cls, task: Task) -> "list[Network]":
        if not task.asked:  # "auto" never takes it: it is better for some rewards only, see docs/noise.md
            return []
        if task.features is not None:
            task.refuse("A network takes neither features nor items: ask for noise='rounds', or leave features out.")
        return [cls(task)] if Rounds.propose(task) else []


class _Descent:
    """Adam with steps that fall to 0, and the mean of the last weights.

    What known noise adds to the squares of gradients is left out of them, but for a quarter.
    """

    def __init__(self, rate: float, rounds: int) -> None:
        self.rate, self.rounds, self.done, self.average = rate, rounds, 0, np.zeros(1)
        self._mean = self._square = np.zeros(1)
        self._noise = 0.0

    def step(self, weights: np.ndarray, gradient: np.ndarray, deviation: float = 0.0) -> Float[np.ndarray, " weights"]:
        short, long = _MEMORY
        self.done += 1
        self._mean = short * self._mean + (1 - short) * gradient
        self._square = long * self._square + (1 - long) * gradient**2
        self._noise = long * self._noise + (1 - long) * deviation**2
        mean, seen = self._mean / (1 - short**self.done), 1 - long**self.done
        square, noise = self._square / seen, self._noise / seen
        rate = self.rate * min(1.0, self.done / 5) * (1 + math.cos(math.pi * (self.done - 1) / self.rounds)) / 2
        weights = weights - rate * mean / (np.sqrt(np.maximum(square - noise, 0.0) + noise / 4) + 1e-9)
        if (kept := self.done - math.floor((1 - _LAST) * self.rounds)) > 0:
            self.average = self.average + (weights - self.average) / kept
        return weights
