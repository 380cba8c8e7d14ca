"""A world on a grid, with its public dynamics only: what a thief of rewards plans in.

States are the points of a regular grid; what lies between them is shared out among the corners around it (hat
functions), as in `worlds.planning`. A reward is one number a point, for the state that a step leads to, and is taken to
be linear in between. Nothing here looks at the world's reward.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from quietq.paper.discrete import Tabular
from quietq.privacy import InvalidInput
from quietq.privacy.checks import count, instance, numbers, probability
from quietq.worlds import World
from quietq.worlds.planning import MOST_ON_A_GRID, after, corners_of

POINTS = {1: 65, 2: 13}  # a coordinate, unless told otherwise: odd, so that there is one in the middle of the box
MOST_POINTS = {1: 257, 2: 21}
LEAST_POINTS = 5
_TIE = 1e-9  # values that differ by less, relative to their range, are alike
_STARTS = 64
_ROUNDS = 1000


@dataclass(frozen=True, eq=False, repr=False)
class Discretised:
    """A world as a table of chances; make it with `discretise`."""

    world: World
    points: int  # a coordinate
    states: Float[np.ndarray, "n d"]
    transitions: Float[np.ndarray, "n m n"]  # chances of the next state, given a state and an action
    start: Float[np.ndarray, " n"]  # chances of the first state

    def expected(self, rewards: object) -> Float[np.ndarray, "n m"]:
        """The mean reward of each state and action, from rewards of the states that steps lead to."""
        given = numbers("rewards", rewards)
        if given.shape != (len(self.states),) or not np.isfinite(given).all():
            raise InvalidInput(f"rewards must be {len(self.states)} finite numbers, one per point of the grid.")
        return self.transitions @ given

    def tabular(self, rewards: np.ndarray, gamma: float) -> Tabular:
        """The same world for the exact values of `paper.discrete`, with rewards of the state that a step leads to."""
        return Tabular(self.transitions, self.expected(rewards), probability("gamma", gamma))

    def best_values(self, rewards: np.ndarray, gamma: float) -> Float[np.ndarray, "n m"]:
        table = self.tabular(rewards, gamma)
        q, policy, here = table.rewards, table.rewards.argmax(axis=1), np.arange(len(self.states))
        for _ in range(_ROUNDS):
            q = table.q(table.evaluate(policy))
            gain = q.max(axis=1) - q[here, policy]
            if (gain <= 1e-12 * max(1.0, np.abs(q).max())).all():  # rounding must not turn it round and round
                break
            policy = q.argmax(axis=1)
        return q

    def visits(self, policy: np.ndarray, gamma: float) -> Float[np.ndarray, " n"]:
        """Discounted visits of the states that steps lead to, for the chances of actions (n, m) at each state."""
        moves = self.moves(policy)
        return np.linalg.solve((np.eye(len(moves)) - gamma * moves).T, moves.T @ self.start)

    def moves(self, policy: np.ndarray) -> Float[np.ndarray, "n n"]:
        return np.einsum("sa,sat->st", policy, self.transitions)

    def hats(self, knots: int) -> Float[np.ndarray, "n features"]:
        """Hat functions on a coarser grid of so many knots a coordinate, at the grid's points."""
        corners, shares = corners_of(self.world.box, knots - 1, self.states)
        features = np.zeros((len(self.states), knots**self.world.box.dimension))
        np.add.at(features, (np.arange(len(features))[:, None], corners), shares)
        return features

    @cached_property
    def slopes(self) -> Float[np.ndarray, "edges n"]:
        """Takes rewards to their differences between neighbouring points."""
        step, same = np.diff(np.eye(self.points), axis=0), np.eye(self.points)
        if self.world.box.dimension == 1:
            return step
        return np.vstack([np.kron(step, same), np.kron(same, step)])


def discretise(world: World, points: int | None = None) -> Discretised:
    """A world of one or two coordinates on a grid of so many points a coordinate.

    Chance is integrated by the midpoint rule, which for uniform moves is exact but for the ends.
    """
    instance("world", world, World, "one of quietq's worlds, e.g. find_world('walk')")
    box = world.box
    if max(box.dimension, world.draws) > MOST_ON_A_GRID:
        raise InvalidInput(
            f"Rewards are reconstructed on a grid, which is for at most {MOST_ON_A_GRID} coordinates, but the "
            f"{world.name} has {box.dimension}."
        )
    most = MOST_POINTS[box.dimension]
    points = POINTS[box.dimension] if points is None else count("points", points, LEAST_POINTS, most)
    axis = np.linspace(0, 1, points)
    mesh = np.stack(np.meshgrid(*[axis] * box.dimension, indexing="ij"), axis=-1).reshape(-1, box.dimension)
    states = mesh * np.subtract(box.high, box.low) + box.low
    nothing = lambda states: np.zeros(len(states))  # noqa: E731 (only the dynamics are asked for)
    each = [after(world, nothing, points - 1, states, action)[1].toarray() for action in range(world.actions)]
    transitions = np.stack(each, axis=1)
    if not np.allclose(transitions.sum(axis=-1), 1):
        raise InvalidInput(f"Rewards are reconstructed in worlds without an early end, and the {world.name} has one.")
    middles = (np.arange(_STARTS) + 0.5) / _STARTS
    draws = np.stack(np.meshgrid(*[middles] * world.draws, indexing="ij"), axis=-1).reshape(-1, world.draws)
    corners, shares = corners_of(box, points - 1, world.start(draws, np))
    start = np.bincount(corners.ravel(), shares.ravel(), len(states)) / len(draws)
    return Discretised(world, points, states, transitions, start)


def best_actions(values: np.ndarray) -> Bool[np.ndarray, "n m"]:
    """Which actions are best at each state, by their values (n, m); several where they are alike but for rounding."""
    gap = values.max(axis=1, keepdims=True) - values
    return gap <= _TIE * max(float(np.ptp(values)), np.finfo(np.float64).tiny)


def mixed(best: np.ndarray) -> Float[np.ndarray, "n m"]:
    return best / best.sum(axis=1, keepdims=True)
