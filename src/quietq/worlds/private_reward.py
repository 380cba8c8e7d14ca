"""Any Gymnasium environment with its reward replaced by a private function: for any library, any number of copies.

Theorem: none is needed. The private function was released once; observations, actions and ends of episodes are public;
so everything that a learner sees and all that it becomes is post-processing of the release, for as long as it trains.
What the code does for it: the environment's own reward is dropped where it arrives, wrappers underneath that would
record it are refused, and `info` passes through an allow-list. That observations and ends do not depend on that reward
is trusted, and the certificate says so.

Proof: docs/theory.md#post-processing.
"""

import warnings
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper

from quietq.privacy import Certificate, Code, InvalidInput
from quietq.released.private_function import PrivateFunction
from quietq.worlds.guards import (
    refuse_private_worlds,
    refuse_recorders,
    scrub,
)
from quietq.worlds.own_reward import OwnReward
from quietq.worlds.reader import Outside, Reader, State, batch_of
from quietq.worlds.world import Action, Info, Observation

_WITHOUT_LEVEL = ("can end early", "up to a constant")
"""Words of a certificate's remarks that say that a reward's level is not known, or less well than its shape."""


class PrivateReward:
    """Wraps an environment so that its reward is a released private function.

    `PrivateReward(env, private)` takes a single or a vector environment and gives one of the same kind. The certificate
    trusts you that the environment shows nothing of its own reward: read its code.

    Args:
        env: The environment, without recorders of rewards underneath.
        private: The private function.
        on: What it is a function of: "next-state", "state" or "state-action" (one output for each of finitely many
            actions; or, for a Box of actions, their coordinates after those of the state).
        state: The part of an observation that is the state: None for all of it, entries of it, or a function from a
            batch of observations to states.
        outside: "refuse" a state outside the function's box, or "clip" it.

    >>> from quietq import Budget, GaussianProcessMechanism, people
    >>> mechanism = GaussianProcessMechanism.for_relation(people(50, 0, 1, 2), Budget(0.9, 1e-4), domain=(-4.8, 4.8))
    >>> private = mechanism.apply(lambda position: 1 - abs(position) / 4.8)
    >>> env = PrivateReward(gymnasium.make("CartPole-v1"), private, state=0)
    >>> observation, info = env.reset()
    >>> observation, reward, terminated, truncated, info = env.step(0)
    >>> bool(reward == private(float(observation[0]))), env.certificate.standing
    (True, 'certified')

    """

    of = OwnReward
    """`PrivateReward.of(env, relation, budget, ...)`: `env` with its *own* reward made private as it goes."""
    certificate: Certificate

    def __new__(cls, env: object = None, *_: object, **__: object) -> Any:
        """Chooses the kind; copies and pickles of either get here too, without arguments."""
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

    def __init__(
        self,
        env: gymnasium.Env | VectorEnv,
        private: PrivateFunction,
        *,
        on: str = "next-state",
        state: State = None,
        outside: Outside = "refuse",
    ) -> None:
        spaces = [getattr(env, f"single_{name}", getattr(env, name)) for name in ("action_space", "observation_space")]
        self._reader = Reader(private, on, state, outside, *spaces)
        refuse_recorders(env)
        refuse_private_worlds(env)
        self.certificate = private.certificate.with_assumption(Code.INDEPENDENT())
        self._before: np.ndarray | None = None
        remarks = private.certificate.remarks
        self._has_level = not any(words in remark for remark in remarks for words in _WITHOUT_LEVEL)

    def _warn_of_an_early_end(self) -> None:
        """Once: a constant in the reward then decides whether it pays to stay."""
        if not self._has_level:
            self._has_level = True
            warnings.warn(
                "Episodes can end early here, where a constant added to the reward changes what is best, and the level "
                "of this reward is not known well, as its certificate remarks: release it with privatise(..., "
                "level=True), or make all episodes equally long.",
                UserWarning,
                stacklevel=4,
            )

    @property
    def released(self) -> PrivateFunction:
        """The private function that rewards come from."""
        return self._reader.private

    def _without_reward(self, step: tuple[Any, ...]) -> tuple[Observation, Any, Any, Info]:
        """Returns what `env.step` returned, but for the reward, which no variable of the caller ever holds."""
        return step[0], step[2], step[3], scrub(step[4])


class PrivateEnv(PrivateReward, gymnasium.Wrapper, RecordConstructorArgs):
    """What PrivateReward makes of a single environment."""

    def __init__(self, env: gymnasium.Env, private: PrivateFunction, **options: Any) -> None:
        PrivateReward.__init__(self, env, private, **options)
        RecordConstructorArgs.__init__(self, _disable_deepcopy=True, private=private, **options)
        gymnasium.Wrapper.__init__(self, env)
        self._steps = 0
        self._limit = None if env.spec is None else env.spec.max_episode_steps

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Observation, Info]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._before, self._steps = self._states(observation), 0
        return observation, scrub(info)

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, Info]:
        observation, terminated, truncated, info = self._without_reward(self.env.step(action))
        before, after = self._before, self._states(observation)
        self._before, self._steps = after, self._steps + 1
        if terminated and not truncated and self._steps != self._limit:
            self._warn_of_an_early_end()
        return observation, float(self._reader.rewards(before, after, [action])[0]), terminated, truncated, info

    def _states(self, observation: Observation) -> np.ndarray:
        return self._reader.states(batch_of([observation], self.env.observation_space), 1)


class PrivateVectorEnv(PrivateReward, VectorWrapper):
    """What PrivateReward makes of a vector environment, in any autoreset mode."""

    def __init__(self, env: VectorEnv, private: PrivateFunction, **options: Any) -> None:
        PrivateReward.__init__(self, env, private, **options)
        VectorWrapper.__init__(self, env)
        try:
            self._mode = AutoresetMode(env.metadata.get("autoreset_mode"))
        except ValueError as error:
            raise InvalidInput(
                "The vector environment must say in metadata['autoreset_mode'] when it resets, or rewards would be "
                "those of the wrong states."
            ) from error
        self._finished = np.zeros(env.num_envs, dtype=bool)

    def reset(self, *, seed: Any = None, options: Info | None = None) -> tuple[Observation, Info]:
        some = (options or {}).get("reset_mask")
        observations, info = self.env.reset(seed=seed, options=options)
        self._before = self._reader.states(observations, self.num_envs)
        self._finished = np.zeros(self.num_envs, dtype=bool) if some is None else self._finished & ~np.asarray(some)
        return observations, scrub(info)

    def step(self, actions: Action) -> tuple[Observation, np.ndarray, Any, Any, Info]:
        observations, terminated, truncated, info = self._without_reward(self.env.step(actions))
        before, returned = self._before, self._reader.states(observations, self.num_envs)
        starts = self._finished & (self._mode is AutoresetMode.NEXT_STEP)
        self._finished = np.logical_or(terminated, truncated)
        if np.any(np.logical_and(terminated, np.logical_not(truncated))):
            self._warn_of_an_early_end()
        self._before = returned
        after = self._with_final(returned, info) if self._mode is AutoresetMode.SAME_STEP else returned
        rewards, live = np.zeros(self.num_envs), ~starts
        if live.any():
            taken = np.asarray(actions)[live] if self._reader.on == "state-action" else None
            rewards[live] = self._reader.rewards(None if before is None else before[live], after[live], taken)
        return observations, rewards, terminated, truncated, info

    def _with_final(self, states: np.ndarray, info: Info) -> np.ndarray:
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
