"""Neural networks in the kernel's space, and how far one step of learning moves them."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from paper.claims.statement import TABLE, Found, Statement, verdict
from paper.experiment import Verdict
from paper.task import Row, Task
from quietq.noise import Exponential

NORM = "norm squared on a grid"
WIDTHS = (16, 16, 1)
LIPSCHITZ, BATCH = 4.0, 64
"""L and B of appendix E.3."""
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
        f"when all {BATCH} TD errors of a batch are 1, half of what is allowed, and there is no noise, one step moves "
        f"the value function by {min(ratio):.0f} to {max(ratio):.0f} times 2 alpha L/B with the appendix's L = "
        f"{LIPSCHITZ:g} (five initial networks, slopes at most {max(found.all('steepest slope')):.2f}): all B rewards "
        "count, and the gradient by parameters is not bounded by the slope along states"
    )


SHOWN = "tests/paper/test_claims_spaces.py::"
COROLLARY = Statement(
    "Corollary 7: networks are in H^1", "a network whose activations have bounded gradients is in H^1 (one dimension)",
    SHOWN + "test_networks_have_a_norm_in_one_dimension", _corollary,
)  # fmt: skip
ARCHITECTURE = Statement(
    "After Corollary 7: the Lipschitz constant", "L only depends on the network architecture",
    SHOWN + "test_the_slope_of_a_network_depends_on_its_weights", _architecture, "2",
)  # fmt: skip
MOVES = Statement(
    "Theorem 5, proof: movement in one step", "|Q - Q0| <= alpha L (2 + noise)/B in one step",
    SHOWN + "test_a_step_moves_values_further_than_printed", _moves, "2",
)  # fmt: skip
STATEMENTS = (COROLLARY, ARCHITECTURE, MOVES)


@dataclass(frozen=True)
class Networks(Task):
    """Norms of least-norm interpolants on finer and finer grids, which settle or grow without end; and slopes."""

    table: ClassVar[str] = TABLE

    @property
    def title(self) -> str:
        """For the bar."""
        return "claims: networks in the kernel's space"

    def rows(self) -> list[Row]:
        """Measures."""
        return [*_norms(), *_slopes(), *_movements()]


def _norms() -> list[Row]:
    rows, kernel = [], Exponential(1.0)
    for activation in ACTIVATIONS:
        norms = []
        for level in range(4, 15):
            grid = np.linspace(0, 1, 2**level + 1)
            norms.append(kernel.norm_on(grid, network(grid[:, None], activation)))
            rows.append(COROLLARY.row(NORM, norms[-1] ** 2, setting=activation, x=len(grid)))
        change = abs(norms[-1] / norms[-2] - 1)
        rows.append(COROLLARY.row("relative change by the last refinement", change, 0, setting=activation))
    return rows


def _slopes() -> list[Row]:
    rows, grid = [], np.linspace(0, 1, 2001)
    for words, scale in (("weights as PyTorch begins", 1.0), ("ten times", 10.0)):
        slope = np.abs(np.diff(network(grid[:, None], "relu", scale))).max() * 2000
        rows.append(ARCHITECTURE.row("steepest slope", slope, setting=words))
    return rows


def _movements() -> list[Row]:
    rows = []
    for seed in range(5):
        moved, slope = movement(BATCH, seed)
        ratio = moved / (2 * LIPSCHITZ / BATCH)
        rows.append(MOVES.row("movement over the bound", ratio, 1, setting="TD errors of 1", x=seed))
        rows.append(MOVES.row("steepest slope", slope, LIPSCHITZ, setting="TD errors of 1", x=seed))
    return rows
