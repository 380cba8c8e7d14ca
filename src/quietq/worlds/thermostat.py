"""A thermostat: one room, people who like different temperatures, and a drift to the cold outside."""

from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

from quietq.noise import Box
from quietq.privacy import InvalidInput, LipschitzBall, relations
from quietq.privacy.checks import count, not_negative, positive, probability, real
from quietq.worlds.world import Array, World, never


@dataclass(frozen=True)
class ThermostatWorld(World):
    """The state is the room's temperature, in degrees. An episode is a day of half-hours, and never terminates.

    Each person's comfort is 1 at the temperature that they like, and falls by 1/`tolerance` for each degree away from
    it, down to 0. Together they are the mean over people whose likings are uniform between `liked` - `spread` and
    `liked` + `spread`. The width of the box is a power of two, so that a temperature in single precision is put on a
    grid of the box without rounding.
    """

    name: ClassVar[str] = "thermostat"
    box: ClassVar[Box] = Box((14.0,), (30.0,))
    actions: ClassVar[int] = 3
    action_names: ClassVar[tuple[str, ...]] = ("cool", "off", "heat")
    draws: ClassVar[int] = 1

    outside: float = 16.0
    """The room drifts to this temperature."""
    leak: float = 0.05
    """The part of the difference to the outside that is lost in a step, if not for the noise."""
    power: float = 1.5
    """Degrees that heating adds in a step, and cooling takes away."""
    noise: float = 1.0
    """The most degrees that a draught adds in a step, up or down, uniformly."""
    liked: float = 23.5
    spread: float = 2.0
    tolerance: float = 8.0
    steps: int = 48

    def __post_init__(self) -> None:
        for name in ("outside", "liked"):
            if not self.box.low[0] <= real(name, getattr(self, name)) <= self.box.high[0]:
                raise InvalidInput(f"{name} must lie within {self.box}, not {getattr(self, name)!r}.")
        probability("leak", self.leak)
        not_negative("noise", self.noise)
        for name in ("power", "spread", "tolerance"):
            positive(name, getattr(self, name))
        count("steps", self.steps)

    def move(self, state: Array, action: Array, draws: Array, xp: ModuleType) -> tuple[Array, Array]:
        machine = self.power * (xp.asarray(action)[..., None] - 1)
        moved = state + self.leak * (self.outside - state) + self.noise * (2 * draws - 1) + machine
        moved = xp.clip(moved, self.box.low[0], self.box.high[0])
        return moved, never(moved, xp)

    def reward(self, state: Array, xp: ModuleType) -> Array:
        """Returns the mean of max(0, 1 - |s - t|/tolerance) over likings t, by the antiderivative of that tent."""
        away = state[..., 0] - self.liked

        def area(z: Array) -> Array:
            within = xp.minimum(xp.abs(z), self.tolerance)
            return xp.sign(z) * (within - within * within / (2 * self.tolerance))

        return (area(away + self.spread) - area(away - self.spread)) / (2 * self.spread)

    def relation(self, people: int) -> LipschitzBall:
        return relations.people(people, low=0.0, high=1.0, slope=self.box.width[0] / self.tolerance)
