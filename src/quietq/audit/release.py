"""The audit of a private reward: many simulated draws of r and of r', told apart by the best test there is.

For Gaussian noise that test is a projection, in the noise's own geometry, and its scores are normal with a mean and a
deviation that are known (`projection`). For K-norm noise it is the difference of the two gauges, whose thresholds are
set on draws of their own.
"""

from collections.abc import Callable

import numpy as np

from quietq.audit.draws import Progress, audit_draws
from quietq.audit.finding import Attack, Finding, Promise
from quietq.audit.likelihood import best_test, is_pure, noised
from quietq.audit.pairs import Move, Pair, Through, neighbours
from quietq.mechanisms.knots import least_shape
from quietq.mechanisms.private_function import PrivateFunction, PrivateKnots, PrivateTable
from quietq.mechanisms.privatise import privatise
from quietq.privacy.budget import Budget
from quietq.privacy.errors import InvalidInput
from quietq.privacy.knot_body import vertices
from quietq.privacy.relations import LipschitzBall
from quietq.worlds.world import World

Release = Callable[..., PrivateFunction]
"""`privatise`, or a copy of it that is to be caught."""


def audit_reward(
    world: World,
    relation: LipschitzBall,
    budget: Budget,
    runs: int = 1000,
    *,
    noise: str = "path",
    pieces: int | None = None,
    move: str = "worst",
    seed: int = 0,
    confidence: float = 0.95,
    release: Release = privatise,
    progress: Progress | None = None,
) -> Finding:
    """Draws the private reward `runs` times from the world's reward and as often from its neighbour.

    `move` is a move of `pairs`, or "worst", which is known for each kind of noise. `release` is what is audited: it is
    called as `privatise` is.

    >>> from quietq.worlds import WALK
    >>> audit_reward(WALK, WALK.relation(50), Budget(0.9, 1e-4), runs=50).verdict
    'consistent'
    """
    if not isinstance(relation, LipschitzBall) or world.box.dimension != 1:
        raise InvalidInput("The audit of a private reward is for one coordinate and a LipschitzBall.")

    def release_of(pair: Pair, side: int, stream: int) -> PrivateFunction:
        return release(
            pair.second if side else pair.first, budget, relation=relation, domain=world.box, noise=noise,
            pieces=pieces, simulate=stream,
        )  # fmt: skip

    sample = release_of(neighbours(world, relation, "shift"), 0, 0)
    pair = worst_pair(world, relation, sample) if move == "worst" else neighbours(world, relation, move)
    attack = Attack(
        f"reward/{kind_of(sample)}", world.name, str(relation),
        move if move != "worst" else f"worst ({pair.move.name})",
        f"the private reward, {len(noised(sample))} numbers", "likelihood ratio",
    )  # fmt: skip
    best = best_test(pair.first, pair.second, relation, budget, sample)
    promise = Promise.certified(budget, is_pure(sample))
    return audit_draws(
        lambda side, stream: release_of(pair, side, stream), best.score, runs, attack, promise,
        expected=best.expected, seed=seed, confidence=confidence, progress=progress,
    )  # fmt: skip


def kind_of(sample: PrivateFunction) -> str:
    """path, knots or k-norm."""
    if isinstance(sample, PrivateTable):
        return "path"
    return sample.certificate.method.removeprefix("reward/")


def worst_pair(world: World, relation: LipschitzBall, sample: PrivateFunction) -> Pair:
    """The pair that is farthest apart in the noise's own geometry."""
    if isinstance(sample, PrivateTable):
        return neighbours(world, relation, "zigzag", cells=len(sample.values) - 1)
    if not isinstance(sample, PrivateKnots):
        raise InvalidInput(f"A {type(sample).__name__} cannot be audited here: path, knots or k-norm.")
    pieces = len(sample.values) - 1
    if kind_of(sample) == "knots":
        shape = least_shape(relation, pieces)
        points = relation.radius * vertices(relation.lipschitz / pieces / relation.radius, pieces)
        farthest = points[np.einsum("ij,jk,ik->i", points, np.linalg.inv(shape), points).argmax()]
    else:  # a vertex of the body of increments
        farthest = relation.radius - min(relation.lipschitz / pieces, 2 * relation.radius) * (np.arange(pieces + 1) % 2)
    move: Move = Through(relation.radius, tuple(float(value) for value in farthest))
    return Pair(world, move)
