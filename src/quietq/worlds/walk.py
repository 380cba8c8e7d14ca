"""The paper's walk on [0, 1] (its appendix E)."""

from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from quietq.noise.box import UNIT, Box
from quietq.privacy import InvalidInput, LipschitzBall, relations
from quietq.privacy.checks import count, positive
from quietq.worlds.world import Array, World, never, unflat


@dataclass(frozen=True)
class WalkWorld(World):
    """A state moves to the left or to the right, by chance a little or more. An episode never terminates.

    Each person's reward lies in [0, 0.5] and has a slope of at most 1; together they have the paper's,
    0.5 - |s - 0.5| of the state after the move.
    """

    name: ClassVar[str] = "walk"
    box: ClassVar[Box] = UNIT
    actions: ClassVar[int] = 2
    action_names: ClassVar[tuple[str, ...]] = ("left", "right")
    draws: ClassVar[int] = 1

    reach: float = 0.25
    """A move is uniform between 0 and this, to the right (action 1) or to the left (action 0)."""
    steps: int = 50

    def __post_init__(self) -> None:
        if positive("reach", self.reach) > 1:
            raise InvalidInput(f"reach must be at most 1, the width of the box, not {self.reach!r}.")
        count("steps", self.steps)

    def move(self, state: Array, action: Array, draws: Array, xp: ModuleType) -> tuple[Array, Array]:
        side = xp.where(xp.asarray(action) == 1, 1.0, -1.0)[..., None]
        moved = xp.clip(state + side * (self.reach * draws), 0.0, 1.0)
        return moved, never(moved, xp)

    def reward(self, state: Array, xp: ModuleType) -> Array:
        return 0.5 - xp.abs(state[..., 0] - 0.5)

    def relation(self, people: int) -> LipschitzBall:
        return relations.people(people, low=0.0, high=0.5, slope=1.0)


WALK = WalkWorld()


def walk_reward(states: np.ndarray) -> Float[np.ndarray, "..."]:
    """Computes the paper's reward, 0.5 - |s - 0.5|.

    Args:
        states: The states.

    """
    return np.asarray(WALK.reward(unflat(states, 1), np))
