"""Private rewards of transitions: which part of an observation is the state, and where the private function looks."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from gymnasium.error import CustomSpaceError, ResetNeeded
from gymnasium.spaces import Box as BoxSpace, Discrete, MultiBinary, MultiDiscrete, Space
from gymnasium.vector.utils import concatenate, create_empty_array
from jaxtyping import Float

from quietq.noise import Box, Domain
from quietq.privacy import InvalidInput
from quietq.privacy.checks import numbers, one_of, plural, shown
from quietq.released.private_function import PrivateFunction
from quietq.worlds.world import Observation, flat

PLACES = ("next-state", "state", "state-action")
"""What a reward may look at."""

State = int | Sequence[int] | Callable[..., object] | None
"""Which part of an observation the reward looks at: all of it, some entries, or a function of a batch of them."""

Outside = Literal["refuse", "clip"]
"""What becomes of a state that lies outside the reward's box: it is refused, or the nearest state of the box taken."""

HAIR = 1e-6
"""How far outside its box a state may lie, in widths of the box, to be taken for rounding."""


LARGEST_BOUND = 1e10
"""Observations that may be larger count as unbounded: no environment means it."""


def observation_box(space: Space, given: Domain | None = None) -> Box:
    """The public box of observations, which are numbers along one axis: as given, or else what their space says."""
    if not isinstance(space, BoxSpace) or len(space.shape) != 1:
        raise InvalidInput(f"The observations must be a Box of one axis, not {space}.")
    dimension = space.shape[0]
    if given is not None:
        box = Box.of(given)
        if box.dimension != dimension:
            raise InvalidInput(f"box must have a pair (low, high) for each of {dimension} coordinates, not {box}.")
        return box
    sides = [(float(low), float(high)) for low, high in zip(space.low, space.high, strict=True)]
    without = [str(i) for i, (low, high) in enumerate(sides) if max(-low, high) > LARGEST_BOUND or not low < high]
    if without:
        raise InvalidInput(
            f"The observations have no bounds, or no width, in coordinate {' and '.join(without)}: give `box`, a pair "
            f"(low, high) for each of {dimension} coordinates."
        )
    return Box.of(sides)


def refuse_categories(space: Space, state: State) -> None:
    """Refuses observations that are numbers of categories, unless a function says where in the box each lies."""
    if isinstance(space, Discrete | MultiDiscrete | MultiBinary) and not callable(state):
        raise InvalidInput(
            f"The observations are {space}, names of categories and not places in the reward's box: give as `state` a "
            "function from a batch of them to coordinates of the box, e.g. `lambda batch: places[batch]`."
        )


def batch_of(observations: Sequence[Observation], space: Space) -> Observation:
    """Observations of one environment as a vector environment would return them."""
    if isinstance(space, BoxSpace | Discrete | MultiDiscrete | MultiBinary):
        return np.stack([np.asarray(observation) for observation in observations])
    return concatenate(space, observations, create_empty_array(space, len(observations)))


def states_of(batch: object, size: int, state: State, dimension: int) -> Float[np.ndarray, "batch dimension"]:
    """The part of a batch of observations that `state` names, a row each; not yet checked to lie in a box."""
    states = picked(batch, size, state)
    check_size(states.shape[1], dimension)
    return states


def picked(batch: object, size: int, state: State) -> Float[np.ndarray, "batch numbers"]:
    """The part of a batch that `state` names, a row of numbers for each observation, however many they are."""
    if not callable(state) and isinstance(batch, Mapping | tuple):
        raise InvalidInput(
            "The observations have parts: say with a function `state` which of them the reward is a function of."
        )
    try:
        states = np.array(state(batch) if callable(state) else batch, dtype=np.float64).reshape(size, -1)
        if not callable(state) and state is not None:
            states = states[:, np.atleast_1d(np.asarray(state))]
    except (TypeError, ValueError, IndexError) as error:
        raise InvalidInput(f"state {state!r} does not give one state for each of {size} observations.") from error
    return states


def check_size(numbers: int, dimension: int) -> None:
    """Refuses states of another dimension than the reward's box has for them."""
    if numbers != dimension:
        raise InvalidInput(
            f"A state has {plural(numbers, 'number')}, but the reward's box has {dimension} for it: say with `state` "
            "which part of the observation the reward is a function of."
        )


def in_box(
    states: np.ndarray,
    box: Box,
    outside: Outside = "refuse",
    advice: str = "give outside='clip' to take the nearest state of the box, or release the reward on a larger one",
    what: str = "state",
    hair: np.ndarray | None = None,
) -> Float[np.ndarray, "batch dimension"]:
    """States that lie in the box, or a hair outside, where rounding puts them; then clipped."""
    low, high, hair = np.array(box.low), np.array(box.high), HAIR * np.array(box.width) if hair is None else hair
    inside = (states >= low - hair) & (states <= high + hair)  # False for NaN
    if np.isnan(states).any():
        raise InvalidInput(f"A {what} has the value nan, outside the reward's box {box}: it must be a number.")
    if outside == "refuse" and not inside.all():
        raise InvalidInput(
            f"A {what} has the value {float(states[~inside][0])!r}, outside the reward's box {box}: {advice}."
        )
    return np.clip(states, low, high)


@dataclass(frozen=True)
class Reader:
    """The private function, where it looks, and which part of an observation it looks at."""

    private: PrivateFunction
    on: str
    state: State
    outside: Outside
    actions: Space
    observations: Space

    def __post_init__(self) -> None:
        if not isinstance(self.private, PrivateFunction):
            raise InvalidInput(
                f"private must be a released reward, as privatise returns it or load reads it, "
                f"not {type(self.private).__name__}."
            )
        one_of("on", self.on, PLACES)
        if self.outside not in get_args(Outside):
            raise InvalidInput(f"outside must be 'refuse' or 'clip', not {shown(self.outside)}.")
        if not self._of_items():
            refuse_categories(self.observations, self.state)
        outputs = _outputs(self.private)
        if self.on == "state-action":
            self._check_actions(outputs)
        elif outputs:
            raise InvalidInput(f"The private function has outputs of shape {outputs}: use on='state-action'.")
        self._check_dimension()

    def _check_dimension(self) -> None:
        """Refuses what does not fit the environment before its first step, as far as a blank observation shows it."""
        found = self.private.box.dimension - self.action_size
        unseen = Exception if callable(self.state) else CustomSpaceError  # a caller's function may not take a blank one
        with suppress(unseen):
            found = picked(create_empty_array(self.observations, 1), 1, self.state).shape[1]
        check_size(found, self.private.box.dimension - self.action_size)

    def _of_items(self) -> bool:
        """Says whether observations are numbers of the items of a catalogue, in the order of its public list."""
        items, space = getattr(self.private, "items", None), self.observations
        if items is None or not isinstance(space, Discrete) or callable(self.state):
            return False
        if (space.start, space.n) != (0, len(items)):
            raise InvalidInput(
                f"The observations are {space}, but the reward has {len(items)} items, numbered from 0: give as "
                "`state` a function from a batch of observations to numbers of items."
            )
        return True

    def _check_actions(self, outputs: tuple[int, ...]) -> None:
        """One output for each of finitely many actions; or one value, and actions that are coordinates of the box."""
        if not outputs and isinstance(self.actions, BoxSpace):
            if self.action_size >= self.private.box.dimension:
                raise InvalidInput(
                    f"On 'state-action', the reward's box must have the state's coordinates and then the action's, but "
                    f"it is {self.private.box}, and the action alone has {self.action_size}."
                )
        elif len(outputs) != 1:
            raise InvalidInput(
                "On 'state-action', the private function must have one output per action; or one value, and a Box of "
                "actions, whose coordinates are the last of the reward's box."
            )
        elif not isinstance(self.actions, Discrete) or self.actions.n != outputs[0]:
            raise InvalidInput(
                f"On 'state-action', the private function's {outputs[0]} outputs must be one for each of finitely many "
                f"actions, but the action space is {self.actions}."
            )

    @property
    def action_size(self) -> int:
        """How many of the box's coordinates, the last ones, are the action's."""
        return math.prod(self.actions.shape) if self.on == "state-action" and isinstance(self.actions, BoxSpace) else 0

    def states(self, batch: object, size: int) -> Float[np.ndarray, "batch dimension"]:
        return states_of(batch, size, self.state, self.private.box.dimension - self.action_size)

    def rewards(
        self, before: np.ndarray | None, after: np.ndarray | None, actions: object
    ) -> Float[np.ndarray, "batch"]:
        states = after if self.on == "next-state" else before
        if states is None:
            raise ResetNeeded("The reward is a function of the state before the step: call reset first.")
        if self.action_size:
            both = np.hstack([states, _rows(actions, len(states), self.action_size)])
            return self._values(both, "state or action")
        values = self._values(states)
        if not isinstance(self.actions, Discrete) or self.on != "state-action":
            return values
        column = np.asarray(actions).reshape(-1) - int(self.actions.start)
        if column.shape != values.shape[:1] or not np.isin(column, np.arange(values.shape[1])).all():
            raise InvalidInput(f"actions must be one of {values.shape[1]} for each of {len(values)} states.")
        return values[np.arange(len(values)), column.astype(np.int64)]

    def _values(self, places: np.ndarray, what: str = "state") -> Float[np.ndarray, "batch ..."]:
        box = self.private.box
        inside = in_box(places, box, self.outside, what=what, hair=box.hair)
        return np.asarray(self.private(flat(inside)), dtype=np.float64)


def _outputs(private: PrivateFunction) -> tuple[int, ...]:
    """The shape of what the reward says of one place."""
    return private(flat(np.array([private.box.low]))).shape[1:]


def _rows(actions: object, size: int, width: int) -> Float[np.ndarray, "batch width"]:
    rows = numbers("actions", actions)
    if rows.size != size * width:
        raise InvalidInput(f"actions must be {width} numbers for each of {size} states, not of shape {rows.shape}.")
    return rows.reshape(size, width)
