"""Network: a small network, fitted by noisy means of clipped per-person gradients.

Theorem. As for rounds: in each round a person's vector is a function of their rows and of earlier answers, held to
length B, so replacing one of N people moves the mean by at most 2B/N, and rounds with noise N(0, (2B/(N mu_t))^2 I) are
together sqrt(sum mu_t^2)-GDP. Everybody takes part in every round, so there is no sampling to account for. Steps and
averages are post-processing of the answers. See `docs/theory.md`, section 11.

A network has no prior that could be wrong about a reward, and shrinks nothing: it needs many more people than `rounds`,
and is better where the reward has more detail than that one's features can hold.
"""

import math
from collections.abc import Generator

import numpy as np
from jaxtyping import Float

from quietq.feedback.network_gradient import NetworkGradient, layers, number_of_weights
from quietq.feedback.row_statistics import TOLD
from quietq.mechanisms.mechanism import Query, Task
from quietq.mechanisms.network_reward import NetworkReward
from quietq.mechanisms.rounds import LEFT, Rounds
from quietq.privacy.certificate import Assumption, Certificate

HIDDEN = (32,)
"""How wide the hidden layers are."""
TIMES = 200
"""Rounds."""
RATE = 0.1
"""The largest step of a weight, from which steps fall to 0."""
START = 0.8
"""The deviation of a hidden unit at the start, before its tanh, for states of deviation 1."""
_MEMORY = (0.9, 0.99)
"""Of gradients and of their squares, by round."""
_LAST = 0.25
"""The share of rounds, at the end, whose weights are averaged."""


class Network(Rounds):
    """A reward in any dimension from rows of ratings or choices, as a small network. For many people."""

    name = "network"
    remarks = ("A network is made for tens of thousands of people; with fewer, 'rounds' is better.",)

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.rounds, self.largest = TIMES, 2.0
        self.widths = (self.box.dimension, *HIDDEN, self.loss.actions)
        held = (
            f"Each of {self.rounds} rounds took the mean of one vector per person, a gradient of the network, held to "
            "its bound, noised once, and saw earlier answers only."
        )
        self.conditions = (Assumption(held, True),)

    def run(self) -> Generator[Query, np.ndarray, Float[np.ndarray, " weights"]]:
        each = self.budget.mu / math.sqrt(self.rounds)
        weights, clip = _start(self.widths), 0.5 * math.sqrt(self._spread * (self.widths[-2] + 1))
        descent = _Descent(len(weights), self.rounds)
        for _ in range(self.rounds):
            query = self._query(NetworkGradient(self.loss, self.widths, weights, clip), each)
            answer = yield query
            left = float(np.clip(answer[-1] / TOLD + 0.5, 0.1, 1.0))
            weights = weights - descent.step(clip / left * answer[:-1], clip / left * query.law.sigma)
            descent.keep(weights)
            clip *= float(np.clip(LEFT / left, 0.5, 2.0))
        return descent.average

    def result(self, released: np.ndarray, certificate: Certificate) -> NetworkReward:
        weights, (low, high) = released.copy(), self.loss.range or (None, None)
        layers(weights, self.widths)[-1] *= self.loss.unit
        return NetworkReward(self.widths, weights, low, high, self.box, certificate)

    @classmethod
    def propose(cls, task: Task) -> "list[Network]":
        if not task.asked:
            return []
        if task.features is not None:
            task.refuse("A network learns features of its own: leave features out, or ask for noise='rounds'.")
        return [cls(task)]


def _start(widths: tuple[int, ...]) -> Float[np.ndarray, " weights"]:
    """Public random numbers, but for the last layer, which says nothing yet."""
    rng, weights = np.random.default_rng(0), np.zeros(number_of_weights(widths))
    for matrix in layers(weights, widths)[:-1]:
        matrix[:] = START * rng.normal(size=matrix.shape) / math.sqrt(len(matrix) - 1)
    return weights


class _Descent:
    """Adam, whose squares leave out most of what the known noise adds to them; and the mean of the last weights."""

    def __init__(self, size: int, rounds: int) -> None:
        self.rounds, self.done = rounds, 0
        self.mean, self.square, self.noise = np.zeros(size), np.zeros(size), 0.0
        self.sum, self.kept = np.zeros(size), 0

    def step(self, gradient: Float[np.ndarray, " weights"], deviation: float) -> Float[np.ndarray, " weights"]:
        short, long = _MEMORY
        self.done += 1
        self.mean = short * self.mean + (1 - short) * gradient
        self.square = long * self.square + (1 - long) * gradient**2
        self.noise = long * self.noise + (1 - long) * deviation**2
        mean, seen = self.mean / (1 - short**self.done), 1 - long**self.done
        square, noise = self.square / seen, self.noise / seen
        rate = RATE * min(1.0, self.done / 5) * (1 + math.cos(math.pi * (self.done - 1) / self.rounds)) / 2
        return rate * mean / (np.sqrt(np.maximum(square - noise, 0.0) + noise / 4) + 1e-9)

    def keep(self, weights: Float[np.ndarray, " weights"]) -> None:
        if self.done > (1 - _LAST) * self.rounds:
            self.sum, self.kept = self.sum + weights, self.kept + 1

    @property
    def average(self) -> Float[np.ndarray, " weights"]:
        return self.sum / self.kept
