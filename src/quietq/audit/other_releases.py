"""Audits of releases that are no function on an interval: weights of features, observed rewards, trajectories."""

import numpy as np
from jaxtyping import Float

from quietq.audit.draws import Progress, audit_draws
from quietq.audit.finding import Attack, Finding, Promise
from quietq.audit.likelihood import best_test, is_pure
from quietq.audit.pairs import neighbours
from quietq.feedback.trajectories import Cells, Trajectory
from quietq.mechanisms.evaluation import Evaluation
from quietq.mechanisms.private_function import PrivateFunction
from quietq.mechanisms.privatise import privatise
from quietq.noise.kernels import FeatureKernel
from quietq.privacy.budget import Budget
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import RkhsBall, SupBall, Trajectories
from quietq.worlds.observed import observe
from quietq.worlds.world import World

_HORIZON, _REWARD = 3, 1.0


def audit_weights(
    world: World, people: int, budget: Budget, runs: int = 1000, *, noise: str = "ball", seed: int = 0,
    confidence: float = 0.95, progress: Progress | None = None,
) -> Finding:  # fmt: skip
    """A reward of features: its weights are moved as far as one person can, in one direction, which are all alike."""
    relation = world.relation(people)
    if not isinstance(relation, RkhsBall) or not isinstance(relation.kernel, FeatureKernel):
        raise InvalidInput(
            f"The private reward of {world.name!r} is a sum over coordinates, which cannot be audited here: take walk, "
            "thermostat or recommender."
        )
    weights = np.asarray(world.mean_reward(), np.float64)
    moved = weights.copy()
    moved.flat[0] += relation.radius

    def draw(side: int, stream: int) -> PrivateFunction:
        source = moved if side else weights
        return privatise(source, budget, relation=relation, domain=world.box, noise=noise, simulate=stream)

    sample = draw(0, 0)
    best = best_test(weights, moved, relation, budget, sample)
    attack = Attack(
        f"reward/weights, {noise}", world.name, str(relation), "one direction", f"{weights.size} weights",
        "likelihood ratio",
    )  # fmt: skip
    return audit_draws(
        draw, best.score, runs, attack, Promise.certified(budget, is_pure(sample)),
        expected=best.expected, seed=seed, confidence=confidence,
        progress=progress,
    )  # fmt: skip


def audit_observed(
    world: World, relation: SupBall, budget: Budget, runs: int = 1000, *, rewards: int = 5000, seed: int = 0,
    confidence: float = 0.95, progress: Progress | None = None,
) -> Finding:  # fmt: skip
    """Rewards that are observed one by one and noised: r is shifted, and the mean of the fitted reward is looked at."""
    pair = neighbours(world, relation, "shift")
    states = np.linspace(*_side(world), 1001)
    low, high = float(pair.first(states).min()), float(pair.second(states).max())

    def draw(side: int, stream: int) -> Float[np.ndarray, " numbers"]:
        reward = pair.second if side else pair.first
        fitted = observe(
            world, relation, budget, low=low, high=high, rewards=rewards, reward=reward, simulate=stream,
            seed=stream % 2**32,
        )  # fmt: skip
        return np.asarray(fitted.mean)

    attack = Attack("reward/observed", world.name, str(relation), "shift", "the fitted reward at its knots", "mean")
    promise = Promise.certified(budget)
    return audit_draws(
        draw, lambda seen: float(seen.mean()), runs, attack, promise, seed=seed, confidence=confidence,
        progress=progress,
    )  # fmt: skip


def _side(world: World) -> tuple[float, float]:
    if world.box.dimension != 1:
        raise InvalidInput(f"A reward model has one coordinate, but this world has {world.box.dimension}.")
    return world.box.low[0], world.box.high[0]


def audit_evaluation(
    people: int, budget: Budget, runs: int = 1000, *, seed: int = 0, confidence: float = 0.95,
    progress: Progress | None = None,
) -> Finding:  # fmt: skip
    """The value of a policy from people's trajectories: one of them gained the most there is, or lost it."""
    relation = Trajectories(count=people, largest_reward=_REWARD, horizon=_HORIZON)
    evaluation = Evaluation(budget=budget, relation=relation, gamma=0.5, cells=Cells.states(_HORIZON))
    others: list[Trajectory] = [(list(range(_HORIZON)), [0.0] * _HORIZON)] * (people - 1)
    worlds = [[*others, (list(range(_HORIZON)), [sign * _REWARD] * _HORIZON)] for sign in (-1, 1)]
    attack = Attack(
        "evaluation", "a chain of three states", str(relation), "one trajectory's rewards", "the released weights",
        "learned",
    )  # fmt: skip
    promise = Promise("certified", budget.epsilon, budget.delta)
    return audit_draws(
        lambda side, stream: evaluation.release(worlds[side], simulate=stream).weights, None, runs, attack, promise,
        seed=seed, confidence=confidence, progress=progress,
    )  # fmt: skip
