"""The best test of a release against what is known: distances by hand, dense covariances, and simulated draws."""

import math
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from quietq import Budget, SupBall
from quietq.audit.draws import BestTest, optimal_weights
from quietq.feedback.own_function import OwnFunction
from quietq.mechanisms.candidates import choose
from quietq.mechanisms.release import Mechanism, Query
from quietq.noise.box import UNIT
from quietq.noise.entropy import SeededEntropy
from quietq.noise.grid_path import GridNoise, draw_grid
from quietq.noise.laws import BallNoise, Gaussian
from quietq.paper import FeatureKernel, FiniteRankMechanism
from quietq.paper.observed import observed_mechanism
from quietq.privacy.account import Cost
from quietq.privacy.norms import Answers
from quietq.privacy.relations import Exponential, LipschitzBall, RkhsBall
from quietq.worlds import WALK

BUDGET, BALL = Budget(0.9, 1e-4), LipschitzBall(0.01, 0.04)
GRID = np.linspace(0, 1, 65)
DIFFERENCES = {
    "kink": 0.5 - np.abs(GRID - 0.5),
    "constant": np.ones(65),
    "wave": np.sin(9 * GRID),
    "rough": np.random.default_rng(0).normal(size=65),
}


def path(beta: float) -> Gaussian:
    return GridNoise(1.0, Exponential(beta), 6)


# The distance of every law, written a second time by hand


@pytest.mark.parametrize("name", DIFFERENCES)
@pytest.mark.parametrize("beta", [0.1, 4.0, 200.0])
def test_a_path_is_measured_by_the_inverse_of_its_covariance(name: str, beta: float) -> None:
    difference, covariance = DIFFERENCES[name], np.exp(-beta * np.abs(GRID[:, None] - GRID))
    dense = np.linalg.solve(covariance, difference)
    assert path(beta).distance(difference) ** 2 == pytest.approx(float(difference @ dense), rel=1e-9)
    weights = optimal_weights(path(beta), difference)
    np.testing.assert_allclose(weights, dense, rtol=1e-6, atol=1e-9 * np.abs(dense).max())


def test_paths_of_several_coordinates_are_too() -> None:
    rng, one, other = np.random.default_rng(1), Exponential(2.0), Exponential(5.0)
    side = np.linspace(0, 1, 5)
    first, second = (np.exp(-kernel.beta * np.abs(side[:, None] - side)) for kernel in (one, other))
    table, tables = rng.normal(size=(5, 5)), rng.normal(size=(2, 5))
    product = GridNoise(1.0, Exponential((2.0, 5.0)), 2).distance(table)
    assert product**2 == pytest.approx(table.ravel() @ np.linalg.solve(np.kron(first, second), table.ravel()))
    additive = GridNoise(1.0, Exponential((2.0, 5.0), summed=True), 2).distance(tables)
    each = [row @ np.linalg.solve(matrix, row) for row, matrix in zip(tables, (first, second), strict=True)]
    assert additive**2 == pytest.approx(sum(each))


def test_knots_are_measured_by_the_ellipsoid_around_what_a_person_can_do() -> None:
    query = next(choose("knots", OwnFunction(None, BALL), BUDGET, pieces=3).run())
    draws = np.array([query.law.draw((3,), SeededEntropy(seed)) for seed in range(20_000)])
    difference = np.array([0.01, -0.01, 0.005])
    by_covariance = math.sqrt(difference @ np.linalg.solve(np.cov(draws.T), difference))
    assert query.law.distance(difference) / query.law.sigma == pytest.approx(by_covariance, rel=0.05)
    assert query.sensitivity / query.law.sigma == pytest.approx(BUDGET.mu, rel=1e-9)


def test_increments_are_measured_by_their_body() -> None:
    """At most l/d each, and a range of the running sum of at most twice the radius: by halving an interval."""
    law = next(choose("k-norm", OwnFunction(None, BALL), Budget(0.9, 0), pieces=4).run()).law

    def fits(increments: np.ndarray) -> bool:
        sums = [sum(increments[:i]) for i in range(5)]
        return max(map(abs, increments)) <= 0.01 and max(sums) - min(sums) <= 0.02

    for increments in np.random.default_rng(2).normal(size=(20, 4)):
        low, high = 1e-3, 1e6
        for _ in range(80):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if fits(increments / middle) else (middle, high)
        assert law.distance(increments) == pytest.approx(high, rel=1e-5)


def test_weights_and_numbers_in_a_ball_are_measured_by_their_length() -> None:
    ball = RkhsBall(0.02, FeatureKernel(lambda x: np.stack([x, x**2], axis=-1), 2).norm)
    for law in (
        next(FiniteRankMechanism.for_relation(ball, BUDGET).mechanism.run()).law,
        BallNoise(1.0, 2, Answers()),
    ):
        assert law.distance(np.array([0.3, -0.4])) == pytest.approx(0.5)


def test_so_are_observed_rewards() -> None:
    query = next(observed_mechanism(WALK, SupBall(0.1), BUDGET, rewards=4).run())
    assert query.law.distance(np.array([0.1, 0.2, 0.3, -0.4])) == pytest.approx(math.sqrt(0.3))
    assert query.sensitivity == pytest.approx(0.2)


# The test


def test_no_test_errs_less_on_simulated_releases() -> None:
    """Its error is Phi(-mu/2), within five standard deviations; plain evaluation and the mean err more."""
    kernel, sigma, runs = Exponential(4.0), 0.7, 20_000
    difference = DIFFERENCES["kink"]
    paths = sigma * draw_grid(kernel, 6, (runs,), SeededEntropy(3)).T

    def errors(weights: np.ndarray) -> float:
        apart = float(weights @ difference)
        return float(np.mean(paths @ weights > apart / 2) + np.mean(paths @ weights <= -apart / 2)) / 2

    best = errors(optimal_weights(path(4.0), difference))
    expected = norm.cdf(-path(4.0).distance(difference) / sigma / 2)
    assert abs(best - expected) < 5 * np.sqrt(expected * (1 - expected) / (2 * runs))
    assert errors(np.eye(65)[32]) > best + 0.005
    assert errors(np.ones(65)) > best + 0.005


@pytest.mark.parametrize(("noise", "pieces"), [("path", None), ("knots", 4), ("k-norm", 4)])
def test_scores_are_those_of_the_released_thing(noise: str, pieces: int | None) -> None:
    """Against the release itself, for the same seed, scored by hand."""
    from quietq import privatise

    def r(states: Any) -> Any:
        return 0.5 - np.abs(states - 0.5)

    def other(states: Any) -> Any:
        return r(states) + 0.01 - 0.01 * np.asarray(states)

    budget = Budget(0.9, 0) if noise == "k-norm" else BUDGET
    mechanism = choose(noise, OwnFunction(None, BALL, box=UNIT), budget, pieces=pieces)
    test = BestTest(mechanism, OwnFunction(r, BALL), OwnFunction(other, BALL))
    private: Any = privatise(r, budget, relation=BALL, noise=noise, pieces=pieces, simulate=7)
    law, values = next(mechanism.run()).law, private.values
    knots = np.linspace(0, 1, len(values))
    before, after = values - r(knots), values - other(knots)
    if noise != "path":
        before, after = np.diff(before), np.diff(after)
    if noise == "k-norm":
        assert test.mu is None
        by_hand = 0.9 * (law.distance(before) - law.distance(after))
    else:
        assert test.mu == pytest.approx(law.distance(after - before) / law.sigma)
        by_hand = (law.distance(before) ** 2 - law.distance(after) ** 2) / law.sigma**2 / 2
    assert test.score(0, 7) == pytest.approx(by_hand, rel=1e-6, abs=1e-9)


class TwoLooks(Mechanism):
    """Two numbers: one is looked at with half of mu^2, and what came out says which sign the other is asked with."""

    name = "two looks"

    def __init__(self, budget: Budget, part: float = 1.0) -> None:
        self.kernel = FeatureKernel(lambda x: np.ones((len(x), 2)), 2)
        self.relation, self.budget, self.box = RkhsBall(1.0, self.kernel.norm), budget, UNIT
        self.largest, self.error, self.conditions, self._part = 100.0, 0.0, (), part

    @property
    def cost(self) -> Cost:
        return Cost.gaussian(self.budget.mu)

    def run(self) -> Generator[Query, np.ndarray, np.ndarray]:
        law = Gaussian(self._part * math.sqrt(2) / self.budget.mu, Answers())
        first = yield Query(lambda feedback: np.asarray(feedback.source)[:1], self._part, law)
        sign = 1.0 if first[0] > 0 else -1.0
        second = yield Query(lambda feedback: sign * np.asarray(feedback.source)[1:], self._part, law)
        return np.append(first, second)

    def result(self, released: np.ndarray, certificate: Any) -> np.ndarray:
        return released


@pytest.mark.parametrize("broken", [False, True], ids=["sound", "broken"])
def test_queries_that_depend_on_answers_are_told_apart_together(broken: bool) -> None:
    """Neighbours that differ by 1 in both numbers: mu in all. 1,200 runs a world, 900 of them judged."""
    mechanism = TwoLooks(Budget.from_mu(2.0, 1e-4), 0.5 if broken else 1.0)
    sources = [OwnFunction(np.full(2, value), mechanism.relation) for value in (0.0, 1.0)]
    test = BestTest(mechanism, *sources)
    assert test.mu is None
    finding = test.audit(1200, "both").at(1 - 1e-6)
    assert finding.verdict == ("refuted" if broken else "consistent")
    assert finding.mu_lower > 1.5


def test_pure_noise_has_no_mu_and_nothing_is_told_from_itself() -> None:
    law = BallNoise(1.0, 2, Answers())
    assert law.cost(1.0).mu is None
    same = OwnFunction(np.zeros(2), RkhsBall(0.02, FeatureKernel(lambda x: np.stack([x, 1 - x], axis=-1), 2).norm))
    test = BestTest(FiniteRankMechanism.for_relation(same.relation, BUDGET).mechanism, same, same)
    assert test.mu == 0
    assert test.score(1, 3) == 0
