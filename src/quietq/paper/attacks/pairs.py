"""Pairs of neighbouring rewards that are known by name, for attacks on trainings.

A pair is the world's own reward r, and r' = r + a move that the relation allows, written once against an array module,
like the worlds, so that NumPy and compiled code see the same pair. Which move is the worst depends on where the noise
enters: `shift` for methods that look at rewards one by one, `zigzag` for a sample path of the exponential kernel, whose
norm it drives to its bound (docs/theory.md#gaussian-process).
"""

import math
from dataclasses import dataclass
from types import ModuleType

import numpy as np
from jaxtyping import Float

from quietq.privacy import InvalidInput, LipschitzBall, Relation, SupBall
from quietq.privacy.checks import one_of
from quietq.worlds import World
from quietq.worlds.world import Array, unflat

MOVES = ("shift", "zigzag")
"""How r' differs from r: everybody is a little happier everywhere, or as steeply to and fro as is allowed."""


@dataclass(frozen=True, repr=False)
class Pair:
    """A world's reward r and its neighbour r', which differs by a move of `MOVES`, as large as radius and slope allow.

    >>> from quietq.worlds import WALK
    >>> pair = neighbours(WALK, SupBall(1.0), "shift")
    >>> pair.first(np.array([0.5])), pair.second(np.array([0.5]))
    (array([0.5]), array([1.5]))
    """

    world: World
    move: str
    radius: float
    """The largest size of the move."""
    slope: float = math.inf
    """The steepest that it may be, per width of the box."""

    def __repr__(self) -> str:
        """All that the pair is; seeds of the trainings that are audited follow from this text, so it stays as it is."""
        slope = "" if self.move == "shift" else f", lipschitz={self.slope!r}"
        return f"Pair(world={self.world!r}, move={self.move.capitalize()}(radius={self.radius!r}{slope}))"

    def first(self, states: object) -> Float[np.ndarray, " states"]:
        return self._reward(states, 0.0)

    def second(self, states: object) -> Float[np.ndarray, " states"]:
        return self._reward(states, 1.0)

    def _reward(self, states: object, side: float) -> Float[np.ndarray, " states"]:
        points = unflat(np.asarray(states, np.float64), self.world.box.dimension)
        return np.asarray(self.world.reward(points, np) + side * self.moved(points, np))

    def moved(self, states: Array, xp: ModuleType) -> Array:
        """r' - r at states (..., d)."""
        if self.move == "shift":
            return xp.full(states.shape[:-1], self.radius)
        # Always within one cell's climb of the radius, and always as steep as allowed, which is the largest norm of all
        # moves: the radius at even points between 1,024 cells, and a cell's climb below it at odd ones.
        cells, box = 2**10, self.world.box
        depth = min(self.slope / cells, 2 * self.radius)
        low, width = (xp.asarray(side, dtype=states.dtype) for side in (box.low, box.width))
        place = (states[..., 0] - low[0]) / width[0] * cells
        return self.radius - depth * (1 - xp.abs(place % 2.0 - 1))


def neighbours(world: World, relation: Relation, move: str) -> Pair:
    """Makes a reward and the neighbour that a move takes it to, as large as the relation allows.

    Args:
        world: The world, whose reward is the first of the two.
        relation: The neighbouring relation.
        move: One of `MOVES`.

    """
    if not isinstance(relation, SupBall | LipschitzBall):
        raise InvalidInput(f"Pairs are made for a SupBall or a LipschitzBall, not for a {type(relation).__name__}.")
    one_of("move", move, MOVES)
    if move != "shift" and world.box.dimension != 1:
        raise InvalidInput(f"The move {move!r} is for worlds of one coordinate; take 'shift'.")
    return Pair(world, move, relation.radius, relation.lipschitz if isinstance(relation, LipschitzBall) else math.inf)
