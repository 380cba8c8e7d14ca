"""Neural networks in the kernel's space: one dimension, several dimensions, and other kernels."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from quietq.experiments.claims.statement import TABLE, Found, Statement, power, verdict
from quietq.experiments.experiment import Verdict
from quietq.experiments.task import Row, Task
from quietq.noise import BandLimited, Exponential
from quietq.noise.kernels.exponential import whiten

NORM = "norm squared on a grid"
WIDTHS = (16, 16, 1)
ACTIVATIONS = {"relu": lambda x: np.maximum(x, 0), "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x))}


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
    """The network with these parameters."""
    hidden, first = points, 0
    for width in WIDTHS:
        last = first + (hidden.shape[-1] + 1) * width
        layer, first = parameters[first:last].reshape(-1, width), last
        hidden = hidden @ layer[:-1] + layer[-1]
        hidden = hidden if width == 1 else ACTIVATIONS[activation](hidden)
    return hidden[..., 0]


def movement(batch: int = 64, seed: int = 0) -> tuple[float, float]:
    """One SGD step of size 1 when all rewards of a batch rise by 1: how far values move, and the network's slope."""
    states = np.random.default_rng(seed).random((batch, 1))
    grid, parameters = np.linspace(0, 1, 501)[:, None], initial(1, 1.0, seed)

    def values(flat: np.ndarray) -> np.ndarray:
        return forward(np.concatenate([states, grid]), "relu", flat)

    moves = 1e-6 * np.eye(len(parameters))
    slopes = np.array([(values(parameters + m) - values(parameters - m)) / 2e-6 for m in moves])  # parameter, point
    moved = slopes[:, batch:].T @ slopes[:, :batch].mean(axis=1)
    return float(np.abs(moved).max()), float(np.abs(np.diff(values(parameters)[batch:])).max() * 500)


def growth(pairs: list[tuple[float, float]]) -> float:
    """The power that the numbers grow with in the end: over the last half of the pairs."""
    return power(pairs[len(pairs) // 2 :])


def _corollary(found: Found) -> tuple[Verdict, str]:
    changes = found.all("relative change by the last refinement")
    return verdict(max(changes) < 1e-3), (
        f"norms of networks with ReLU, tanh and sigmoid settle as the grid is refined (the last doubling changes them "
        f"by at most {max(changes):.1g})"
    )


def _architecture(found: Found) -> tuple[Verdict, str]:
    plain, tenfold = found.one("steepest slope", "weights as PyTorch begins"), found.one("steepest slope", "ten times")
    return verdict(tenfold <= plain * 1.001), (
        f"the same architecture has slope {plain:.2g} as PyTorch begins and {tenfold:.3g} with weights ten times "
        "larger; nothing in the algorithm bounds them"
    )


def _moves(found: Found) -> tuple[Verdict, str]:
    ratio = found.all("movement over the bound")
    return verdict(max(ratio) <= 1), (
        f"when all 64 rewards of a batch change by 1, and TD errors with them, one step moves the value function by "
        f"{min(ratio):.0f} to {max(ratio):.0f} times alpha L/B (five initial networks): all B rewards count, and the "
        "gradient by parameters is not bounded by the slope along states"
    )


def _product(found: Found) -> tuple[Verdict, str]:
    wall, network_, smooth = (growth(found.at(NORM + suffix)) for suffix in (": one unit", ": network", ": smooth"))
    return "holds" if max(wall, network_, smooth) < 0.1 else "fails", (
        f"in two dimensions the norm squared of ReLU(x + y - 1) grows like n^{wall:.2f} on an n x n grid, without end, "
        f"and a ReLU network's like n^{network_:.2f}; tanh(x + y - 1) is in the space (n^{smooth:.2f})"
    )


def _others(found: Found) -> tuple[Verdict, str]:
    inside, outside = found.one("d' of a function inside over mu"), found.at(NORM + ": tent")
    return verdict(abs(inside - 1) < 1e-6, outside[-1][1] < 10 * outside[0][1]), (
        f"for functions inside the band-limited space it does (the best test sees {inside:.6f} mu), but broken lines, "
        f"and so ReLU networks, are not inside: the norm squared of a tent rises from {outside[0][1]:.2g} on "
        f"{outside[0][0]:.0f} points to {outside[-1][1]:.2g} on {outside[-1][0]:.0f}"
    )


SHOWN = "tests/experiments/test_claims_spaces.py::"
COROLLARY = Statement(
    "Corollary 7: networks are in H^1", "a network whose activations have bounded gradients is in H^1 (one dimension)",
    SHOWN + "test_networks_have_a_norm_in_one_dimension", _corollary,
)  # fmt: skip
ARCHITECTURE = Statement(
    "After Corollary 7: the Lipschitz constant", "L only depends on the network architecture",
    SHOWN + "test_the_slope_of_a_network_depends_on_its_weights", _architecture, "2",
)  # fmt: skip
MOVES = Statement(
    "Theorem 5, proof: movement in one step", "|Q - Q0| <= alpha L (TD error)/B in one step",
    SHOWN + "test_a_step_moves_values_further_than_printed", _moves, "2",
)  # fmt: skip
PRODUCT = Statement(
    "Discussion: several dimensions", "with exp(-beta|x - y|_1) on R^n the approach, networks included, extends to R^n",
    SHOWN + "test_a_relu_network_is_not_in_the_product_kernels_space", _product, "also",
)  # fmt: skip
OTHERS = Statement(
    "Discussion: other kernels", "with a re-calibrated sigma the guarantee holds in general, e.g. band-limited",
    SHOWN + "test_broken_lines_are_not_band_limited", _others, "also",
)  # fmt: skip
STATEMENTS = (COROLLARY, ARCHITECTURE, MOVES, PRODUCT, OTHERS)


@dataclass(frozen=True)
class Networks(Task):
    """Norms of least-norm interpolants on finer and finer grids: they settle, or they grow without end."""

    table: ClassVar[str] = TABLE
    levels: int = 9

    @property
    def title(self) -> str:
        """For the bar."""
        return "claims: networks in the kernel's space"

    def rows(self) -> list[Row]:
        """Measures."""
        return [*_one_dimension(), *self._two_dimensions(), *_band_limited()]

    def _two_dimensions(self) -> list[Row]:
        rows = []
        for level in range(3, self.levels + 1):
            axis = np.linspace(0, 1, 2**level + 1)
            x, y = np.meshgrid(axis, axis, indexing="ij")
            functions = {
                ": one unit": np.maximum(x + y - 1, 0),
                ": network": network(np.stack([x, y], -1), "relu", seed=1),
                ": smooth": np.tanh(x + y - 1),
            }
            for words, values in functions.items():
                white = whiten(1.0, axis, whiten(1.0, axis, values).T)  # the product kernel, an axis at a time
                rows.append(PRODUCT.row(NORM + words, (white**2).sum(), setting="two dimensions", x=len(axis)))
        return rows


def _one_dimension() -> list[Row]:
    rows, kernel = [], Exponential(1.0)
    for activation in ACTIVATIONS:
        norms = []
        for level in range(4, 15):
            grid = np.linspace(0, 1, 2**level + 1)
            norms.append(kernel.norm_on(grid, network(grid[:, None], activation)))
            rows.append(COROLLARY.row(NORM, norms[-1] ** 2, setting=activation, x=len(grid)))
        change = abs(norms[-1] / norms[-2] - 1)
        rows.append(COROLLARY.row("relative change by the last refinement", change, 0, setting=activation))
    grid = np.linspace(0, 1, 2001)
    for words, scale in (("weights as PyTorch begins", 1.0), ("ten times", 10.0)):
        slope = np.abs(np.diff(network(grid[:, None], "relu", scale))).max() * 2000
        rows.append(ARCHITECTURE.row("steepest slope", slope, setting=words))
    for seed in range(5):
        moved, slope = movement(64, seed)
        rows.append(MOVES.row("movement over the bound", moved / (slope / 64), 1, setting="all rewards + 1", x=seed))
    return rows


def _band_limited(half_width: float = 6.0) -> list[Row]:
    kernel, rows = BandLimited(half_width), []
    for points in (4, 8, 12, 16, 20):
        grid = np.linspace(0, 1, points)
        tent = kernel.norm_on(grid, np.maximum(0, 0.3 - np.abs(grid - 0.47)))
        rows.append(OTHERS.row(NORM + ": tent", tent**2, setting=f"W = {half_width:g}", x=points))
    grid = np.linspace(0, 1, 10)
    section = kernel.covariance(np.array([grid[4]]), grid)[0]  # K(., y) has norm 1, and a grid that holds y shows all
    whole = float(np.sqrt(kernel.covariance(grid[4:5], grid[4:5])[0, 0]))
    rows.append(OTHERS.row("d' of a function inside over mu", kernel.norm_on(grid, section) / whole, 1))
    return rows
