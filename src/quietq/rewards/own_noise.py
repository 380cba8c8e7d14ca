"""The noise of an environment's own reward: along a path for smooth rewards, reward by reward for others."""

import dataclasses
import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box as BoxSpace
from gymnasium.spaces import Discrete

from quietq.noise.box import UNIT, Box, Domain
from quietq.noise.entropy import SystemEntropy
from quietq.noise.kernels import Exponential
from quietq.noise.rounding import round_release
from quietq.noise.sorted_path import SortedPath
from quietq.privacy.budget import Budget
from quietq.privacy.errors import BudgetExhausted, InvalidInput
from quietq.privacy.relations import LipschitzBall, SupBall
from quietq.rewards.hygiene import HAIR, State, batch_of, in_box, states_of

Place = tuple[float, int]
"""Where a reward was seen: the state in [0, 1], and which path is its."""


class PathNoise:
    """Noise for a LipschitzBall: a path at full floating-point resolution, one for each action that matters."""

    method = "gaussian-process"

    def __init__(
        self, env: gymnasium.Env, relation: LipschitzBall, budget: Budget, on: str, state: State, box: Domain | None
    ) -> None:
        self._space, self._state = env.observation_space, state
        self._box = _box_of(env, state) if box is None else Box.of(box)
        if self._box.dimension != 1:
            raise InvalidInput(
                f"A LipschitzBall speaks of one dimension, but the box is {self._box}: name one `state`."
            )
        # A state may lie a hair outside its box, and is not clipped here: where it was seen is where the noise must be.
        # So the path lives on the box widened by that hair, over whose width the slope is as much larger.
        wide = dataclasses.replace(relation, lipschitz=relation.lipschitz * (1 + 2 * HAIR))
        kernel = Exponential(wide.best_beta())
        self.sensitivity = wide.rkhs_radius(kernel)
        self.sigma = self.sensitivity / budget.mu
        self._actions = _actions(env, relation) if on == "state-action" else None
        paths = 1 if self._actions is None else int(self._actions.n)
        self._paths = [SortedPath(kernel, self.sigma, UNIT) for _ in range(paths)]
        self._released: dict[Place, float] = {}
        self.domain = list(zip(self._box.low, self._box.high, strict=True))
        self.norm = kernel.describe()
        self.how = "Each state's reward was noised when it was first seen, and the released value used ever after."

    def state(self, observation: Any) -> float:
        """The state that an observation shows."""
        return float(states_of(batch_of([observation], self._space), 1, self._state, 1)[0, 0])

    def place(self, state: float | None, action: Any) -> Place:
        """The path's own coordinate of a state, so that what has one noise has one released value."""
        if state is None:
            raise ResetNeeded("The reward looks at the state before the step: call reset first.")
        # No clipping: the reward of a state outside is not that of the end of the box, and as one it could be steeper.
        in_box(
            np.array([[state]]),
            self._box,
            advice="give a `box` that all states lie in, and a relation whose slope is per width of that box",
        )
        low, high = self._box.low[0], self._box.high[0]
        hair = HAIR * (high - low)
        unit = min(max((state - low + hair) / (high - low + 2 * hair), 0.0), 1.0)
        if self._actions is None:
            return unit, 0
        if not self._actions.contains(action):
            raise InvalidInput(f"action must be one of {self._actions}, not {action!r}.")
        return unit, int(action) - int(self._actions.start)

    def check_left(self) -> None:
        """Any number of rewards is covered."""

    def known(self, at: Place) -> float | None:
        """What was released for this state before."""
        return self._released.get(at)

    def release(self, at: Place, value: float) -> float:
        """The value with the path's noise, rounded and remembered."""
        noise = self._paths[at[1]]([at[0]])
        self._released[at] = float(round_release(np.array([value]), noise, self.sigma)[0])
        return self._released[at]


class IndependentNoise:
    """Noise for a SupBall: fresh for each of n observed rewards."""

    method = "independent-gaussian"
    domain = None

    def __init__(self, relation: SupBall, budget: Budget, rewards: int) -> None:
        self._total = self._left = rewards
        self.sensitivity = relation.radius * math.sqrt(rewards)
        self.sigma = self.sensitivity / budget.mu
        self.norm: dict[str, object] = {"kind": "rewards", "count": rewards, "operations": 0}
        self.how = f"At most {rewards} rewards are released, each noised once, independently."

    def state(self, observation: Any) -> None:
        """The state does not matter."""

    def place(self, state: float | None, action: Any) -> Place:
        """Where a reward was seen does not matter."""
        return 0.0, 0

    def check_left(self) -> None:
        """Refuses the reward after the last one, before there is one."""
        if not self._left:
            raise BudgetExhausted(f"All {self._total} rewards that this budget covers have been released.")

    def known(self, at: Place) -> None:
        """Every reward is new."""

    def release(self, at: Place, value: float) -> float:
        """The value with noise of its own, rounded."""
        self.check_left()
        self._left -= 1
        noise = self.sigma * SystemEntropy().normals((1,))
        return float(round_release(np.array([value]), noise, self.sigma)[0])


def _box_of(env: gymnasium.Env, state: State) -> Box:
    """The box of the state, from the observation space."""
    space = env.observation_space
    if not isinstance(space, BoxSpace) or callable(state):
        raise InvalidInput("Only a Box observation space says where its entries lie: give the reward's `box`.")
    ends = [states_of(end[None], 1, state, 1)[0] for end in (space.low, space.high)]
    return Box.of(list(zip(*ends, strict=True)))


def _actions(env: gymnasium.Env, relation: LipschitzBall) -> Discrete:
    """The actions, if there are finitely many and the relation lets all of them change."""
    if not isinstance(env.action_space, Discrete):
        raise InvalidInput(f"On 'state-action' there must be finitely many actions, not {env.action_space}.")
    if int(env.action_space.n) > relation.actions:
        raise InvalidInput(
            f"The environment has {env.action_space.n} actions, but the relation lets {relation.actions} change: "
            "declare it with `actions`."
        )
    return env.action_space
