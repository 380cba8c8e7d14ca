"""The reward from released values, or from a policy alone: three attacks.

`invert` turns the Bellman equation round. Values that solve r(s, a) = Q(s, a) - gamma sum_s' P(s'|s, a) max_a' Q(s',
a') give the reward away, scale and shift included. That is the mean reward of a step; the reward of the state that it
leads to follows from

    r(s, a) = sum_s' P(s'|s, a) r(s')

by least squares. Chance blurs what it averages over, and undoing that blows errors up, so steep rewards are charged
for: by generalised cross-validation, and at least so much that the reward is no steeper than was publicly declared.
(Errors of neighbouring states are alike, which cross-validation alone takes for signal.) All of it comes from the
release and from what is public.

`inverse_rl` is a linear program (Ng & Russell, 2000). A policy pi is optimal for the reward r of the state that a step
leads to if and only if, for every action a,

    (P_pi - P_a) (I - gamma P_pi)^-1 r >= 0

(with V the values, r + gamma V = (I - gamma P_pi)^-1 r, and P_a of that is what action a is worth). Of all such rewards
within [-1, 1], the one is taken by which the best action is ahead of the next best by most, summed over states, less
`size` times the sum of |r|.

`apprenticeship` is a projection (Abbeel & Ng, 2004). A reward that is a sum of weights times features is worth, under a
policy, the weights times its *feature expectations*: the discounted sums of features that it meets. The thief looks for
weights by which the released policy beats every other: the difference between its feature expectations and the nearest
mixture of those of the policies tried so far. Each round tries the policy that is best for these weights, and moves the
mixture towards it; the length of the difference, the margin, falls until nothing tells the released policy from the
mixture.

All three plan in a world on a grid (`Discretised`), with its public dynamics only. States are the points of a regular
grid; what lies between them is shared out among the corners around it (hat functions), as in `worlds.planning`. A
reward is one number a point, for the state that a step leads to, and is taken to be linear in between. Nothing here
looks at the world's reward.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from quietq.paper.discrete import Tabular
from quietq.privacy import InvalidInput, QuietqError
from quietq.privacy.checks import count, instance, not_negative, numbers, positive, probability
from quietq.worlds import World
from quietq.worlds.planning import MOST_ON_A_GRID, after, corners_of

_STARTS = 64


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
        for _ in range(1000):
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
        """Returns hat functions on a coarser grid of this number of knots a coordinate, at the grid's points."""
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
    """A world of one or two coordinates on a grid of a number of points a coordinate.

    Chance is integrated by the midpoint rule, which for uniform moves is exact but for the ends.
    """
    instance("world", world, World, "one of quietq's worlds, e.g. find_world('walk')")
    box = world.box
    if max(box.dimension, world.draws) > MOST_ON_A_GRID:
        raise InvalidInput(
            f"Rewards are reconstructed on a grid, which is for at most {MOST_ON_A_GRID} coordinates, but the "
            f"{world.name} has {box.dimension}."
        )
    most = {1: 257, 2: 21}[box.dimension]
    # An odd number of points a coordinate, so that there is one in the middle of the box.
    points = {1: 65, 2: 13}[box.dimension] if points is None else count("points", points, 5, most)
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
    """Says which actions are best at each state, by their values (n, m); several where they tie up to rounding."""
    gap = values.max(axis=1, keepdims=True) - values
    # Values that differ by no more than rounding, relative to their range, are alike.
    return gap <= 1e-9 * max(float(np.ptp(values)), np.finfo(np.float64).tiny)


def mixed(best: np.ndarray) -> Float[np.ndarray, "n m"]:
    return best / best.sum(axis=1, keepdims=True)


def implied_rewards(grid: Discretised, values: np.ndarray, gamma: float) -> Float[np.ndarray, "n m"]:
    """Mean rewards of each state and action that make these the values, (n, m), of the best policy."""
    return values - probability("gamma", gamma) * grid.transitions @ values.max(axis=1)


def invert(
    grid: Discretised, values: np.ndarray, gamma: float, steepest: float | None = None
) -> Float[np.ndarray, " n"]:
    """The reward of the state that a step leads to, from values of all actions, (n, m).

    `steepest` is the most that the reward is known to change between neighbouring points, if anything is.
    """
    expected = implied_rewards(grid, values, gamma)
    # Slopes that exceed the declared one by less than a hundredth are rounding.
    most = np.inf if steepest is None else 1.01 * not_negative("steepest", steepest)
    equations, goal = grid.transitions.reshape(expected.size, -1), expected.ravel()
    normal, steep, right = equations.T @ equations, grid.slopes.T @ grid.slopes, equations.T @ goal
    least, rewards = np.inf, np.full(len(normal), goal.mean())
    # Charges relative to the scale of the equations; with the last, nothing but a constant is left.
    for tried in np.logspace(-12, 8, 81) * np.trace(normal) / np.trace(steep):
        inverse = np.linalg.inv(normal + tried * steep)
        found = inverse @ right
        freedom = expected.size - np.trace(inverse @ normal)
        score = np.square(equations @ found - goal).sum() / freedom**2
        if score < least and np.abs(grid.slopes @ found).max() <= most:
            least, rewards = score, found
    return rewards


WRONG = 2.0  # what Ng & Russell charge for a state in which the policy is not the best


def inverse_rl(
    grid: Discretised, best: np.ndarray, gamma: float, *, size: float = 0.5, wrong: float | None = None
) -> Float[np.ndarray, " n"]:
    """A reward that makes a policy optimal; up to scale and shift. Zero if no other is worth its size.

    `best` says which actions the policy takes for best at each state, (n, m). Where there are several, all of them have
    to be, and the state adds to the lead only if some action is left out. `wrong` is for policies that are not quite
    optimal for any reward, such as noised ones: the policy need not be optimal, but a lead below zero counts so many
    times. `size`, the charge for the sum of |r|, is small against what a point of reward can add to the lead; from
    about 10 on nothing but 0 is left in our worlds.
    """
    from scipy.optimize import linprog  # slow to import

    n, m = grid.transitions.shape[:2]
    best = np.asarray(best)
    if best.shape != (n, m) or best.dtype != bool or not best.any(axis=1).all():
        raise InvalidInput(f"best must be true or false for each of {n} states and {m} actions, and true once a state.")
    size, gamma = not_negative("size", size), probability("gamma", gamma)
    if wrong is not None and positive("wrong", wrong) < 1:
        raise InvalidInput(f"wrong must be at least 1, not {wrong!r}.")
    moves = grid.moves(mixed(best))
    ahead = np.linalg.inv(np.eye(n) - gamma * moves)
    leads = ((moves[:, None] - grid.transitions) @ ahead).reshape(n * m, n)  # of the mixture, over each action
    left_out = np.flatnonzero(~best.ravel())
    marks = np.eye(n)[left_out // m]  # whose lead it is
    none, one = np.zeros((len(left_out), n)), np.eye(n)
    # Unknowns: the reward, the least lead of each state, and the reward's size.
    rows = [np.hstack([-leads[left_out], marks, none])]
    rows += [np.hstack([sign * one, 0 * one, -one]) for sign in (1, -1)]
    if wrong is None:
        # The mixture is no worse than any action, so those that it is made of are alike.
        rows.append(np.hstack([-leads, np.zeros((n * m, 2 * n))]))
    else:
        rows.append(np.hstack([-wrong * leads[left_out], marks, none]))
    counts = ~best.all(axis=1)
    goal = np.concatenate([np.zeros(n), -counts.astype(np.float64), np.full(n, size)])
    open_ended = np.where(counts, np.inf, 0.0)
    low = np.concatenate([-np.ones(n), -open_ended, np.zeros(n)])
    high = np.concatenate([np.ones(n), open_ended, np.ones(n)])
    bounds = np.stack([low, high], axis=1)
    table = np.vstack(rows)
    found = linprog(goal, A_ub=table, b_ub=np.zeros(len(table)), bounds=bounds, method="highs")
    if not found.success:
        raise QuietqError(f"HiGHS found no reward for this policy ({found.status}).")
    return np.asarray(found.x[:n])


def apprenticeship(
    grid: Discretised, policy: np.ndarray, gamma: float, *, rounds: int = 30
) -> tuple[Float[np.ndarray, " n"], list[float]]:
    """Weights of hat functions for which a policy, the chances of actions at each state (n, m), is the best.

    Returns:
        Rewards at the grid's points, up to scale and shift: of those that were tried, the ones whose best policy came
        nearest to the released one. And by round how far that is from the mixture of those tried, which never grows.

    """
    n, m = grid.transitions.shape[:2]
    policy, gamma = np.asarray(policy, dtype=np.float64), probability("gamma", gamma)
    if policy.shape != (n, m) or not ((policy >= 0).all() and np.allclose(policy.sum(axis=1), 1)):
        raise InvalidInput(f"policy must give {m} probabilities for each of {n} states.")
    # Features are hat functions, so many a coordinate.
    features = grid.hats(min({1: 17, 2: 7}[grid.world.box.dimension], grid.points))
    goal = grid.visits(policy, gamma) @ features
    mixture = grid.visits(np.full((n, m), 1 / m), gamma) @ features
    margins: list[float] = []
    weights, nearest = np.zeros(features.shape[1]), np.inf
    for _ in range(count("rounds", rounds)):
        difference = goal - mixture
        margins.append(float(np.linalg.norm(difference)))
        if margins[-1] <= 1e-3 * margins[0]:  # nothing more to tell the released policy from the mixture by
            break
        unit = difference / margins[-1]
        values = grid.best_values(features @ unit, gamma)
        tried = grid.visits(mixed(best_actions(values)), gamma) @ features
        if (distance := float(np.linalg.norm(tried - goal))) < nearest:
            weights, nearest = unit, distance
        step = tried - mixture
        length = float(step @ step)
        if length <= 1e-24:
            break
        mixture = mixture + np.clip(step @ difference / length, 0, 1) * step
    return features @ weights, margins
