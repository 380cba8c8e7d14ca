"""A world of three coordinates that people leave at some point, as none of quietq's own is."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from quietq.noise.box import Box
from quietq.privacy.relations import SupBall
from quietq.worlds.world import World

CORNERS = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]])
LEAVE = 1 / 64


@dataclass(frozen=True)
class LeavingWorld(World):
    """An action leans towards a corner; the reward is linear, and after each step people leave by chance alone."""

    name: ClassVar[str] = "leaving"
    box: ClassVar[Box] = Box((-1.0,) * 3, (1.0,) * 3)
    actions: ClassVar[int] = 4
    action_names: ClassVar[tuple[str, ...]] = tuple(f"towards corner {number}" for number in range(4))
    draws: ClassVar[int] = 4
    strength: float = 0.2
    steps: int = 50

    def move(self, state: Any, action: Any, draws: Any, xp: Any) -> tuple[Any, Any]:
        lean = xp.asarray(CORNERS, dtype=state.dtype)[xp.asarray(action)]
        moved = state + 0.3 * lean + 0.15 * (2 * draws[..., :3] - 1)
        return xp.clip(moved, -1.0, 1.0), draws[..., 3] < LEAVE

    def reward(self, state: Any, xp: Any) -> Any:
        return self.strength * (state[..., 0] + 0.5 * state[..., 1])

    def relation(self, people: int) -> SupBall:
        return SupBall(0.6 / people, people)
