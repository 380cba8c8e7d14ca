"""Lemma 11, the moments of the likelihood ratio of two paths, and the matrices of Claim 12 that it rests on."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from paper.claims.statement import TABLE, Found, Statement, power, verdict
from paper.experiment import Verdict
from paper.task import Row, Task
from quietq.noise import Exponential, SeededEntropy
from quietq.noise.grid_path import draw_grid
from quietq.noise.kernels.exponential import whiten


def _moments(found: Found) -> tuple[Verdict, str]:
    under0, under1 = found.at("exponent under P0"), found.at("exponent under P1")
    square = found.one("mu squared")
    bounded = all(value <= (x * x + x) * square / 2 + 0.05 for x, value in under0)
    words = ", ".join(f"{2 * value / square:+.2f} for lambda {x:g}" for x, value in under0)
    other = ", ".join(f"{2 * value / square:+.2f}" for _, value in under1)
    return verdict(bounded), (
        f"2 sigma^2/|g|^2 times the logarithm of the moment under P0 is {words}, {'within' if bounded else 'beyond'} "
        f"lambda^2 + lambda (the lemma's own proof has lambda^2 - lambda); under P1 it is {other}"
    )


def _last_line(found: Found) -> tuple[Verdict, str]:
    printed, true = found.one("the last line's sum"), found.one("norm squared")
    return verdict(printed >= true), (
        f"for g = 1 and beta = 0.1 the last line has {printed:.3f}, below the true |g|^2 = {true:.3f}: beta^2 should "
        "be beta/2"
    )


def _rough(found: Found) -> tuple[Verdict, str]:
    variation, norms = found.at("quadratic variation over 2 beta sigma^2"), found.at("norm squared on a grid")
    slope = power(norms)
    return verdict(slope < 0.1), (
        f"quadratic variation is {variation[-1][1]:.3f} times 2 beta sigma^2, where a function of H^1 has 0; the norm "
        f"squared on n points grows like n^{slope:.2f}: almost no path is in H^1"
    )


def _matrices(found: Found) -> tuple[Verdict, str]:
    worst = max(found.all("largest error"))
    return verdict(worst < 1e-9), f"all of them, to {worst:.1g} (40 intervals, beta 0.1, 3 and 50)"


SHOWN = "tests/paper/test_claims_paths.py::"
MOMENTS = Statement(
    "Lemma 11: moments of the likelihood ratio", "E_0 (P_1/P_0)^lambda <= exp((lambda^2 + lambda)|g|^2/2 sigma^2)",
    SHOWN + "test_moments_of_the_likelihood_ratio", _moments, "8",
)  # fmt: skip
LAST_LINE = Statement(
    "Lemma 11, proof: last line", "the sum is at most beta^2 int g^2 + (1/2 beta) int g'^2 + (g(0)^2 + g(1)^2)/2",
    SHOWN + "test_the_last_line_of_the_moment_lemma", _last_line, "12",
)  # fmt: skip
ROUGH = Statement(
    "Lemmas 8 and 11: measures over H^1", "the law of the paths is a probability measure over H^1",
    SHOWN + "test_paths_are_not_in_the_space", _rough, "8",
)  # fmt: skip
MATRICES = Statement(
    "Claim 12: covariance matrices", "K00^-1, K10 K00^-1, K10 K00^-1 K10' and K11 - K10 K00^-1 K10' in closed form",
    SHOWN + "test_the_matrices_are_right", _matrices,
)  # fmt: skip
STATEMENTS = (MOMENTS, LAST_LINE, ROUGH, MATRICES)


@dataclass(frozen=True)
class Moments(Task):
    """Simulated likelihood ratios, and rough paths."""

    table: ClassVar[str] = TABLE
    paths: int = 100_000

    @property
    def title(self) -> str:
        """For the bar."""
        return "claims: moments of the likelihood ratio"

    def rows(self) -> list[Row]:
        """Measures."""
        return [*self._ratio(), *_roughness(), *_closed_forms()]

    def _ratio(self) -> list[Row]:
        beta, grid = 2.0, np.linspace(0, 1, 65)
        g = 0.4 * np.maximum(0, 1 - 4 * np.abs(grid - 0.5))
        direction = whiten(beta, grid, g)
        square = float(direction @ direction)
        noise = whiten(beta, grid, draw_grid(Exponential(beta), 6, (self.paths,), SeededEntropy(7)).T) @ direction
        rows = [MOMENTS.row("mu squared", square, setting="sigma = 1")]
        for order in (0.5, 1.0, 2.0):
            for words, shift in (("exponent under P0", -square / 2), ("exponent under P1", square / 2)):
                moment = math.log(float(np.exp(order * (noise + shift)).mean()))
                rows.append(MOMENTS.row(words, moment, (order**2 + order) * square / 2, x=order))
        g = np.ones(65)
        rows.append(LAST_LINE.row("the last line's sum", 0.1**2 + 1.0, setting="g = 1, beta = 0.1"))
        return [
            *rows,
            LAST_LINE.row("norm squared", Exponential(0.1).norm_on(grid, g) ** 2, setting="g = 1, beta = 0.1"),
        ]


def _roughness(beta: float = 3.0, levels: int = 16) -> list[Row]:
    rows, path = [], draw_grid(Exponential(beta), levels, (), SeededEntropy(8))
    for level in range(6, levels + 1, 2):
        seen = path[:: 2 ** (levels - level)]
        variation = float((np.diff(seen) ** 2).sum()) / (2 * beta)
        rows.append(ROUGH.row("quadratic variation over 2 beta sigma^2", variation, 0, x=len(seen)))
        squared = Exponential(beta).norm_on(np.linspace(0, 1, len(seen)), seen) ** 2
        rows.append(ROUGH.row("norm squared on a grid", squared, x=len(seen)))
    return rows


def _closed_forms(n: int = 40) -> list[Row]:
    rows = []
    for beta in (0.1, 3.0, 50.0):
        step, kernel = beta / (2 * n), Exponential(beta)
        even, odd = np.arange(0, 2 * n + 1, 2) / (2 * n), np.arange(1, 2 * n, 2) / (2 * n)
        k10, q = kernel.covariance(odd, even), math.exp(-2 * step)
        inverse = (np.diag([1.0] + [1 + q * q] * (n - 1) + [1.0]) - q * (np.eye(n + 1, k=1) + np.eye(n + 1, k=-1))) / (
            1 - q * q
        )
        weight = math.exp(-step) / (1 + q)
        two = weight * (np.eye(n, n + 1) + np.eye(n, n + 1, k=1))
        apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
        product = weight * (np.exp(-np.abs(2 * apart - 1) * step) + np.exp(-(2 * apart + 1) * step))
        errors = [
            inverse @ kernel.covariance(even, even) - np.eye(n + 1),
            k10 @ inverse - two,
            two @ k10.T - product,
            kernel.covariance(odd, odd) - product - math.tanh(step) * np.eye(n),
        ]  # fmt: skip
        rows.append(MATRICES.row("largest error", max(np.abs(error).max() for error in errors), 0, x=beta))
    return rows
