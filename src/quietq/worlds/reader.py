"""Private rewards of transitions: where the private function looks, and at which part of an observation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Discrete, Space
from jaxtyping import Float

from quietq.mechanisms.private_function import PrivateFunction
from quietq.privacy.errors import InvalidInput
from quietq.worlds.observations import Outside, State, check_outside, in_box, refuse_categories, states_of

PLACES = ("next-state", "state", "state-action")
"""What a reward may look at."""


@dataclass(frozen=True)
class Reader:
    """The private function, where it looks, and which part of an observation it looks at."""

    private: PrivateFunction
    on: str
    state: State
    first_action: int = 0
    outside: Outside = "refuse"

    @classmethod
    def of(
        cls,
        private: PrivateFunction,
        on: str,
        state: State,
        outside: Outside,
        actions: Space | None,
        observations: Space | None,
    ) -> "Reader":
        """Checks that the function fits the place that it is to be looked at from; spaces that are None are not."""
        if not isinstance(private, PrivateFunction):
            raise InvalidInput(
                f"private must be a PrivateFunction, as GaussianProcessMechanism.apply returns it, "
                f"not {type(private).__name__}."
            )
        check_place(on)
        check_outside(outside)
        if observations is not None:
            refuse_categories(observations, state)
        middle = [(a + b) / 2 for a, b in zip(private.box.low, private.box.high, strict=True)]
        outputs = np.shape(private(middle if len(middle) > 1 else middle[0]))
        if on != "state-action":
            if outputs:
                raise InvalidInput(
                    f"The private function has outputs of shape {outputs}: look at it on 'state-action'."
                )
            return cls(private, on, state, outside=outside)
        if len(outputs) != 1:
            raise InvalidInput("On 'state-action', the private function must have one output an action.")
        if actions is None:
            return cls(private, on, state, outside=outside)
        if not isinstance(actions, Discrete) or int(actions.n) != outputs[0]:
            raise InvalidInput(
                f"On 'state-action', the private function's {outputs[0]} outputs must be one for each of finitely many "
                f"actions, but the action space is {actions}."
            )
        return cls(private, on, state, int(actions.start), outside)

    def states(self, batch: Any, size: int) -> Float[np.ndarray, "batch dimension"]:
        """What of a batch of observations the reward looks at; not yet checked to lie in the box."""
        return states_of(batch, size, self.state, self.private.box.dimension)

    def rewards(
        self, before: np.ndarray | None, after: np.ndarray | None, actions: object
    ) -> Float[np.ndarray, "batch"]:
        """The private rewards of transitions."""
        states = after if self.on == "next-state" else before
        if states is None:
            raise ResetNeeded("The reward looks at the state before the step: call reset first.")
        inside = in_box(states, self.private.box, self.outside)
        values = np.asarray(self.private(inside[:, 0] if inside.shape[1] == 1 else inside), dtype=np.float64)
        if self.on != "state-action":
            return values
        column = np.asarray(actions).reshape(-1) - self.first_action
        if column.shape != values.shape[:1] or not np.isin(column, np.arange(values.shape[1])).all():
            raise InvalidInput(f"actions must be one of {values.shape[1]} for each of {len(values)} states.")
        return values[np.arange(len(values)), column.astype(np.int64)]


def check_place(on: object) -> None:
    """Refuses what is not one of PLACES."""
    if on not in PLACES:
        raise InvalidInput(f"on must be one of {', '.join(PLACES)}, not {on!r}.")


def relabel(
    private: PrivateFunction,
    observations: Any,
    next_observations: Any = None,
    actions: Any = None,
    on: str = "next-state",
    state: State = None,
    outside: Outside = "refuse",
) -> Float[np.ndarray, "steps"]:
    """Private rewards for logged transitions, in place of the logged ones, which are not even asked for.

    For an episode of a Minari data set, `relabel(private, episode.observations[:-1], episode.observations[1:])`.
    """
    reader = Reader.of(private, on, state, outside, None, None)
    for name, needed, given in (
        ("next_observations", "next-state", next_observations),
        ("actions", "state-action", actions),
    ):
        if on == needed and given is None:
            raise InvalidInput(f"On {on!r}, relabel needs {name}.")
    size = _length(observations)
    if next_observations is not None and _length(next_observations) != size:
        raise InvalidInput(f"There are {size} observations, but {_length(next_observations)} next_observations.")
    before = None if on == "next-state" else reader.states(observations, size)
    after = reader.states(next_observations, size) if on == "next-state" else None
    return reader.rewards(before, after, actions)


def _length(batch: Any) -> int:
    """How many observations a batch holds, which may be a dictionary or tuple of arrays."""
    while isinstance(batch, Mapping | tuple):
        batch = next(iter(batch.values() if isinstance(batch, Mapping) else batch), ())
    return len(batch)
