"""Systems that people act in, written for many copies at once: their sessions, and the true return of a policy.

A system is a law: who people are, where they begin, what a step does, and how they behave. `SystemEnv` is its
Gymnasium form. Everything here is about synthetic people and private to nobody.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import gymnasium
import numpy as np
import polars as pl
from gymnasium.spaces import Box as GymBox, Discrete

import quietq as qq
from quietq.feedback.spaces import Spaces
from quietq.noise.box import Box
from quietq.released.world_model import WorldModel

Array = np.ndarray
Rng = np.random.Generator
Policy = Callable[[Array], Array]
"""From states to actions, one row for each copy, both in their own units."""


class Outcome(NamedTuple):
    """What a step led to, for each copy."""

    states: Array
    rewards: Array
    ended: Array


class System(ABC):
    """A law of people's sessions, and what is declared of it."""

    name: str
    box: ClassVar[list[tuple[float, float]]]
    low: ClassVar[float]
    high: ClassVar[float]
    """Of rewards."""
    steps: ClassVar[int]
    """The time limit of an episode."""
    recorded: ClassVar[int | None] = None
    """How many steps of each person are recorded, if not the whole episode."""
    actions: ClassVar[int | None] = None
    action_box: ClassVar[list[tuple[float, float]] | None] = None
    items: ClassVar[Array | None] = None
    """If actions are points of a public list, in the box."""
    gymnasium: ClassVar[str | None] = None
    """The environment of Gymnasium that this is a copy of."""
    ends: ClassVar[bool] = True
    planning: ClassVar[int | None] = None
    """How many steps plans are judged by, if not the whole episode."""
    ahead: ClassVar[int | None] = None
    """If actions are sought in every state anew, so many steps ahead."""

    @property
    def model(self) -> WorldModel:
        """Features of the dynamics, and what is known: the same for all methods."""
        return WorldModel()

    @cached_property
    def spaces(self) -> Spaces:
        acting = None if self.action_box is None else Box.of(self.action_box)
        return Spaces(Box.of(self.box), self.actions, acting, self.low, self.high)

    @property
    def unit_items(self) -> Array | None:
        """The items, in the unit box of actions."""
        acting = self.spaces.action_box
        return None if self.items is None or acting is None else (self.items - acting.low) / np.array(acting.width)

    def people(self, rng: Rng, number: int) -> Array:
        """Traits of people: how they are, and how they behave."""
        return rng.random((number, 1))

    @abstractmethod
    def start(self, rng: Rng, people: Array) -> Array: ...

    @abstractmethod
    def step(self, rng: Rng, people: Array, states: Array, actions: Array) -> Outcome: ...

    @abstractmethod
    def behave(self, rng: Rng, people: Array, states: Array) -> Array: ...

    def sessions(self, people: int, seed: int) -> "Steps":
        """One episode of each person, as people behave."""
        rng = np.random.default_rng([seed, people])
        traits = self.people(rng, people)
        states, alive, rows = self.start(rng, traits), np.ones(people, bool), []
        for _ in range(self.recorded or self.steps):
            actions = self.behave(rng, traits, states)
            found = self.step(rng, traits, states, actions)
            rows.append((states, actions, *found, alive))
            states, alive = found.states, alive & ~found.ended
            if not alive.any():
                break
        return Steps(self, *(np.stack(column, axis=1) for column in zip(*rows, strict=True)))

    def value(self, policy: Policy, seed: int, episodes: int = 50) -> float:
        """The mean true return, in Gymnasium's own environment where there is one."""
        if self.gymnasium is not None:
            return self._value_there(policy, seed, episodes)
        return float(self._play(lambda rng, people, states: policy(states), [seed, 1], episodes).mean())

    def value_of_behaviour(self, seed: int = 0) -> float:
        """The mean return of people as they are."""
        return float(self._play(self.behave, [seed, 2], 1000).mean())

    def _play(self, act: Callable[[Rng, Array, Array], Array], seed: Any, episodes: int) -> Array:
        rng = np.random.default_rng(seed)
        people = self.people(rng, episodes)
        states, alive, returns = self.start(rng, people), np.ones(episodes, bool), np.zeros(episodes)
        for _ in range(self.steps):
            found = self.step(rng, people, states, act(rng, people, states))
            returns += alive * found.rewards
            states, alive = found.states, alive & ~found.ended
            if not alive.any():
                break
        return returns

    def _value_there(self, policy: Policy, seed: int, episodes: int) -> float:
        assert self.gymnasium is not None
        envs = [gymnasium.make(self.gymnasium) for _ in range(episodes)]
        states = np.array([env.reset(seed=1000 * seed + i)[0] for i, env in enumerate(envs)], float)
        returns, alive = np.zeros(episodes), np.ones(episodes, bool)
        while alive.any():
            actions = policy(states)
            for i in np.flatnonzero(alive):
                states[i], reward, ended, cut, _ = envs[i].step(self.action_there(actions[i]))
                returns[i], alive[i] = returns[i] + float(reward), not (ended or cut)
        return float(returns.mean())

    def action_there(self, action: Array) -> Any:
        """An action as Gymnasium's environment takes it."""
        return int(action) if self.actions is not None else np.asarray(action, np.float32)


@dataclass(frozen=True, eq=False)
class Steps:
    """People's steps, one row each for as many steps as the longest has; `there` says which of them were made."""

    system: System
    states: Array
    actions: Array
    after: Array
    rewards: Array
    ended: Array
    there: Array

    @property
    def people(self) -> int:
        return len(self.there)

    def frame(self) -> pl.DataFrame:
        person, step = np.nonzero(self.there)
        columns: dict[str, Array] = {"person": person, "step": step}
        for name, array in (("s", self.states), ("n", self.after)):
            columns |= {f"{name}{i}": array[person, step, i] for i in range(array.shape[-1])}
        if self.system.actions is not None:
            columns["action"] = self.actions[person, step]
        else:
            columns |= {f"a{i}": self.actions[person, step, i] for i in range(self.actions.shape[-1])}
        columns |= {"reward": self.rewards[person, step], "end": self.ended[person, step].astype(int)}
        return pl.DataFrame(columns)

    def read(self) -> qq.Sessions:
        system = self.system
        states = range(len(system.box))
        acting: dict[str, Any] = {"action": "action", "actions": range(system.actions or 0)}
        if system.action_box is not None:
            acting = {"action": [f"a{i}" for i in range(len(system.action_box))], "actions": system.action_box}
        return qq.Sessions.read(
            self.frame(),
            step="step",
            state=[f"s{i}" for i in states],
            next_state=[f"n{i}" for i in states],
            reward="reward",
            low=system.low,
            high=system.high,
            end="end" if system.ends else None,
            box=system.box,
            people=self.people,
            **acting,
        )

    def unit(self) -> "Steps":
        """The same in the unit box, as methods see it: what lies outside is moved to the nearer end."""
        spaces = self.system.spaces

        def scaled(values: Array, box: Box) -> Array:
            return np.clip((values - box.low) / np.array(box.width), 0.0, 1.0)

        acting = spaces.action_box
        actions = self.actions if acting is None else scaled(self.actions, acting)
        rewards = np.clip((self.rewards - spaces.low) / (spaces.high - spaces.low), 0.0, 1.0)
        return Steps(
            self.system,
            scaled(self.states, spaces.box),
            actions,
            scaled(self.after, spaces.box),
            rewards,
            self.ended,
            self.there,
        )


class SystemEnv(gymnasium.Env[Array, Any]):
    """A system for Gymnasium: each episode is another person's."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (Gymnasium's own)

    def __init__(self, system: System) -> None:
        self.system = system
        low, high = np.array(system.box, np.float32).T
        self.observation_space = GymBox(low, high, dtype=np.float32)
        self.action_space = Discrete(system.actions or 1)
        if system.action_box is not None:
            low, high = np.array(system.action_box, np.float32).T
            self.action_space = GymBox(low, high, dtype=np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self._person, self._left = self.system.people(self.np_random, 1), self.system.steps
        self._state = self.system.start(self.np_random, self._person)
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        found = self.system.step(self.np_random, self._person, self._state, np.asarray(action)[None])
        self._state, self._left = found.states, self._left - 1
        return self._seen(), float(found.rewards[0]), bool(found.ended[0]), self._left == 0, {}

    def _seen(self) -> Array:
        space = self.observation_space
        assert isinstance(space, GymBox)
        return np.clip(self._state[0].astype(np.float32), space.low, space.high)
