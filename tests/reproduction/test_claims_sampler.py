"""The printed sampler, and how long queries take."""

import time

import numpy as np

from quietq.noise import SeededEntropy
from quietq.paper import BandLimited, FiniteRankMechanism
from quietq.paper.sampler import SortedPath
from quietq.privacy import Budget, Exponential
from quietq.worlds import walk_reward
from reproduction.claims import sampler, statements_of
from reproduction.claims.statement import power


def least(query, sizes: tuple[int, ...], repeats: int = 4) -> list[tuple[float, float]]:
    """The least processor time of several repeats."""
    pairs = []
    for n in sizes:
        points, times = np.random.default_rng(n).random(n), []
        for _ in range(repeats):
            path, began = query(), time.thread_time()
            path(points)
            times.append(time.thread_time() - began)
        pairs.append((n, min(times)))
    return pairs


def test_queries_take_about_n_log_n() -> None:
    """A quadratic sampler would have an exponent of 2."""
    pairs = least(lambda: SortedPath(Exponential(1.0), entropy=SeededEntropy(0)), (300, 1200, 4800), 3)
    assert power(sampler.modulo_log(pairs)) < 1.5


def test_band_limited_releases_take_time_like_n() -> None:
    mechanism = FiniteRankMechanism(BandLimited(5.0), 0.02, Budget(1.0, 1e-5))
    pairs = least(lambda: mechanism.simulate(walk_reward, 0), (300, 900, 2700))
    assert power(pairs) < 1.5


def test_a_dense_sampler_takes_longer_and_longer() -> None:
    points = np.random.default_rng(0).random(40)
    values = sampler.dense(points)
    factor = np.linalg.cholesky(Exponential(1.0).covariance(points, points))
    np.testing.assert_allclose(np.asarray(values), factor @ SeededEntropy(0).normals((40,)), atol=1e-9)


def test_verdicts_on_the_sampler() -> None:
    rows = [*sampler.measure(20_000), *sampler.measure_time(2000, 200, 2)]
    verdicts = [statement.claim(rows).verdict for statement in statements_of(sampler)]
    assert verdicts == ["fails", "fails", "holds"]
    quadratic = [
        row | {"measured": 1e-6 * float(row["x"] or 0) ** 2} if row["quantity"] == sampler.LISTED else row
        for row in rows
    ]
    assert sampler.SPEED.claim(quadratic).verdict == "fails"
