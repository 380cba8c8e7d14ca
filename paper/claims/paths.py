"""How high sample paths reach: Lemma 8, on which the bound of Theorem 5 rests."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.stats import norm

from paper.claims.statement import TABLE, Found, Statement, verdict
from paper.experiment import Verdict
from paper.task import Row, Task
from quietq.noise import Exponential, SeededEntropy
from quietq.noise.grid_path import draw_grid

MEAN = "E max/sigma"
CONSTANT = 8.68
_BETWEEN = 0.5826  # what a grid misses of a maximum, in increments (Chernoff 1965)


def _mean(found: Found) -> tuple[Verdict, str]:
    pairs, printed = found.at(MEAN), found.at(MEAN, "printed")
    over = [bound / true for (_, true), (_, bound) in zip(pairs, printed, strict=True)]
    reached = ", ".join(f"{true:.3g} at beta {beta:g}" for beta, true in pairs)
    return verdict(min(over) >= 1), (
        f"E max/sigma is {reached}: {min(over):.1f} to {max(over):.0f} times less than printed. It grows like the root "
        "of a logarithm, not like sqrt(beta)"
    )


def _tail(found: Found) -> tuple[Verdict, str]:
    small, large = (
        found.all("exceedance over the bound", "sigma = 0.5"),
        found.all("exceedance over the bound", "sigma = 3"),
    )
    return verdict(max(small) <= 1, max(large) <= 1), (
        f"at sigma = 0.5 it holds; at sigma = 3, beta = 0.001 the chance is {min(large):.2g} to {max(large):.2g} times "
        f"the bound for u = 1 to 8, by simulation, and {found.one('exact lower bound over the bound'):.2g} times by "
        f"f(0) alone at u = 8. Both signs of two paths reach as high {found.one('both signs of two paths'):.1f} times "
        "as often as one path from one side, which the theorem forgets"
    )  # fmt: skip


def _sum(found: Found) -> tuple[Verdict, str]:
    total = found.one("the sum")
    return verdict(total <= CONSTANT), (
        f"1/sqrt(pi) and the series add up to {total:.4f}: rounded the wrong way, which harms nothing"
    )


SHOWN, LAW = "tests/paper/test_claims_paths.py::", "tests/noise/test_path_law.py::"
MEAN_STATED = Statement(
    "Lemma 8: expected maximum of a path", "E max f <= 8.68 sqrt(beta) sigma", LAW + "test_expected_maximum", _mean, "3"
)
TAIL = Statement(
    "Lemma 8: tail of the maximum", "P(max f >= 8.68 sqrt(beta) sigma + u) <= exp(-u^2/2)",
    SHOWN + "test_the_tail_of_the_maximum_needs_sigma", _tail, "3",
)  # fmt: skip
SUM = Statement(
    "Lemma 8, proof: the constant", "1/sqrt(pi) + sum_i (sqrt(i) + 1 + exp(-sqrt(i) - 1)) 2^(-i/2) < 8.68",
    SHOWN + "test_the_constant_of_the_lemma_is_the_sum_of_its_series", _sum, "12",
)  # fmt: skip
STATEMENTS = (MEAN_STATED, TAIL, SUM)


@dataclass(frozen=True)
class Paths(Task):
    """Simulated paths on fine grids."""

    table: ClassVar[str] = TABLE
    paths: int = 2000
    """For the maximum, at small beta; a tenth of it at large beta, on finer grids."""

    @property
    def title(self) -> str:
        """For the bar."""
        return "claims: the maximum of a path"

    def rows(self) -> list[Row]:
        """Measures."""
        return [*self._maxima(), *self._tails(), _series()]

    def _maxima(self) -> list[Row]:
        rows = []
        for beta in (0.1, 1.0, 10.0, 100.0, 1000.0, 2e4):
            levels, paths = (12, self.paths) if beta < 50 else (16, max(self.paths // 10, 20))
            ranges = []
            for first in range(0, paths, 100):  # in pieces, for memory
                drawn = draw_grid(Exponential(beta), levels, (min(100, paths - first),), SeededEntropy(first))
                ranges.append(np.ptp(drawn, axis=0) / 2)  # by symmetry its mean is that of the maximum
            found = np.concatenate(ranges)
            mean = float(found.mean()) + _BETWEEN * math.sqrt(2 * beta * 2.0**-levels)
            rows.append(MEAN_STATED.row(MEAN, mean, CONSTANT * math.sqrt(beta), setting=f"{paths} paths", x=beta))
            error = float(found.std()) / math.sqrt(paths)
            rows.append(MEAN_STATED.row("its standard error", error, setting=f"{paths} paths", x=beta))
        return rows

    def _tails(self) -> list[Row]:
        rows, beta = [], 1e-3
        unit = draw_grid(Exponential(beta), 6, (50 * self.paths,), SeededEntropy(5)).max(axis=0)
        for sigma in (0.5, 3.0):
            for u in (1.0, 2.0, 4.0, 8.0) if sigma > 1 else (0.5, 1.0, 1.5):
                share = float((sigma * unit >= CONSTANT * math.sqrt(beta) * sigma + u).mean())
                over = share / math.exp(-u * u / 2)
                rows.append(TAIL.row("exceedance over the bound", over, 1, setting=f"sigma = {sigma:g}", x=u))
        exact = float(norm.sf(CONSTANT * math.sqrt(beta) + 8.0 / 3.0)) / math.exp(-32.0)
        rows.append(TAIL.row("exact lower bound over the bound", exact, 1, setting="sigma = 3, u = 8"))
        four = draw_grid(Exponential(1.0), 8, (2, 10 * self.paths), SeededEntropy(6))
        high = np.quantile(four[:, 0].max(axis=0), 0.99)
        both = float((np.abs(four).max(axis=(0, 1)) >= high).mean()) / 0.01
        return [*rows, TAIL.row("both signs of two paths", both, 1, setting="beta = 1, 99 % quantile")]


def _series() -> Row:
    i = np.arange(400)
    terms = (np.sqrt(i) + 1 + np.exp(-np.sqrt(i) - 1)) * 2.0 ** (-i / 2)
    return SUM.row("the sum", 1 / math.sqrt(math.pi) + terms.sum(), CONSTANT)
