"""The frozen-noise check of rewards that are noised as numbers: weights of features, and observed rewards.

As for smooth rewards, the real release runs twice with the noise of one seed; `release` stands in for `privatise` or
`observe`, and may be a copy that is broken.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from quietq.audit.frozen_release import FrozenRelease, Released
from quietq.audit.frozen_rewards import sigma_of
from quietq.audit.movement import Movement
from quietq.mechanisms.model import FittedReward, RewardModel
from quietq.mechanisms.private_function import PrivateFunction, PrivateWeights
from quietq.mechanisms.privatise import privatise
from quietq.noise.ball import Ball
from quietq.noise.entropy import SeededEntropy
from quietq.noise.kernels import FiniteRank
from quietq.privacy.budget import Budget
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import RkhsBall, SupBall
from quietq.worlds.observed import observe
from quietq.worlds.world import World

_TRIES = 20


def frozen_weights(
    ball: RkhsBall,
    budget: Budget,
    noise: Literal["ball", "weights"],
    *,
    release: Callable[..., PrivateFunction] = privatise,
    seed: int = 0,
) -> Movement:
    """Of noise on the weights of features, pure ("ball") or Gaussian ("weights"): in the weights' Euclidean norm."""
    kernel = ball.kernel
    if not isinstance(kernel, FiniteRank) or ball.actions != 1:
        raise InvalidInput("Only the weights of one reward function with features can be audited.")

    def values(weights: Any, seed: int) -> Released:
        private = release(weights, budget, noise=noise, relation=ball, simulate=seed)
        assert isinstance(private, PrivateWeights)
        return private.weights, sigma_of(private)

    rank, pure = kernel.rank, noise == "ball"

    def unit(seed: int) -> Float[np.ndarray, " numbers"]:
        entropy = SeededEntropy(seed)
        return Ball(rank, {}).draw(budget.epsilon, entropy) if pure else entropy.normals((rank,)) / budget.mu

    name = f"reward, {'k-norm' if pure else 'gaussian'} on weights"
    frozen = FrozenRelease(name, "Euclidean", values, np.zeros(rank), unit, _euclidean, seed)
    rng = np.random.default_rng(seed)
    tries = np.concatenate([np.eye(rank), rng.normal(size=(_TRIES, rank))])
    moves = ball.radius / 2 * tries / np.linalg.norm(tries, axis=1, keepdims=True)
    found = [frozen.moved(move, -move) for move in moves]
    best = int(np.argmax(found))
    return Movement(name, frozen.stated, found[best], "one weight" if best < rank else "random", frozen.norm)


@dataclass(frozen=True)
class _Watching(RewardModel):
    """A reward model that keeps what it is fitted to: noised rewards, all that `observe` lets out."""

    kept: list[Released] = field(default_factory=list)

    def fit(self, states: object, rewards: object, noise: object, weights: object = 1.0) -> FittedReward:
        self.kept.append((np.asarray(rewards, np.float64), float(noise)))  # pyright: ignore[reportArgumentType]
        return super().fit(states, rewards, noise, weights)


def frozen_observed(
    world: World,
    relation: SupBall,
    budget: Budget,
    *,
    rewards: int = 60,
    release: Callable[..., FittedReward] = observe,
    seed: int = 0,
) -> Movement:
    """Of noise on observed rewards: in the Euclidean norm of all of them together."""

    def values(f: Any, seed: int) -> Released:
        model = _Watching(low=-1.0, high=1.0, domain=world.box)
        options = {"low": -1.0, "high": 1.0, "reward": f, "model": model, "rewards": rewards}
        release(world, relation, budget, **options, simulate=seed, seed=seed)
        return model.kept[0]

    def unit(seed: int) -> Float[np.ndarray, " numbers"]:
        return SeededEntropy(seed).normals((rewards,)) / budget.mu

    name = "reward, observed"
    frozen = FrozenRelease(name, "Euclidean", values, np.zeros_like, unit, _euclidean, seed)
    rng, found = np.random.default_rng(seed), []
    moves = [np.ones(rewards), *rng.choice([-1.0, 1.0], (_TRIES, rewards)), *rng.uniform(-1, 1, (_TRIES, rewards))]
    for move in moves:  # by the order in which states are met: a rough function of them, as a SupBall allows
        half = relation.radius / 2 * move
        found.append(frozen.moved(lambda states, half=half: half, lambda states, half=half: -half))
    best = int(np.argmax(found))
    return Movement(name, frozen.stated, found[best], "all alike" if best == 0 else "random", frozen.norm)


def _euclidean(difference: Float[np.ndarray, " numbers"]) -> float:
    return float(np.linalg.norm(difference))
