"""The sampler: the printed conditional law of a new point, and Proposition 9, how long queries take."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from paper.claims.statement import TABLE, Found, Statement, power, verdict
from paper.experiment import Verdict
from paper.task import Row, Task
from quietq.noise import Exponential, SeededEntropy, SortedPath
from quietq.noise.bridge import between, beyond

SECONDS = "seconds for N queries"
LISTED, DENSE = "sorted list", "dense Cholesky"
_STEEP = 1.3
"""An exponent of N below which N log N is believed: timings are rough, and 2 is far away."""


def printed_law(beta: float, left: float, right: float) -> tuple[float, float, float]:
    """Weights of the left and the right neighbour, and d_at, as the equation prints them; gaps to both."""
    whole = math.sinh(beta * (left + right))
    weights = math.sinh(beta * left) / whole, math.sinh(beta * right) / whole
    spent = weights[0] * math.exp(beta * left) + weights[1] * math.exp(beta * right)
    return (*weights, 1 - spent)


def modulo_log(pairs: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Times divided by log N."""
    return [(n, seconds / math.log(n)) for n, seconds in pairs]


def _equation(found: Found) -> tuple[Verdict, str]:
    worst, positive = max(found.all("printed variance")), found.one("share of places with a positive variance")
    printed, true = found.one("covariance with the left", "printed"), found.one("covariance with the left", "kernel")
    simulated = found.one("covariance with the left", "swapped back")
    return verdict(positive > 0, abs(printed - true) < 0.02), (
        f"d_at is positive in {positive:.0%} of places (at most {worst:.1g}); with the weights as printed a point "
        f"at 0.1 has covariance {printed:.3f} with the point at 0 where the kernel says {true:.3f}; with the weights "
        f"swapped back, {simulated:.3f}"
    )


def _boundary(found: Found) -> tuple[Verdict, str]:
    printed, true = found.one("covariance", "printed"), found.one("covariance", "kernel")
    return verdict(abs(printed - true) < 0.02), (
        f"given the point at 0.5 alone, a point at 0.8 has covariance {printed:.3f} with it where the kernel says "
        f"{true:.3f} (and {found.one('covariance', 'decay from the nearest'):.3f} by decay from the nearest point)"
    )


def _speed(found: Found) -> tuple[Verdict, str]:
    pairs, dense = found.at(f"{SECONDS}: {LISTED}"), found.at(f"{SECONDS}: {DENSE}")
    slope, modulo = power(pairs), power(modulo_log(pairs))
    return verdict(modulo < _STEEP), (
        f"time grows like N^{slope:.2f}, or N^{modulo:.2f} log N, from {pairs[0][0]:,.0f} to {pairs[-1][0]:,.0f} "
        f"queries ({1e6 * pairs[-1][1] / pairs[-1][0]:.1f} microseconds each); a dense sampler like "
        f"N^{power(dense):.2f} up to {dense[-1][0]:,.0f}"
    )


EQUATION = Statement(
    "Proposition 9, proof: mu_at and d_at", "weights and variance of a new point between two known ones (equation 2)",
    "tests/noise/test_printed_formulas.py::test_the_printed_variance_is_never_positive", _equation, "1",
)  # fmt: skip
BOUNDARY = Statement(
    "Proposition 9, proof: beyond the known points", "treat s+ = 1 and s- = 0 for non-existence",
    "tests/noise/test_printed_formulas.py::test_paths_by_the_printed_rules_have_another_law", _boundary, "1",
)  # fmt: skip
SPEED = Statement(
    "Proposition 9: time of queries", "N queries take O(N ln N) time",
    "tests/paper/test_claims_sampler.py::test_queries_take_about_n_log_n", _speed,
)  # fmt: skip
STATEMENTS = (EQUATION, BOUNDARY, SPEED)


@dataclass(frozen=True)
class Sampler(Task):
    """The printed law against the kernel's."""

    table: ClassVar[str] = TABLE
    draws: int = 200_000

    @property
    def title(self) -> str:
        """For the bar."""
        return "claims: the printed sampler"

    def rows(self) -> list[Row]:
        """Measures."""
        rng = np.random.default_rng(0)
        variances = [
            printed_law(beta, *gaps)[2] for beta in (0.01, 0.1, 1.0, 10.0) for gaps in rng.uniform(0, 0.5, (500, 2))
        ]
        rows = [
            EQUATION.row("printed variance", max(variances), setting="largest of 2,000 places"),
            EQUATION.row("share of places with a positive variance", np.mean(np.array(variances) > 1e-12)),
        ]
        return [*rows, *self._between(rng), *self._beyond(rng)]

    def _between(self, rng: np.random.Generator, beta: float = 1.0) -> list[Row]:
        """A point at 0.1 between 0 and 1; the printed variance is negative, so the right one is lent to both."""
        places = np.array([0.0, 1.0])
        ends = rng.multivariate_normal(np.zeros(2), Exponential(beta).covariance(places, places), self.draws)
        right = between(beta, 0.1, 0.9)
        fresh = math.sqrt(right[2]) * rng.standard_normal(self.draws)
        rows = [EQUATION.row("covariance with the left", math.exp(-0.1 * beta), setting="kernel")]
        for words, weights in (("printed", printed_law(beta, 0.1, 0.9)), ("swapped back", right)):
            new = weights[0] * ends[:, 0] + weights[1] * ends[:, 1] + fresh
            rows.append(EQUATION.row("covariance with the left", np.mean(new * ends[:, 0]), setting=words))
        return rows

    def _beyond(self, rng: np.random.Generator, beta: float = 1.0) -> list[Row]:
        """A point at 0.8 when only 0.5 is known; the printed neighbour at 1 has no value, which is 0 in a new list."""
        known = rng.standard_normal(self.draws)
        weight = printed_law(beta, 0.3, 0.2)[0]
        decay = beyond(beta, 0.3)[0]
        return [
            BOUNDARY.row("covariance", math.exp(-0.3 * beta), setting="kernel"),
            BOUNDARY.row("covariance", np.mean(weight * known * known), setting="printed"),
            BOUNDARY.row("covariance", np.mean(decay * known * known), setting="decay from the nearest"),
        ]


@dataclass(frozen=True)
class Speed(Task):
    """Times, the least of several repeats: other work on the machine can only add to them."""

    table: ClassVar[str] = TABLE
    largest: int = 100_000
    largest_dense: int = 1_600
    repeats: int = 3

    @property
    def title(self) -> str:
        """For the bar."""
        return "claims: time of queries"

    def rows(self) -> list[Row]:
        """Measures."""
        self._least(_listed, 1000)  # what is imported late is imported now
        sizes = np.geomspace(self.largest / 100, self.largest, 5).astype(int).tolist()
        rows = [SPEED.row(f"{SECONDS}: {LISTED}", self._least(_listed, n), x=n) for n in sizes]
        few = np.geomspace(self.largest_dense / 3, self.largest_dense, 4).astype(int).tolist()
        return rows + [SPEED.row(f"{SECONDS}: {DENSE}", self._least(dense, n), x=n) for n in few]

    def _least(self, sampler: Callable[[np.ndarray], object], n: int) -> float:
        points, times = np.random.default_rng(n).random(n), []
        for _ in range(self.repeats):
            began = time.thread_time()
            sampler(points)
            times.append(time.thread_time() - began)
        return min(times)


def _listed(points: np.ndarray) -> object:
    return SortedPath(Exponential(1.0), entropy=SeededEntropy(0))(points)


def dense(points: np.ndarray) -> np.ndarray:
    """A path that uses no structure of its kernel: point by point, given all before it.

    Without BLAS, whose threads would be timed with it.
    """
    covariance = Exponential(1.0).covariance(points, points)
    factor = np.zeros_like(covariance)
    for j in range(len(points)):
        column = covariance[j:, j] - np.einsum("ij,j->i", factor[j:, :j], factor[j, :j])
        factor[j:, j] = column / math.sqrt(column[0])
    return np.einsum("ij,j->i", factor, SeededEntropy(0).normals((len(points),)))
