"""Navigation on the unit square: two good places along one axis, one along the other."""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

import numpy as np

from quietq.noise import Box
from quietq.privacy import Exponential, InvalidInput, RkhsBall, relations
from quietq.privacy.checks import count, not_negative, positive
from quietq.worlds.world import Array, World, never

_SIDES = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, -1.0], [0.0, 1.0]])


@dataclass(frozen=True)
class NavigationWorld(World):
    """The state is a place (x, y); an action picks a direction, and chance the length. An episode never terminates.

    Each person's reward is a sum f(x) + g(y), with f in [0, 0.5] of slope at most 1.5 and g in [0, 0.3] of slope at
    most 0.4. Together they have a low peak of f at x = 0.15 (0.3), a high one at x = 0.8 (0.5) beyond a valley of
    nothing, and a peak of g at y = 0.35: from the low peak it takes some steps without reward to do better.
    """

    name: ClassVar[str] = "navigation"
    box: ClassVar[Box] = Box((0.0, 0.0), (1.0, 1.0))
    actions: ClassVar[int] = 4
    action_names: ClassVar[tuple[str, ...]] = ("left", "right", "down", "up")
    draws: ClassVar[int] = 2

    reach: float = 0.2
    """A move is uniform between 0 and this, in the direction of the action."""
    sway: float = 0.05
    """And up to this to either side of it, uniformly."""
    steps: int = 50

    def __post_init__(self) -> None:
        for name in ("reach", "sway"):
            if not_negative(name, getattr(self, name)) > 1:
                raise InvalidInput(f"{name} must be at most 1, the width of the box, not {getattr(self, name)!r}.")
        positive("reach", self.reach)
        count("steps", self.steps)

    def move(self, state: Array, action: Array, draws: Array, xp: ModuleType) -> tuple[Array, Array]:
        along = xp.asarray(_SIDES, dtype=state.dtype)[xp.asarray(action)]
        across = xp.stack([along[..., 1], along[..., 0]], axis=-1)
        step = self.reach * draws[..., :1] * along + self.sway * (2 * draws[..., 1:] - 1) * across
        moved = xp.clip(state + step, 0.0, 1.0)
        return moved, never(moved, xp)

    def reward(self, state: Array, xp: ModuleType) -> Array:
        return along_x(state[..., 0], xp) + along_y(state[..., 1], xp)

    def relation(self, people: int) -> RkhsBall:
        """One Lipschitz ball per coordinate, both of which may move at once, in the kernels that suit them."""
        balls = [
            relations.people(people, low=0.0, high=0.5, slope=1.5),
            relations.people(people, low=0.0, high=0.3, slope=0.4),
        ]
        kernel = Exponential(tuple(ball.best_beta() for ball in balls), summed=True)
        return RkhsBall(kernel.radius_of(balls), kernel, people=people)

    def mean_reward(self) -> list[Callable[[np.ndarray], np.ndarray]]:
        return [lambda x: along_x(np.asarray(x), np), lambda y: along_y(np.asarray(y), np)]


def along_x(x: Array, xp: ModuleType) -> Array:
    """The consensus' part for x: a low peak, nothing, a high peak."""
    low, high = 0.3 - xp.abs(x - 0.15), 0.5 - 1.5 * xp.abs(x - 0.8)
    return xp.maximum(xp.maximum(low, high), 0.0)


def along_y(y: Array, xp: ModuleType) -> Array:
    return 0.3 - 0.4 * xp.abs(y - 0.35)
