"""Noise that is used twice, that somebody knows, or that is not of its law, is caught; sound noise is not."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from broken_copies import BALL, DELTA, altered, both, check, swap_draws

from quietq import Budget
from quietq.audit.distinguisher import Expected
from quietq.audit.draws import audit_draws, optimal_weights
from quietq.audit.finding import Attack, Finding, Promise
from quietq.mechanisms.path import GaussianProcessMechanism
from quietq.noise.box import UNIT, grid_points
from quietq.noise.entropy import SeededEntropy
from quietq.noise.grid_path import GridNoise, draw_grid, look_up
from quietq.noise.laws import Gaussian
from quietq.paper.sampler import SortedPath
from quietq.privacy.relations import Exponential

# One mechanism's noise for two releases; a seed that is known

TENT = np.maximum(0, 1 - 4 * np.abs(np.linspace(0, 1, 129) - 0.5))
"""A move on a grid of 2^7 cells."""
KERNEL = Exponential(4.0)
LAW = GridNoise(1.0, KERNEL, 7)
LENGTH, WEIGHTS = LAW.distance(TENT), optimal_weights(LAW, TENT)


def mechanism(mu: float) -> GaussianProcessMechanism:
    """For moves as large as the tent."""
    return GaussianProcessMechanism(KERNEL, LENGTH * (1 + 1e-9), Budget.from_mu(mu, DELTA), levels=7)


def audit_tent(draw: Callable[[int, int], np.ndarray], mu: float, weights: np.ndarray, deviation: float) -> Finding:
    """Draws of 0 and of the tent with noise, on the grid, told apart by a weighted sum."""
    expected = Expected(0.0, deviation, float(weights @ TENT), deviation)
    attack = Attack("gaussian-process", "none", "the tent", "tent", "129 numbers", "weighted sum")
    promise = Promise("certified", Budget.from_mu(mu, DELTA).epsilon, DELTA, mu)
    return audit_draws(lambda *drawn: float(weights @ draw(*drawn)), 100, attack, promise, expected=expected)


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

    weights = WEIGHTS
    deviation = one.sigma * LENGTH * math.sqrt(2)
    check(audit_tent(draw, math.sqrt(2), weights, deviation), broken)


@both
def test_a_known_seed_is_caught(broken: bool) -> None:
    """Whoever knows the seed draws the noise again and subtracts it; with another seed that only adds to it."""
    one = mechanism(mu=1.0)

    def draw(side: int, stream: int) -> np.ndarray:
        private = one.simulate(lambda states: side * TENT, stream)
        guessed = SeededEntropy(stream if broken else stream + 2**128)
        return np.asarray(private(grid_points(one.box, 7))) - one.sigma * draw_grid(KERNEL, 7, (), guessed)

    deviation = one.sigma * LENGTH * math.sqrt(2)
    check(audit_tent(draw, 1.0, WEIGHTS, deviation), broken)


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
        path = partial(look_up, sigma * draw_grid(kernel, levels, (), entropy), UNIT, levels)
        looked = [np.rint(x * 2**levels) / 2**levels if kind == "snapped" else x for x in (above, below)]
        return reward(looked[0], side) + path(above) - reward(looked[1], side) - path(below)

    attack = Attack("a lazy path", "walk", str(BALL), "a slope", "15 pairs of queries", "sum of differences")
    promise = Promise("certified", budget.epsilon, DELTA, budget.mu)
    finding = audit_draws(lambda *drawn: float(draw(*drawn).sum()), 100, attack, promise)
    check(finding, broken=kind == "raw")


# Random features that merely approximate the kernel


def random_cosines(number: int) -> np.ndarray:
    rng, grid = np.random.default_rng(5), np.linspace(0, 1, 129)
    frequencies, phases = KERNEL.beta * rng.standard_cauchy(number), rng.uniform(0, 2 * np.pi, number)
    return math.sqrt(2 / number) * np.cos(grid[:, None] * frequencies + phases)


class Approximate(Gaussian):
    def draw(self, shape: Any, simulated: Any) -> np.ndarray:
        return self.sigma * random_cosines(48) @ simulated.normals((48,))


@both
def test_noise_of_random_features_is_caught(broken: bool) -> None:
    """48 random cosines whose covariance is nearly the exponential kernel's: of rank 48 on 129 points.

    In the directions that no feature has, there is no noise. The exact noise has some in each.
    """
    features, one = random_cosines(48), mechanism(1.0)
    if broken:
        one.mechanism = altered(one.mechanism, law=lambda law: swap_draws(law, Approximate(law.sigma, law.norm)))
    inside = np.linalg.svd(features, full_matrices=False)
    basis = inside.U[:, inside.S / inside.S[0] > 1e-9]
    weights = TENT - basis @ (basis.T @ TENT)

    def draw(side: int, stream: int) -> np.ndarray:
        return np.asarray(one.simulate(lambda states: side * TENT, stream)(grid_points(one.box, one.levels)))

    points = np.linspace(0, 1, 129)
    covariance = np.asarray(KERNEL.covariance(points, points))
    deviation = one.sigma * math.sqrt(weights @ covariance @ weights)
    check(audit_tent(draw, 1.0, weights, deviation), broken)
