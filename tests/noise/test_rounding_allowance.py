"""What rounding errors can do in a kernel's norm, and that the noise covers it."""

import copy
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest

from quietq import Budget, InvalidInput, people, privatise
from quietq.feedback.extension import Extension
from quietq.feedback.ratings import Ratings
from quietq.mechanisms import GaussianProcessMechanism
from quietq.noise.box import Box, grid_points
from quietq.noise.rounding import FLOAT64, worst_norm
from quietq.paper import BandLimited, FeatureKernel, FiniteRankMechanism
from quietq.privacy import Exponential
from quietq.privacy.relations import LipschitzBall

torch = pytest.importorskip("torch")

BUDGET = Budget(0.9, 1e-4)
PATH: dict[str, Any] = {"noise": "path"}


@pytest.mark.parametrize("beta", [0.01, 4.0, 1000.0])
@pytest.mark.parametrize("levels", [2, 5, 7])
def test_no_errors_are_larger_in_the_norm_and_some_are_as_large(beta: float, levels: int) -> None:
    kernel, grid = Exponential(beta), np.arange(2**levels + 1) * 2.0**-levels
    worst = worst_norm(kernel, levels)
    rng = np.random.default_rng(0)
    found = [kernel.norm_on(grid, sign) for sign in rng.choice([-1.0, 1.0], (200, len(grid)))]
    assert max(found) <= worst * (1 + 1e-12)
    assert kernel.norm_on(grid, (-1.0) ** np.arange(len(grid))) == pytest.approx(worst)


def test_points_that_keep_their_distance() -> None:
    rng, kernel, gap = np.random.default_rng(1), Exponential(4.0), 2.0**-7
    for _ in range(200):
        points = np.cumsum(np.append(0.0, gap * (1 + rng.exponential(rng.random(), 200))))
        points = points[points <= 1]
        assert kernel.norm_on(points, (-1.0) ** np.arange(len(points))) <= worst_norm(kernel, 7)


def test_products_sums_and_weights() -> None:
    levels = 3
    product = Exponential((0.5, 6.0))
    points = grid_points(GaussianProcessMechanism(product, 1.0, BUDGET, levels=levels).box, levels)
    rng = np.random.default_rng(2)
    signs = np.vstack([rng.choice([-1.0, 1.0], (100, len(points))), (-1.0) ** np.rint(points.sum(axis=1) * 2**levels)])
    norms = [product.norm_on(points, sign) for sign in signs]
    assert max(norms) == pytest.approx(worst_norm(product, levels))
    additive = Exponential((1.0, 3.0), summed=True)
    assert worst_norm(additive, 5) == pytest.approx(
        math.hypot(*(worst_norm(Exponential(beta), 5) for beta in additive.betas))
    )
    assert FeatureKernel(lambda x: np.ones((len(x), 9)), rank=9).worst_projection == 3
    band = BandLimited(3.0)
    longest = np.linalg.svd(band.project(np.eye(2 * band.rank)), compute_uv=False)[0] * math.sqrt(2 * band.rank)
    assert longest <= band.worst_projection


def tents(count: int, dtype: type, peaks: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The mean of people's tents, computed in the type."""

    def mean(states: np.ndarray) -> np.ndarray:
        states, total = states.astype(dtype), np.zeros(len(states), dtype)
        for peak in peaks.astype(dtype):
            total += dtype(0.5) - np.abs(states - peak) / dtype(2)
        return total * dtype(count / len(peaks)) / dtype(count)

    return mean


def seen(levels: int, f: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    return f(np.arange(2**levels + 1) * 2.0**-levels).astype(float)


def test_a_mean_of_tents_in_float32() -> None:
    budget, count, peaks = Budget(0.9, 1e-6), 20_000, np.random.default_rng(0).random(200)
    ball = people(count, low=0, high=0.5, slope=0.5)
    single = tents(count, np.float32, peaks)
    with pytest.raises(InvalidInput, match="not float32, whose rounding the noise would not hide"):
        privatise(single, budget, relation=ball, **PATH)
    changed = peaks.copy()
    changed[0] = 1 - peaks[0]
    other = tents(count, np.float32, changed)  # of as many people as 200 stand for, so a hundredth of it counts

    double, double_other = (tents(count, np.float64, each) for each in (peaks, changed))
    private = privatise(single, budget, relation=ball, accuracy=4e-7, **PATH)
    text = next(one.text for one in private.certificate.assumptions if "computed to within 4e-07" in one.text)
    assert "which the noise covers" in text
    levels, sigma = private.levels, private.certificate.sigma  # type: ignore[attr-defined]
    assert sigma is not None
    assert 4 <= levels < 16
    kernel, grid = Exponential(ball.best_beta()), np.arange(2**levels + 1) * 2.0**-levels
    errors = seen(levels, single) - seen(levels, double), seen(levels, other) - seen(levels, double_other)
    assert max(np.abs(each).max() for each in errors) <= 4e-7
    one_person = (seen(levels, double_other) - seen(levels, double)) * len(peaks) / count
    assert kernel.norm_on(grid, one_person + errors[1] - errors[0]) / sigma <= budget.mu


def rounds_coarsely() -> list[Any]:
    def typed(kind: Any) -> Callable[[np.ndarray], Any]:
        return lambda states: states.astype(kind)

    return [
        pytest.param(typed(np.float16), id="float16"),
        pytest.param(typed(">f4"), id="other bytes"),
        pytest.param(lambda s: jnp.asarray(s, jnp.float32), id="jax"),
        pytest.param(lambda s: jnp.asarray(s, jnp.bfloat16), id="jax bfloat16"),
        pytest.param(lambda s: np.asarray(jnp.asarray(s, jnp.bfloat16)), id="bfloat16"),
        pytest.param(lambda s: torch.tensor(s, dtype=torch.float32), id="torch"),
        pytest.param(lambda s: torch.tensor(s, dtype=torch.bfloat16), id="torch bfloat16"),
        pytest.param(lambda s: [np.float32(x) for x in s], id="list"),
        pytest.param(lambda s: [0.5, *(np.float32(x) for x in s[1:])], id="mixed list"),
        pytest.param(lambda s: [*map(float, s[:-1]), torch.tensor(0.5)], id="one tensor"),
        pytest.param(lambda s: [(float(x), np.float16(x)) for x in s], id="rows"),
        pytest.param(lambda s: pd.Series(s.astype(np.float32)), id="pandas"),
        pytest.param(lambda s: pd.array(s, dtype="Float32"), id="pandas nullable"),
        pytest.param(lambda s: pd.DataFrame({"a": s, "b": s.astype(np.float32)}), id="frame"),
        pytest.param(lambda s: pl.DataFrame({"a": s, "b": s.astype(np.float32)}), id="polars"),
        pytest.param(lambda s: memoryview(s.astype(np.float32)), id="memory"),
    ]


@pytest.mark.parametrize("f", rounds_coarsely())
@pytest.mark.parametrize("noise", ["path", "k-norm", "knots"])
def test_less_exact_numbers_than_float64_are_refused(f: Callable[[np.ndarray], Any], noise: Any) -> None:
    with pytest.raises(
        InvalidInput, match="whose rounding the noise would not hide: compute them in float64, or state"
    ):
        privatise(f, BUDGET, relation=LipschitzBall(0.01, 0.04, actions=2 if noise == "path" else 1), noise=noise)


@pytest.mark.parametrize("f", rounds_coarsely()[:4])
@pytest.mark.parametrize("noise", ["path", "k-norm", "knots"])
def test_the_advice_works(f: Callable[[np.ndarray], Any], noise: Any) -> None:
    ball = people(50, low=0, high=1, slope=1)
    assert privatise(f, BUDGET, relation=ball, noise=noise, accuracy=1e-3).certificate.standing == "certified"
    exact = privatise(lambda s: np.asarray(f(s), np.float64), BUDGET, relation=ball, noise=noise)
    assert exact.certificate.standing == "certified"
    with pytest.raises(InvalidInput, match=r"exact to 0\.5 only cannot be released"):
        privatise(f, BUDGET, relation=ball, noise=noise, accuracy=0.5)


def test_weights_likewise() -> None:
    kernel, single = FeatureKernel(lambda x: np.ones((len(x), 2)), rank=2), np.zeros(2, np.float32)
    with pytest.raises(InvalidInput, match="weights must be float64"):
        FiniteRankMechanism(kernel, 0.01, BUDGET).apply(single)
    wider = FiniteRankMechanism(kernel, 0.01, BUDGET, accuracy=1e-3).apply(single).certificate.sigma
    plain = FiniteRankMechanism(kernel, 0.01, BUDGET).apply([0, 1]).certificate.sigma
    assert wider == pytest.approx(plain * (1 + 2e-3 * math.sqrt(2) / 0.01), rel=1e-5)  # type: ignore[operator]


@pytest.mark.parametrize(
    "f",
    [
        lambda s: s > 0.5,
        lambda s: (s * 3).astype(np.int8),
        lambda s: [round(x) for x in s.tolist()],
        lambda s: s.tolist(),
        lambda s: torch.tensor(s),
        lambda s: s.astype(np.longdouble),
    ],
)
def test_whole_and_double_numbers_cost_nothing(f: Callable[[np.ndarray], Any]) -> None:
    ball = people(50, low=0, high=2, slope=2)
    mechanism = GaussianProcessMechanism.for_relation(ball, BUDGET)
    assert mechanism.levels == 16
    assert mechanism.apply(f).certificate.sigma == pytest.approx(ball.rkhs_radius(mechanism.kernel) / BUDGET.mu)


@pytest.mark.parametrize("kernel", [Exponential(0.1), Exponential(4.0), Exponential((1.0, 1.0)), BandLimited(20.0)])
def test_the_allowance_for_float64_is_small(kernel: Exponential | BandLimited) -> None:
    kind = FiniteRankMechanism if isinstance(kernel, BandLimited) else GaussianProcessMechanism
    mechanism = kind(kernel, 1.0, BUDGET)
    stretch = kernel.stretch if isinstance(kernel, BandLimited) else 1.0
    assert stretch < mechanism.sensitivity < stretch * (1 + 1e-4)


@pytest.mark.parametrize(("count", "slope", "points"), [(50, 1.0, 2049), (50, 0.1, 1025), (2000, 1.0, 65537)])
def test_a_table_has_as_many_points_as_the_slope_needs(count: int, slope: float, points: int) -> None:
    """Between a state and the nearest point, a reward changes by no more than a 256th of the noise."""
    ball, kinks = people(count, 0, 0.5, slope), np.sort(np.random.default_rng(6).random(40))

    def steep(states: np.ndarray) -> np.ndarray:  # full slope everywhere, up and down
        return slope * (np.searchsorted(kinks, states) % 2 * 2 - 1) * np.abs(states[:, None] - kinks).min(axis=1)

    private = privatise(steep, Budget(0.9, 1e-5), relation=ball, **PATH)
    table = private.values  # type: ignore[attr-defined]
    assert table.shape == (points,)
    states = np.random.default_rng(7).random(5000)
    nearest = np.rint(states * (points - 1)) / (points - 1)
    sigma = private.certificate.sigma
    assert sigma is not None
    assert np.abs(steep(states) - steep(nearest)).max() <= sigma / 256 * (1 + 1e-6)
    simulated = privatise(steep, Budget(0.9, 1e-5), relation=ball, simulate=1, **PATH)
    assert simulated.values.shape == (65537,)  # type: ignore[attr-defined]
    undeclared = privatise(steep, Budget(0.9, 1e-5), relation=LipschitzBall(ball.radius, ball.lipschitz), **PATH)
    assert undeclared.values.shape == (65537,)  # type: ignore[attr-defined]


@pytest.mark.parametrize("slope", [3.0, 1e5, 1e8])
def test_a_mean_of_people_is_as_exact_as_it_is_taken_to_be(slope: float) -> None:
    """Against fractions, in boxes whose points fall beside those of the grid, and for the steepest of slopes."""
    rng, levels, crowd, box = np.random.default_rng(8), 9, 60, Box.of((-1.7, 0.3))
    worst = Fraction(0)
    for low, high in ((-1.0, 1.0), (0.1, 0.7)):
        extension, count = Extension(low=low, high=high, slope=slope * (high - low), levels=levels), crowd + 3
        tally = extension.empty()
        x, ratings = np.sort(rng.random((crowd, 4)), axis=1), rng.choice([low, high, rng.uniform(low, high)], 4 * crowd)
        extension.add(tally, np.arange(0, 4 * crowd, 4), {"x0": x.ravel(), "rating": ratings})
        begin, kinks, cells, parts = tally.sums
        steps = [Fraction(int(a)) + Fraction(int(b)) + Fraction(int(c), 2**extension.bits)
                 for a, b, c in zip(*(np.concatenate([[0], np.cumsum(kinks)]).cumsum()[: 2**levels + 1],
                                      np.cumsum(cells), np.cumsum(parts)), strict=True)]  # fmt: skip
        middle = (Fraction(low) + Fraction(high)) / 2
        start = crowd * Fraction(low) + Fraction(int(begin[0]), 2**32) * (Fraction(high) - Fraction(low))
        rise = Fraction(extension.slope) / 2 / 2**levels
        exact = [(start + rise * step + (count - crowd) * middle) / count for step in steps]
        public = {"not_private": {}, "low": low, "high": high, "slope": extension.slope}
        group = Ratings(box=box, people=count, first=extension, first_sum=tally, rows=None, **public)
        states = grid_points(box, levels + 1)
        found, units = group.functions()[0](states), box.to_unit(states) * 2**levels
        for value, unit in zip(found.tolist(), units.tolist(), strict=True):
            at = min(int(unit), 2**levels - 1)
            expected = exact[at] + (Fraction(unit) - at) * (exact[at + 1] - exact[at])
            worst = max(worst, abs(Fraction(value) - expected) / Fraction(max(abs(low), abs(high))))
    assert 2.0**-56 < worst <= Fraction(FLOAT64)


def exact_values(rows: list[list[tuple[Fraction, Fraction]]], levels: int, slope: int) -> list[Fraction]:
    """The sum of people's functions on the grid in rational numbers, from the definition; range [0, 1]."""
    total = []
    for at in (Fraction(i, 2**levels) for i in range(2**levels + 1)):
        upper = [min([Fraction(1), *(y + slope * abs(at - x) for x, y in one)]) for one in rows]
        lower = [max([Fraction(0), *(y - slope * abs(at - x) for x, y in one)]) for one in rows]
        total.append(sum(upper + lower, Fraction(0)) / 2)
    return total


@pytest.mark.parametrize("doublings", [0, 16])
def test_one_of_millions_of_people(doublings: int) -> None:
    """Two tallies that differ in one person, as they are released: what rounding adds is in the sensitivity."""
    rng, levels, crowd = np.random.default_rng(3), 16, 1000
    count = crowd * 2**doublings + 1
    extension = Extension(low=0, high=1, slope=3, levels=levels)
    everybody = extension.empty()
    x = np.sort(rng.random((crowd, 3)), axis=1).ravel()
    extension.add(everybody, np.arange(0, 3 * crowd, 3), {"x0": x, "rating": rng.random(3 * crowd)})
    for _ in range(doublings):
        everybody.merge(copy.deepcopy(everybody))
    released, alone = [], []
    for place, rating in (([0.1, 0.7], [1.0, 0.0]), ([0.3, 0.8], [0.0, 1.0])):
        tally = extension.empty()
        extension.add(tally, np.array([0]), {"x0": np.array(place), "rating": np.array(rating)})
        alone.append(extension.mean(tally, 1) / count)
        tally.merge(everybody)
        public = {"not_private": {}, "low": 0, "high": 1, "slope": extension.slope}
        group = Ratings(box=Box.of((0, 1)), people=count, first=extension, first_sum=tally, rows=None, **public)
        private = privatise(group, Budget(0.9, 1e-12), **PATH)
        released.append(seen(private.levels, group.functions()[0]))  # type: ignore[attr-defined]
    grid = np.linspace(0, 1, len(released[0]))
    kernel = Exponential(group.relation.best_beta())
    radius, stated = group.relation.rkhs_radius(kernel), private.certificate.queries[0].sensitivity
    exact = (alone[1] - alone[0])[:: 2**levels // (len(grid) - 1)]
    assert kernel.norm_on(grid, released[1] - released[0] - exact) <= stated - radius
    assert stated <= 1.1 * radius


def test_a_tally_is_exact_and_knows_no_order() -> None:
    rng, levels, count = np.random.default_rng(4), 5, 40
    x, y = np.sort(rng.random((count, 3)), axis=1), rng.random((count, 3))
    orders = [np.arange(count), rng.permutation(count)]
    extension, tallies = Extension(low=0, high=1, slope=2, levels=levels), []
    for order in orders:
        tally = extension.empty()
        for part in np.array_split(order, 3 + len(tallies)):
            other = extension.empty()
            columns = {"x0": x[part].ravel(), "rating": y[part].ravel()}
            extension.add(other, np.arange(0, 3 * len(part), 3), columns)
            tally.merge(other)
        tallies.append(tally)
    first, second = (extension.mean(tally, count) * count for tally in tallies)
    assert first.tobytes() == second.tobytes()
    pairs = zip(x.tolist(), y.tolist(), strict=True)
    rows = [[(Fraction(a), Fraction(b)) for a, b in zip(*each, strict=True)] for each in pairs]
    exact = exact_values(rows, levels, 2)
    assert max(abs(Fraction(a) - b) for a, b in zip(first.tolist(), exact, strict=True)) < count * 2**-32
