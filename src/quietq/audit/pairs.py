"""Pairs of neighbouring rewards: the world's own reward r, and r' = r + a move that the relation allows.

A move is written once against an array module, like the worlds, so that NumPy and compiled code see the same pair.
Which move is the worst depends on where the noise enters: `shift` for methods that look at rewards one by one, `zigzag`
for a sample path of the exponential kernel, whose norm it drives to its bound (docs/theory.md, section 3).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from quietq.privacy import InvalidInput, LipschitzBall, Relation, SupBall
from quietq.privacy.checks import one_of
from quietq.worlds import World
from quietq.worlds.jax_rewards import JaxReward
from quietq.worlds.world import unflat

POINTS = 4097  # at so many points of an interval a move is checked against the relation


@dataclass(frozen=True)
class Move(ABC):
    """r' - r as a function of the state, at most `radius` in size."""

    name: ClassVar[str]
    radius: float

    @abstractmethod
    def at(self, unit: Any, xp: Any) -> Any:
        """The move at states scaled to the unit box, shape (..., d)."""


@dataclass(frozen=True)
class Shift(Move):
    """Everybody is a little happier, everywhere."""

    name: ClassVar[str] = "shift"

    def at(self, unit: Any, xp: Any) -> Any:
        return xp.full(unit.shape[:-1], self.radius)


@dataclass(frozen=True)
class Bumps(Move):
    """Hills and valleys of a triangle wave, as steep as the relation allows; with no such limit, sixteen of them."""

    name: ClassVar[str] = "bumps"
    lipschitz: float = math.inf

    def at(self, unit: Any, xp: Any) -> Any:
        waves = min(self.lipschitz / (4 * self.radius), 16.0)
        phase = unit[..., 0] * waves % 1.0
        return self.radius * (xp.abs(4 * phase - 2) - 1)


@dataclass(frozen=True)
class Zigzag(Move):
    """Always within one cell's climb of the radius, and always as steep as allowed: the largest norm of all moves."""

    name: ClassVar[str] = "zigzag"
    lipschitz: float = math.inf
    cells: int = 2**10  # it turns at each of the points between so many cells

    def at(self, unit: Any, xp: Any) -> Any:
        """The radius at even points, a cell's climb below (or above) the radius at odd ones."""
        depth = min(self.lipschitz / self.cells, 2 * self.radius)
        place = unit[..., 0] * self.cells
        return self.radius - depth * (1 - xp.abs(place % 2.0 - 1))


@dataclass(frozen=True)
class Flip(Move):
    """The preference turned over, as far as the relation allows: a part t of the way from r to its mirror image."""

    name: ClassVar[str] = "flip"
    world: World
    middle: float
    part: float

    def at(self, unit: Any, xp: Any) -> Any:
        low, high = (xp.asarray(side) for side in (self.world.box.low, self.world.box.high))
        return -2 * self.part * (self.world.reward(low + unit * (high - low), xp) - self.middle)


@dataclass(frozen=True)
class Pair:
    """A world's reward and its neighbour.

    >>> from quietq.worlds import WALK
    >>> pair = neighbours(WALK, SupBall(1.0), "shift")
    >>> pair.first(np.array([0.5])), pair.second(np.array([0.5]))
    (array([0.5]), array([1.5]))
    """

    world: World
    move: Move

    def first(self, states: Any) -> Float[np.ndarray, " states"]:
        return self._reward(states, 0.0)

    def second(self, states: Any) -> Float[np.ndarray, " states"]:
        return self._reward(states, 1.0)

    def _reward(self, states: Any, side: float) -> Float[np.ndarray, " states"]:
        points = unflat(np.asarray(states, np.float64), self.world.box.dimension)
        return np.asarray(self.world.reward(points, np) + side * self.move.at(_unit(points, self.world, np), np))


class PairReward(JaxReward):
    """r or r' for compiled code; which of them is a leaf, so that one program runs both."""

    side: Array  # 0 for r, 1 for r'
    pair: Pair = eqx.field(static=True)
    by_action: bool = eqx.field(static=True)

    def __init__(self, pair: Pair, side: Any) -> None:
        self.side, self.pair, self.by_action = jnp.asarray(side, jnp.float32), pair, False

    def at(self, state: Array) -> Array:
        world = self.pair.world
        return world.reward(state, jnp) + self.side * self.pair.move.at(_unit(state, world, jnp), jnp)


def neighbours(world: World, relation: Relation, move: str) -> Pair:
    """The pair that a move of this name makes, as large as the relation allows."""
    if not isinstance(relation, SupBall | LipschitzBall):
        raise InvalidInput(f"Pairs are made for a SupBall or a LipschitzBall, not for a {type(relation).__name__}.")
    radius = relation.radius
    slope = relation.lipschitz if isinstance(relation, LipschitzBall) else math.inf
    one_of("move", move, MOVES)
    if move != "shift" and world.box.dimension != 1:
        raise InvalidInput(f"The move {move!r} is for worlds of one coordinate; take 'shift'.")
    return Pair(world, MOVES[move](world, radius, slope))


def _flip(world: World, radius: float, slope: float) -> Flip:
    points = np.linspace(0, 1, POINTS)[:, None]
    rewards = world.reward(np.asarray(world.box.low) + points * np.subtract(world.box.high, world.box.low), np)
    middle = float(rewards.max() + rewards.min()) / 2
    size, steepest = float(np.ptp(rewards)), 2 * float(np.abs(np.diff(rewards)).max()) * (POINTS - 1)
    part = min(1.0, radius / size, slope / steepest) * (1 - 1e-9)  # so that rounding does not lead out of the relation
    return Flip(2 * part * size / 2, world, middle, part)


MOVES: dict[str, Callable[[World, float, float], Move]] = {
    "shift": lambda world, radius, slope: Shift(radius),
    "flip": _flip,
    "bumps": lambda world, radius, slope: Bumps(radius, slope),
    "zigzag": lambda world, radius, slope: Zigzag(radius, slope),
}
"""By name, as large as radius and slope allow."""


def _unit(states: Any, world: World, xp: Any) -> Any:
    low, high = np.asarray(world.box.low), np.asarray(world.box.high)
    return (states - xp.asarray(low, dtype=states.dtype)) / xp.asarray(high - low, dtype=states.dtype)
