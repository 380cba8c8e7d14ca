"""Planning in a model of a system, the same for every method: linear policies by cross-entropy, or looking ahead.

A model works in the unit box, for many copies at once; `Released` makes one of a private world.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from benchmarks.session_data import Array, Policy, Rng, System
from quietq.feedback.spaces import Spaces
from quietq.released.private_world import PrivateWorld
from quietq.worlds.private_env import HALT, Simulator

LAST = 5
"""Iterations whose best are compared once more."""


class Imagined(NamedTuple):
    """A step of each copy, in a model."""

    states: Array
    rewards: Array
    ends: Array
    """With which probability."""
    halted: Array
    """Whether the model knows nothing of it."""


class Model(Protocol):
    @property
    def spaces(self) -> Spaces: ...
    def typical(self) -> tuple[Array, Array]:
        """Mean and deviation of people's states, in the unit box."""
        ...

    def start(self, number: int, rng: Rng) -> Array: ...
    def plausible(self, number: int, rng: Rng) -> Array | None:
        """Worlds to plan for, if there is more than one."""
        ...

    def step(self, states: Array, actions: Array, draws: Array, worlds: Array | None = None) -> Imagined:
        """`draws` are uniform numbers, twice as many as a state has coordinates."""
        ...


@dataclass(frozen=True, eq=False)
class Released:
    """A private world as a model."""

    world: PrivateWorld
    halt: float | None = HALT
    ensemble: bool = True

    @cached_property
    def simulator(self) -> Simulator:
        return Simulator(self.world, self.halt)

    @property
    def spaces(self) -> Spaces:
        return self.world.spaces

    def typical(self) -> tuple[Array, Array]:
        return self.world.typical()

    def start(self, number: int, rng: Rng) -> Array:
        return self.simulator.start(rng.random((number, self.simulator.draws)))

    def plausible(self, number: int, rng: Rng) -> Array | None:
        return self.world.plausible(number, rng) if self.ensemble else None

    def step(self, states: Array, actions: Array, draws: Array, worlds: Array | None = None) -> Imagined:
        return Imagined(*self.simulator.step(states, actions, draws, weights=worlds))


@dataclass(frozen=True, eq=False)
class Linear:
    """Actions by linear functions of states, in deviations from where people's are: of a list, a box or items."""

    spaces: Spaces
    items: Array | None
    """In the unit box, if actions are of a list of points."""
    middle: Array
    deviation: Array
    weights: Array

    def acts(self, states: Array) -> Array:
        seen = np.clip((states - self.middle) / self.deviation, -10, 10)
        scores = np.einsum("...i,...io->...o", seen, self.weights[..., 1:, :]) + self.weights[..., 0, :]
        if self.spaces.actions is not None:
            return np.concatenate([np.zeros_like(scores[..., :1]), scores], axis=-1).argmax(axis=-1)
        numbers = np.clip((scores + 1) / 2, 0.0, 1.0)
        if self.items is None:
            return numbers
        return self.items[((numbers[..., None, :] - self.items) ** 2).sum(axis=-1).argmin(axis=-1)]


def linear_by_cross_entropy(
    model: Model, system: System, seed: int, iterations: int = 15, candidates: int = 100, episodes: int = 8
) -> Policy:
    """The best linear policy found; leaving what the model knows costs the least reward for all steps that are left.

    The best few of the last iterations, and their centres, are compared on fresh episodes.
    """
    rng, spaces, steps = np.random.default_rng([seed, 3]), model.spaces, system.planning or system.steps
    middle, deviation = model.typical()
    shape = (1 + spaces.states, spaces.numbers if spaces.actions is None else max(spaces.actions - 1, 1))
    centre, spread = np.zeros(shape), np.full(shape, 2.0)
    items = system.unit_items

    def best_first(tried: Array, episodes: int) -> Array:
        policy, alike = Linear(spaces, items, middle, deviation, np.tile(tried, (episodes, 1, 1))), len(tried)
        first = np.repeat(model.start(episodes, rng), alike, axis=0)
        worlds = model.plausible(episodes, rng)
        worlds = None if worlds is None else np.repeat(worlds, alike, axis=0)
        returns = imagined_returns(model, policy.acts, first, steps, rng, alike, worlds)
        return tried[np.argsort(-returns.reshape(episodes, alike).mean(axis=0), kind="stable")]

    last = []
    for left in range(iterations - 1, -1, -1):
        best = best_first(centre + spread * rng.standard_normal((candidates, *shape)), episodes)[: candidates // 8]
        centre, spread = 0.2 * centre + 0.8 * best.mean(axis=0), best.std(axis=0) + 0.02
        if left < LAST:
            last += [centre, *best[:3]]
    chosen = best_first(np.array(last), episodes * LAST)[0]
    return in_own_units(spaces, Linear(spaces, items, middle, deviation, chosen).acts)


def imagined_returns(
    model: Model,
    acts: Callable[[Array], Array],
    first: Array,
    steps: int,
    rng: Rng,
    alike: int,
    worlds: Array | None = None,
) -> Array:
    """The return of each copy, in expectation over ends; `alike` copies in a row meet with the same chance."""
    spaces = model.spaces
    states, alive, returns, least = first, np.ones(len(first)), np.zeros(len(first)), min(spaces.low, 0.0)
    for left in range(steps - 1, -1, -1):
        draws = np.repeat(rng.random((len(first) // alike, 2 * spaces.states)), alike, axis=0)
        found = model.step(states, acts(states), draws, worlds)
        returns += alive * (found.rewards + np.where(found.halted, (1 - found.ends) * least * left, 0.0))
        alive, states = alive * (1 - found.ends) * ~found.halted, found.states
        if alive.max() < 1e-3:
            break
    return returns


@dataclass(eq=False)
class LookAhead:
    """In every state anew, cross-entropy over the next actions, in a model without chance; one number per action."""

    model: Model
    steps: int
    rng: Rng
    candidates: int = 64
    iterations: int = 3
    last: Array | None = None

    def acts(self, states: Array) -> Array:
        fresh = np.full((len(states), self.steps), 0.5)
        mean = fresh if self.last is None else np.hstack([self.last[:, 1:], fresh[:, :1]])
        spread = np.full(mean.shape, 0.4)
        for _ in range(self.iterations):
            drawn = self.rng.standard_normal((len(states), self.candidates, self.steps))
            tried = np.clip(mean[:, None] + spread[:, None] * drawn, 0, 1)
            best = np.argsort(-self._returns(states, tried), axis=1)[:, : self.candidates // 8]
            kept = np.take_along_axis(tried, best[:, :, None], axis=1)
            mean, spread = kept.mean(axis=1), kept.std(axis=1) + 0.02
        self.last = mean
        return mean[:, :1]

    def _returns(self, states: Array, tried: Array) -> Array:
        place, least = np.repeat(states[:, None], self.candidates, axis=1), min(self.model.spaces.low, 0.0)
        draws = np.full((*place.shape[:-1], 2 * place.shape[-1]), 0.25)  # cos(pi/2) = 0: no chance
        returns, alive = np.zeros(place.shape[:-1]), np.ones(place.shape[:-1])
        for i in range(self.steps):
            found = self.model.step(place, tried[:, :, i : i + 1], draws)
            left = self.steps - 1 - i
            returns += alive * (found.rewards + np.where(found.halted, (1 - found.ends) * least * left, 0.0))
            alive, place = alive * (1 - found.ends) * ~found.halted, found.states
        return returns


def in_own_units(spaces: Spaces, acts: Callable[[Array], Array]) -> Policy:
    def policy(states: Array) -> Array:
        box, acting = spaces.box, spaces.action_box
        actions = acts(np.clip((states - box.low) / np.array(box.width), 0.0, 1.0))
        return actions if acting is None else np.array(acting.low) + actions * np.array(acting.width)

    return policy


def plan(model: Model, system: System, seed: int) -> Policy:
    """By a system's public kind: looking ahead if it says so, or by linear policies."""
    if system.ahead is not None:
        return in_own_units(model.spaces, LookAhead(model, system.ahead, np.random.default_rng([seed, 8])).acts)
    return linear_by_cross_entropy(model, system, seed)
