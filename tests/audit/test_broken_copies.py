"""A deliberately broken copy of each certified release is caught by what it releases, and the sound one is not.

All at a confidence of 1 - 1e-6, with fixed seeds. How far the errors that are expected lie from the verdict's edge is
stated in their own standard errors (SE). Methods that noise while they learn are in `test_broken_trainings`, noise that
is known or used twice in `test_broken_draws`, a person who is counted twice in `test_person`; half the noise, as it is
seen from inside, is in `test_frozen_broken` for every method.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from broken_copies import BALL, DELTA, MU, PURE, STRONG, SURE, both, check

from quietq import Budget, SupBall, privatise
from quietq.audit import other_releases
from quietq.audit.distinguisher import Scores
from quietq.audit.finding import Attack, Finding, Promise, judge
from quietq.audit.other_releases import audit_evaluation, audit_observed, audit_weights
from quietq.audit.release import audit_reward
from quietq.mechanisms import evaluation
from quietq.mechanisms.gaussian_process import GaussianProcessMechanism
from quietq.noise import increments
from quietq.noise.ball import Ball
from quietq.noise.box import Box
from quietq.noise.entropy import SeededEntropy
from quietq.noise.increments import IncrementBody
from quietq.noise.kernels import Features
from quietq.privacy.relations import RkhsBall
from quietq.worlds import WALK
from quietq.worlds.observed import observe
from quietq.worlds.world import World

# Half the noise, on rewards


TWICE = Budget.from_mu(2 * MU, DELTA)


def half_noise(source: Any, budget: Budget, **options: Any) -> Any:
    twice = Budget(2 * budget.epsilon, 0.0) if budget.is_pure else TWICE
    return privatise(source, twice, **options)


def half_observed(world: Any, relation: SupBall, budget: Budget, **options: Any) -> Any:
    return observe(world, SupBall(relation.radius / 2), budget, **options)


@dataclass(frozen=True)
class Likings(World):
    """A world whose reward is two weights of features, which pure noise suits."""

    name: ClassVar[str] = "likings"
    actions: ClassVar[int] = 2
    action_names: ClassVar[tuple[str, ...]] = ("left", "right")
    draws: ClassVar[int] = 1
    steps: int = 10

    @property
    def box(self) -> Box:
        return Box((0.0,), (1.0,))

    def start(self, draws: Any, xp: Any) -> Any:
        return draws

    def move(self, state: Any, action: Any, draws: Any, xp: Any) -> tuple[Any, Any]:
        return draws, xp.zeros(draws.shape[:-1], dtype=bool)

    def reward(self, state: Any, xp: Any) -> Any:
        return 0.3 * state[..., 0] + 0.6 * (1 - state[..., 0])

    def relation(self, people: int) -> RkhsBall:
        return RkhsBall(2 / people, Features(lambda x: np.stack([x, 1 - x], axis=-1), 2))

    def mean_reward(self) -> Any:
        return [0.3, 0.6]


class HalfPath(GaussianProcessMechanism):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.sigma /= 2


def path_audit(broken: bool) -> Finding:
    kind = HalfPath if broken else GaussianProcessMechanism

    def release(source: Any, budget: Budget, *, relation: Any, domain: Any, simulate: int, **_: Any) -> Any:
        return kind.for_relation(relation, budget, domain=domain, levels=8).simulate(source, simulate)

    return audit_reward(WALK, BALL, STRONG, 200, noise="path", release=release)


def knots_audit(noise: str, runs: int, budget: Budget, broken: bool) -> Finding:
    return audit_reward(WALK, BALL, budget, runs, noise=noise, pieces=2, release=half_noise if broken else privatise)


REWARDS: dict[str, Callable[[bool], Finding]] = {
    "path": path_audit,
    "knots": lambda broken: knots_audit("knots", 200, STRONG, broken),
    "weights, gaussian": lambda broken: audit_weights(Likings(), 50, STRONG, 200, noise="path"),
    "observed": lambda broken: audit_observed(WALK, SupBall(0.1), STRONG, 200, rewards=60),
}
MANY: dict[str, Callable[[bool], Finding]] = {
    "k-norm": lambda broken: knots_audit("k-norm", 2000, Budget(PURE, 0.0), broken),
    "weights, k-norm": lambda broken: audit_weights(Likings(), 50, Budget(PURE, 0.0), 2000, noise="k-norm"),
}
"""Pure noise has to be drawn more often, so these releases take a while: the same law is audited below, in bulk."""


@both
@pytest.mark.parametrize("name", [*REWARDS, *(pytest.param(name, marks=pytest.mark.slow) for name in MANY)])
def test_half_the_noise_on_a_reward_is_caught(name: str, broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the promise 42 of 400 runs are mistaken, 15 would refute it, 2.5 are expected with half the noise: 8 SE."""
    monkeypatch.setattr(increments, "_AT_ONCE", 64)  # exact in any portions, and faster in small ones
    if broken:
        monkeypatch.setattr(other_releases, "privatise", half_noise)
        monkeypatch.setattr(other_releases, "observe", half_observed)
    check((REWARDS | MANY)[name](broken), broken)


def gauge(increments: np.ndarray, body: IncrementBody) -> np.ndarray:
    """As `IncrementBody.gauge`, for many."""
    curves = np.concatenate([np.zeros((len(increments), 1)), increments.cumsum(axis=1)], axis=1)
    steepest = np.abs(increments).max(axis=1) * body.pieces / body.ball.lipschitz
    return np.maximum(steepest, np.ptp(curves, axis=1) / (2 * body.ball.radius))


@both
@pytest.mark.parametrize("kind", ["knots", "weights"])
def test_half_the_pure_noise_is_caught(kind: str, broken: bool) -> None:
    """10,000 draws of two increments, or of two weights: a bound on epsilon above 2.4 is expected, 1.5 promised.

    At the thresholds that are chosen 180 and 80 errors are expected, and 870 and 350 at the promise: 50 and 30 SE.
    """
    runs, epsilon = 10_000, PURE * (2 if broken else 1)
    body, promise = IncrementBody(BALL, pieces=2), Promise("certified", PURE, 0.0)

    def scores(side: int, learning: int) -> np.ndarray:
        entropy = SeededEntropy(2 * learning + side)
        if kind == "knots":
            move = np.array([BALL.lipschitz / 2, -BALL.lipschitz / 2])
            noised = body.draws(epsilon, entropy, runs) + side * move
            return gauge(noised, body) - gauge(noised - move, body)
        move = np.array([0.04, 0.0])
        noised = Ball(2, {}).draws(epsilon / 0.04, entropy, runs) + side * move
        return np.linalg.norm(noised, axis=1) - np.linalg.norm(noised - move, axis=1)

    judged, taught = (Scores(scores(0, learning), scores(1, learning)) for learning in (0, 1))
    attack = Attack(f"{kind}, k-norm", "none", "one move", "one move", "2 numbers", "likelihood ratio")
    check(judge(judged, taught.thresholds(runs, 0.0, SURE), attack, promise), broken)


# Policy evaluation


@pytest.mark.parametrize("part", [1.0, pytest.param(0.5, marks=pytest.mark.slow), 1e-3])
def test_evaluation_with_hardly_any_noise_is_caught(part: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its noise is many times larger than this attack needs, so that half of it does not show in any few runs.

    (Half of it is caught from inside, in `test_frozen_broken`.) With a thousandth of it, no run is mistaken.
    """
    monkeypatch.setattr(evaluation, "SLACK", part)
    check(audit_evaluation(12, Budget(0.9, DELTA), 60), broken=part < 0.5)
