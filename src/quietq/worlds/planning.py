"""Policies that are planned, and the returns of policies.

- In a known world: backward induction on a grid (`plan_on_grid`). A plan for the true reward looks at it and is for the
  operator; a plan for a released reward is post-processing, and can be published under that reward's certificate.
- In a private world: the best linear policy that the cross-entropy method finds (`plan_linear`). It costs nothing but
  time, and answers whether a world is any good before anybody trains a network in it.
- Returns: in any world by Monte Carlo over many episodes at once, and exactly in the walk. There the expectation over a
  uniform move is an integral of the value function, taken in closed form of its piecewise linear interpolant on a grid,
  with the mass that is clipped at the ends. So there is no sampling error, and an error of second order in the grid's
  step where values are continuous, of first order where a policy makes them jump.

Whatever is computed here from the true reward looks at it: it is for the operator, and no part of a private release.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from quietq.feedback.spaces import Spaces
from quietq.noise import Box
from quietq.privacy import Certificate, InvalidInput
from quietq.privacy.account import Issued
from quietq.privacy.assumptions import Code
from quietq.privacy.checks import count
from quietq.released.private_network import PrivateNetwork, PrivatePolicy, corners, interpolate
from quietq.released.private_world import PrivateWorld
from quietq.released.publishable import UNNAMED, Labels, Publishable, hash_of
from quietq.worlds.environment import RewardFunction, rewards_at
from quietq.worlds.private_env import ENSEMBLE, Simulator
from quietq.worlds.walk import WALK, walk_reward
from quietq.worlds.world import World, chances_of

Policy = Callable[[np.ndarray], np.ndarray]
"""Actions, shape (points,), or their probabilities, (points, actions), as a function of states (points, d)."""

MOST_ON_A_GRID = 2
"""Dimensions in which backward induction on a grid is affordable."""


# Planning in known worlds


@dataclass(frozen=True, eq=False, repr=False)
class GridPlan(Issued):
    """What is best for some reward, by the step (`at`), and as one policy for every step (call it)."""

    box: Box
    values: Float[np.ndarray, "steps actions points"]
    """The values of each action, first step first, at the grid's points."""
    cells: int
    certificate: Certificate | None = None
    """The certificate of the released reward that was planned for, if it was one."""
    labels: Labels = UNNAMED
    """The names of the reward's coordinates and of the world's actions."""

    def at(self, step: int, states: np.ndarray) -> Int[np.ndarray, " points"]:
        """Returns the best actions at states (points, d), with `step` steps behind."""
        return interpolate(self.values[step], self.cells + 1, _in_unit(self.box, states)).argmax(axis=1)

    def __call__(self, states: np.ndarray) -> Int[np.ndarray, " points"]:
        """The stationary policy: at every step what is best with the whole episode to go."""
        return self.at(0, states)

    def as_function(self) -> PrivateNetwork:
        """Returns what can be published: values of all actions with the whole episode to go, linear between points."""
        if self.certificate is None:
            raise InvalidInput(
                "This plan is for a reward that has no certificate: plan for a private one to publish it."
            )
        weights = (self.values[0][None],)
        network = PrivateNetwork(
            "splines", self.cells + 1, weights, (), "values", self.box, self.certificate, labels=self.labels
        )
        return network.issued() if self.is_as_issued() else network

    def fingerprint(self) -> str | None:
        return None if self.certificate is None else hash_of(self.certificate.to_json(), {"values": self.values})


def plan_on_grid(world: World, reward: RewardFunction | None = None, cells: int | None = None) -> GridPlan:
    """Computes the best policy for a reward, in one or two dimensions.

    Values are interpolated linearly between the grid's points, chance is integrated by the midpoint rule, and rewards
    after a step are exact at its nodes.

    Args:
        world: The world.
        reward: The reward; by default the world's own.
        cells: Cells of the grid for each coordinate.

    """
    box = world.box
    if box.dimension > MOST_ON_A_GRID or world.draws > MOST_ON_A_GRID:
        raise InvalidInput(
            f"A grid is for at most {MOST_ON_A_GRID} dimensions and as many draws, but the {world.name} has "
            f"{box.dimension} and {world.draws}."
        )
    reward = world.reward_at if reward is None else reward
    cells = {1: 512, 2: 40}[box.dimension] if cells is None else count("cells", cells)
    axis = np.linspace(0, 1, cells + 1)
    mesh = np.meshgrid(*[axis] * box.dimension, indexing="ij")
    states = np.stack(mesh, axis=-1).reshape(-1, box.dimension) * box.width + box.low
    gains, moves = zip(*(after(world, reward, cells, states, action) for action in range(world.actions)), strict=True)
    value, rows = np.zeros(len(states)), []
    for _ in range(world.steps):
        rows.append(np.stack([gain + move @ value for gain, move in zip(gains, moves, strict=True)]))
        value = rows[-1].max(axis=0)
    released = reward if isinstance(reward, Publishable) else None
    labels = Labels(() if released is None else released.labels.states, world.action_names)
    certificate = None if released is None else released.certificate
    plan = GridPlan(box, np.stack(rows[::-1]), cells, certificate, labels)
    return plan.issued() if released is not None and released.is_as_issued() else plan


def after(
    world: World, reward: RewardFunction, cells: int, states: np.ndarray, action: int
) -> tuple[Float[np.ndarray, " points"], Any]:
    from scipy.sparse import csr_matrix  # slow to import

    nodes = {1: 64, 2: 12}[world.draws]  # of the midpoint rule, for each uniform draw
    middles = (np.arange(nodes) + 0.5) / nodes
    draws = np.stack(np.meshgrid(*[middles] * world.draws, indexing="ij"), axis=-1).reshape(-1, 1, world.draws)
    moved, ended = world.move(states, np.asarray(action), draws, np)  # (nodes, points, d)
    points = moved.reshape(-1, moved.shape[-1])
    gain = rewards_at(moved, reward).mean(axis=0)
    knots, shares = corners_of(world.box, cells, points)
    weights = shares * ~np.broadcast_to(ended, moved.shape[:-1]).reshape(-1, 1) / len(draws)
    rows = np.repeat(np.tile(np.arange(len(states)), len(draws)), knots.shape[1])
    return gain, csr_matrix((weights.ravel(), (rows, knots.ravel())), shape=(len(states),) * 2)


def corners_of(
    box: Box, cells: int, states: np.ndarray
) -> tuple[Int[np.ndarray, "points corners"], Float[np.ndarray, "points corners"]]:
    """The grid points around each state, and their shares in a linear interpolation."""
    knots, shares = zip(*corners(cells + 1, _in_unit(box, states)), strict=True)
    return np.stack(knots, axis=-1), np.stack(shares, axis=-1)


def _in_unit(box: Box, states: np.ndarray) -> Float[np.ndarray, "points d"]:
    return np.clip((states - box.low) / box.width, 0, 1)


# Returns


EPISODES = 2000
"""Episodes that a mean return is taken over, by default."""
WalkPolicy = Callable[[np.ndarray], np.ndarray] | np.ndarray
"""Actions 0 and 1, shape (points,), or their probabilities, (points, 2), as a function of states or on the grid; an
array may have an axis in front for the step, first step first."""
CELLS = 2048
"""Cells of the grid on which returns in the walk are computed, by default."""


def episode_returns(
    world: World, policy: Policy, reward: RewardFunction | None = None, episodes: int = EPISODES, seed: int = 0
) -> Float[np.ndarray, " episodes"]:
    """Plays episodes, and returns the sum of rewards of each; under the true reward it is not private.

    A `GridPlan` is followed by the step. The same seed gives every deterministic policy the same chance, so that two of
    them can be compared with little noise.

    Args:
        world: The world.
        policy: A function of states.
        reward: By default the true reward.
        episodes: The number of episodes.
        seed: Of the world's chance.

    """
    reward = world.reward_at if reward is None else reward
    rng, shape = np.random.default_rng(seed), (count("episodes", episodes), world.draws)
    states, total, here = world.start(rng.random(shape), np), np.zeros(episodes), np.ones(episodes, dtype=bool)
    choices = np.random.default_rng((seed, 1))  # of their own, so that they do not disturb the world's
    for step in range(world.steps):
        given = policy.at(step, states) if isinstance(policy, GridPlan) else policy(states)
        passed = chances_of(given, episodes, world.actions).cumsum(axis=-1)[:, :-1] <= choices.random(episodes)[:, None]
        states, ended = world.move(states, passed.sum(axis=-1), rng.random(shape), np)
        total += here * rewards_at(states, reward)
        here &= ~ended
    return total


def mean_return(
    world: World, policy: Policy, reward: RewardFunction | None = None, episodes: int = EPISODES, seed: int = 0
) -> float:
    """Computes the mean of `episode_returns`; under the true reward it is not private, and for the operator only.

    Args:
        world: The world.
        policy: A function of states.
        reward: By default the true reward.
        episodes: The number of episodes.
        seed: Of the world's chance.

    """
    return float(episode_returns(world, policy, reward, episodes, seed).mean())


def uniform_policy(world: World) -> Policy:
    """Makes the policy whose actions are uniformly random.

    Args:
        world: The world.

    """
    return lambda states: np.full((len(states), world.actions), 1 / world.actions)


@functools.cache
def reference(world: World) -> tuple[float, float]:
    """The returns that others are measured by: of random actions and of the best plan known; not private.

    Args:
        world: The world; in the walk both are exact, elsewhere means over episodes.

    """
    if world == WALK:
        return random_return(), best_return()
    return mean_return(world, uniform_policy(world)), mean_return(world, plan_on_grid(world))


def normalise(world: World, returned: float) -> float:
    """Scales a return under the true reward, so that uniformly random actions have 0 and the best known policy 1; not
    private.

    Args:
        world: The world.
        returned: The return.

    """
    random, best = reference(world)
    if best - random <= 1e-9 * max(abs(best), abs(random)):
        raise InvalidInput(f"In this {world.name} all policies are alike, so there is nothing to score.")
    return (returned - random) / (best - random)


def plan(reward: RewardFunction, cells: int = CELLS) -> Int[np.ndarray, "steps points"]:
    """Computes the best action of the walk for a reward, at each step, first step first, and each point of the grid.

    The reward may be a private one, and the plan scored under the true one.

    Args:
        reward: A function of many states.
        cells: The number of cells of the grid.

    """
    rows: list[np.ndarray] = []

    def choose(_: int, q: np.ndarray) -> np.ndarray:
        rows.append((q[1] > q[0]).astype(np.int64))
        return q.max(axis=0)

    _backward(reward, cells, choose)
    return np.stack(rows[::-1])


def best_return(reward: RewardFunction = walk_reward, cells: int = CELLS) -> float:
    """Computes the largest expected sum of rewards of an episode of the walk that any policy reaches, from a uniform
    start.

    Args:
        reward: A function of many states; by default the paper's.
        cells: The number of cells of the grid.

    """
    return _backward(reward, cells, lambda _, q: q.max(axis=0))


def worst_return(reward: RewardFunction = walk_reward, cells: int = CELLS) -> float:
    """Computes the least expected sum of rewards of an episode of the walk, from a uniform start.

    Args:
        reward: A function of many states; by default the paper's.
        cells: The number of cells of the grid.

    """
    return _backward(reward, cells, lambda _, q: q.min(axis=0))


def random_return(reward: RewardFunction = walk_reward, cells: int = CELLS) -> float:
    """Computes the expected sum of rewards of an episode of the walk under random actions, from a uniform start.

    Args:
        reward: A function of many states; by default the paper's.
        cells: The number of cells of the grid.

    """
    return _backward(reward, cells, lambda _, q: q.mean(axis=0))


def policy_return(policy: WalkPolicy, reward: RewardFunction = walk_reward, cells: int = CELLS) -> float:
    """Computes the expected sum of rewards of an episode of the walk under a policy, from a uniform start.

    A Stable-Baselines3 agent is `lambda states: agent.predict(states[:, None].astype("float32"))[0]`.

    Args:
        policy: A function of states, or an array on the grid of `cells` + 1 points.
        reward: A function of many states; by default the paper's.
        cells: The number of cells of the grid.

    """
    states = _grid(cells)
    chances = chances_of(policy(states) if callable(policy) else policy, len(states), WALK.actions, WALK.steps)
    by_step = np.broadcast_to(chances, (WALK.steps, *chances.shape[-2:]))
    return _backward(reward, cells, lambda step, q: (by_step[step] * q.T).sum(axis=-1))


def score(policy: WalkPolicy, reward: RewardFunction = walk_reward, cells: int = CELLS) -> float:
    """Scales a policy's return so that the worst policy has 0 and the best 1.

    Args:
        policy: A function of states, or an array on the grid of `cells` + 1 points.
        reward: A function of many states; by default the paper's.
        cells: The number of cells of the grid.

    """
    worst, best = worst_return(reward, cells), best_return(reward, cells)
    if best - worst <= 1e-9 * max(abs(best), abs(worst)):
        raise InvalidInput("Under this reward all policies are alike, so there is nothing to score.")
    return (policy_return(policy, reward, cells) - worst) / (best - worst)


def _grid(cells: int) -> Float[np.ndarray, "points"]:
    if count("cells", cells, 4) % 4:
        raise InvalidInput(f"cells must be a multiple of 4, so that the longest move ends on the grid, not {cells}.")
    return np.linspace(0, 1, cells + 1)


def _backward(reward: RewardFunction, cells: int, choose: Callable[[int, np.ndarray], np.ndarray]) -> float:
    """Backward induction; `choose` makes the value at a step of the two actions' values, shape (2, points)."""
    states = _grid(cells)
    rewards, value = rewards_at(states[:, None], reward), np.zeros(len(states))
    for step in reversed(range(WALK.steps)):
        value = choose(step, _after_move(rewards + value))
    return float(np.trapezoid(value, dx=1 / cells))


def _after_move(values: np.ndarray) -> Float[np.ndarray, "2 points"]:
    """The mean of `values` after a move to the left and to the right, from each grid point."""
    cells = len(values) - 1
    reach = round(cells * WALK.reach)
    area = np.concatenate([[0.0], np.cumsum((values[1:] + values[:-1]) / 2)])
    here = np.arange(cells + 1)
    right, left = np.minimum(here + reach, cells), np.maximum(here - reach, 0)
    to_right = area[right] - area + (here + reach - right) * values[-1]
    to_left = area - area[left] + (left - here + reach) * values[0]
    return np.stack([to_left, to_right]) / reach


# Planning in private worlds


FIRST_SPREADS = (2.0, 0.5, 0.1)
"""How large the weights of the first candidates are, by turns."""
MOST_DEVIATIONS = 10.0
"""A linear policy clips states to this number of standard deviations from their mean."""


def linear_policy(world: PrivateWorld, weights: Float[np.ndarray, "inputs outputs"]) -> PrivatePolicy:
    """Makes a policy of one layer, in the units of states and actions, with the promise of the world that it is for.

    Args:
        world: The private world.
        weights: As `linear_actions` has them; the first listed action scores 0.

    """
    spaces, (middle, deviation) = world.spaces, world.typical()
    low, width = np.array(spaces.box.low), np.array(spaces.box.width)
    layer, biases = weights[1:].T, weights[0]
    acting, ends = spaces.action_box, None
    if acting is None:
        others = (spaces.actions or 1) - 1
        layer = np.concatenate([np.zeros((1, len(low))), layer[:others]])
        biases = np.concatenate([np.zeros(1), biases[:others]])
    else:  # -1 and 1 are the ends of an action's range
        ends = np.array([acting.low, acting.high])
        half = (ends[1] - ends[0]) / 2
        layer, biases = half[:, None] * layer, ends[0] + half * (1 + biases)
    policy = PrivatePolicy(
        "tanh",
        "values" if acting is None else "clipped",
        (layer,),
        (biases,),
        spaces.box,
        world.certificate.with_assumption(Code.TRAINED()),
        ends,
        np.stack([low + middle * width, deviation * width]),
        MOST_DEVIATIONS,
        made_in=world,
        labels=world.labels,
    )
    return policy.issued() if world.is_as_issued() else policy


def linear_actions(
    spaces: Spaces,
    weights: Float[np.ndarray, "*#copies inputs outputs"],
    middle: Float[np.ndarray, " states"],
    deviation: Float[np.ndarray, " states"],
    states: Float[np.ndarray, "*#copies states"],
) -> np.ndarray:
    """Returns actions as a Simulator takes them: the best of a list, or numbers that are clipped to their ranges.

    Args:
        spaces: Where states and actions lie.
        weights: Weights of a constant, and of each coordinate in standard deviations from the states' mean.
        middle: The states' mean, in the unit box.
        deviation: Their standard deviations.
        states: States of the unit box.

    """
    seen = np.clip((states - middle) / deviation, -MOST_DEVIATIONS, MOST_DEVIATIONS)
    inputs = np.concatenate([np.ones((*seen.shape[:-1], 1)), seen], axis=-1)
    scores = (inputs[..., None, :] @ weights)[..., 0, :]
    if spaces.actions is None:
        return np.clip((scores + 1) / 2, 0.0, 1.0)
    others = scores[..., : spaces.actions - 1]  # none, if there is one action only
    return np.concatenate([np.zeros_like(scores[..., :1]), others], axis=-1).argmax(axis=-1)


def policy_shape(spaces: Spaces) -> tuple[int, int]:
    """Returns the shape of the weights of one policy."""
    return 1 + spaces.states, spaces.numbers if spaces.actions is None else max(spaces.actions - 1, 1)


def play(
    simulator: Simulator,
    acts: Policy,
    first: np.ndarray,
    steps: int,
    rng: np.random.Generator,
    weights: np.ndarray | None = None,
    alike: int = 1,
) -> Float[np.ndarray, " copies"]:
    """The return of each copy, in expectation over ends; `alike` copies in a row meet with the same chance."""
    states, alive, returns = first, np.ones(len(first)), np.zeros(len(first))
    for left in range(steps - 1, -1, -1):
        draws = np.repeat(rng.random((len(first) // alike, simulator.draws)), alike, axis=0)
        found = simulator.step(states, acts(states), draws, weights=weights)
        lost = np.where(found.halted, (1 - found.ends) * simulator.halt_penalty * left, 0.0)
        returns += alive * (simulator.worth(found.rewards, found.ends) - lost)
        alive, states = alive * (1 - found.ends) * ~found.halted, found.states
        if alive.max() < 1e-3:
            break
    return returns


def plan_linear(
    world: PrivateWorld,
    *,
    steps: int = 300,
    iterations: int = 15,
    candidates: int = 100,
    episodes: int = ENSEMBLE,
    ensemble: bool = True,
    seed: int = 0,
    **options: object,
) -> PrivatePolicy:
    """Searches for the best linear policy in a private world, by the cross-entropy method; it is post-processing, and
    costs nothing.

    Args:
        world: The private world.
        steps: The length of an episode.
        iterations: Iterations of the search.
        candidates: Policies that are tried in each iteration.
        episodes: Episodes that each is scored by.
        ensemble: Whether each episode runs in a world that is plausible given the noise, rather than in the released
            one.
        seed: Makes the search repeatable.
        options: Further options of `world.env`.

    """
    simulator, rng = Simulator(world, **options), np.random.default_rng(count("seed", seed, 0))  # type: ignore[arg-type]
    spaces = world.spaces
    middle, deviation = world.typical()
    shape = policy_shape(spaces)
    nothing = np.zeros(shape)
    if spaces.action_box is not None:
        nothing[0] = 2 * spaces.action_box.to_unit(np.clip(0.0, spaces.action_box.low, spaces.action_box.high)) - 1

    def best_first(tried: np.ndarray, episodes: int) -> np.ndarray:
        tiled, alike = np.tile(tried, (episodes, 1, 1)), len(tried)
        acts = functools.partial(linear_actions, spaces, tiled, middle, deviation)
        first = np.repeat(simulator.start(rng.random((episodes, simulator.draws))), alike, axis=0)
        weights = np.repeat(world.plausible(episodes, rng), alike, axis=0) if ensemble else None
        returns = play(simulator, acts, first, steps, rng, weights, alike)
        return tried[np.argsort(-returns.reshape(episodes, alike).mean(axis=0), kind="stable")]

    # The first candidates are doing nothing, and weights of several sizes: large ones switch, small ones hold back.
    spread = np.resize(FIRST_SPREADS, candidates)[:, None, None] * np.ones(shape)
    spread[0] = 0.0
    centre, last, memory, compared = nothing, [nothing], 0.2, 5
    for left in range(iterations - 1, -1, -1):
        # One in eight candidates is kept, and the next ones scatter around the mean of these.
        best = best_first(centre + spread * rng.standard_normal((candidates, *shape)), episodes)[: candidates // 8]
        centre, spread = memory * centre + (1 - memory) * best.mean(axis=0), best.std(axis=0) + 0.02
        if left < compared:
            last += [centre, *best[:3]]
    # Doing nothing, centres and best few of the last iterations are compared once more, on fresh episodes.
    return linear_policy(world, best_first(np.array(last), episodes * compared)[0])
