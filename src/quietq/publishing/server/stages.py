"""What a visitor can do in a released world: its actions, which served agents fit it, and what its file leaves out."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.mechanisms.private_world import PrivateWorld
from quietq.mechanisms.release_file import OpenedFile
from quietq.noise.box import Box
from quietq.publishing.server.outputs import action_names, state_names
from quietq.publishing.server.records import Sides, Stage

MOVES = "moves"
"""Known laws of motion, without which no state follows another."""


def stage_of(world: PrivateWorld, releases: Mapping[str, OpenedFile]) -> Stage:
    """What the list of releases says of a world, among the releases that are served with it."""
    acting = world.spaces.action_box
    fitting = [id for id, release in releases.items() if acts_in(release, world)]
    return Stage(
        actions=world.spaces.actions, action_box=None if acting is None else sides_of(acting), policies=fitting,
        start=first_state(world).tolist(), unknown=left_out(world), state_names=state_names(world),
        action_names=action_names(world),
    )  # fmt: skip


def sides_of(box: Box) -> Sides:
    return Sides(low=list(box.low), high=list(box.high))


def left_out(world: PrivateWorld) -> list[str]:
    """What was declared as known, by name: functions, which no file holds."""
    moves = [MOVES] if len(world.moved) < world.spaces.states else []
    return [*world.known, *moves]


def first_state(world: PrivateWorld) -> Float[np.ndarray, " states"]:
    """Where to begin if nobody says: the mean of people's first states, or of all their states, in their own units."""
    unit = world.typical()[0] if world.first is None else world.first
    return np.array(world.box.low) + np.clip(unit, 0, 1) * np.array(world.box.width)


def acts_in(release: OpenedFile, world: PrivateWorld) -> bool:
    """Whether an agent takes every state of a world, and gives actions of it."""
    agent: Any = release.function
    if release.what != "agent" or agent.box.dimension != world.spaces.states:
        return False
    beyond = [np.array(world.box.low) - np.array(agent.box.low), np.array(agent.box.high) - np.array(world.box.high)]
    if any((gap < -agent.box.hair).any() for gap in beyond):
        return False
    if world.spaces.actions is not None:
        return agent.choices == world.spaces.actions
    return agent.choices is None and agent.outputs == world.spaces.numbers
