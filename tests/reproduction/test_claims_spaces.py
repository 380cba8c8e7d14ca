"""Norms behind the paper's sensitivities, by integrals of one's own."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from quietq.paper import BandLimited
from quietq.privacy import Exponential
from reproduction.claims import spaces, statements_of
from reproduction.hilbert import norm_of


def squared(f, slope, beta: float) -> float:
    """The norm squared by adaptive quadrature."""
    integral = quad(lambda x: slope(x) ** 2 / (2 * beta) + beta / 2 * f(x) ** 2, 0, 1, limit=400)[0]
    return (f(0) ** 2 + f(1) ** 2) / 2 + integral


def test_evaluation_is_not_bounded_as_printed() -> None:
    beta = 0.1
    inner = squared(lambda x: 1.0, lambda x: 0.0, beta)
    assert inner == pytest.approx(1 + beta / 2)
    assert 2 * beta * inner < 1 <= inner  # the step's constant is too small, 1 is right


def test_a_zigzag_just_below_the_bound_nearly_reaches_it() -> None:
    for beta in (0.3, 4.0):
        norm = norm_of(Exponential(beta), spaces.below(1.0, 5.0)) ** 2
        assert 0.995 < norm / (1 + beta / 2 + 25 / (2 * beta)) <= 1


def test_c_is_a_squared_norm() -> None:
    v, slope = 0.01, 4.0
    c = (v**2 + v) * slope**2
    norm = norm_of(Exponential(1 / v), spaces.below(v * slope, slope))
    assert norm**2 <= c
    assert norm > 2 * c


def test_a_difference_has_twice_the_slope() -> None:
    v, slope = 0.01, 4.0
    one = spaces.below(v * slope / 2, slope)
    other = spaces.constant(0.0) - one
    x = np.linspace(0, 1, 1001)
    assert max(np.abs(one.slope(x)).max(), np.abs(other.slope(x)).max()) <= slope * (1 + 1e-9)
    assert np.abs((one - other).value(x)).max() <= v * slope
    assert norm_of(Exponential(1 / v), one - other) ** 2 > 2.4 * (v**2 + v) * slope**2


def test_the_alternative_bound_is_too_small() -> None:
    reward, gamma, beta = 0.5, 0.9, 3.0
    most = reward / (1 - gamma)
    true = squared(lambda x: 2 * most, lambda x: 0.0, beta)
    assert true == pytest.approx(2 * (2 * reward**2 * (1 + beta / 2) / (1 - gamma) ** 2))
    steep = 200.0  # a sine of slope at most 2 steep, so small that only its slope counts
    turns = 100 * math.pi
    wave = squared(lambda x: 2 * steep / turns * math.sin(turns * x), lambda x: 2 * steep * math.cos(turns * x), beta)
    assert wave == pytest.approx(steep**2 / beta, rel=0.02)  # half of 2 L^2/beta: a zigzag has it all
    zigzag = norm_of(Exponential(beta), spaces.below(0.0, 2 * steep)) ** 2
    assert zigzag == pytest.approx(2 * steep**2 / beta, rel=0.02)


def test_norms_do_not_depend_on_the_interval() -> None:
    grid = np.linspace(0, 1, 33)
    values = np.cos(5 * grid)
    dense = [
        values @ np.linalg.solve(Exponential(4.0 / width).covariance(width * grid, width * grid), values)
        for width in (1.0, 30.0)
    ]
    assert dense[0] == pytest.approx(dense[1], rel=1e-9)


@pytest.mark.parametrize("activation", list(spaces.ACTIVATIONS))
def test_networks_have_a_norm_in_one_dimension(activation: str) -> None:
    norms = []
    for level in (6, 9, 12):
        grid = np.linspace(0, 1, 2**level + 1)
        norms.append(Exponential(1.0).norm_on(grid, spaces.network(grid[:, None], activation)))
    assert norms[0] <= norms[1] <= norms[2] <= norms[1] * 1.001


def test_the_slope_of_a_network_depends_on_its_weights() -> None:
    grid = np.linspace(0, 1, 101)[:, None]
    slopes = [np.abs(np.diff(spaces.network(grid, "relu", scale))).max() for scale in (1.0, 10.0)]
    assert slopes[1] > 100 * slopes[0]


def test_a_step_moves_values_further_than_printed() -> None:
    """TD errors of 1 in all of a batch: the printed bound, for errors of 2, is 2 L/64 in steps of size 1."""
    lipschitz, batch = 4.0, 64
    ratios = []
    for seed in range(5):
        moved, slope = spaces.movement(batch, seed)
        assert slope < lipschitz
        ratios.append(moved / (2 * lipschitz / batch))
    assert min(ratios) > 10
    rows = spaces.measure_networks()
    mine = [row["measured"] for row in rows if row["quantity"] == "movement over the bound"]
    assert mine == pytest.approx(ratios)
    statements = (spaces.COROLLARY, spaces.ARCHITECTURE, spaces.MOVES)
    assert [statement.claim(rows).verdict for statement in statements] == ["holds", "fails", "fails"]
    nearer = [row | {"measured": 0.9} if row["quantity"] == "movement over the bound" else row for row in rows]
    assert spaces.MOVES.claim(nearer).verdict == "holds"


def test_movement_is_that_of_a_step() -> None:
    """Against a small step along the gradient of the mean value, which is what TD errors of 1 come to."""
    states, theta = np.random.default_rng(2).random((64, 1)), spaces.initial(1, 1.0, 2)
    grid = np.linspace(0, 1, 501)[:, None]

    def mean(flat: np.ndarray) -> float:
        return float(spaces.forward(states, "relu", flat).mean())

    moves = 1e-6 * np.eye(len(theta))
    gradient = np.array([(mean(theta + move) - mean(theta - move)) / 2e-6 for move in moves])
    step = 1e-6 * gradient
    moved = spaces.forward(grid, "relu", theta + step) - spaces.forward(grid, "relu", theta)
    assert spaces.movement(64, 2)[0] == pytest.approx(np.abs(moved).max() / 1e-6, rel=0.02)


def test_broken_lines_are_not_band_limited() -> None:
    kernel = BandLimited(2.0)
    tent, inside = [], []
    for points in (6, 9, 12):
        grid = np.linspace(0, 1, points)
        tent.append(kernel.norm_on(grid, np.maximum(0, 0.3 - np.abs(grid - 0.5))))
        inside.append(kernel.norm_on(grid, kernel.covariance(np.array([0.5]), grid)[0]))
    assert tent[-1] > 10 * tent[0]
    assert max(inside) <= 1 + 1e-9  # the norm of K(., y) is sqrt(K(y, y)) = 1, on any points at most that


def test_verdicts_on_the_space() -> None:
    rows = spaces.measure(20)
    verdicts = [statement.claim(rows).verdict for statement in statements_of(spaces)[:6]]
    alternative = [row for row in rows if row["claim"] == spaces.ALTERNATIVE.name]
    assert [row["measured"] for row in alternative] == pytest.approx([2.0, 2.0], rel=0.01)
    kept = [row | {"measured": 1.0} for row in alternative]
    assert spaces.ALTERNATIVE.claim(kept).verdict == "holds"
    assert verdicts == ["holds", "fails", "holds", "fails", "fails", "fails"]
