"""Any Gymnasium environment with its reward replaced by a private function: for any library, any number of copies.

Theorem: none is needed. The private function was released once; observations, actions and ends of episodes are public;
so everything that a learner sees and all that it becomes is post-processing of the release, for as long as it trains.
What the code does for it: the environment's own reward is dropped where it arrives, wrappers underneath that would
record it are refused, and `info` passes through an allow-list.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Discrete, Space
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from jaxtyping import Float

from quietq.noise.box import Domain
from quietq.noise.private_function import PrivateFunction
from quietq.privacy.accountant import Accountant
from quietq.privacy.budget import Budget
from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import Relation
from quietq.rewards.hygiene import (
    State,
    allowed_info,
    batch_of,
    in_box,
    is_reset_by_itself,
    refuse_recorders,
    scrub,
    states_of,
    without_reward,
)

if TYPE_CHECKING:
    from quietq.rewards.own_reward import OwnReward

PLACES = ("next-state", "state", "state-action")
"""What a reward may look at."""


class PrivateReward:
    """`env` with the reward `private(...)` of the next state, the state, or (one output an action) the action in it.

    `PrivateReward(env, private)` takes a single or a vector environment and gives one of the same kind. `state` says
    which part of an observation the reward looks at: None for all of it, entries of it, or a function from a batch of
    observations to states. `keep_info` names keys of `info` that are public and may pass.

    >>> from quietq.noise import GaussianProcessMechanism
    >>> from quietq.privacy import people
    >>> mechanism = GaussianProcessMechanism.for_relation(people(50, 0, 1, 2), Budget(0.9, 1e-4), domain=(-4.8, 4.8))
    >>> private = mechanism.apply(lambda position: 1 - abs(position) / 4.8)
    >>> env = PrivateReward(gymnasium.make("CartPole-v1"), private, state=0)
    >>> observation, info = env.reset()
    >>> observation, reward, terminated, truncated, info = env.step(0)
    >>> bool(reward == private(float(observation[0]))), env.certificate.standing
    (True, 'certified')
    """

    certificate: Certificate

    @overload
    def __new__(
        cls,
        env: gymnasium.Env,
        private: PrivateFunction,
        on: str = "next-state",
        state: State = None,
        keep_info: Sequence[str] = (),
    ) -> "PrivateEnv": ...

    @overload
    def __new__(
        cls,
        env: VectorEnv,
        private: PrivateFunction,
        on: str = "next-state",
        state: State = None,
        keep_info: Sequence[str] = (),
    ) -> "PrivateVectorEnv": ...

    def __new__(cls, env: object = None, *_: object, **__: object) -> Any:
        """Chooses the kind; copies and pickles of either come by here too, without arguments."""
        if cls is not PrivateReward:
            return object.__new__(cls)
        if isinstance(env, VectorEnv):
            return object.__new__(PrivateVectorEnv)
        if isinstance(env, gymnasium.Env):
            return object.__new__(PrivateEnv)
        raise InvalidInput(
            f"env must be a Gymnasium environment or vector environment, not {type(env).__name__}; "
            "with Stable-Baselines3, wrap each environment before it becomes part of a VecEnv."
        )

    @classmethod
    def of(
        cls,
        env: gymnasium.Env | VectorEnv,
        relation: Relation,
        budget: Budget,
        *,
        on: str = "next-state",
        state: State = None,
        box: Domain | None = None,
        rewards: int | None = None,
        ledger: Accountant | None = None,
    ) -> "OwnReward":
        """`env` with its *own* reward made private as it goes, under a relation that you declare: see `OwnReward`."""
        from quietq.rewards.own_reward import OwnReward

        return OwnReward(env, relation, budget, on=on, state=state, box=box, rewards=rewards, ledger=ledger)


class PrivateEnv(PrivateReward, gymnasium.Wrapper, RecordConstructorArgs):
    """What PrivateReward makes of a single environment."""

    def __init__(
        self,
        env: gymnasium.Env,
        private: PrivateFunction,
        on: str = "next-state",
        state: State = None,
        keep_info: Sequence[str] = (),
    ) -> None:
        allowed = allowed_info(keep_info)
        self._reader = Reader.of(private, on, state, env.action_space)
        refuse_recorders(env)
        RecordConstructorArgs.__init__(
            self, _disable_deepcopy=True, private=private, on=on, state=state, keep_info=tuple(keep_info)
        )
        gymnasium.Wrapper.__init__(self, env)
        self.certificate = private.certificate
        self._allowed = allowed
        self._resets = is_reset_by_itself(env)
        self._finished = False
        self._before: np.ndarray | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """As the environment does, with `info` scrubbed."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._before, self._finished = self._states(observation), False
        return observation, scrub(info, self._allowed)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """As the environment does, with the private reward and `info` scrubbed."""
        observation, terminated, truncated, info = without_reward(self.env.step(action), self._allowed)
        before, after = self._before, self._states(observation)
        starts = self._resets and self._finished
        self._before, self._finished = after, bool(terminated or truncated)
        reward = 0.0 if starts else float(self._reader.rewards(before, after, [action])[0])
        return observation, reward, terminated, truncated, info

    def _states(self, observation: Any) -> np.ndarray:
        return self._reader.states(batch_of([observation], self.env.observation_space), 1)


class PrivateVectorEnv(PrivateReward, VectorWrapper):
    """What PrivateReward makes of a vector environment, in any autoreset mode."""

    def __init__(
        self,
        env: VectorEnv,
        private: PrivateFunction,
        on: str = "next-state",
        state: State = None,
        keep_info: Sequence[str] = (),
    ) -> None:
        allowed = allowed_info(keep_info)
        self._reader = Reader.of(private, on, state, env.single_action_space)
        refuse_recorders(env)
        VectorWrapper.__init__(self, env)
        self.certificate = private.certificate
        self._allowed = allowed
        try:
            self._mode = AutoresetMode(env.metadata.get("autoreset_mode"))
        except ValueError as error:
            raise InvalidInput(
                "The vector environment must say in metadata['autoreset_mode'] when it resets, or rewards would be "
                "those of the wrong states."
            ) from error
        self._finished = np.zeros(env.num_envs, dtype=bool)
        self._before: np.ndarray | None = None

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """As the environment does, with `info` scrubbed; `options` may hold a `reset_mask`."""
        some = (options or {}).get("reset_mask")
        observations, info = self.env.reset(seed=seed, options=options)
        self._before = self._reader.states(observations, self.num_envs)
        self._finished = np.zeros(self.num_envs, dtype=bool) if some is None else self._finished & ~np.asarray(some)
        return observations, scrub(info, self._allowed)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """As the environment does, with the private rewards and `info` scrubbed."""
        observations, terminated, truncated, info = without_reward(self.env.step(actions), self._allowed)
        before, returned = self._before, self._reader.states(observations, self.num_envs)
        starts = self._finished & (self._mode is AutoresetMode.NEXT_STEP)
        self._finished = np.logical_or(terminated, truncated)
        self._before = returned
        after = self._with_final(returned, info) if self._mode is AutoresetMode.SAME_STEP else returned
        rewards, live = np.zeros(self.num_envs), ~starts
        if live.any():
            taken = np.asarray(actions)[live] if self._reader.on == "state-action" else None
            rewards[live] = self._reader.rewards(None if before is None else before[live], after[live], taken)
        return observations, rewards, terminated, truncated, info

    def _with_final(self, states: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        """The states that steps led to: where an episode ended, the observation is already the next one's first."""
        at = np.flatnonzero(self._finished)
        if not at.size:
            return states
        if "final_obs" not in info:
            raise InvalidInput("A vector environment that resets in the same step must give info['final_obs'].")
        last = batch_of([info["final_obs"][i] for i in at], self.env.single_observation_space)
        states = states.copy()
        states[at] = self._reader.states(last, len(at))
        return states


@dataclass(frozen=True)
class Reader:
    """The private function, where it looks, and which part of an observation it looks at."""

    private: PrivateFunction
    on: str
    state: State
    first_action: int = 0

    @classmethod
    def of(cls, private: PrivateFunction, on: str, state: State, actions: Space | None) -> "Reader":
        """Checks that the function fits the place that it is to be looked at from; `actions` None is not checked."""
        if not isinstance(private, PrivateFunction):
            raise InvalidInput(
                f"private must be a PrivateFunction, as GaussianProcessMechanism.apply returns it, "
                f"not {type(private).__name__}."
            )
        check_place(on)
        middle = [(a + b) / 2 for a, b in zip(private.box.low, private.box.high, strict=True)]
        outputs = np.shape(private(middle if len(middle) > 1 else middle[0]))
        if on != "state-action":
            if outputs:
                raise InvalidInput(
                    f"The private function has outputs of shape {outputs}: look at it on 'state-action'."
                )
            return cls(private, on, state)
        if len(outputs) != 1:
            raise InvalidInput("On 'state-action', the private function must have one output an action.")
        if actions is None:
            return cls(private, on, state)
        if not isinstance(actions, Discrete) or int(actions.n) != outputs[0]:
            raise InvalidInput(
                f"On 'state-action', the private function's {outputs[0]} outputs must be one for each of finitely many "
                f"actions, but the action space is {actions}."
            )
        return cls(private, on, state, int(actions.start))

    def states(self, batch: Any, size: int) -> Float[np.ndarray, "batch dimension"]:
        """What of a batch of observations the reward looks at; not yet checked to lie in the box."""
        return states_of(batch, size, self.state, self.private.box.dimension)

    def rewards(
        self, before: np.ndarray | None, after: np.ndarray | None, actions: object
    ) -> Float[np.ndarray, "batch"]:
        """The private rewards of transitions."""
        states = after if self.on == "next-state" else before
        if states is None:
            raise ResetNeeded("The reward looks at the state before the step: call reset first.")
        inside = in_box(states, self.private.box)
        values = np.asarray(self.private(inside[:, 0] if inside.shape[1] == 1 else inside), dtype=np.float64)
        if self.on != "state-action":
            return values
        column = np.asarray(actions).reshape(-1) - self.first_action
        if column.shape != values.shape[:1] or not np.isin(column, np.arange(values.shape[1])).all():
            raise InvalidInput(f"actions must be one of {values.shape[1]} for each of {len(values)} states.")
        return values[np.arange(len(values)), column.astype(np.int64)]


def check_place(on: object) -> None:
    """Refuses what is not one of PLACES."""
    if on not in PLACES:
        raise InvalidInput(f"on must be one of {', '.join(PLACES)}, not {on!r}.")


def relabel(
    private: PrivateFunction,
    observations: Any,
    next_observations: Any = None,
    actions: Any = None,
    on: str = "next-state",
    state: State = None,
) -> Float[np.ndarray, "steps"]:
    """Private rewards for logged transitions, in place of the logged ones, which are not even asked for.

    For an episode of a Minari data set, `relabel(private, episode.observations[:-1], episode.observations[1:])`.
    """
    reader = Reader.of(private, on, state, None)
    for name, needed, given in (
        ("next_observations", "next-state", next_observations),
        ("actions", "state-action", actions),
    ):
        if on == needed and given is None:
            raise InvalidInput(f"On {on!r}, relabel needs {name}.")
    size = _length(observations)
    if next_observations is not None and _length(next_observations) != size:
        raise InvalidInput(f"There are {size} observations, but {_length(next_observations)} next_observations.")
    before = None if on == "next-state" else reader.states(observations, size)
    after = reader.states(next_observations, size) if on == "next-state" else None
    return reader.rewards(before, after, actions)


def _length(batch: Any) -> int:
    """How many observations a batch holds, which may be a dictionary or tuple of arrays."""
    while isinstance(batch, Mapping | tuple):
        batch = next(iter(batch.values() if isinstance(batch, Mapping) else batch), ())
    return len(batch)
