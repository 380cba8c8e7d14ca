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
from broken_copies import BALL, DELTA, PURE, STRONG, SURE, altered, both, check, halve_draws

from quietq import Budget, SupBall
from quietq.audit.distinguisher import Seen
from quietq.audit.draws import audit_reward
from quietq.audit.finding import Attack, Finding, Promise, count_errors
from quietq.feedback.own_function import OwnFunction
from quietq.mechanisms import knots
from quietq.mechanisms.candidates import choose
from quietq.mechanisms.knots import IncrementNoise
from quietq.mechanisms.path import GaussianProcessMechanism
from quietq.mechanisms.release import Mechanism
from quietq.noise.box import Box
from quietq.noise.entropy import SeededEntropy
from quietq.noise.laws import BallNoise
from quietq.paper import FeatureKernel, FiniteRankMechanism
from quietq.paper.attacks.trajectories_attack import audit_evaluation
from quietq.paper.baselines import balle as evaluation
from quietq.paper.observed import observed_mechanism
from quietq.privacy.errors import InvalidInput
from quietq.privacy.norms import Answers
from quietq.privacy.relations import RkhsBall
from quietq.worlds import WALK
from quietq.worlds.world import World

# Half the noise, on rewards


@dataclass(frozen=True)
class Likings(World):
    """A world whose reward is two weights of features."""

    name: ClassVar[str] = "likings"
    actions: ClassVar[int] = 2
    action_names: ClassVar[tuple[str, ...]] = ("left", "right")
    draws: ClassVar[int] = 1
    steps: int = 10

    box: ClassVar[Box] = Box((0.0,), (1.0,))

    def start(self, draws: Any, xp: Any) -> Any:
        return draws

    def move(self, state: Any, action: Any, draws: Any, xp: Any) -> tuple[Any, Any]:
        return draws, xp.zeros(draws.shape[:-1], dtype=bool)

    def reward(self, state: Any, xp: Any) -> Any:
        return 0.3 * state[..., 0] + 0.6 * (1 - state[..., 0])

    def relation(self, people: int) -> RkhsBall:
        return RkhsBall(2 / people, FeatureKernel(lambda x: np.stack([x, 1 - x], axis=-1), 2).norm)

    def mean_reward(self) -> Any:
        return [0.3, 0.6]


def audit_half(mechanism: Mechanism, broken: bool, runs: int = 200, world: World = WALK) -> Finding:
    """With noise as it should be, or half of it."""
    audited = altered(mechanism, law=halve_draws) if broken else mechanism
    return audit_reward(world, audited, runs)


PATH = GaussianProcessMechanism.for_relation(BALL, STRONG, levels=8).mechanism
LIKED = FiniteRankMechanism.for_relation(Likings().relation(50), STRONG).mechanism
REWARDS: dict[str, Callable[[bool], Finding]] = {
    "path": lambda broken: audit_half(PATH, broken),
    "knots": lambda broken: audit_half(
        choose("knots", OwnFunction(None, BALL, box=WALK.box), STRONG, pieces=2), broken
    ),
    "weights": lambda broken: audit_half(LIKED, broken, world=Likings()),
    "observed": lambda broken: audit_half(observed_mechanism(WALK, SupBall(0.1), STRONG, rewards=60), broken),
    "k-norm": lambda broken: audit_half(
        choose("k-norm", OwnFunction(None, BALL, box=WALK.box), Budget(PURE, 0.0), pieces=2), broken, 2000
    ),
}


@both
@pytest.mark.parametrize("name", REWARDS)
def test_half_the_noise_on_a_reward_is_caught(name: str, broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the promise 42 of 400 runs are mistaken, 15 would refute it, 2.5 are expected with half the noise: 8 SE.

    Pure noise has to be drawn more often.
    """
    monkeypatch.setattr(knots, "_AT_ONCE", 64)  # exact in any portions, and faster in small ones
    check(REWARDS[name](broken), broken)


def gauge(increments: np.ndarray, law: IncrementNoise) -> np.ndarray:
    """As `IncrementNoise.distance`, for many."""
    curves = np.concatenate([np.zeros((len(increments), 1)), increments.cumsum(axis=1)], axis=1)
    steepest = np.abs(increments).max(axis=1) * law.pieces / law.ball.lipschitz
    return np.maximum(steepest, np.ptp(curves, axis=1) / (2 * law.ball.radius))


@both
@pytest.mark.parametrize("kind", ["knots", "ball"])
def test_half_the_pure_noise_is_caught(kind: str, broken: bool) -> None:
    """10,000 draws of two increments, or of two numbers in a ball: a bound on epsilon above 2.4 is expected for 1.5.

    At the thresholds that are chosen 180 and 80 errors are expected, and 870 and 350 at the promise: 50 and 30 SE.
    """
    runs, epsilon = 10_000, PURE * (2 if broken else 1)
    law, promise = IncrementNoise(epsilon, BALL, pieces=2), Promise("certified", PURE, 0.0)

    def scores(side: int, learning: int) -> np.ndarray:
        entropy = SeededEntropy(2 * learning + side)
        if kind == "knots":
            move = np.array([BALL.lipschitz / 2, -BALL.lipschitz / 2])
            noised = law.draws(entropy, runs) + side * move
            return gauge(noised, law) - gauge(noised - move, law)
        move = np.array([0.04, 0.0])
        noised = BallNoise(epsilon / 0.04, 2, Answers()).draws(entropy, runs) + side * move
        return np.linalg.norm(noised, axis=1) - np.linalg.norm(noised - move, axis=1)

    judged, taught = (Seen(scores(0, learning), scores(1, learning)) for learning in (0, 1))
    attack = Attack(f"{kind}, k-norm", "none", "one move", "one move", "2 numbers", "likelihood ratio")
    check(count_errors(judged, taught.thresholds(runs, 0.0, SURE), attack, promise), broken)


# Policy evaluation


@pytest.mark.parametrize("part", [1.0, pytest.param(0.5, marks=pytest.mark.slow), 1e-3])
def test_evaluation_with_hardly_any_noise_is_caught(part: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its noise is many times larger than this attack needs, so that half of it does not show in any few runs.

    (Half of it is caught from inside, in `test_frozen_broken`.) With a thousandth of it, no run is mistaken.
    """
    add = evaluation.SmoothNoise.add

    def too_little(law: Any, numbers: np.ndarray, simulated: Any = None, given: Any = None) -> np.ndarray:
        return add(law, numbers, simulated, part * given)

    monkeypatch.setattr(evaluation.SmoothNoise, "add", too_little)
    check(audit_evaluation(12, Budget(0.9, DELTA), 60), broken=part < 0.5)


@pytest.mark.parametrize("part", [0.5, 1e-3])
def test_a_law_of_too_little_noise_for_evaluation_is_refused(part: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "SLACK", part)
    with pytest.raises(InvalidInput, match=r"more than the epsilon = 0\.9, delta = 0\.0001 that is charged"):
        audit_evaluation(12, Budget(0.9, DELTA), 60)
