"""What a plan comes to for each person: played from where they began, in a world that is fitted to their own steps.

A person's world is the released one, moved as their own steps say and as far as the release's known noise makes likely:
the posterior's mean, with the size of what features do not explain learned from this person alone. So one person's
steps say much of a world that is nearly without chance, and nearly nothing of one that is full of it. Products of
matrices are taken person by person, so that nobody's company rounds them otherwise, and functions of the caller's are
asked person by person.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.feedback.spaces import stacked
from quietq.feedback.statistic import Columns, Starts, Vector
from quietq.feedback.transition_statistics import row_by_row
from quietq.mechanisms.private_world import PrivateWorld
from quietq.mechanisms.world_model import Known
from quietq.privacy.errors import InvalidInput
from quietq.worlds.cross_entropy import LinearPolicy
from quietq.worlds.private_world import Simulator

WIDER, REWARDS, ENDS = 10.0, 1.0, 2.0
"""How many times farther from the released world than its known noise says another one may be; how far off rewards may
be, in units of their range; and by how much each term may move the log-odds of an end."""
_NEWTON, _STEPS = 8, 30
"""Steps of Newton's, and of expectation and maximisation."""
_NOTHING = 1e-12
_OVER = 1e-3
"""An episode that goes on with less than this chance is over."""


@dataclass(frozen=True, eq=False)
class Played:
    """A plan in worlds that are near to a released one: a value that can be sent to other processes."""

    world: PrivateWorld
    policy: LinearPolicy
    steps: int

    @cached_property
    def simulator(self) -> Simulator:
        """Without scatter, and with the caller's functions asked person by person."""
        model = self.world.model
        alone = {name: _alone(getattr(model, name)) for name in ("reward", "end") if getattr(model, name) is not None}
        moves = {i: _alone(move) for i, move in model.moves.items()}
        return Simulator(replace(self.world, model=replace(model, moves=moves, **alone)), noise=False)

    def rewards(self, states: np.ndarray, actions: np.ndarray) -> Float[np.ndarray, " *some"]:
        """As they were released, in units of their range; for worlds that learned them."""
        spaces = self.world.spaces
        return (self.simulator.rewards(states, actions, states) - spaces.low) / (spaces.high - spaces.low)

    def returns(
        self, first: Float[np.ndarray, "people states"], weights: Float[np.ndarray, "people features moved"],
        rewards: Float[np.ndarray, "people terms"] | None = None,
        ends: Float[np.ndarray, "people others"] | None = None,
    ) -> Float[np.ndarray, " people"]:  # fmt: skip
        """In expectation over ends, each person for themselves; where nobody was, nothing more is gained."""
        return row_by_row(self._returns, first, weights, *(one for one in (rewards, ends) if one is not None))

    def _returns(self, states: np.ndarray, weights: np.ndarray, *own: np.ndarray) -> np.ndarray:
        spaces, given = self.world.spaces, iter(own)
        rewards = next(given) if self.world.reward is not None and own else None
        ends = next(given) if self.world.ends is not None and own else None
        alive, total = np.ones(states.shape[:-1]), np.zeros(states.shape[:-1])
        for _ in range(self.steps):
            actions = self.policy.acts(states)
            found = self.simulator.step(states, actions, None, weights=weights)
            worth, end = found.rewards, found.ends
            if rewards is not None:
                moved = _times(_bends(spaces.join(states, actions)), rewards)
                worth = np.clip(worth + (spaces.high - spaces.low) * moved, spaces.low, spaces.high)
            if ends is not None:
                end = _chance(_odds(end) + _times(_bends(found.states), ends))
            total += np.where(alive == 0, 0.0, alive * worth)  # who is over stays so, however long others go on
            alive = np.where(found.halted, 0.0, alive * (1 - end))
            alive, states = np.where(alive < _OVER, 0.0, alive), found.states
            if not alive.any():
                break
        return total


@dataclass(frozen=True, eq=False)
class OwnWorlds(Vector):
    """Whether a plan is worth as much as is wanted in each person's own world: 1/2 if it is, and -1/2 if not."""

    played: Played
    wanted: float
    size: int = 1
    bound: float = 0.5
    rows_at_once: int = 2**14

    def of_people(self, starts: Starts, columns: Columns) -> Float[np.ndarray, "people size"]:
        with np.errstate(all="ignore"):  # what is not finite counts as the middle, and nothing is said of it
            return self._of_people(starts, columns)

    def _of_people(self, starts: Starts, columns: Columns) -> Float[np.ndarray, "people size"]:
        world, spaces = self.played.world, self.played.world.spaces
        states, after = (stacked(columns, name, spaces.states) for name in "sn")
        actions = columns["action"] if spaces.actions is not None else stacked(columns, "a", spaces.numbers)
        people = np.split(np.arange(len(states)), starts[1:])
        root, unit = WIDER * world.left, np.linalg.inv(world.right)
        design, moved = world.features_of(states, actions), 2 * (after - states)[:, world.moved]
        weights = []
        for own in people:
            left = (moved[own] - design[own] @ world.weights) @ unit
            weights.append(world.weights + root @ _own(design[own] @ root, left) @ world.right)
        rewards = ends = None
        if world.reward is not None:
            terms = _bends(spaces.join(states, actions))
            scale = REWARDS / np.sqrt(terms.shape[1])
            differ = columns["reward"] - row_by_row(self.played.rewards, states, actions)
            rewards = np.stack([scale * _own(scale * terms[own], differ[own][:, None])[:, 0] for own in people])
        if world.ends is not None:
            terms, odds = ENDS * _bends(after), _odds(row_by_row(self.played.simulator.ends, after))
            ended = columns["end"] > 0
            ends = ENDS * np.stack([_own_odds(terms[own], odds[own], ended[own]) for own in people])
        return self.says(self.played.returns(states[starts], np.stack(weights), rewards, ends))[:, None]

    def says(self, returns: Float[np.ndarray, " people"]) -> Float[np.ndarray, " people"]:
        """Who has no return counts for neither."""
        return np.where(np.isnan(returns), 0.0, np.where(returns >= self.wanted, 0.5, -0.5))


def _bends(points: Float[np.ndarray, "*some d"]) -> Float[np.ndarray, "*some terms"]:
    """By what a person's rewards and log-odds may differ from released ones: terms up to the second degree."""
    points = np.sqrt(12) * (points - 0.5)
    row, column = np.triu_indices(points.shape[-1])
    return np.concatenate(
        [np.ones((*points.shape[:-1], 1)), points, points[..., row] * points[..., column]], axis=-1
    )  # fmt: skip


def _times(terms: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Each person's terms by their own slopes."""
    return (terms[..., None, :] @ own[..., None])[..., 0, 0]


def _odds(chance: np.ndarray) -> np.ndarray:
    chance = np.clip(chance, 1e-12, 1 - 1e-12)
    return np.log(chance / (1 - chance))


def _chance(odds: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(odds, -50, 50)))


def _own_odds(design: Float[np.ndarray, "rows k"], odds: np.ndarray, ended: np.ndarray) -> Float[np.ndarray, " k"]:
    """Slopes of what is added to log-odds, by Newton's steps towards the posterior's mode, if standard normal."""
    slopes = np.zeros(design.shape[1])
    for _ in range(_NEWTON):
        chance = _chance(odds + design @ slopes)
        gradient = design.T @ (ended - chance) - slopes
        curvature = (design.T * (chance * (1 - chance))) @ design + np.eye(len(slopes))
        slopes = slopes + np.linalg.solve(curvature, gradient)
    return slopes


def _own(design: Float[np.ndarray, "rows k"], targets: Float[np.ndarray, "rows m"]) -> Float[np.ndarray, "k m"]:
    """Slopes by their posterior mean, if they are standard normal, with each target's own noise (Dempster, Laird &
    Rubin's iteration).
    """
    try:
        values, vectors = np.linalg.eigh(design.T @ design)
    except np.linalg.LinAlgError:
        return np.full((design.shape[1], targets.shape[1]), np.nan)  # who is not told counts as the middle
    values, along = np.maximum(values, 0.0)[:, None], vectors.T @ (design.T @ targets)
    whole, noise = (targets**2).sum(axis=0), np.ones(targets.shape[1])
    for _ in range(_STEPS):
        known = values + noise
        slopes = along / known
        rest = whole - 2 * (along * slopes).sum(axis=0) + (values * slopes**2).sum(axis=0)
        noise = np.maximum((rest + noise * (values / known).sum(axis=0)) / len(targets), _NOTHING)
    return vectors @ (along / (values + noise))


def _alone(function: Known) -> Callable[..., Any]:
    """The same, asked of one person after the other, on copies."""

    def asked(*given: np.ndarray) -> np.ndarray:
        try:
            each = [function(*(one[i].copy() for one in given)) for i in range(len(given[0]))]
            return np.stack([np.asarray(one, np.float64) for one in each])  # nobody's type becomes another's
        except Exception:
            pass
        raise InvalidInput("A function that was declared as known failed: it must take arrays of any shape in front.")

    return asked
