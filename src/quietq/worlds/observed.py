"""`reward` for rewards that need not be smooth: noise on each observed reward, then a model of the reward.

Theorem. n rewards, observed at states that random actions lead to, differ by at most radius sqrt(n) between neighbours
in the Euclidean norm: N(0, (radius sqrt(n)/mu)^2) on each, independently, is mu-GDP. The model is fitted to noised
rewards of known noise, so it is post-processing, and so is all training on it (docs/theory.md, section 4).
"""

import dataclasses
import math
import os
import warnings
from collections.abc import Generator
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.feedback.own_function import OwnFunction
from quietq.mechanisms.laws import Gaussian
from quietq.mechanisms.mechanism import Mechanism, Query
from quietq.mechanisms.model import FittedReward, RewardModel
from quietq.mechanisms.release import release, simulate as simulate_release
from quietq.mechanisms.weights import Independent
from quietq.noise.allowance import FLOAT64
from quietq.noise.evaluation import values_at
from quietq.noise.rounding import check_values
from quietq.privacy.account import Account
from quietq.privacy.budget import Budget, weak_delta
from quietq.privacy.certificate import Assumption, Certificate
from quietq.privacy.checks import count, instance
from quietq.privacy.errors import InvalidInput, PrivacyWarning
from quietq.privacy.relations import SupBall
from quietq.worlds.environment import RewardFunction
from quietq.worlds.world import World, flat

TOGETHER = 50
"""Episodes that are walked side by side."""


class Observed(Mechanism):
    """Rewards at public states, each noised, and a model fitted to them."""

    name = "observed"

    def __init__(
        self, relation: SupBall, budget: Budget, states: np.ndarray, model: RewardModel, low: float, high: float
    ) -> None:
        self.relation, self.budget, self.box = relation, budget, model.box
        self._states, self._model, self._range = states, model, (low, high)
        self.largest = max(abs(low), abs(high))
        self.error = FLOAT64 * self.largest  # of each neighbour's rewards; nothing is amplified
        self.sensitivity = (relation.radius + 2 * self.error) * math.sqrt(len(states))
        self.sigma = self.sensitivity / budget.mu
        model.check_noise(self.sigma)
        observed = f"{len(states)} rewards were observed, under random actions, and each was noised once."
        self.conditions = (Assumption(observed, True),)

    def run(self) -> Generator[Query, np.ndarray, np.ndarray]:
        norm = {"kind": "rewards", "count": len(self._states), "operations": 0}
        return (yield Query(self._rewards, self.sensitivity, Gaussian(self.sigma, Independent(norm))))

    def _rewards(self, feedback: Any) -> Float[np.ndarray, " rewards"]:
        values = values_at(feedback.functions()[0], self._states)
        if values.ndim != 1:
            raise InvalidInput("reward must give one number for each state; nothing was drawn or spent.")
        check_values(values, math.inf)
        return np.clip(values, *self._range)

    def result(self, released: np.ndarray, certificate: Certificate) -> FittedReward:
        return dataclasses.replace(self._model.fit(self._states, released, self.sigma), certificate=certificate)


def observe(
    world: World,
    relation: SupBall,
    budget: Budget,
    *,
    low: float,
    high: float,
    rewards: int = 5000,
    reward: RewardFunction | None = None,
    model: RewardModel | None = None,
    account: Account | None = None,
    simulate: int | None = None,
    seed: int | None = None,
) -> FittedReward:
    """A private model of a world's reward, from so many rewards that random actions meet; for one coordinate.

    `low` and `high` are the reward's public range, to which observed rewards are clipped. `seed` makes the walk
    repeatable, not the noise; `simulate` is a seed for the noise, for experiments: it protects nobody.
    """
    instance("account", account, Account | None, "an Accountant or a source's account in a Ledger")
    instance("relation", relation, SupBall, "a SupBall; smooth rewards are better served by privatise")
    if budget.is_pure:
        raise InvalidInput("Noise on observed rewards is Gaussian, so delta must be above 0.")
    if world.box.dimension != 1:
        raise InvalidInput(f"A reward model has one coordinate, but this world has {world.box.dimension}.")
    walk = int.from_bytes(os.urandom(8)) if seed is None else count("seed", seed, 0)
    states = flat(_walk(world, count("rewards", rewards), walk))
    model = RewardModel(low=low, high=high, domain=world.box) if model is None else model
    mechanism = Observed(relation, budget, states, model, low, high)
    feedback = OwnFunction(world.reward_at if reward is None else reward, relation)
    if simulate is not None:
        return simulate_release(mechanism, feedback, simulate)
    if sentence := weak_delta(budget.delta, relation.people):
        warnings.warn(sentence, PrivacyWarning, stacklevel=2)
    return release(mechanism, feedback, account)


def _walk(world: World, number: int, seed: int) -> Float[np.ndarray, "states d"]:
    """The states that uniformly random actions lead to: they depend on no reward."""
    rng, states = np.random.default_rng(seed), []
    here = world.start(rng.random((TOGETHER, world.draws)), np)
    for step in range(-(-number // TOGETHER)):
        if step and step % world.steps == 0:
            here = world.start(rng.random((TOGETHER, world.draws)), np)
        actions = rng.integers(world.actions, size=TOGETHER)
        here, ended = world.move(here, actions, rng.random((TOGETHER, world.draws)), np)
        states.append(here)
        here = np.where(ended[:, None], world.start(rng.random((TOGETHER, world.draws)), np), here)
    return np.concatenate(states)[:number]
