"""Worlds of finitely many states, solved by linear programming; and what noise in the rewards can cost there.

Theorem (the paper's Proposition 10 put right; docs/theory.md#noised-rewards). With independent N(0, sigma^2) noise on
the rewards of n states and m actions, optimal values v' instead of v* have E max|v' - v*| <= sigma sqrt(2 ln(2nm))/(1 -
gamma). The true values of the policy that is greedy for v' lose at most twice that.

Proof. Bellman's operator contracts by gamma in the largest entry, so optimal values, and the policy's own, move by at
most the largest change of a reward over 1 - gamma. The largest of nm Gaussians in size is the largest of 2nm variables
+-g_i, for which e^(t E max) <= sum of E e^(+-t g_i) = 2nm e^(t^2 sigma^2/2); t = sqrt(2 ln(2nm))/sigma gives
sigma sqrt(2 ln(2nm)).
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linprog

from quietq.privacy.checks import count, numbers, positive, probability
from quietq.privacy.errors import InvalidInput, QuietqError
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
        """Returns the values of state-action pairs, when the next state is worth `values`."""
        return self.rewards + self.gamma * self.transitions @ values

    def greedy(self, values: np.ndarray) -> Int[np.ndarray, " n"]:
        return np.asarray(self.q(values).argmax(axis=1))

    def evaluate(self, policy: np.ndarray) -> Float[np.ndarray, " n"]:
        """Returns a policy's exact values: an action a state, (n,), or probabilities, (n, m). One linear solve."""
        chances = chances_of(policy, self.states, self.actions)
        moves = np.einsum("sa,sat->st", chances, self.transitions)
        return np.linalg.solve(np.eye(self.states) - self.gamma * moves, (chances * self.rewards).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Solution:
    """The optimum, from both sides."""

    values: Float[np.ndarray, " n"]
    """v*, the solution of the primal: the smallest v that is no smaller than any action makes it."""
    occupancy: Float[np.ndarray, "n m"]
    """The solution of the dual: discounted visits to each pair, summed over one start in every state."""
    gap: float
    """Between the two optima, relative to them: rounding."""

    @property
    def policy(self) -> Int[np.ndarray, " n"]:
        """The optimal policy, read off the dual: what is done in each state. Every state is visited."""
        return np.asarray(self.occupancy.argmax(axis=1))


def solve(world: Tabular) -> Solution:
    """The two linear programs, each on its own, by HiGHS; refuses a result in which they disagree."""
    n, m = world.states, world.actions
    flow = (np.eye(n)[:, None] - world.gamma * world.transitions).reshape(n * m, n)
    rewards = world.rewards.reshape(-1)
    primal = linprog(np.ones(n), A_ub=-flow, b_ub=-rewards, bounds=(None, None), method="highs")
    dual = linprog(-rewards, A_eq=flow.T, b_eq=np.ones(n), bounds=(0, None), method="highs")
    if not (primal.success and dual.success):
        raise QuietqError(f"HiGHS found no optimum of this world ({primal.status}, {dual.status}).")
    gap = abs(primal.fun + dual.fun) / max(1.0, abs(primal.fun))
    # A smaller duality gap is taken for rounding.
    if gap > 1e-7:
        raise QuietqError(f"The two linear programs of this world disagree by {gap:g}, which is more than rounding.")
    return Solution(np.asarray(primal.x), np.asarray(dual.x).reshape(n, m), gap)


def random_mdp(n: int, m: int, gamma: float, seed: int) -> Tabular:
    """Chances uniform on the simplex, rewards uniform on [0, 1].

    >>> world = random_mdp(n=20, m=3, gamma=0.9, seed=1)
    >>> solution = solve(world)
    >>> bool(np.allclose(world.evaluate(solution.policy), solution.values))
    True
    """
    rng = np.random.default_rng(seed)
    n, m = count("n", n), count("m", m)
    return Tabular(rng.dirichlet(np.ones(n), size=(n, m)), rng.random((n, m)), gamma)


def value_error_bound(n: int, m: int, sigma: float, gamma: float, greedy: bool = False) -> float:
    """E max|v' - v*| is at most this; with `greedy`, what the true values of the greedy policy for v' lose at most.

    >>> round(value_error_bound(n=100, m=2, sigma=0.3, gamma=0.9), 2)
    10.38
    """
    largest = positive("sigma", sigma) * math.sqrt(2 * math.log(2 * count("n", n) * count("m", m)))
    return (2 if greedy else 1) * largest / (1 - probability("gamma", gamma))


def printed_value_error_bound(n: int, sigma: float, gamma: float) -> float:
    """The paper's bound of the mean of |v' - v*| over states, as printed. It is false: the tests exceed it.

    >>> round(printed_value_error_bound(n=100, sigma=0.3, gamma=0.9), 3)
    0.479
    """
    return 2 * math.sqrt(2 / (count("n", n) * math.pi)) * positive("sigma", sigma) / (1 - probability("gamma", gamma))
