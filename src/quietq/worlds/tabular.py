"""Worlds of finitely many states: values of actions and policies, exactly."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from quietq.privacy.checks import numbers, probability
from quietq.privacy.errors import InvalidInput
from quietq.worlds.world import chances_of


@dataclass(frozen=True, eq=False)
class Tabular:
    """States 0 to n - 1, actions 0 to m - 1, no end, and rewards discounted by `gamma`."""

    transitions: Float[np.ndarray, "n m n"]
    """Chances of the next state, given a state and an action."""
    rewards: Float[np.ndarray, "n m"]
    gamma: float

    def __post_init__(self) -> None:
        if numbers("rewards", self.rewards).ndim != 2 or not np.isfinite(self.rewards).all():
            raise InvalidInput("rewards must be finite numbers, one for each state and action.")
        n, m = self.rewards.shape
        chances = numbers("transitions", self.transitions)
        if chances.shape != (n, m, n) or not ((chances >= 0).all() and np.allclose(chances.sum(axis=-1), 1)):
            raise InvalidInput(f"transitions must be {n} x {m} rows of {n} chances: at least 0, and 1 in sum.")
        probability("gamma", self.gamma)

    @property
    def states(self) -> int:
        return self.rewards.shape[0]

    @property
    def actions(self) -> int:
        return self.rewards.shape[1]

    def q(self, values: np.ndarray) -> Float[np.ndarray, "n m"]:
        """Of state-action pairs, when the next state is worth `values`."""
        return self.rewards + self.gamma * self.transitions @ values

    def greedy(self, values: np.ndarray) -> Int[np.ndarray, " n"]:
        return np.asarray(self.q(values).argmax(axis=1))

    def evaluate(self, policy: np.ndarray) -> Float[np.ndarray, " n"]:
        """Exact values of a policy: an action a state, (n,), or their probabilities, (n, m). One linear solve."""
        chances = chances_of(policy, self.states, self.actions)
        moves = np.einsum("sa,sat->st", chances, self.transitions)
        return np.linalg.solve(np.eye(self.states) - self.gamma * moves, (chances * self.rewards).sum(axis=1))
