"""`reward` for rewards that need not be smooth: noise on each observed reward, then a model of the reward.

Theorem. n rewards, observed at states that random actions lead to, differ by at most radius sqrt(n) between neighbours
in the Euclidean norm: N(0, (radius sqrt(n)/mu)^2) on each, independently, is mu-GDP. The model is fitted to noised
rewards of known noise, so it is post-processing, and so is all training on it (docs/theory.md, section 4).
"""

import dataclasses
import math
import os
import warnings

import numpy as np
from jaxtyping import Float

from quietq.noise.allowance import FLOAT64
from quietq.noise.entropy import SeededEntropy, SystemEntropy
from quietq.noise.evaluation import coarse_type
from quietq.noise.rounding import round_release, rounding_in_words
from quietq.privacy.account import Account
from quietq.privacy.budget import Budget, weak_delta
from quietq.privacy.certificate import CHOSEN, Assumption, Certificate
from quietq.privacy.checks import count, instance
from quietq.privacy.cost import Cost
from quietq.privacy.errors import InvalidInput, PrivacyWarning
from quietq.privacy.once import accounted
from quietq.privacy.relations import SupBall
from quietq.rewards.knots import check_range
from quietq.rewards.model import FittedReward, RewardModel
from quietq.worlds.environment import Preference, world_reward
from quietq.worlds.world import World, flat

TOGETHER = 50
"""Episodes that are walked side by side."""


def observe(
    world: World,
    relation: SupBall,
    budget: Budget,
    *,
    low: float,
    high: float,
    rewards: int = 5000,
    reward: Preference | None = None,
    model: RewardModel | None = None,
    account: Account | None = None,
    simulate: int | None = None,
    seed: int | None = None,
) -> FittedReward:
    """A private model of a world's reward, from so many rewards that random actions meet; for one coordinate.

    `low` and `high` are the reward's public range, to which observed rewards are clipped. `seed` makes the walk
    repeatable, not the noise; `simulate` is a seed for the noise, for experiments: it protects nobody.

    >>> from quietq.worlds import WALK
    >>> fitted = observe(WALK, SupBall(0.01), Budget(0.9, 1e-4), low=0.0, high=0.5)
    >>> fitted.certificate.standing
    'certified'
    """
    instance("account", account, Account | None, "an Accountant or a source's account in a Ledger")
    instance("relation", relation, SupBall, "a SupBall; smooth rewards are better served by privatise")
    if budget.is_pure:
        raise InvalidInput("Noise on observed rewards is Gaussian, so delta must be above 0.")
    if world.box.dimension != 1:
        raise InvalidInput(f"A reward model has one coordinate, but this world has {world.box.dimension}.")
    model = RewardModel(low=low, high=high, domain=world.box) if model is None else model
    number = count("rewards", rewards)
    error = FLOAT64 * max(abs(low), abs(high))  # of each neighbour's rewards; nothing is amplified
    sensitivity = (relation.radius + 2 * error) * math.sqrt(number)
    sigma = sensitivity / budget.mu
    check_range(max(abs(low), abs(high)), sigma)  # of what is declared: a refusal must not depend on the rewards
    model.check_noise(sigma)
    states = _walk(world, number, int.from_bytes(os.urandom(8)) if seed is None else count("seed", seed, 0))
    failure = None
    try:
        given = (world_reward(world) if reward is None else reward)(flat(states))
        coarse = coarse_type(given)
        given = np.asarray(given, dtype=np.float64)
    except Exception as problem:  # its text may hold private values
        given, coarse, failure = np.empty(0), None, type(problem).__name__
    if failure is not None:
        raise InvalidInput(f"reward failed with {failure} on an array of {number} states; nothing was drawn or spent.")
    if coarse is not None:
        raise InvalidInput(
            f"reward must give float64, Python's numbers or integers, not {coarse}, whose rounding the noise would not "
            "hide: compute it in float64; nothing was drawn or spent."
        )
    if given.shape != (number,) or not np.isfinite(given).all():
        raise InvalidInput("reward must give one finite number for each state; nothing was drawn or spent.")
    observed = np.clip(given, low, high)
    certificate = _certificate(world, relation, budget, number, error, sigma, simulate, account)
    receipt = None
    if simulate is None:
        if sentence := weak_delta(budget.delta, relation.people):
            warnings.warn(sentence, PrivacyWarning, stacklevel=2)
        if account is not None:
            receipt = account.charge(Cost.gaussian(budget.mu), relation)
    entropy = SystemEntropy() if simulate is None else SeededEntropy(simulate)
    noised = round_release(observed, sigma * entropy.normals((number,)), sigma)
    fitted = model.fit(flat(states), noised, sigma)
    return dataclasses.replace(fitted, certificate=certificate).with_receipt(receipt)


def _walk(world: World, number: int, seed: int) -> Float[np.ndarray, "states d"]:
    """The states that uniformly random actions lead to: they depend on no reward."""
    rng, states = np.random.default_rng(seed), []
    here = world.start(rng.random((TOGETHER, world.draws)), np)
    for step in range(-(-number // TOGETHER)):
        if step and step % world.steps == 0:
            here = world.start(rng.random((TOGETHER, world.draws)), np)
        here, ended = world.move(
            here, rng.integers(world.actions, size=TOGETHER), rng.random((TOGETHER, world.draws)), np
        )
        states.append(here)
        here = np.where(ended[:, None], world.start(rng.random((TOGETHER, world.draws)), np), here)
    return np.concatenate(states)[:number]


def _certificate(
    world: World,
    relation: SupBall,
    budget: Budget,
    number: int,
    error: float,
    sigma: float,
    simulate: int | None,
    account: Account | None,
) -> Certificate:
    method = "reward/observed"
    if simulate is not None:
        remark = f"Simulates {budget}; drawn from a seed, so it protects nobody."
        return Certificate(method=method, standing="none", reproducible=True, sigma=sigma, remarks=(remark,))
    return Certificate(
        method=method,
        standing="certified",
        relation=relation.describe(),
        domain=list(zip(world.box.low, world.box.high, strict=True)),
        epsilon=budget.epsilon,
        delta=budget.delta,
        mu=budget.mu,
        sigma=sigma,
        sensitivity=(relation.radius + 2 * error) * math.sqrt(number),
        norm={"kind": "rewards", "count": number, "operations": 0},
        assumptions=(
            Assumption(f"Neighbouring inputs are {relation}.", False),
            CHOSEN,
            Assumption(f"{number} rewards were observed, under random actions, and each was noised once.", True),
            Assumption("Noise was drawn in float64 from the operating system's generator.", True),
            Assumption(rounding_in_words(sigma, error=error), False),
            accounted(account),
        ),
    )
