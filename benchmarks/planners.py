"""Planning in a model of a system, the same for every method: linear policies by cross-entropy, or looking ahead.

A model works in the unit box, for many copies at once; `Released` makes one of a private world.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol

import numpy as np

from benchmarks.systems import Array, Policy, Rng, System
from quietq.feedback.spaces import Spaces
from quietq.released.private_world import PrivateWorld
from quietq.worlds.planning import linear_actions, policy_shape
from quietq.worlds.private_env import Simulator, Step

Acts = Callable[[Array], Array]
"""From states of the unit box to actions, as a simulator takes them."""


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

    def step(self, states: Array, actions: Array, draws: Array, worlds: Array | None = None) -> Step:
        """`draws` are uniform numbers, twice as many as a state has coordinates."""
        ...


@dataclass(frozen=True, eq=False)
class Released:
    """A private world as a model."""

    world: PrivateWorld
    halt: float | None
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

    def step(self, states: Array, actions: Array, draws: Array, worlds: Array | None = None) -> Step:
        return self.simulator.step(states, actions, draws, weights=worlds)


def plan(model: Model, system: System, seed: int) -> Policy:
    """By a system's public kind: looking ahead if it says so, or by linear policies."""
    if system.ahead is None:
        acts = linear_by_cross_entropy(model, system, seed)
    else:
        acts = LookAhead(model, system.ahead, np.random.default_rng([seed, 8])).acts
    box, acting = model.spaces.box, model.spaces.action_box

    def policy(states: Array) -> Array:
        actions = acts(np.clip((states - box.low) / np.array(box.width), 0.0, 1.0))
        return actions if acting is None else np.array(acting.low) + actions * np.array(acting.width)

    return policy


def linear_by_cross_entropy(
    model: Model, system: System, seed: int, iterations: int = 15, candidates: int = 100, episodes: int = 8
) -> Acts:
    """The best linear policy found; leaving what the model knows costs the least reward for all steps that are left.

    The best few of the last five iterations, and their centres, are compared on fresh episodes.
    """
    rng, steps, compared = np.random.default_rng([seed, 3]), system.planning or system.steps, 5
    middle, deviation = model.typical()
    shape = policy_shape(model.spaces)
    centre, spread = np.zeros(shape), np.full(shape, 2.0)

    def acts_of(weights: Array) -> Acts:
        acts, items = partial(linear_actions, model.spaces, weights, middle, deviation), system.unit_items
        if items is None:
            return acts
        return lambda states: items[((acts(states)[..., None, :] - items) ** 2).sum(axis=-1).argmin(axis=-1)]

    def best_first(tried: Array, episodes: int) -> Array:
        acts, alike = acts_of(np.tile(tried, (episodes, 1, 1))), len(tried)
        first = np.repeat(model.start(episodes, rng), alike, axis=0)
        worlds = model.plausible(episodes, rng)
        worlds = None if worlds is None else np.repeat(worlds, alike, axis=0)

        def chance() -> Array:
            """The same for all candidates."""
            return np.repeat(rng.random((episodes, 2 * model.spaces.states)), alike, axis=0)

        returns = imagined_returns(model, lambda _, states: acts(states), first, steps, chance, worlds)
        return tried[np.argsort(-returns.reshape(episodes, alike).mean(axis=0), kind="stable")]

    last = []
    for left in range(iterations - 1, -1, -1):
        best = best_first(centre + spread * rng.standard_normal((candidates, *shape)), episodes)[: candidates // 8]
        centre, spread = 0.2 * centre + 0.8 * best.mean(axis=0), best.std(axis=0) + 0.02
        if left < compared:
            last += [centre, *best[:3]]
    return acts_of(best_first(np.array(last), episodes * compared)[0])


def imagined_returns(
    model: Model,
    acts: Callable[[int, Array], Array],
    first: Array,
    steps: int,
    chance: Callable[[], Array],
    worlds: Array | None = None,
) -> Array:
    """The return of each copy, in expectation over ends; `acts` is given the number of the step, too."""
    states, least = first, min(model.spaces.low, 0.0)
    alive, returns = np.ones(first.shape[:-1]), np.zeros(first.shape[:-1])
    for i in range(steps):
        found = model.step(states, acts(i, states), chance(), worlds)
        lost = np.where(found.halted, (1 - found.ends) * least * (steps - 1 - i), 0.0)
        returns += alive * (found.rewards + lost)
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
    last: Array | None = None

    def acts(self, states: Array) -> Array:
        fresh = np.full((len(states), self.steps), 0.5)
        mean = fresh if self.last is None else np.hstack([self.last[:, 1:], fresh[:, :1]])
        spread = np.full(mean.shape, 0.4)
        places = np.repeat(states[:, None], self.candidates, axis=1)
        no_chance = np.full((*places.shape[:-1], 2 * places.shape[-1]), 0.25)  # cos(pi/2) = 0
        for _ in range(3):
            drawn = self.rng.standard_normal((len(states), self.candidates, self.steps))
            tried = np.clip(mean[:, None] + spread[:, None] * drawn, 0, 1)
            returns = imagined_returns(
                self.model,
                lambda i, _, tried=tried: tried[:, :, i : i + 1],
                places,
                self.steps,
                lambda: no_chance,
            )
            best = np.argsort(-returns, axis=1)[:, : self.candidates // 8]
            kept = np.take_along_axis(tried, best[:, :, None], axis=1)
            mean, spread = kept.mean(axis=1), kept.std(axis=1) + 0.02
        self.last = mean
        return mean[:, :1]
