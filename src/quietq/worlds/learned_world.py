"""A private world in the form that the compiled trainer takes.

A `World`'s reward is a function of the state that a step led to, and a private world's depends on what was done. So the
reward of the last step is one more coordinate of the state, behind all others, and agents see it.
"""

from dataclasses import dataclass, field
from typing import Any

from quietq.mechanisms.private_world import PrivateWorld
from quietq.noise.box import Box
from quietq.privacy.checks import count, instance
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import Relation
from quietq.worlds.private_world import HALT, Simulator
from quietq.worlds.world import Array, World


@dataclass(frozen=True, eq=False)
class LearnedWorld(World):
    """A private world with a list of actions. It is what was released, so training in it costs nothing more.

    It is the released world alone, without others that are plausible. A halt is an end with the least reward: give it
    to worlds whose rewards are not below 0.
    """

    private: PrivateWorld
    steps: int = 200
    halt: float | None = HALT
    noise: bool = True
    name: str = "private world"  # type: ignore[misc]
    box: Box = field(init=False)  # type: ignore[misc]
    actions: int = field(init=False)  # type: ignore[misc]
    action_names: tuple[str, ...] = field(init=False)  # type: ignore[misc]
    draws: int = field(init=False)  # type: ignore[misc]
    simulator: Simulator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        instance("private", self.private, PrivateWorld, "a PrivateWorld, as privatise makes it of Sessions")
        spaces = self.private.spaces
        if spaces.actions is None:
            raise InvalidInput("The compiled trainer chooses among actions of a list: use env() for numbers.")
        count("steps", self.steps)
        simulator = Simulator(self.private, self.halt, self.noise)
        made = {
            "box": Box((*spaces.box.low, spaces.low), (*spaces.box.high, spaces.high)), "actions": spaces.actions,
            "action_names": spaces.action_names, "draws": simulator.draws + 1,
            "simulator": simulator,
        }  # fmt: skip
        for name, value in made.items():
            object.__setattr__(self, name, value)

    def start(self, draws: Array, xp: Any) -> Array:
        first = self.simulator.raw(self.simulator.start(draws, xp), xp)
        least = xp.full((*first.shape[:-1], 1), self.private.spaces.low)
        return xp.concatenate([first, least], axis=-1).astype(draws.dtype)

    def move(self, state: Array, action: Array, draws: Array, xp: Any) -> tuple[Array, Array]:
        low, width = (xp.asarray(end, dtype=draws.dtype) for end in (self.private.box.low, self.private.box.width))
        unit = xp.clip((state[..., :-1] - low) / width, 0.0, 1.0)
        found = self.simulator.step(unit, xp.asarray(action), draws, xp)
        spaces = self.private.spaces
        reward = xp.where(found.halted, spaces.low, xp.clip(found.rewards, spaces.low, spaces.high))
        after = xp.concatenate([self.simulator.raw(found.states, xp), reward[..., None]], axis=-1)
        return after.astype(draws.dtype), found.halted | (draws[..., -1] < found.ends)

    def reward(self, state: Array, xp: Any) -> Array:
        return state[..., -1]

    def relation(self, people: int) -> Relation:
        raise InvalidInput("A private world is released already: train in it with method 'none', which adds no noise.")
