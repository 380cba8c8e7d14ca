"""The paper's walk on [0, 1] (its appendix E): a Gymnasium environment, and its exact returns.

Exact: the expectation over a uniform move is an integral of the value function, taken in closed form of its piecewise
linear interpolant on a grid, with the mass that is clipped at the ends. So there is no sampling error, and an error of
second order in the grid's step where values are continuous, of first order where a policy makes them jump.

Scores and returns under the true reward look at it: they are for the operator, and no part of a private release.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Discrete
from jaxtyping import Float, Float32, Int

from quietq.privacy.checks import count, real
from quietq.privacy.errors import InvalidInput

Preference = Callable[[np.ndarray], np.ndarray]
"""A reward as a vectorised function of states."""
Policy = Callable[[np.ndarray], np.ndarray] | np.ndarray
"""Actions 0 and 1, shape (points,), or their probabilities, (points, 2), as a function of states or on the grid; an
array may have an axis in front for the step, first step first."""


@dataclass(frozen=True)
class WalkConstants:
    """Everything that defines the dynamics, for each form of this world."""

    low: float = 0.0
    high: float = 1.0
    reach: float = 0.25
    """A move is uniform between 0 and this, to the right (action 1) or to the left (action 0)."""
    actions: int = 2
    steps: int = 50
    """An episode is truncated after these, and never terminates."""
    peak: float = 0.5
    """Where the reward, 0.5 - |s - peak| of the state after the move, is largest."""


WALK = WalkConstants()
CELLS = 2048


def walk_reward(states: np.ndarray) -> Float[np.ndarray, "..."]:
    """The paper's reward, 0.5 - |s - 0.5|.

    >>> walk_reward(np.array([0.0, 0.25, 0.5]))
    array([0.  , 0.25, 0.5 ])
    """
    return np.asarray(0.5 - np.abs(np.asarray(states, dtype=np.float64) - WALK.peak))


class Walk(gymnasium.Env[np.ndarray, np.int64]):
    """The walk for Gymnasium; `reward` replaces the paper's. The reward is a function of the observation returned.

    `reset(options={"state": 0.3})` starts there instead of at random.

    >>> import quietq.worlds
    >>> env = gymnasium.make("quietq/Walk-v0")
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step(1)
    >>> bool(reward == walk_reward(observation)[0]), terminated, truncated
    (True, False, False)
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (Gymnasium's own)

    def __init__(self, reward: Preference | None = None, render_mode: str | None = None) -> None:
        if render_mode is not None:
            raise InvalidInput(f"The walk cannot be rendered, so render_mode must be None, not {render_mode!r}.")
        self.reward = walk_reward if reward is None else reward
        _on(np.linspace(WALK.low, WALK.high, 5), self.reward)
        self.render_mode = None
        self.observation_space = Box(WALK.low, WALK.high, (1,), np.float32)
        self.action_space = Discrete(WALK.actions)
        self._state = 0.0
        self._steps_left: int | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32[np.ndarray, "1"], dict[str, Any]]:
        """A new episode from a uniformly random state; the same seed gives the same episodes."""
        super().reset(seed=seed)
        start = real("state", (options or {}).get("state", self.np_random.uniform(WALK.low, WALK.high)))
        if not WALK.low <= start <= WALK.high:
            raise InvalidInput(f"state must lie within [{WALK.low:g}, {WALK.high:g}], not {start!r}.")
        self._state, self._steps_left = start, WALK.steps
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Float32[np.ndarray, "1"], float, bool, bool, dict[str, Any]]:
        """One move; the reward is that of the state it leads to."""
        if not self._steps_left:
            over = "has not begun" if self._steps_left is None else f"is over after {WALK.steps} steps"
            raise ResetNeeded(f"The episode {over}: call reset first.")
        if not self.action_space.contains(action):
            raise InvalidInput(f"action must be 0 (left) or 1 (right), not {action!r}.")
        move = self.np_random.uniform(0.0, WALK.reach)
        self._state = float(np.clip(self._state + (move if action == 1 else -move), WALK.low, WALK.high))
        self._steps_left -= 1
        observation = self._observation()
        return observation, float(_on(observation.astype(np.float64), self.reward)[0]), False, self._steps_left == 0, {}

    def _observation(self) -> Float32[np.ndarray, "1"]:
        return np.array([self._state], dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Plan:
    """What is best for some reward: exactly, by the step (`actions`), and as one policy for every step (call it)."""

    actions: Int[np.ndarray, "steps points"]
    """The best action at each step, first step first, and each grid point."""
    expected: float
    """The return of `actions` under the reward that was planned for."""

    def __call__(self, states: np.ndarray) -> Int[np.ndarray, "..."]:
        """The stationary policy: at every step what is best with the whole episode to go, at the nearest point."""
        unit = (np.asarray(states, dtype=np.float64) - WALK.low) / (WALK.high - WALK.low)
        return np.asarray(self.actions[0][np.rint(unit * (self.actions.shape[1] - 1)).astype(np.int64)])


def plan(reward: Preference, cells: int = CELLS) -> Plan:
    """The best policy for a reward, for instance a private one, to be scored under the true one.

    >>> round(score(plan(walk_reward).actions), 9), round(score(plan(lambda s: -walk_reward(s)).actions), 9)
    (1.0, 0.0)
    """
    rows: list[np.ndarray] = []

    def choose(_: int, q: np.ndarray) -> np.ndarray:
        rows.append((q[1] > q[0]).astype(np.int64))
        return q.max(axis=0)

    value = _backward(reward, cells, choose)
    return Plan(np.stack(rows[::-1]), value)


def best_return(reward: Preference = walk_reward, cells: int = CELLS) -> float:
    """The largest expected sum of rewards of an episode that any policy reaches, from a uniform start.

    >>> round(best_return(), 2), round(worst_return(), 2)
    (20.71, 0.26)
    """
    return _backward(reward, cells, lambda _, q: q.max(axis=0))


def worst_return(reward: Preference = walk_reward, cells: int = CELLS) -> float:
    """The smallest."""
    return _backward(reward, cells, lambda _, q: q.min(axis=0))


def random_return(reward: Preference = walk_reward, cells: int = CELLS) -> float:
    """That of uniformly random actions."""
    return _backward(reward, cells, lambda _, q: q.mean(axis=0))


def policy_return(policy: Policy, reward: Preference = walk_reward, cells: int = CELLS) -> float:
    """That of a policy: a function of states, or an array on the grid of `cells` + 1 points.

    A Stable-Baselines3 agent is `lambda states: agent.predict(states[:, None].astype("float32"))[0]`.

    >>> round(best_return() - policy_return(lambda states: states < 0.5), 9)
    0.0
    """
    chances = _chances(policy, _grid(cells))
    return _backward(reward, cells, lambda t, q: (chances[t % len(chances)] * q.T).sum(axis=-1))


def score(policy: Policy, reward: Preference = walk_reward, cells: int = CELLS) -> float:
    """The policy's return, scaled so that the worst policy has 0 and the best 1.

    >>> round(score(lambda states: np.full((len(states), 2), 0.5)), 2)  # uniformly random
    0.52
    """
    worst, best = worst_return(reward, cells), best_return(reward, cells)
    if best - worst <= 1e-9 * max(abs(best), abs(worst)):
        raise InvalidInput("Under this reward all policies are alike, so there is nothing to score.")
    return (policy_return(policy, reward, cells) - worst) / (best - worst)


def _grid(cells: int) -> Float[np.ndarray, "points"]:
    if count("cells", cells, 4) % 4:
        raise InvalidInput(f"cells must be a multiple of 4, so that the longest move ends on the grid, not {cells}.")
    return np.linspace(WALK.low, WALK.high, cells + 1)


def _backward(reward: Preference, cells: int, choose: Callable[[int, np.ndarray], np.ndarray]) -> float:
    """Backward induction; `choose` makes the value at a step of the two actions' values, shape (2, points)."""
    states = _grid(cells)
    rewards, value = _on(states, reward), np.zeros(len(states))
    for step in reversed(range(WALK.steps)):
        value = choose(step, _after_move(rewards + value))
    return float(np.trapezoid(value, dx=1 / cells))


def _after_move(values: np.ndarray) -> Float[np.ndarray, "2 points"]:
    """The mean of `values` after a move to the left and to the right, from each grid point."""
    cells = len(values) - 1
    reach = round(cells * WALK.reach / (WALK.high - WALK.low))
    area = np.concatenate([[0.0], np.cumsum((values[1:] + values[:-1]) / 2)])
    here = np.arange(cells + 1)
    right, left = np.minimum(here + reach, cells), np.maximum(here - reach, 0)
    to_right = area[right] - area + (here + reach - right) * values[-1]
    to_left = area - area[left] + (left - here + reach) * values[0]
    return np.stack([to_left, to_right]) / reach


def _on(states: np.ndarray, reward: Preference) -> Float[np.ndarray, "points"]:
    values = np.asarray(reward(states), dtype=np.float64) if callable(reward) else np.empty(0)
    if values.shape != states.shape or not np.isfinite(values).all():
        raise InvalidInput("reward must be a function of many states at once that gives one finite number for each.")
    return values


def _chances(policy: Policy, states: np.ndarray) -> Float[np.ndarray, "steps points 2"]:
    """The policy as probabilities, with one step for all or each step's own."""
    given = np.asarray(policy(states) if callable(policy) else policy)
    if given.shape[-1:] != (WALK.actions,) and np.isin(given, (0, 1)).all():
        given = np.stack([1 - given.astype(np.float64), given.astype(np.float64)], axis=-1)
    steps = given.shape[:-2] in ((), (WALK.steps,))
    if not steps or given.shape[-2:] != (len(states), WALK.actions) or not np.issubdtype(given.dtype, np.number):
        raise InvalidInput(
            f"policy must give an action, 0 or 1, or a row of two probabilities for each of {len(states)} states."
        )
    if not ((given >= 0).all() and np.allclose(given.sum(axis=-1), 1)):
        raise InvalidInput("policy must give probabilities: at least 0, and 1 in sum for each state.")
    return given.astype(np.float64).reshape(-1, len(states), WALK.actions)
