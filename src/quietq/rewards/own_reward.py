"""An environment's own reward made private as it goes, under a relation that the caller declares.

Theorem. LipschitzBall: the reward as a function of the state, plus (Delta/mu) times an Ornstein-Uhlenbeck path, is
mu-GDP at all states at once, whoever chooses them and in whatever order. SupBall: n observed rewards differ by at most
radius sqrt(n) in the Euclidean norm, so independent noise of that size over mu on each is mu-GDP, also adaptively.

What the code does for it: a state's value is released once and remembered, because a reward that is not a function of
the state would otherwise show its differences without noise; states are told apart exactly as finely as the path tells
them apart; there is one path an object, which can be neither copied nor carried into another process.
"""

import dataclasses
import math
import os
import warnings
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box as BoxSpace
from gymnasium.spaces import Discrete
from gymnasium.vector import VectorEnv

from quietq.noise.box import UNIT, Box, Domain
from quietq.noise.entropy import SystemEntropy
from quietq.noise.kernels import Exponential
from quietq.noise.rounding import check_values, round_release, rounding_step
from quietq.noise.sorted_path import SortedPath
from quietq.privacy.accountant import Accountant
from quietq.privacy.budget import Budget, weak_delta
from quietq.privacy.certificate import Assumption, Certificate
from quietq.privacy.checks import count
from quietq.privacy.errors import BudgetExhausted, InvalidInput, PrivacyWarning
from quietq.privacy.relations import LipschitzBall, Relation, SupBall
from quietq.rewards.hygiene import (
    HAIR,
    PUBLIC_INFO,
    State,
    batch_of,
    in_box,
    is_reset_by_itself,
    refuse_recorders,
    scrub,
    states_of,
)
from quietq.rewards.private_reward import PrivateReward, check_place


class OwnReward(PrivateReward, gymnasium.Wrapper):
    """What `PrivateReward.of` makes: one release, spread over as many steps as you like (SupBall: `rewards` steps)."""

    def __new__(cls, *_: object, **__: object) -> "OwnReward":
        """One object; the kind is known."""
        return object.__new__(cls)

    def __init__(
        self,
        env: gymnasium.Env | VectorEnv,
        relation: Relation,
        budget: Budget,
        *,
        on: str = "next-state",
        state: State = None,
        box: Domain | None = None,
        rewards: int | None = None,
        ledger: Accountant | None = None,
    ) -> None:
        if isinstance(env, VectorEnv):
            raise InvalidInput(
                "Copies of an environment would each release their own reward: wrap a single environment, or release "
                "one function (GaussianProcessMechanism.apply) and give it to PrivateReward(env, private)."
            )
        if not isinstance(env, gymnasium.Env):
            raise InvalidInput(f"env must be a Gymnasium environment, not {type(env).__name__}.")
        check_place(on)
        refuse_recorders(env)
        if isinstance(relation, LipschitzBall):
            if rewards is not None:
                raise InvalidInput("rewards is for a SupBall: under a LipschitzBall any number of them is covered.")
            self._noise: _Paths | _Independent = _Paths(env, relation, budget, on, state, box)
        elif isinstance(relation, SupBall):
            if rewards is None or state is not None or box is not None:
                raise InvalidInput(
                    "Under a SupBall every observed reward has noise of its own, wherever it was seen: say with "
                    "`rewards` how many there will be, and leave `state` and `box` out."
                )
            self._noise = _Independent(relation, budget, count("rewards", rewards))
        else:
            raise InvalidInput(
                "An environment's own reward cannot be made private under an RkhsBall as it goes: privatise the "
                "function (GaussianProcessMechanism.for_relation) and give it to PrivateReward(env, private)."
            )
        gymnasium.Wrapper.__init__(self, env)
        if sentence := weak_delta(budget.delta, relation.people):
            warnings.warn(sentence, PrivacyWarning, stacklevel=2)
        self.certificate = _certificate(relation, budget, on, self._noise)
        self._on, self._mu, self._ledger = on, budget.mu, ledger
        self._process = os.getpid()
        self._resets = is_reset_by_itself(env)
        self._spent = self._finished = False
        self._before: float | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """As the environment does, with `info` scrubbed."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._before, self._finished = self._noise.state(observation), False
        return observation, scrub(info, PUBLIC_INFO)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """As the environment does, with noise in the reward and `info` scrubbed."""
        if os.getpid() != self._process:
            raise BudgetExhausted(
                "This reward is made private in another process; a second path would not be covered by its budget."
            )
        starts = self._resets and self._finished
        if not starts:
            self._noise.check_left()
        observation, own, terminated, truncated, info = self.env.step(action)
        before, after = self._before, self._noise.state(observation)
        self._before, self._finished = after, bool(terminated or truncated)
        if starts:
            reward = 0.0  # Autoreset's, not the reward of the state that it went to
        else:
            reward = self._release(self._noise.place(after if self._on == "next-state" else before, action), own)
        return observation, reward, terminated, truncated, scrub(info, PUBLIC_INFO)

    def _release(self, at: "_Place", own: Any) -> float:
        known = self._noise.known(at)
        if known is not None:
            return known
        value = _finite(own, self._noise.sigma)
        if not self._spent and self._ledger is not None:
            self._ledger.charge(self._mu)
        self._spent = True
        return self._noise.release(at, value)

    def __reduce__(self) -> str:
        raise TypeError(
            "An environment whose own reward is made private as it goes is one release: it is not copied or pickled; "
            "release a function and share PrivateReward(env, private) instead."
        )


_Place = tuple[float, int]
"""Where a reward was seen: the state in [0, 1], and which path is its."""


class _Paths:
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
        self._released: dict[_Place, float] = {}
        self.remarks = (f"Noise kernel: {kernel.describe()}, on {self._box}.",)
        self.how = "Each state's reward was noised when it was first seen, and the released value used ever after."

    def state(self, observation: Any) -> float:
        """The state that an observation shows."""
        return float(states_of(batch_of([observation], self._space), 1, self._state, 1)[0, 0])

    def place(self, state: float | None, action: Any) -> _Place:
        """The path's own coordinate of a state, so that what has one noise has one released value."""
        if state is None:
            raise ResetNeeded("The reward looks at the state before the step: call reset first.")
        in_box(np.array([[state]]), self._box)
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

    def known(self, at: _Place) -> float | None:
        """What was released for this state before."""
        return self._released.get(at)

    def release(self, at: _Place, value: float) -> float:
        """The value with the path's noise, rounded and remembered."""
        noise = self._paths[at[1]]([at[0]])
        self._released[at] = float(round_release(np.array([value]), noise, self.sigma)[0])
        return self._released[at]


class _Independent:
    """Noise for a SupBall: fresh for each of n observed rewards."""

    method = "independent-gaussian"

    def __init__(self, relation: SupBall, budget: Budget, rewards: int) -> None:
        self._total = self._left = rewards
        self.sensitivity = relation.radius * math.sqrt(rewards)
        self.sigma = self.sensitivity / budget.mu
        self.remarks = (f"The sensitivity is that of {rewards} rewards together.",)
        self.how = f"At most {rewards} rewards are released, each noised once, independently."

    def state(self, observation: Any) -> None:
        """The state does not matter."""

    def place(self, state: float | None, action: Any) -> _Place:
        """Where a reward was seen does not matter."""
        return 0.0, 0

    def check_left(self) -> None:
        """Refuses the reward after the last one, before there is one."""
        if not self._left:
            raise BudgetExhausted(f"All {self._total} rewards that this budget covers have been released.")

    def known(self, at: _Place) -> None:
        """Every reward is new."""

    def release(self, at: _Place, value: float) -> float:
        """The value with noise of its own, rounded."""
        self.check_left()
        self._left -= 1
        noise = self.sigma * SystemEntropy().normals((1,))
        return float(round_release(np.array([value]), noise, self.sigma)[0])


def _finite(own: Any, sigma: float) -> float:
    """The environment's reward as a number; no message shows it."""
    try:
        value = math.nan if isinstance(own, str | bytes) else float(own)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise InvalidInput("The environment's reward must be a finite number; nothing was drawn or spent for this one.")
    check_values(np.array(value), sigma)
    return value


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


def _certificate(relation: Relation, budget: Budget, on: str, noise: _Paths | _Independent) -> Certificate:
    return Certificate(
        method=noise.method,
        standing="certified",
        relation=relation.describe(),
        epsilon=budget.epsilon,
        delta=budget.delta,
        mu=budget.mu,
        sigma=noise.sigma,
        sensitivity=noise.sensitivity,
        assumptions=(
            Assumption(
                f"The reward is a function of the state (here: {on}) and changes as the relation says: neighbours are "
                f"{relation}.",
                enforced=False,
            ),
            Assumption("States and ends of episodes depend on the reward through released values only.", False),
            Assumption("Box, bounds, number of people and budget were chosen without the private data.", False),
            Assumption(noise.how, True),
            Assumption("Noise was drawn in float64 from the operating system's generator.", True),
            Assumption(
                f"Values were rounded to multiples of {rounding_step(noise.sigma):g}; beyond that, floating-point "
                "noise is taken for ideal Gaussian noise.",
                False,
            ),
        ),
        remarks=noise.remarks,
    )
