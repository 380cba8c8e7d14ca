"""A deliberately broken copy of each certified method is caught by what it releases, and the sound one is not.

All at a confidence of 1 - 1e-6, with fixed seeds. How far the errors that were counted lie from those that would change
a verdict is stated in standard errors (SE), of what is expected. A person who is counted twice is in `test_person`; half
the noise on what is looked at from inside, for every method, is in `test_frozen`.
"""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from quietq import Budget, SupBall, privatise
from quietq.audit import other_releases
from quietq.audit.distinguisher import Expected, Seen, learn
from quietq.audit.draws import audit_draws
from quietq.audit.finding import Attack, Finding, Promise, judge
from quietq.audit.other_releases import audit_evaluation, audit_observed, audit_weights
from quietq.audit.pairs import neighbours
from quietq.audit.projection import distance, optimal_weights
from quietq.audit.release import audit_reward
from quietq.audit.runs import Trainings
from quietq.audit.store import Store
from quietq.audit.training import audit_training
from quietq.audit.views import View
from quietq.learning import GradientNoise, InputNoise, NetworkValueNoise, OutputNoise, Promising, ValueNoise
from quietq.learning.observed import observe
from quietq.learning.trainer import spaces_of
from quietq.noise.box import Box
from quietq.noise.entropy import SeededEntropy
from quietq.noise.grid_path import draw_grid, grid_points
from quietq.noise.kernels import Exponential, Features
from quietq.noise.mechanism import GaussianProcessMechanism
from quietq.noise.private_function import PrivateTable
from quietq.noise.rounding import round_release
from quietq.noise.sorted_path import SortedPath
from quietq.noise.tree_path import TreePath
from quietq.privacy.relations import LipschitzBall, RkhsBall
from quietq.rewards import k_norm
from quietq.worlds import WALK
from quietq.worlds.world import World

SURE = 1 - 1e-6
DELTA = 1e-4
MU = 2.5
"""Sound tests err in Phi(-1.25) = 10.6 % of the runs, at the least; with half the noise, in Phi(-2.5) = 0.6 %."""
STRONG = Budget.from_mu(MU, DELTA)
PURE = 1.5
"""Epsilon of pure noise: a likelihood ratio of 4.5, and of 20 with half the noise."""
BALL = WALK.relation(50)
both = pytest.mark.parametrize("broken", [False, True], ids=["sound", "broken"])


def check(finding: Finding, broken: bool) -> None:
    sure = finding.at(SURE)
    assert sure.verdict == ("refuted" if broken else "consistent")


# Half the noise, on rewards


def half_noise(source: Any, budget: Budget, *, noise: Any, **options: Any) -> Any:
    twice = Budget(2 * budget.epsilon, budget.delta) if noise == "k-norm" else Budget.from_mu(2 * budget.mu, DELTA)
    return privatise(source, twice, noise=noise, **options)


def half_observed(world: Any, relation: SupBall, budget: Budget, **options: Any) -> Any:
    return observe(world, SupBall(relation.radius / 2), budget, **options)


@dataclass(frozen=True)
class Likings(World):
    """A world whose reward is two weights of features, which pure noise suits."""

    name: ClassVar[str] = "likings"
    gymnasium_id: ClassVar[str] = "test/Likings-v0"
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

    def preference(self) -> Any:
        return [0.3, 0.6]


def reward_audit(noise: str, runs: int, pieces: int | None = None) -> Callable[[bool], Finding]:
    budget = Budget(PURE, 0.0) if noise == "k-norm" else STRONG

    def run(broken: bool) -> Finding:
        release = half_noise if broken else privatise
        return audit_reward(WALK, BALL, budget, runs, noise=noise, pieces=pieces, release=release)

    return run


REWARDS: dict[str, Callable[[bool], Finding]] = {
    "path": reward_audit("path", 250),
    "knots": reward_audit("knots", 250, pieces=4),
    "k-norm": reward_audit("k-norm", 1500, pieces=2),
    "weights, k-norm": lambda broken: audit_weights(Likings(), 50, Budget(PURE, 0.0), 2000, noise="k-norm"),
    "weights, gaussian": lambda broken: audit_weights(Likings(), 50, STRONG, 250, noise="path"),
    "observed": lambda broken: audit_observed(WALK, SupBall(0.1), STRONG, 250, rewards=300),
}


@both
@pytest.mark.parametrize("name", REWARDS)
def test_half_the_noise_on_a_reward_is_caught(name: str, broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gaussian noise: of 500 errors' 53 at the promise, 3 are found; more than 10 SE."""
    monkeypatch.setattr(k_norm, "_AT_ONCE", 16)  # rejection sampling is exact in any portions
    if broken:
        monkeypatch.setattr(other_releases, "privatise", half_noise)
        monkeypatch.setattr(other_releases, "observe", half_observed)
    check(REWARDS[name](broken), broken)


# Half the noise, while training


def altered(sound: Promising, change: Callable[[Any], Any]) -> Promising:
    """A copy of a method with other noise; it learns by the same compiled program."""
    kind = type(sound)

    def draw(self: Any, *arguments: Any) -> Any:
        return change(kind.draw(self, *arguments))

    methods = {"draw": draw, "core": lambda self: sound.core()}
    copy = type(f"Altered{kind.__name__}", (kind,), methods)
    return copy(**{field.name: getattr(sound, field.name) for field in dataclasses.fields(sound) if field.init})


def half(noise: Any) -> Any:
    return noise._replace(scale=noise.scale / 2)


STEPS = 200


def trained(kind: type[Promising], **options: Any) -> Promising:
    """No looking ahead, so that a reward moves the values by no less than its knots' share of it."""
    return kind(**({"relation": SupBall(0.5), "budget": STRONG, "gamma": 0.0} | options))


# Four rounds each, of 50 steps; small step sizes keep what earlier rounds said.
TRAINED: dict[str, Promising] = {
    "input": trained(InputNoise, knots=3, spread=None),
    "value": trained(ValueNoise, knots=3, spread=None, round_steps=50),
    "value-network": trained(NetworkValueNoise, features=3, learning_rate=0.01, batch=50),
    "gradient": trained(
        GradientNoise, features=3, learning_rate=0.01, clip=10.0, batch=49, start=50, train_every=50, replay=200
    ),
    "output": trained(OutputNoise, knots=3, gamma=0.1),
}


@both
@pytest.mark.parametrize("name", TRAINED)
def test_half_the_noise_in_training_is_caught(name: str, broken: bool) -> None:
    method = altered(TRAINED[name], half) if broken else TRAINED[name]
    finding = audit_training(method, WALK, 320, view=View(queries=3), steps=STEPS, confidence=SURE)
    check(finding, broken)


# The same noise twice


def same_in_all_rounds(noise: Any) -> Any:
    return noise._replace(normals=np.broadcast_to(noise.normals[:1], noise.normals.shape).copy())


def audit_differences(method: Promising, move: str, runs: int) -> Finding:
    """Looks at the end of each round, and at how far the values moved from one to the next, on a scale of logarithms."""
    view = View("every", queries=3, moments=4)
    pair = neighbours(WALK, method.promised()[0], move)
    trainings = Trainings(method, pair, view, STEPS)
    seen = trainings.run(runs, Store(None, trainings.describe()))

    def moved(rows: np.ndarray) -> np.ndarray:
        looks = rows.reshape(len(rows), view.moments, -1).astype(np.float64)
        return np.log(np.diff(looks, n=1, axis=1) ** 2 + 1e-12).reshape(len(rows), -1)

    taught, judged = Seen(moved(seen.first), moved(seen.second)).split(runs // 4)
    weights, expected = learn(taught)
    promise = Promise.of(method.certificate(spaces_of(WALK), STEPS))
    thresholds = expected.thresholds(runs - runs // 4, promise.delta, SURE)
    attack = Attack(method.name, WALK.name, str(method.promised()[0]), move, "values after each round", "learned")
    return judge(judged.scored(weights), thresholds, attack, promise, SURE, runs // 4)


REUSED = {"value": "bumps", "value-network": "shift", "gradient": "shift"}
