"""The sampler: the printed conditional law of a new point, and Proposition 9, how long queries take."""

import math
import time
from collections.abc import Callable

import numpy as np

from quietq.noise import SeededEntropy
from quietq.paper.sampler import SortedPath, between, beyond
from quietq.privacy import Exponential
from reproduction.claims.statement import Measurements, power, says
from reproduction.experiment import Decision, Row, decide

LISTED, DENSE = "seconds for N queries: sorted list", "seconds for N queries: dense Cholesky"


@says("Proposition 9, proof: mu_at and d_at")
def EQUATION(found: Measurements) -> Decision:
    apart = found.one("covariance with the left", "printed") - found.one("covariance with the left", "kernel")
    return decide(found.one("share of places with a positive variance") > 0, abs(apart) < 0.02)


BOUNDARY = says("Proposition 9, proof: beyond the known points")(
    lambda found: decide(abs(found.one("covariance", "printed") - found.one("covariance", "kernel")) < 0.02)
)


@says("Proposition 9: time of queries")
def SPEED(found: Measurements) -> Decision:
    pairs, dense = found.at(LISTED), found.at(DENSE)
    modulo, (largest, longest) = power(modulo_log(pairs)), pairs[-1]
    # An exponent of N below which N log N is believed: timings are rough, and 2 is far away.
    return decide(
        modulo < 1.3,
        power=power(pairs),
        modulo=modulo,
        fewest=pairs[0][0],
        largest=largest,
        each=1e6 * longest / largest,
        dense=power(dense),
        densest=dense[-1][0],
    )


def printed_law(beta: float, left: float, right: float) -> tuple[float, float, float]:
    """Weights of the left and the right neighbour, and d_at, as the equation prints them; gaps to both."""
    whole = math.sinh(beta * (left + right))
    weights = math.sinh(beta * left) / whole, math.sinh(beta * right) / whole
    spent = weights[0] * math.exp(beta * left) + weights[1] * math.exp(beta * right)
    return (*weights, 1 - spent)


def modulo_log(pairs: list[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(n, seconds / math.log(n)) for n, seconds in pairs]


def measure(draws: int = 200_000, beta: float = 1.0) -> list[Row]:
    rng = np.random.default_rng(0)
    variances = np.array(
        [printed_law(scale, *gaps)[2] for scale in (0.01, 0.1, 1.0, 10.0) for gaps in rng.uniform(0, 0.5, (500, 2))]
    )
    # A point at 0.1 between 0 and 1; the printed variance is negative, so the right one is lent to both.
    places, right = np.array([0.0, 1.0]), between(beta, 0.1, 0.9)
    ends = rng.multivariate_normal(np.zeros(2), Exponential(beta).covariance(places, places), draws)
    fresh = math.sqrt(right[2]) * rng.standard_normal(draws)

    def covariance(weights: tuple[float, ...]) -> float:
        return float(np.mean((weights[0] * ends[:, 0] + weights[1] * ends[:, 1] + fresh) * ends[:, 0]))

    # A point at 0.8 when only 0.5 is known; the printed neighbour at 1 has no value, which is 0 in a new list.
    known = rng.standard_normal(draws)
    weight, decay = printed_law(beta, 0.3, 0.2)[0], beyond(beta, 0.3)[0]
    return [
        EQUATION.row("printed variance", variances.max(), setting="largest of 2,000 places"),
        EQUATION.row("share of places with a positive variance", np.mean(variances > 1e-12)),
        EQUATION.row("covariance with the left", math.exp(-0.1 * beta), setting="kernel"),
        EQUATION.row("covariance with the left", covariance(printed_law(beta, 0.1, 0.9)), setting="printed"),
        EQUATION.row("covariance with the left", covariance(right), setting="swapped back"),
        BOUNDARY.row("covariance", math.exp(-0.3 * beta), setting="kernel"),
        BOUNDARY.row("covariance", np.mean(weight * known * known), setting="printed"),
        BOUNDARY.row("covariance", np.mean(decay * known * known), setting="decay from the nearest"),
    ]


def measure_time(largest: int = 100_000, largest_dense: int = 1_600, repeats: int = 3) -> list[Row]:
    seconds(_listed, np.random.default_rng(0).random(1000), 1)  # what is imported late is imported now
    return [
        SPEED.row(name, seconds(sample, np.random.default_rng(n).random(n), repeats), x=n)
        for name, sample, sizes in (
            (LISTED, _listed, np.geomspace(largest / 100, largest, 5)),
            (DENSE, dense, np.geomspace(largest_dense / 3, largest_dense, 4)),
        )
        for n in sizes.astype(int).tolist()
    ]


def seconds(answer: Callable[[np.ndarray], object], points: np.ndarray, repeats: int) -> float:
    """The least of some repeats, of this thread alone: other work on the machine can only add to them."""
    times = []
    for _ in range(repeats):
        began = time.thread_time()
        answer(points)
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
