"""The kernel's space: its inner product and norm bound, the sensitivities that are read off it, and networks in it."""

import math

import numpy as np

from quietq.privacy import Exponential
from reproduction.claims.statement import at_most, says
from reproduction.experiment import Row, decide
from reproduction.hilbert import Differentiable, inner, norm_of, piecewise_linear, section

BETAS = (0.1, 1.0, 10.0, 300.0)

WIDTHS = (16, 16, 1)
LIPSCHITZ, BATCH = 4.0, 64
"""L and B of appendix E.3."""
ACTIVATIONS = {"relu": lambda x: np.maximum(x, 0), "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x))}
SCALES = {"weights as PyTorch begins": 1.0, "ten times": 10.0}


LEMMA = says("Lemma 6: inner product and kernel")(at_most(1e-11, "largest error"))
STEP = says("Lemma 6, proof: evaluation is bounded")(at_most(1, "f(0)^2 over 2 beta <f, f>"))
BOUND = says("Theorem 5, proof: norm bound")(at_most(1 + 1e-12, "norm squared over the bound"))
ROOT = says("Theorem 5: C as a norm")(at_most(1, "norm over C"))
SLOPES = says("Theorem 5, proof: slope of Q - Q'")(at_most(1, "norm squared over the bound"))
ALTERNATIVE = says("After Corollary 7: alternative sensitivity")(
    at_most(
        1, "norm squared over the bound @ Q = -Q' = r0/(1 - gamma)", "norm squared over the bound @ slopes L and -L"
    )
)
COROLLARY = says("Corollary 7: networks are in H^1")(at_most(1e-3, "relative change by the last refinement"))
ARCHITECTURE = says("After Corollary 7: the Lipschitz constant")(
    lambda found: decide(found.one("steepest slope", "ten times") <= found.least("steepest slope") * 1.001)
)
MOVES = says("Theorem 5, proof: movement in one step")(at_most(1, "movement over the bound"))


def below(radius: float, slope: float, turns: int = 4000) -> Differentiable:
    """A zigzag just below `radius`, everywhere as steep as `slope`: it comes close to every term of the bound."""
    values = radius - slope / turns * (np.arange(turns + 1) % 2)
    return piecewise_linear(np.linspace(0, 1, turns + 1), values)


def constant(value: float) -> Differentiable:
    return piecewise_linear([0.0, 1.0], [value, value])


def measure(tries: int = 200) -> list[Row]:
    step = 1 / (2 * 0.1 * norm_of(Exponential(0.1), constant(1.0)) ** 2)
    forgotten = STEP.row("f(0)^2 over 2 beta <f, f>", step, 1, setting="f = 1, beta = 0.1")
    return [*_reproduced(), forgotten, *_balls(tries), *_sensitivities(), *_alternatives()]


def _reproduced() -> list[Row]:
    smooth = Differentiable(lambda x: np.sin(3 * x) + x**2, lambda x: 3 * np.cos(3 * x) + 2 * x)
    points, rows = np.array([0.0, 0.2, 0.21, 0.9, 1.0]), []
    for beta in BETAS:
        kernel = Exponential(beta)
        gram = [[inner(kernel, section(kernel, x), section(kernel, y)) for y in points] for x in points]
        values = [inner(kernel, smooth, section(kernel, y)) for y in points]
        wrong = np.array(gram) - kernel.covariance(points, points), np.array(values) - smooth.value(points)
        rows.append(LEMMA.row("largest error", max(np.abs(one).max() for one in wrong), 0, x=beta))
    return rows


def _balls(tries: int, slope: float = 5.0) -> list[Row]:
    """Random broken lines that keep to |f| <= 1 and a slope of at most 5, and zigzags."""
    rng, rows = np.random.default_rng(0), []
    for beta in BETAS:
        kernel = Exponential(beta)
        bound = 1 + beta / 2 + slope**2 / (2 * beta)
        rows.append(
            BOUND.row(
                "norm squared over the bound",
                norm_of(kernel, below(1.0, slope)) ** 2 / bound,
                1,
                setting="zigzag",
                x=beta,
            )
        )
        shares = []
        for _ in range(tries // len(BETAS)):
            knots = np.linspace(0, 1, int(rng.integers(2, 40)))
            values = rng.uniform(-1, 1, len(knots))
            values *= min(1.0, slope / np.abs(np.diff(values) / np.diff(knots)).max())
            shares.append(norm_of(kernel, piecewise_linear(knots, values)) ** 2 / bound)
        rows.append(BOUND.row("norm squared over the bound", max(shares), 1, setting="random", x=beta))
    return [*rows, BOUND.row("random functions tried", tries // len(BETAS) * len(BETAS))]


def _sensitivities(v: float = 0.01, slope: float = 4.0) -> list[Row]:
    kernel, c = Exponential(1 / v), (v * v + v) * slope**2
    norm = norm_of(kernel, below(v * slope, slope))
    stated = (6.1875e-5**2 + 6.1875e-5) * 16  # v and L^2 of appendix E.3
    one = below(v * slope / 2, slope)  # and its mirror image: both L-Lipschitz, never further apart than vL
    difference = norm_of(kernel, one - (constant(0.0) - one)) ** 2
    return [
        ROOT.row("norm over C", norm / c, 1, setting="v = 0.01, L = 4"),
        ROOT.row("norm squared over C", norm**2 / c, 1, setting="v = 0.01, L = 4"),
        ROOT.row("sqrt(C) over C", 1 / math.sqrt(stated), 1, setting="v = 6.19e-5, L = 4"),
        SLOPES.row("norm squared over the bound", difference / c, 1, setting="v = 0.01, L = 4"),
    ]


def _alternatives(beta: float = 2.0, reward: float = 0.5, gamma: float = 0.5) -> list[Row]:
    """Rewards of r0 = 0.5 and of -r0 everywhere are 1 apart, so they are neighbours."""
    kernel, most, steep = Exponential(beta), reward / (1 - gamma), 1e3
    level = 2 * reward**2 * (1 + beta / 2) / (1 - gamma) ** 2
    flat = norm_of(kernel, constant(most) - constant(-most)) ** 2 / level
    # At most 0.25 in size: their slope is nearly all of their norm.
    against = norm_of(kernel, below(0.0, steep) - below(0.0, -steep)) ** 2 / (level + steep**2 / beta)
    return [
        ALTERNATIVE.row("norm squared over the bound", flat, 1, setting="Q = -Q' = r0/(1 - gamma)"),
        ALTERNATIVE.row("norm squared over the bound", against, 1, setting="slopes L and -L"),
    ]


def network(points: np.ndarray, activation: str, scale: float = 1.0, seed: int = 0) -> np.ndarray:
    """Two hidden layers of 16 units on points (n, d), weights uniform as PyTorch begins, times `scale`."""
    return forward(points, activation, initial(points.shape[-1], scale, seed))


def initial(dimension: int, scale: float, seed: int) -> np.ndarray:
    """All parameters in a row, layer by layer: weights and biases within scale/sqrt(inputs)."""
    rng, parts = np.random.default_rng(seed), []
    for inputs, width in zip((dimension, 16, 16), WIDTHS, strict=True):
        bound = scale / np.sqrt(inputs)
        parts.append(rng.uniform(-bound, bound, (inputs + 1) * width))
    return np.concatenate(parts)


def forward(points: np.ndarray, activation: str, parameters: np.ndarray) -> np.ndarray:
    hidden, first = points, 0
    for width in WIDTHS:
        last = first + (hidden.shape[-1] + 1) * width
        layer, first = parameters[first:last].reshape(-1, width), last
        hidden = hidden @ layer[:-1] + layer[-1]
        hidden = hidden if width == 1 else ACTIVATIONS[activation](hidden)
    return hidden[..., 0]


def movement(batch: int = BATCH, seed: int = 0) -> tuple[float, float]:
    """One SGD step of size 1 when all TD errors of a batch are 1: how far values move, and the network's slope."""
    states = np.random.default_rng(seed).random((batch, 1))
    grid, parameters = np.linspace(0, 1, 501)[:, None], initial(1, 1.0, seed)

    def values(flat: np.ndarray) -> np.ndarray:
        return forward(np.concatenate([states, grid]), "relu", flat)

    moves = 1e-6 * np.eye(len(parameters))
    slopes = np.array([(values(parameters + m) - values(parameters - m)) / 2e-6 for m in moves])  # parameter, point
    moved = slopes[:, batch:].T @ slopes[:, :batch].mean(axis=1)
    return float(np.abs(moved).max()), float(np.abs(np.diff(values(parameters)[batch:])).max() * 500)


def measure_networks() -> list[Row]:
    """Norms of least-norm interpolants on finer and finer grids, which settle or grow without end; and slopes."""
    rows, kernel = [], Exponential(1.0)
    for activation in ACTIVATIONS:
        norms = []
        for level in range(4, 15):
            grid = np.linspace(0, 1, 2**level + 1)
            norms.append(kernel.norm_on(grid, network(grid[:, None], activation)))
            rows.append(COROLLARY.row("norm squared on a grid", norms[-1] ** 2, setting=activation, x=len(grid)))
        change = abs(norms[-1] / norms[-2] - 1)
        rows.append(COROLLARY.row("relative change by the last refinement", change, 0, setting=activation))
    grid = np.linspace(0, 1, 2001)
    for words, scale in SCALES.items():
        slope = np.abs(np.diff(network(grid[:, None], "relu", scale))).max() * 2000
        rows.append(ARCHITECTURE.row("steepest slope", slope, setting=words))
    for seed in range(5):
        moved, slope = movement(BATCH, seed)
        ratio = moved / (2 * LIPSCHITZ / BATCH)
        rows.append(MOVES.row("movement over the bound", ratio, 1, setting="TD errors of 1", x=seed))
        rows.append(MOVES.row("steepest slope", slope, LIPSCHITZ, setting="TD errors of 1", x=seed))
    return rows
