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
from quietq.privacy.relations import RkhsBall
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
        GradientNoise, features=3, learning_rate=0.01, clip=100.0, batch=49, start=50, train_every=50, replay=200
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


FAR: dict[str, Any] = {"relation": SupBall(10.0), "budget": Budget.from_mu(1.0, DELTA), "gamma": 0.0}
SMALL: dict[str, Any] = FAR | {"features": 2, "learning_rate": 0.01, "batch": 200}


@dataclass(frozen=True)
class Reused:
    """What of a method's releases is free of noise if all rounds had the same."""

    method: Promising
    rounds: int
    steps: int
    move: str
    differences: int
    """Of releases: the first for averages of all rounds, the second for a sum of all rounds."""


REUSED = {
    "value": Reused(ValueNoise(**FAR, knots=2, spread=None, round_steps=50), 4, 200, "bumps", 1),
    "value-network": Reused(NetworkValueNoise(**SMALL), 3, 600, "shift", 2),
    "gradient": Reused(GradientNoise(**SMALL, clip=100.0, start=200, train_every=200, replay=200), 3, 600, "shift", 2),
}


def audit_differences(reused: Reused, broken: bool, runs: int = 240) -> Finding:
    """How far releases of successive rounds move, on a logarithmic scale: as far as rewards and visits change.

    Neighbours are so far apart that this tells them, by a score that is learned.
    """
    method = reused.method
    relation, _ = method.promised()
    view, pair = View("every", queries=2, moments=reused.rounds), neighbours(WALK, relation, reused.move)
    trainings = Trainings(altered(method, same_in_all_rounds) if broken else method, pair, view, reused.steps)
    seen = trainings.run(runs, Store(None, trainings.describe()))

    def moved(rows: np.ndarray) -> np.ndarray:
        looks = rows.reshape(len(rows), reused.rounds, -1).astype(np.float64)
        looks = np.concatenate([np.zeros_like(looks[:, : reused.differences - 1]), looks], axis=1)  # where it began
        return np.log(np.abs(np.diff(looks, n=reused.differences, axis=1)) + 1e-9).reshape(len(rows), -1)

    taught, judged = Seen(moved(seen.first), moved(seen.second)).split(runs // 4)
    weights, expected = learn(taught)
    promise = Promise.of(method.certificate(spaces_of(WALK), reused.steps))
    thresholds = expected.thresholds(runs - runs // 4, promise.delta, SURE)
    attack = Attack(method.name, WALK.name, str(relation), reused.move, "how far values move by round", "learned")
    return judge(judged.scored(weights), thresholds, attack, promise, SURE, runs // 4)


@both
@pytest.mark.parametrize("name", REUSED)
def test_the_same_noise_in_every_round_is_caught(name: str, broken: bool) -> None:
    check(audit_differences(REUSED[name], broken), broken)


# One mechanism's noise for two releases; a seed that is known

TENT = np.maximum(0, 1 - 4 * np.abs(np.linspace(0, 1, 129) - 0.5))
"""A move on a grid of 2^7 cells."""
KERNEL = Exponential(4.0)


def mechanism(mu: float, kind: type[GaussianProcessMechanism] = GaussianProcessMechanism) -> GaussianProcessMechanism:
    """For moves as large as the tent."""
    return kind(KERNEL, distance(KERNEL, TENT) * (1 + 1e-9), Budget.from_mu(mu, DELTA), levels=7)


def audit_tent(draw: Callable[[int, int], np.ndarray], mu: float, weights: np.ndarray, deviation: float) -> Finding:
    """Draws of 0 and of the tent with noise, on the grid, told apart by a weighted sum."""
    expected = Expected(0.0, deviation, float(weights @ TENT), deviation)
    attack = Attack("gaussian-process", "none", "the tent", "tent", "129 numbers", "weighted sum")
    promise = Promise("certified", Budget.from_mu(mu, DELTA).epsilon, DELTA, mu)
    return audit_draws(draw, lambda seen: float(weights @ seen), 100, attack, promise, expected=expected)


@both
def test_one_noise_for_two_releases_is_caught(broken: bool) -> None:
    """Of the second function nothing is private: the difference of the releases is told apart.

    Two releases promise mu sqrt(2) together. Where noise is fresh their difference has sqrt(2) times as much of it.
    """
    one = mechanism(mu=1.0)

    def draw(side: int, stream: int) -> np.ndarray:
        first = one.simulate(lambda states: side * TENT, stream)
        second = one.simulate(np.cos, stream if broken else stream + 2**128)
        grid = grid_points(one.box, one.levels)
        return np.asarray(first(grid)) - np.asarray(second(grid)) + np.cos(grid)

    weights = optimal_weights(KERNEL, TENT)
    deviation = one.sigma * distance(KERNEL, TENT) * math.sqrt(2)
    check(audit_tent(draw, math.sqrt(2), weights, deviation), broken)


@both
def test_a_known_seed_is_caught(broken: bool) -> None:
    """Whoever knows the seed draws the noise again and subtracts it; with another seed that only adds to it."""
    one = mechanism(mu=1.0)

    def draw(side: int, stream: int) -> np.ndarray:
        private = one.simulate(lambda states: side * TENT, stream)
        guessed = SeededEntropy(stream if broken else stream + 2**128)
        return np.asarray(private(grid_points(one.box, 7))) - one.sigma * draw_grid(KERNEL, 7, (), guessed)

    deviation = one.sigma * distance(KERNEL, TENT) * math.sqrt(2)
    check(audit_tent(draw, 1.0, optimal_weights(KERNEL, TENT), deviation), broken)


@both
def test_a_known_key_is_caught(broken: bool) -> None:
    """The same for a path that is a function of its key."""
    sigma, grid = distance(KERNEL, TENT), np.linspace(0, 1, 129)

    def path(number: int) -> np.ndarray:
        return TreePath(KERNEL, levels=7, sigma=sigma, key=number.to_bytes(32))(grid)

    def draw(side: int, stream: int) -> np.ndarray:
        return side * TENT + path(stream) - path(stream if broken else stream + 2**128)

    check(audit_tent(draw, 1.0, optimal_weights(KERNEL, TENT), sigma**2 * math.sqrt(2)), broken)


# f at the raw state, noise at the snapped one


@pytest.mark.parametrize("kind", ["snapped", "full resolution", "raw"])
def test_a_function_at_raw_states_with_noise_on_a_grid_is_caught(kind: str) -> None:
    """Sixteen cells; two queries in each, whose difference would be f(x) - f(x') alone.

    The neighbour climbs all the way, by less than one person of 50 may move the reward. Sound are f at the grid's point
    too, where the differences are 0, and noise without a grid.
    """
    levels, budget = 4, Budget.from_mu(1.0, DELTA)
    sigma = BALL.rkhs_radius(Exponential(BALL.best_beta())) / budget.mu
    centres = np.arange(1, 2**levels) / 2**levels
    below, above = (centres + side * 0.4 / 2**levels for side in (-1, 1))

    def reward(states: np.ndarray, side: int) -> np.ndarray:
        return 0.5 - np.abs(states - 0.5) + side * 0.02 * (states - 0.5)

    def draw(side: int, stream: int) -> np.ndarray:
        entropy, kernel = SeededEntropy(stream), Exponential(BALL.best_beta())
        if kind == "full resolution":
            exact = SortedPath(kernel, sigma, entropy=entropy)
            return reward(above, side) + exact(above) - reward(below, side) - exact(below)
        path = TreePath(kernel, levels, sigma, key=stream.to_bytes(32))
        looked = [np.rint(x * 2**levels) / 2**levels if kind == "snapped" else x for x in (above, below)]
        return reward(looked[0], side) + path(above) - reward(looked[1], side) - path(below)

    attack = Attack("a lazy path", "walk", str(BALL), "a slope", "15 pairs of queries", "sum of differences")
    promise = Promise("certified", budget.epsilon, DELTA, budget.mu)
    finding = audit_draws(draw, lambda seen: float(seen.sum()), 100, attack, promise)
    check(finding, broken=kind == "raw")


# Random features that merely approximate the kernel


class Approximate(GaussianProcessMechanism):
    """Noise of 48 random cosines whose covariance is nearly the exponential kernel's: of rank 48 on 129 points."""

    features: ClassVar[np.ndarray] = np.empty((0, 0))

    def _release(self, values: Any, entropy: Any, certificate: Any) -> PrivateTable:
        noise = self.sigma * self.features @ entropy.normals((self.features.shape[1],))
        return PrivateTable(round_release(values[0], noise, self.sigma), self.levels, self.box, certificate)


def random_cosines(number: int) -> np.ndarray:
    rng, grid = np.random.default_rng(5), np.linspace(0, 1, 129)
    frequencies, phases = KERNEL.beta * rng.standard_cauchy(number), rng.uniform(0, 2 * np.pi, number)
    return math.sqrt(2 / number) * np.cos(grid[:, None] * frequencies + phases)


@both
def test_noise_of_random_features_is_caught(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the directions that no feature has, there is no noise. The exact noise has some in each."""
    features = random_cosines(48)
    monkeypatch.setattr(Approximate, "features", features)
    one = mechanism(1.0, Approximate if broken else GaussianProcessMechanism)
    inside = np.linalg.svd(features, full_matrices=False)
    basis = inside.U[:, inside.S > 1e-9 * inside.S[0]]
    weights = TENT - basis @ (basis.T @ TENT)

    def draw(side: int, stream: int) -> np.ndarray:
        return np.asarray(one.simulate(lambda states: side * TENT, stream)(grid_points(one.box, one.levels)))

    points = np.linspace(0, 1, 129)
    covariance = np.asarray(KERNEL.covariance(points, points))
    deviation = one.sigma * math.sqrt(weights @ covariance @ weights)
    check(audit_tent(draw, 1.0, weights, deviation), broken)


# Policy evaluation


@pytest.mark.parametrize("part", [1.0, 0.5, 1 / 40])
def test_evaluation_with_hardly_any_noise_is_caught(part: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its noise is some times larger than this attack needs it to be, so that half of it does not show in a few runs.

    (Half of it is caught from inside, in `test_frozen`.) A fortieth is caught.
    """
    monkeypatch.setattr("quietq.learning.evaluation.SLACK", part)
    check(audit_evaluation(200, Budget(0.9, DELTA), 150), broken=part < 0.5)
