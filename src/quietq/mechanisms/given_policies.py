"""Policies as they are given, as functions from states to probabilities; what is none is refused at public points."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.feedback.returns import Policy, asked
from quietq.noise.box import Box
from quietq.privacy.errors import InvalidInput
from quietq.released.publishable import Publishable

_POINTS = 32
AnyPolicy = Policy | Publishable | str
"""A function from states to probabilities of actions, a published agent, or the action that is always taken."""


def policy_of(what: str, given: AnyPolicy, box: Box, actions: tuple[str, ...]) -> Policy:
    """As a function from states to probabilities, which is refused if it is none at public points."""
    if isinstance(given, str):
        if given not in actions:
            raise InvalidInput(f"{what} must name one of the actions {list(actions)}, not {given!r}.")
        return Always(actions.index(given), len(actions))
    if isinstance(given, Publishable):
        if given.choices != len(actions):
            raise InvalidInput(f"{what} must be an agent that chooses among {len(actions)} actions.")
        inside = all(a <= c and d <= b for a, b, c, d in zip(
            given.box.low, given.box.high, box.low, box.high, strict=False))  # fmt: skip
        if given.box.dimension != box.dimension or not inside:
            raise InvalidInput(f"{what} is an agent for states in {given.box}, and these sessions' lie in {box}.")
        return Greedy(given, len(actions))
    found = values_at_points(what, given, box, len(actions))
    if (found < -1e-9).any() or np.abs(found.sum(axis=1) - 1).max() > 1e-6:
        raise InvalidInput(f"{what} must give probabilities of {len(actions)} actions, which add up to 1.")
    return given


def values_at_points(what: str, function: Any, box: Box, actions: int) -> Float[np.ndarray, "points actions"]:
    """What it says at public points; it is refused if that depends on what else it is asked."""
    if not callable(function):
        raise InvalidInput(f"{what} must be a function of states, not {type(function).__name__}.")
    ends = np.array([box.low, box.high])
    states = ends[0] + np.random.default_rng(0).random((_POINTS, box.dimension)) * (ends[1] - ends[0])
    found = _at(what, function, states, actions)
    alone = np.vstack([_at(what, function, states[i : i + 1], actions) for i in range(_POINTS)])
    again = _at(what, function, states[::-1], actions)[::-1]
    if not all(np.allclose(found, other, rtol=1e-6, atol=1e-9) for other in (alone, again)):
        raise InvalidInput(f"{what} must look at one state at a time: what it says of one depends on the others.")
    return found


def _at(what: str, function: Callable[..., Any], states: np.ndarray, actions: int) -> np.ndarray:
    problem, found = "", np.empty(0)
    try:
        found = asked(function, states, actions)
    except InvalidInput:
        problem = f"must give {actions} numbers for each state, one for each action"
    except Exception as error:
        problem = f"failed with {type(error).__name__}"
    if problem:
        raise InvalidInput(f"{what} {problem}; nothing was spent.")
    if not np.isfinite(found).all():
        raise InvalidInput(f"{what} must give finite numbers.")
    return found


@dataclass(frozen=True)
class Always:
    """The same action everywhere."""

    action: int
    actions: int

    def __call__(self, states: np.ndarray) -> np.ndarray:
        return np.tile(np.eye(self.actions)[self.action], (len(states), 1))


@dataclass(frozen=True, eq=False)
class Greedy:
    """A published agent, which takes its best action."""

    agent: Publishable
    actions: int

    def __call__(self, states: np.ndarray) -> np.ndarray:
        values = self.agent(states[:, 0] if self.agent.box.dimension == 1 else states)
        return np.eye(self.actions)[np.asarray(values).reshape(len(states), -1).argmax(axis=1)]
