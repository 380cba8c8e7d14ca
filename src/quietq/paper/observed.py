"""`reward` for rewards that need not be smooth: noise on each observed reward, then a smooth reward fitted to them.

Theorem. n rewards, observed at states that random actions lead to, differ by at most radius sqrt(n) between neighbours
in the Euclidean norm: N(0, (radius sqrt(n)/mu)^2) on each, independently, is mu-GDP. The reward is fitted to noised
rewards of known noise, so it is post-processing, and so is all training on it (docs/theory.md#observed-rewards).

The fit is Bayesian regression: the reward is piecewise linear between equally spaced knots, and the knots' values are a
Gaussian process a priori, with the middle of the reward's public range as mean.

`privatise_world` makes the reward of one of quietq's worlds private, with the noise that fits what must stay hidden.
"""

import math
import os
import warnings
from collections.abc import Generator

import numpy as np
from jaxtyping import Float

from quietq.feedback.own_function import OwnFunction
from quietq.mechanisms import privatise
from quietq.mechanisms.release import Mechanism, Query, release, simulate as simulate_release
from quietq.noise.box import Box
from quietq.noise.laws import Gaussian
from quietq.noise.rounding import FLOAT64, check_values, values_at
from quietq.privacy import (
    Account,
    Budget,
    Certificate,
    Code,
    InvalidInput,
    PrivacyWarning,
    Relation,
    SupBall,
    cap_any_dp,
    cap_gdp,
    people_needed,
    steps_between,
    weak_promise,
)
from quietq.privacy.checks import count, ends, instance
from quietq.privacy.norms import ObservedRewards
from quietq.released.private_function import PrivateFunction, PrivateKnots
from quietq.worlds.environment import RewardFunction
from quietq.worlds.world import World, flat

KNOTS = 13  # 9 to 17 do
EPISODES_AT_ONCE = 50


def prior_covariance(low: float, high: float) -> Float[np.ndarray, "knots knots"]:
    """A squared-exponential covariance of the knots' values, whose deviation is half the public range's width."""
    places = np.linspace(0, 1, KNOTS)
    # The prior's length scale is 0.2 of the box's width, which was robust in the experiments of docs/theory.md.
    far = np.abs(np.subtract.outer(places, places)) / 0.2
    return ((high - low) / 2) ** 2 * np.exp(-(far**2) / 2)


def fit_knots(
    box: Box, states: np.ndarray, rewards: np.ndarray, sigma: float, low: float, high: float
) -> Float[np.ndarray, " knots"]:
    """The posterior mean of the knots' values, given rewards with independent noise of deviation `sigma`."""
    # Each state lies between two knots, and sees each of them by its hat function.
    position = box.to_unit(states) * (KNOTS - 1)
    left = np.minimum(position, KNOTS - 2).astype(np.int64)
    share = position - left

    def by_knot(values: np.ndarray) -> Float[np.ndarray, " knots"]:
        return np.bincount(left, weights=values, minlength=KNOTS)

    def by_right_knot(values: np.ndarray) -> Float[np.ndarray, " knots"]:
        return np.bincount(left + 1, weights=values, minlength=KNOTS)

    # With hats H: information is H'H/sigma^2, a matrix of three diagonals, and sums are H'(rewards - mean)/sigma^2.
    middle = (low + high) / 2
    precision = np.full(len(states), 1.0 / sigma**2)
    residual = precision * (rewards - middle)
    sums = by_knot(residual * (1 - share)) + by_right_knot(residual * share)
    diagonal = by_knot(precision * (1 - share) ** 2) + by_right_knot(precision * share**2)
    beside = by_knot(precision * share * (1 - share))[:-1]
    information = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    # With the prior covariance as R R', the posterior's is R (I + R'AR)^-1 R': the prior is never inverted, because a
    # smooth one is nearly singular.
    scales, directions = np.linalg.eigh(prior_covariance(low, high))
    root = directions * np.sqrt(np.maximum(scales, 0.0))
    inner = np.eye(KNOTS) + root.T @ information @ root
    return middle + root @ np.linalg.solve(inner, root.T @ sums)


class Observed(Mechanism):
    """Noises rewards at public states of one coordinate, each once, and fits a reward to them."""

    name, asks_code = "observed", False

    def __init__(
        self, relation: SupBall, budget: Budget, states: np.ndarray, box: Box, low: float, high: float
    ) -> None:
        self.low, self.high = ends(low, high)
        self.relation, self.budget, self.box, self.states = relation, budget, box, states
        self.largest = max(abs(low), abs(high))
        self.error = FLOAT64 * self.largest  # of each neighbour's rewards; nothing is amplified
        self.sensitivity = (relation.radius + 2 * self.error) * math.sqrt(len(states))
        self.sigma = self.sensitivity / budget.mu
        self.conditions = (Code.REWARDS_NOISED_ONCE(len(states)), Code.RANDOM_ACTIONS())

    def run(self) -> Generator[Query, np.ndarray, np.ndarray]:
        norm = ObservedRewards(len(self.states), 0)
        return (yield Query(self._rewards, self.sensitivity, Gaussian(self.sigma, norm)))

    def _rewards(self, feedback: OwnFunction) -> Float[np.ndarray, " rewards"]:
        values = values_at(feedback.functions()[0], self.states)
        if values.ndim != 1:
            raise InvalidInput("reward must give one number for each state; nothing was drawn or spent.")
        check_values(values, math.inf)
        return np.clip(values, self.low, self.high)

    def result(self, released: np.ndarray, certificate: Certificate) -> PrivateKnots:
        values = fit_knots(self.box, self.states, released, self.sigma, self.low, self.high)
        return PrivateKnots(values, self.box, certificate)


def observe(
    world: World,
    relation: SupBall,
    budget: Budget,
    *,
    low: float,
    high: float,
    rewards: int = 5000,
    reward: RewardFunction | None = None,
    account: Account | None = None,
    simulate: int | None = None,
    seed: int | None = None,
) -> PrivateKnots:
    """Releases a private reward of a world of one coordinate, from this number of rewards that random actions meet.

    `low` and `high` are the reward's public range, to which observed rewards are clipped. `seed` makes the walk
    repeatable, not the noise; `simulate` is a seed for the noise, for experiments: it protects nobody.
    """
    instance("account", account, Account | None, "an Accountant or a source's account in a Ledger")
    instance("relation", relation, SupBall, "a SupBall; smooth rewards are better served by privatise")
    if budget.is_pure:
        raise InvalidInput("Noise on observed rewards is Gaussian, so delta must be above 0.")
    _require_one_coordinate(world)
    walk = int.from_bytes(os.urandom(8)) if seed is None else count("seed", seed, 0)
    states = flat(_walk(world, count("rewards", rewards), walk))
    mechanism = Observed(relation, budget, states, world.box, low, high)
    feedback = OwnFunction(world.reward_at if reward is None else reward, relation)
    if simulate is not None:
        return simulate_release(mechanism, feedback, simulate)
    if sentence := weak_promise(budget, relation.people):
        warnings.warn(sentence, PrivacyWarning, stacklevel=2)
    return release(mechanism, feedback, account)


def _require_one_coordinate(world: World) -> None:
    if world.box.dimension != 1:
        raise InvalidInput(f"A reward is fitted in one coordinate, but this world has {world.box.dimension}.")


def _walk(world: World, number: int, seed: int) -> Float[np.ndarray, "states d"]:
    """The states that uniformly random actions lead to: they depend on no reward."""
    rng, states = np.random.default_rng(seed), []
    here = world.start(rng.random((EPISODES_AT_ONCE, world.draws)), np)
    for step in range(-(-number // EPISODES_AT_ONCE)):
        if step and step % world.steps == 0:
            here = world.start(rng.random((EPISODES_AT_ONCE, world.draws)), np)
        actions = rng.integers(world.actions, size=EPISODES_AT_ONCE)
        here, ended = world.move(here, actions, rng.random((EPISODES_AT_ONCE, world.draws)), np)
        states.append(here)
        here = np.where(ended[:, None], world.start(rng.random((EPISODES_AT_ONCE, world.draws)), np), here)
    return np.concatenate(states)[:number]


def observed_mechanism(world: World, relation: SupBall, budget: Budget, rewards: int = 5000) -> Observed:
    """The mechanism of `observe` for a world of one coordinate, at equally spaced states; audits attack it."""
    _require_one_coordinate(world)
    states = np.linspace(world.box.low[0], world.box.high[0], count("rewards", rewards))
    true = np.asarray(world.mean_reward()(states))
    low, high = float(true.min()) - relation.radius, float(true.max()) + relation.radius
    return Observed(relation, budget, states, world.box, low, high)


def privatise_world(
    world: World,
    relation: Relation,
    budget: Budget,
    *,
    noise: str | None = None,
    pieces: int | None = None,
    rewards: int | None = None,
    seed: int | None = None,
    simulate: int | None = None,
    account: Account | None = None,
) -> PrivateFunction:
    """The world's preference made private: as a function, or for a SupBall from a number of noised `rewards`.

    The noise is by default what "auto" takes. `seed` makes the walk to the rewards repeatable, not the noise;
    `simulate` is a seed for the noise, which then protects nobody.
    """
    if isinstance(relation, SupBall):
        return observe(
            world,
            relation,
            budget,
            low=0.0,
            high=range_of_one(world),
            rewards=rewards or 5000,
            simulate=simulate,
            seed=seed,
            account=account,
        )
    return privatise(
        world.mean_reward(),
        budget,
        noise=noise or "auto",
        pieces=pieces,
        relation=relation,
        domain=world.box,
        simulate=simulate,
        account=account,
    )


def range_of_one(world: World) -> float:
    """The width of the range that one person's reward lies in."""
    return world.relation(1).radius  # pyright: ignore[reportAttributeAccessIssue]


def out_of_reach(world: World, radius: float, budget: Budget, gaussian: bool, hoped: float = 0.9) -> str | None:
    """A sentence if the score that one hopes for is out of reach of any algorithm with this promise.

    >>> from quietq.worlds import WALK
    >>> out_of_reach(WALK, 0.01, Budget(0.9, 1e-4), gaussian=True) is None
    True
    """
    width = range_of_one(world)
    steps = steps_between(width, radius)
    cap = cap_gdp(budget.mu, steps) if gaussian else cap_any_dp(budget, steps)
    if cap >= hoped:
        return None
    people = people_needed(hoped, budget, distance=width, width=width, gaussian=gaussian)
    return (
        f"no algorithm with this promise can score above {cap:.2f} both for a preference and for its opposite (0 is "
        f"the worst policy, 1 the best); {hoped:g} takes at least {people} people, a radius of at most "
        f"{width / people:.3g}."
    )
