"""Acting in a private world: as pure functions of arrays, as a Gymnasium environment, and as many copies of one.

Everything here is post-processing of a release, so nothing is spent, however long anybody trains. Copies that step
together are much faster than one after the other.
"""

import math
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jaxtyping import Bool, Float, Float32

from quietq.noise import Box as PublicBox
from quietq.privacy import Certificate, InvalidInput
from quietq.privacy.checks import count, instance, positive, shown
from quietq.released.private_world import STARTS_UNSEEN, PrivateWorld
from quietq.worlds.world import Info

ENSEMBLE = 8
"""Plausible worlds that plans are to hold in; chosen on the development systems."""
HALT = 10.0
"""An episode ends this many standard deviations from the mean of people's states; chosen on the development systems:
nearer halts keep plans from goals at the rim of people's steps."""
_PLACES = 1000
"""States at which it is asked what a poor step of people's is worth."""


class Step(NamedTuple):
    """What one step of each copy came to."""

    states: Float[np.ndarray, "*copies d"]
    """Where it led, in the unit box."""
    rewards: Float[np.ndarray, "*copies"]
    ends: Float[np.ndarray, "*copies"]
    """The probability that the episode terminates there."""
    halted: Bool[np.ndarray, "*copies"]
    """Whether it left where people's steps say anything."""


@dataclass(frozen=True, eq=False)
class Simulator:
    """A private world as pure functions of arrays: states (..., d) in the unit box, and uniform numbers for chance."""

    world: PrivateWorld
    halt: float | None = HALT
    """Steps are halted where a state is more than so many standard deviations from the data's mean; None for never."""
    noise: bool = True
    """Whether states scatter as people's did around what features explain."""

    def __post_init__(self) -> None:
        if (missing := self.world.missing()) is not None:
            raise InvalidInput(
                f"What was declared as known is not in a file: give {missing} by world.with_known(WorldModel(...))."
            )

    @property
    def draws(self) -> int:
        """How many uniform numbers a start and a step use up."""
        return 2 * self.world.spaces.states

    @cached_property
    def halt_penalty(self) -> float:
        """What each step that is left after a halt costs, so that leaving does not pay.

        It is the lower quartile of the world's rewards where people's states lie, with actions at random, if that is
        below 0. The least declared reward would be far too much where large losses are rare.
        """
        spaces, rng = self.world.spaces, np.random.default_rng(0)
        middle, deviation = self._typical
        states = within(middle + deviation * rng.standard_normal((_PLACES, spaces.states)))
        numbers = spaces.actions is None
        actions = rng.random((_PLACES, spaces.numbers)) if numbers else rng.integers(0, spaces.actions, _PLACES)
        rewards = replace(self, halt=None, noise=False).step(states, actions, None).rewards
        return max(-float(np.quantile(rewards, 0.25)), 0.0)

    @cached_property
    def _sides(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self.world.box.low), np.array(self.world.box.width)

    @cached_property
    def _typical(self) -> tuple[np.ndarray, np.ndarray]:
        return self.world.typical()

    @cached_property
    def _scatter(self) -> Float[np.ndarray, "moved moved"]:
        return _root(self.world.residual).T / 2

    @cached_property
    def _begin(self) -> tuple[np.ndarray, np.ndarray]:
        assert self.world.first is not None
        assert self.world.spread is not None
        return self.world.first, _root(self.world.spread).T

    def raw(self, states: np.ndarray) -> np.ndarray:
        """States of the unit box in their own units."""
        low, width = self._sides
        return low + states * width

    def start(self, draws: Float[np.ndarray, "*copies draws"]) -> Float[np.ndarray, "*copies d"]:
        states = self.world.spaces.states
        if self.world.model.start is not None:
            low, width = self._sides
            given = (np.asarray(self.world.model.start(draws[..., :states])) - low) / width
            return self._on_circles(np.clip(given, 0.0, 1.0))
        middle, spread = self._begin
        return self._on_circles(np.clip(middle + _normals(draws, states) @ spread, 0.0, 1.0))

    def _on_circles(self, states: np.ndarray) -> np.ndarray:
        """States whose declared cosines and sines have length 1; an angle that nothing tells is 0."""
        for pair in map(list, self.world.circles):
            low, width = (side[pair] for side in self._sides)
            raw = low + states[..., pair] * width
            length = np.linalg.norm(raw, axis=-1, keepdims=True)
            raw = np.where(length > 0, raw / np.maximum(length, 1e-300), [1.0, 0.0])
            states[..., pair] = within((raw - low) / width)
        return states

    def step(
        self, states: np.ndarray, actions: np.ndarray, draws: np.ndarray | None, weights: np.ndarray | None = None
    ) -> Step:
        """One step of all copies; `weights` may be others that are plausible, for each copy its own."""
        world = self.world
        features = world.features_of(states, actions)
        change = (features[..., None, :] @ (world.weights if weights is None else weights))[..., 0, :] / 2
        if self.noise:
            assert draws is not None
            change = change + _normals(draws, len(world.moved)) @ self._scatter
        learned = states.copy()
        learned[..., world.moved] = within(states[..., world.moved] + change)
        after = learned.copy()
        for i, move in world.model.moves.items():
            value = move(self.raw(states), self._actions(actions), self.raw(learned))
            after[..., i] = np.clip((value - world.box.low[i]) / world.box.width[i], 0.0, 1.0)
        after = self._on_circles(after)
        far = np.zeros(after.shape[:-1], bool)
        if self.halt is not None:
            middle, deviation = self._typical
            far = np.asarray(np.any(np.abs(after - middle) > self.halt * deviation, axis=-1))
        return Step(after, self.rewards(states, actions, after), self.ends(after), far)

    def settle(
        self, found: Step, chance: float | np.ndarray, left: int | np.ndarray
    ) -> tuple[Float[np.ndarray, "*copies"], Bool[np.ndarray, "*copies"]]:
        """The reward of a step, and whether the episode ended, by chance or by a halt.

        A halt, unless the episode ended anyway, costs its penalty for each step that is left.
        """
        ended = np.asarray(chance < found.ends)
        rewards = self.worth(found.rewards, ended) - np.where(found.halted & ~ended, self.halt_penalty * left, 0.0)
        return np.asarray(rewards), np.asarray(found.halted | ended)

    def worth(self, rewards: np.ndarray, ended: np.ndarray) -> Float[np.ndarray, "*copies"]:
        """Rewards of steps, some of which ended their episode, or did with some chance."""
        at_ends = self.world.end_reward
        return rewards if at_ends is None else rewards + ended * (at_ends - rewards)

    def _actions(self, actions: np.ndarray) -> np.ndarray:
        """Actions in their own units."""
        acting = self.world.spaces.action_box
        return actions if acting is None else np.array(acting.low) + actions * np.array(acting.width)

    def rewards(self, states: np.ndarray, actions: np.ndarray, after: np.ndarray) -> Float[np.ndarray, "*copies"]:
        world, part = self.world, self.world.reward
        if part is None:
            assert world.model.reward is not None
            return np.asarray(world.model.reward(self.raw(states), self._actions(actions), self.raw(after)))
        points = states if not world.spaces.numbers else np.concatenate([states, actions], axis=-1)
        values = part.read(points, part.offset, part.weights, part.knots)
        if not (world.spaces.actions or 1) > 1:
            return np.asarray(values)
        return np.asarray(np.take_along_axis(values, actions[..., None], axis=-1)[..., 0])

    def ends(self, after: np.ndarray) -> Float[np.ndarray, "*copies"]:
        part = self.world.ends
        if part is None:
            if self.world.model.end is None:
                return np.zeros(after.shape[:-1])
            return np.where(np.asarray(self.world.model.end(self.raw(after))), 1.0, 0.0)
        odds = part.read(after, part.offset, part.weights, part.knots) + self.world.rate
        return np.asarray(1 / (1 + np.exp(np.minimum(np.maximum(-odds, -50), 50))))


class PrivateWorldEnv(gymnasium.Env[np.ndarray, object]):
    """A private world for Gymnasium; any number of copies may be made of it.

    Episodes are truncated after `steps`. Each is played in one of `ensemble` worlds that are plausible by the release's
    known noise, so that what is learned holds in all of them; 1 is the released world alone. An episode is
    halted where nobody was, more than `halt` standard deviations from the mean of people's states (None for never): it
    ends, and every remaining step costs what a poor step of people's does, so that leaving does not pay.
    `halted_share` is the share of episodes so far that ended so: distrust what was learned while it was large.
    """

    metadata: Info = {"render_modes": []}  # noqa: RUF012 (Gymnasium's own; names are added to it)

    def __init__(
        self,
        world: PrivateWorld,
        *,
        steps: int = 200,
        ensemble: int = ENSEMBLE,
        halt: float | None = HALT,
        noise: bool = True,
        seed: int = 0,
    ) -> None:
        instance("world", world, PrivateWorld, "a PrivateWorld, as privatise makes it of Sessions")
        if halt is not None:
            positive("halt", halt)
        self.world = world
        self.steps = count("steps", steps)
        self.simulator = Simulator(world, halt, noise)
        self.members = None
        if count("ensemble", ensemble) > 1:
            self.members = world.plausible(ensemble, np.random.default_rng(count("seed", seed, 0)))
        spaces = world.spaces
        self._seen = _space(world.box)
        self.observation_space = self._seen
        self.action_space = Discrete(spaces.actions or 1) if spaces.action_box is None else _space(spaces.action_box)
        named = {"state_names": spaces.state_names, "action_names": spaces.action_names}
        self.metadata = type(self).metadata | named
        if world.errors.starts_unseen:
            warnings.warn(STARTS_UNSEEN, UserWarning, stacklevel=3)
        self.episodes = self.halts = 0
        """How many episodes are over, and how many of them by a halt."""
        self._weights: np.ndarray | None = None
        self._state = np.zeros(spaces.states)
        self._left = 0

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Float32[np.ndarray, " d"], Info]:
        super().reset(seed=seed)
        self._state, self._weights = self.begin(self.np_random)
        self._left = self.steps
        return self.seen(self._state), {}

    def step(self, action: object) -> tuple[Float32[np.ndarray, " d"], float, bool, bool, Info]:
        if not self._left:
            raise ResetNeeded("There is no episode: call reset first.")
        if not self.action_space.contains(action):
            raise InvalidInput(f"action must be in {self.action_space} ({self.named()}), not {shown(action)}.")
        left = self._left - 1
        found, reward, ended = self.play(self._state, self._weights, np.asarray(action), left, self.np_random)
        self._state, self._left = found.states, 0 if ended else left
        return self.seen(self._state), float(reward), bool(ended), left == 0, {"halt": bool(found.halted)}

    # What an environment and its copies share

    def begin(self, rng: np.random.Generator, copies: tuple[int, ...] = ()) -> tuple[np.ndarray, np.ndarray | None]:
        """First states of one episode, or of so many, and the weights of the plausible world that each is played in."""
        states = self.simulator.start(rng.random((*copies, self.simulator.draws)))
        return states, None if self.members is None else self.members[rng.integers(len(self.members), size=copies)]

    def play(
        self,
        states: np.ndarray,
        weights: np.ndarray | None,
        actions: np.ndarray,
        left: int | np.ndarray,
        rng: np.random.Generator,
    ) -> tuple[Step, np.ndarray, np.ndarray]:
        """One step of each episode, its reward, and whether the episode ended; so many steps are left before its limit.

        Episodes that are over, by themselves or by the limit, are counted.
        """
        copies = states.shape[:-1]
        draws = rng.random((*copies, self.simulator.draws))
        found = self.simulator.step(states, self.unit(actions), draws, weights=weights)
        rewards, ended = self.simulator.settle(found, rng.random(copies), left)
        over = ended | np.equal(left, 0)
        self.episodes += int(over.sum())
        self.halts += int((over & found.halted).sum())
        return found, rewards, ended

    @property
    def certificate(self) -> Certificate:
        """Returns the certificate of the world, and so of whatever is learned here."""
        return self.world.certificate

    @property
    def halted_share(self) -> float:
        """The part of all episodes so far that were halted, because they left where people were."""
        return self.halts / max(self.episodes, 1)

    def named(self) -> str:
        """Returns what actions are called, for errors."""
        names = self.world.spaces.action_names
        listed = [f"{i} {name}" for i, name in enumerate(names)] if self.world.spaces.action_box is None else names
        return ", ".join([*listed[:10], *(["..."] if len(names) > 10 else [])])

    def unit(self, actions: np.ndarray) -> np.ndarray:
        """Actions as the simulator takes them: numbers in the unit box, or those of a list as they are."""
        acting = self.world.spaces.action_box
        return actions if acting is None else within((actions - np.array(acting.low)) / np.array(acting.width))

    def seen(self, states: np.ndarray) -> Float32[np.ndarray, "*copies d"]:
        """States as they are observed: in their own units, and within the box as float32 has it."""
        raw = self.simulator.raw(states).astype(np.float32)
        return np.minimum(np.maximum(raw, self._seen.low), self._seen.high)


def _space(box: PublicBox) -> Box:
    return Box(np.array(box.low, np.float32), np.array(box.high, np.float32), dtype=np.float32)


def within(values: np.ndarray) -> np.ndarray:
    """Values clipped to the unit box; `clip` takes several times as long for a single state."""
    return np.minimum(np.maximum(values, 0.0), 1.0)


def _normals(draws: np.ndarray, number: int) -> np.ndarray:
    """Standard normals from twice as many uniform numbers (Box and Muller)."""
    radius = np.sqrt(-2 * np.log1p(-draws[..., :number]))
    return radius * np.cos(2 * math.pi * draws[..., number : 2 * number])


def _root(covariance: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))


Seen = Float32[np.ndarray, "copies d"]


def environment(world: PrivateWorld, copies: int | None = None, stable_baselines: bool = False, **options: Any) -> Any:
    """A private world for Gymnasium: one environment, or a vector environment of a number of copies.

    Stable-Baselines3 takes no vector environment but its own kind: with `stable_baselines` it is one of those.
    """
    if stable_baselines:
        if copies is None:
            raise InvalidInput("stable_baselines is for several copies: say how many, or leave it out for one.")
        from quietq.worlds.world_vec_env import WorldVecEnv

        return WorldVecEnv(world, copies, **options)
    return PrivateWorldEnv(world, **options) if copies is None else WorldCopies(world, copies, **options)


class WorldCopies(VectorEnv):
    """A vector environment of Gymnasium: each copy is a `PrivateWorldEnv` with these options.

    A copy whose episode is over begins the next one in the same step; what it saw last is `info["final_obs"]`.
    """

    metadata: Info = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(self, world: PrivateWorld, copies: int, **options: Any) -> None:
        self.one = PrivateWorldEnv(world, **options)
        self.num_envs = count("copies", copies)
        self.metadata = self.one.metadata | type(self).metadata
        self.single_observation_space, self.single_action_space = self.one.observation_space, self.one.action_space
        self.observation_space = batch_space(self.single_observation_space, copies)
        self.action_space = batch_space(self.single_action_space, copies)
        self._begun = False
        self._states = np.zeros((copies, world.spaces.states))
        self._left = np.zeros(copies, int)
        self._weights = None if self.one.members is None else np.zeros((copies, *world.weights.shape))

    @property
    def certificate(self) -> Certificate:
        return self.one.world.certificate

    @property
    def halted_share(self) -> float:
        """The part of all episodes so far, of all copies, that were halted, because they left where people were."""
        return self.one.halted_share

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Seen, Info]:
        super().reset(seed=seed)
        self._begin(np.ones(self.num_envs, bool))
        self._begun = True
        return self.one.seen(self._states), {}

    def _begin(self, which: Bool[np.ndarray, " copies"]) -> None:
        self._states[which], weights = self.one.begin(self.np_random, (int(which.sum()),))
        self._left[which] = self.one.steps
        if self._weights is not None:
            self._weights[which] = weights

    def step(self, actions: object) -> tuple[Seen, np.ndarray, np.ndarray, np.ndarray, Info]:
        if not self._begun:
            raise ResetNeeded("There is no episode: call reset first.")
        given = np.asarray(actions, self.action_space.dtype)
        if not self.action_space.contains(given):
            raise InvalidInput(f"actions must be in {self.action_space} ({self.one.named()}), not {shown(actions)}.")
        self._left -= 1
        found, rewards, terminated = self.one.play(self._states, self._weights, given, self._left, self.np_random)
        self._states, truncated = found.states, self._left == 0
        seen = self.one.seen(self._states)
        info: Info = {"halt": found.halted}
        if (over := terminated | truncated).any():
            info |= {"final_obs": seen, "_final_obs": over}
            self._begin(over)
            seen = self.one.seen(self._states)
        return seen, rewards, terminated, truncated, info
