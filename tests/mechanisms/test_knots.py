"""Noise on knots: the two bodies, the laws of the draws, and the public rule that picks a kind."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import gamma, ks_2samp, kstest

from quietq import Budget, InvalidInput, people
from quietq.feedback.own_function import OwnFunction
from quietq.mechanisms.candidates import choose
from quietq.mechanisms.knots import IncrementNoise, least_shape, to_curve, vertices
from quietq.noise.entropy import SeededEntropy, SystemEntropy
from quietq.noise.grid_path import draw_grid
from quietq.privacy.relations import LipschitzBall

BALLS = [LipschitzBall(0.5, 2.0), LipschitzBall(1.0, 0.5), LipschitzBall(0.3, 5.0)]
BUDGET = Budget(0.9, 1e-4)


def same_law(one, other) -> float:
    found: Any = ks_2samp(one, other)
    return found.pvalue


@pytest.mark.parametrize("ball", BALLS)
@pytest.mark.parametrize("pieces", [1, 4, 8])
@pytest.mark.parametrize("entropy", [SeededEntropy(0), SystemEntropy()], ids=["seeded", "system"])
def test_k_norm_noise_has_its_law(ball, pieces, entropy):
    """|z|_K is Gamma(d, 1/epsilon), and z/|z|_K is independent of it."""
    law = IncrementNoise(0.9, ball, pieces)
    noise = law.draws(entropy, 4000)
    length = np.array([law.distance(z) for z in noise])
    assert kstest(length * 0.9, gamma(pieces).cdf).pvalue > 1e-7
    direction = noise / length[:, None]
    assert abs(np.corrcoef(direction[:, 0], length)[0, 1]) < 6 / math.sqrt(4000)
    assert np.abs(direction.mean(axis=0)).max() < 6 * direction.std() / math.sqrt(4000)


@pytest.mark.parametrize("ball", BALLS)
def test_uniform_points_fill_the_body(ball):
    """The gauge of a uniform point is the d-th root of a uniform number."""
    law = IncrementNoise(1.0, ball, 5)
    points = law.uniform(SeededEntropy(1), 5000)
    gauge = np.array([law.distance(u) for u in points])
    assert gauge.max() <= 1
    assert kstest(gauge**5, "uniform").pvalue > 1e-7
    # and the body is filled evenly: a first coordinate as rejection from scratch has it
    cube = np.random.default_rng(2).uniform(-1, 1, (400_000, 5)) * min(ball.lipschitz / 5, 2 * ball.radius)
    inside = cube[[law.distance(u) <= 1 for u in cube[:20_000]] + [False] * 380_000]
    assert same_law(points[:, 0], inside[:, 0]) > 1e-7
    assert same_law(np.abs(points.sum(axis=1)), np.abs(inside.sum(axis=1))) > 1e-7


walks = st.lists(st.floats(-1, 1), min_size=6, max_size=6)


def into_ball(shape, ball):
    """Some function's values at knots, made to keep the ball's bounds as closely as it can."""
    values = np.array(shape)
    steepest = np.abs(np.diff(values)).max() * 5 / ball.lipschitz
    return values / max(steepest, np.abs(values).max() / ball.radius, 1e-12)


@given(walks, walks, st.sampled_from(BALLS))
def test_k_norm_changes_the_log_density_by_at_most_epsilon(shape, noise, ball):
    law = IncrementNoise(1.0, ball, 5)
    change = np.diff(into_ball(shape, ball))
    assert law.distance(change) <= 1 + 1e-12
    z = np.array(noise[:5])
    assert abs(law.distance(z + change) - law.distance(z)) <= 1 + 1e-12
    assert law.distance(-z) == pytest.approx(law.distance(z))


@given(walks, st.sampled_from(BALLS))
def test_no_difference_leaves_the_ellipsoid(shape, ball):
    increments = np.diff(into_ball(shape, ball))
    assert increments @ np.linalg.solve(least_shape(ball, 5), increments) <= 1 + 1e-9


@pytest.mark.parametrize("ball", [*BALLS, LipschitzBall(1.0, 2 * 0.04315119), LipschitzBall(1.0, 1e-5)])
@pytest.mark.parametrize("pieces", [2, 4, 6])
def test_vertices_are_enough(ball, pieces):
    """The largest value over the listed vertices is the largest over the body, found by linear programs."""
    from scipy.optimize import linprog

    step = ball.lipschitz / pieces / ball.radius
    listed = vertices(step, pieces)
    assert np.abs(listed).max() <= 1 + 1e-9
    assert np.abs(np.diff(listed, axis=1)).max() <= step + 1e-9
    differences = np.diff(np.eye(pieces + 1), axis=0)
    bounds = {"A_ub": np.concatenate([differences, -differences]), "b_ub": np.full(2 * pieces, step)}
    rng = np.random.default_rng(0)
    for _ in range(100):
        direction = rng.standard_normal(pieces + 1)
        best = linprog(-direction, **bounds, bounds=[(-1, 1)] * (pieces + 1))
        assert np.abs(listed @ direction).max() == pytest.approx(-best.fun, rel=1e-7)


@pytest.mark.parametrize("ball", BALLS)
def test_the_ellipsoid_has_the_least_trace(ball):
    """No ellipsoid around the vertices has a smaller variance of the curve about its mean."""
    shape, curves = least_shape(ball, 4), to_curve(np.eye(4))
    points = np.diff(vertices(ball.lipschitz / 4 / ball.radius, 4), axis=1) * ball.radius
    assert np.einsum("ij,jk,ik->i", points, np.linalg.inv(shape), points).max() == pytest.approx(1, abs=1e-3)
    rng, size = np.random.default_rng(1), np.trace(curves.T @ shape @ curves)
    for _ in range(50):  # local optimality: nearby shapes, rescaled to enclose, are not smaller
        bump = rng.standard_normal((4, 4)) * 0.03
        other = (np.eye(4) + bump) @ shape @ (np.eye(4) + bump).T
        other *= np.einsum("ij,jk,ik->i", points, np.linalg.inv(other), points).max()
        assert np.trace(curves.T @ other @ curves) > size * (1 - 2e-3)


@pytest.mark.parametrize(("pieces", "before"), [(4, 0.05093), (6, 0.05213), (8, 0.05224)])
def test_leaving_the_constant_out_saves_noise(pieces, before):
    """Before: the ellipsoid of least trace around the values at the knots, and its error about the mean."""
    mechanism: Any = choose("knots", OwnFunction(None, people(50, 0, 0.5, 1)), BUDGET, pieces=pieces)
    assert 0.96 < mechanism.noise_error() / before < 0.985
    drawn = [to_curve(mechanism.law.draw((pieces,), SeededEntropy(seed))) for seed in range(600)]
    assert np.sqrt(np.mean(np.square(drawn))) == pytest.approx(mechanism.noise_error(), rel=0.1)


@pytest.mark.slow
def test_too_many_pieces_are_refused_in_time():
    with pytest.raises(InvalidInput, match="use fewer knots"):
        IncrementNoise(1.0, LipschitzBall(0.5, 600.0), 32).uniform(SeededEntropy(0))


def test_shaped_noise_beats_the_path_by_a_fifth():
    ball = people(50, 0, 0.5, 1)
    shaped, path = (
        choose(noise, OwnFunction(None, ball), BUDGET, level=level)
        for noise, level in (("knots", False), ("path", True))
    )
    assert min(shaped.expected_error, 1) < 0.83 * path.expected_error


def test_the_rule_is_public_and_sensible():
    few, many = people(28, 0, 0.5, 1), people(10_000, 0, 0.5, 1)
    assert choose("auto", OwnFunction(None, few, slope=1.0), BUDGET).name == "knots"
    assert choose("auto", OwnFunction(None, many, slope=1.0), BUDGET).name == "path"
    assert choose("auto", OwnFunction(None, few, slope=1.0), Budget(0.9, 0)).name == "k-norm"
    assert choose("auto", OwnFunction(None, few), BUDGET).name == "path"  # nothing is known of the mean's own slope
    asked: Any = choose("auto", OwnFunction(None, many, slope=1.0), BUDGET, pieces=5)
    assert (asked.name, asked.pieces) == ("knots", 5)  # a path has none
    with pytest.raises(InvalidInput, match="1 to 8 pieces between knots, not 16"):
        choose("auto", OwnFunction(None, few, slope=1.0), BUDGET, pieces=16)
    with pytest.raises(InvalidInput, match="leave pieces out"):
        choose("auto", OwnFunction(None, few, slope=1.0), BUDGET, pieces=4, level=True)
    assert "knots with 4 pieces" in choose("knots", OwnFunction(None, few, slope=1.0), BUDGET, pieces=4).remarks[-1]
    assert "not by the data" in choose("auto", OwnFunction(None, few, slope=1.0), BUDGET).remarks[-1]


def test_a_path_has_less_noise_about_its_mean_unless_the_level_counts():
    ball = people(50, 0, 0.5, 1)
    both: list[Any] = [choose("path", OwnFunction(None, ball), BUDGET, level=level) for level in (True, False)]
    with_level, about_mean = both
    assert 0.895 < about_mean.expected_error / with_level.expected_error < 0.905
    betas = [mechanism.law.norm.betas for mechanism in both]
    assert betas == [(pytest.approx(4.0, abs=0.001),), (pytest.approx(1.044, abs=0.001),)]
    several: Any = choose("path", OwnFunction(None, people(50, 0, 0.5, 1, actions=2)), BUDGET)
    assert several.law.norm.betas == (4.0,)  # constants decide between actions
    assert choose("auto", OwnFunction(None, people(28, 0, 0.5, 1), slope=1.0), BUDGET, level=True).name == "path"
    for noise in ("knots", "k-norm"):
        with pytest.raises(InvalidInput, match="leaves the reward's level out"):
            choose(noise, OwnFunction(None, ball), BUDGET, level=True)


def test_a_path_is_expected_to_err_by_what_its_noise_does():
    mechanism: Any = choose("path", OwnFunction(None, people(50, 0, 0.5, 1)), BUDGET)
    draws = [draw_grid(mechanism.kernel, 6, (), SeededEntropy(seed)) for seed in range(2000)]
    assert mechanism.expected_error == pytest.approx(mechanism.sigma * np.std(draws, axis=1).mean(), rel=0.15)


def test_k_norm_is_better_while_knots_are_few():
    """theory: better than Gaussian while d + 1 < (epsilon/mu)^2, about 10 at epsilon = 0.9."""
    ball = people(50, 0, 0.5, 1)
    shaped = {d: choose("knots", OwnFunction(None, ball), BUDGET, pieces=d).expected_error for d in (4, 6, 8)}
    pure = {d: choose("k-norm", OwnFunction(None, ball), BUDGET, pieces=d).expected_error for d in (4, 6, 8)}
    assert all(pure[d] < shaped[d] for d in (4, 6, 8))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"noise": "path", "pieces": 4}, "a path has none"),
        ({"noise": "knots", "pieces": 9}, "1 to 8 pieces"),
        ({"noise": "k-norm", "pieces": 0}, "pieces"),
        ({"noise": "path", "budget": Budget(1, 0)}, "delta must be above 0"),
        ({"noise": "knots", "budget": Budget(1, 0)}, "delta must be above 0"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, message):
    noise = arguments.pop("noise")
    with pytest.raises(InvalidInput, match=message):
        choose(noise, OwnFunction(None, people(28, 0, 0.5, 1), slope=1.0), **{"budget": BUDGET, **arguments})
