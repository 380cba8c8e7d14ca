"""The paper's walk on [0, 1] (its appendix E)."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from quietq.noise.box import Box
from quietq.privacy import relations
from quietq.privacy.checks import count, positive
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import LipschitzBall
from quietq.worlds.world import Array, World, unflat


@dataclass(frozen=True)
class WalkWorld(World):
    """Everything that defines the walk, for both of its forms. An episode never terminates.

    Each person's reward lies in [0, 0.5] and has a slope of at most 1; together they have the paper's,
    0.5 - |s - 0.5| of the state after the move.

    >>> WalkWorld().relation(50).radius
    0.01
    """

    name: ClassVar[str] = "walk"
    actions: ClassVar[int] = 2
    action_names: ClassVar[tuple[str, ...]] = ("left", "right")
    draws: ClassVar[int] = 1
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    peak: ClassVar[float] = 0.5
    """Where the reward is largest."""

    reach: float = 0.25
    """A move is uniform between 0 and this, to the right (action 1) or to the left (action 0)."""
    steps: int = 50

    def __post_init__(self) -> None:
        if positive("reach", self.reach) > 1:
            raise InvalidInput(f"reach must be at most 1, the width of the box, not {self.reach!r}.")
        count("steps", self.steps)

    @property
    def box(self) -> Box:
        """[0, 1]."""
        return Box((self.low,), (self.high,))

    def start(self, draws: Array, xp: Any) -> Array:
        """Uniform on the box."""
        return self.low + (self.high - self.low) * draws

    def move(self, state: Array, action: Array, draws: Array, xp: Any) -> tuple[Array, Array]:
        """A uniform move to one side, clipped at the ends."""
        side = xp.where(xp.asarray(action) == 1, 1.0, -1.0)[..., None]
        moved = xp.clip(state + side * (self.reach * draws), self.low, self.high)
        return moved, xp.zeros(moved.shape[:-1], dtype=bool)

    def reward(self, state: Array, xp: Any) -> Array:
        """The paper's reward."""
        return 0.5 - xp.abs(state[..., 0] - self.peak)

    def relation(self, people: int) -> LipschitzBall:
        """Ranges of [0, 0.5] and slopes of at most 1."""
        return relations.people(people, low=0.0, high=0.5, slope=1.0)


WALK = WalkWorld()


def walk_reward(states: np.ndarray) -> Float[np.ndarray, "..."]:
    """The paper's reward, 0.5 - |s - 0.5|.

    >>> walk_reward(np.array([0.0, 0.25, 0.5]))
    array([0.  , 0.25, 0.5 ])
    """
    return np.asarray(WALK.reward(unflat(states, 1), np))
