"""Statistics of rows: each person's vector is theirs alone, and never longer than its bound."""

import tracemalloc

import numpy as np
import pytest

from quietq.feedback.row_statistics import (
    INDICATOR_WEIGHT,
    Chosen,
    ClippedGradient,
    Marginals,
    SecondMoments,
    Squared,
    exact_product,
)
from quietq.noise.feature_maps import Polynomials

LOSS, CHOSEN = Squared(2, (0.0, 1.0)), Chosen(2, 2)
FEATURES = Polynomials(2, ((), ((0, 1),), ((1, 3),), ((0, 1), (1, 2))))
RNG = np.random.default_rng(0)


def gradient(clip: float = 0.1) -> ClippedGradient:
    return ClippedGradient(LOSS, FEATURES, np.array([0.1, -0.3, 0.2, 0.5]), clip)


def turned(clip: float = 0.1) -> ClippedGradient:
    """Along columns of a matrix, some much larger than others."""
    basis = RNG.normal(size=(4, 3)) * [1e-3, 1, 50]
    return ClippedGradient(LOSS, FEATURES, np.array([0.1, -0.3, 0.2, 0.5]), clip, basis)


def around(points: np.ndarray) -> np.ndarray:
    return 2 * points - 1


STATISTICS = {
    "gradient": gradient(),
    "turned": turned(),
    "choices": ClippedGradient(CHOSEN, FEATURES, np.array([0.1, -0.3, 0.2, 0.5]), 0.1),
    "marginals": Marginals(LOSS, 2, 8),
    "moments": SecondMoments(LOSS, around, 2),
    "moments-of-pairs": SecondMoments(Chosen(2, 2), around, 2),
}


def crowd(sizes: list[int]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    rng, rows = np.random.default_rng(1), sum(sizes)
    names = ["x0", "x1", *(f"option{j}_{i}" for j in (0, 1) for i in (0, 1)), "rating"]
    columns = {name: rng.random(rows) for name in names} | {"choice": rng.integers(0, 3, rows)}
    return np.append(0, np.cumsum(sizes))[:-1], columns


@pytest.mark.parametrize("statistic", STATISTICS.values(), ids=STATISTICS)
def test_company_changes_no_bit(statistic):
    sizes = [1, 2, 3, 40, 1, 300, 7]
    starts, columns = crowd(sizes)
    together = statistic.of_people(starts, columns)
    for i, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        alone = {name: column[start : start + size] for name, column in columns.items()}
        assert np.array_equal(statistic.of_people(np.array([0]), alone)[0], together[i])


def test_the_gradient_is_that_of_the_mean_loss():
    """Against finite differences of the mean squared error, where nothing is clipped."""
    starts, columns = crowd([30])
    points, ratings = np.stack([columns["x0"], columns["x1"]], axis=-1), columns["rating"] - 0.5

    def loss(weights):
        return np.mean((FEATURES(points) @ weights - ratings) ** 2) / 2

    statistic = gradient(clip=100.0)
    found = statistic.of_people(starts, columns)[0]
    steps = 1e-6 * np.eye(4)
    slopes = [(loss(statistic.weights + step) - loss(statistic.weights - step)) / 2e-6 for step in steps]
    assert found[:-1] * 100 == pytest.approx(slopes, rel=1e-6)
    assert found[-1] == INDICATOR_WEIGHT / 2


@pytest.mark.parametrize("rating", [0.0, 1.0, 1e300, np.nan, np.inf])
def test_nobody_is_longer_than_the_bound(rating):
    starts, columns = crowd([5, 1])
    columns["rating"][:5] = rating
    statistic = gradient(clip=1e-3)
    tally = statistic.empty()
    with np.errstate(all="ignore"):
        statistic.add(tally, starts[:1], {name: column[:5] for name, column in columns.items()})
    length = np.linalg.norm(statistic.mean(tally, 1))
    assert length <= statistic.bound
    assert np.isfinite(length)


def test_memory_does_not_grow_with_rows_times_features():
    starts, columns = crowd([20] * 2000)
    features = Polynomials(2, tuple(((0, i), (1, j)) for i in range(1, 13) for j in range(1, 13)))
    statistic = ClippedGradient(LOSS, features, np.zeros(144), 0.1)
    tracemalloc.start()
    statistic.add(statistic.empty(), starts, columns)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12e6 < 40_000 * features.rank * 8 / 3  # some blocks at a time, never all features of all rows


def test_many_rows_count_once():
    starts, columns = crowd([4])
    many = {name: np.tile(column, 50) for name, column in columns.items()}
    statistic = gradient()
    few = statistic.of_people(starts, columns)
    assert statistic.of_people(starts, many) == pytest.approx(few)


def test_products_are_right_and_the_same_in_any_company():
    vectors, matrix = RNG.normal(size=(20, 300)) * 10.0 ** RNG.integers(-9, 9, (20, 1)), RNG.normal(size=(300, 250))
    found = exact_product(vectors, matrix)
    size = np.linalg.norm(vectors, axis=1, keepdims=True)
    assert found / size == pytest.approx(vectors @ matrix / size, abs=1e-4)
    for i in (0, 7, 19):
        assert np.array_equal(exact_product(vectors[i : i + 1], matrix)[0], found[i])


def test_moments_are_those_of_a_persons_states():
    starts, columns = crowd([30])
    left, right = (around(np.stack([columns[f"option{j}_{i}"] for i in (0, 1)], axis=-1)) for j in (0, 1))
    apart, mean = (left - right).T @ (left - right) / 2, (left + right).T @ (left + right) / 2
    both = np.concatenate([np.array([one[0, 0], one[0, 1] * 2**0.5, one[1, 1]]) for one in (apart, mean)])
    assert SecondMoments(Chosen(2, 2), around, 2).of_people(starts, columns)[0] == pytest.approx(
        both / np.linalg.norm(both)
    )


def test_ends_of_the_box_are_told_apart():
    found = Marginals(LOSS, 2, 2).of_people(np.array([0]), {"x0": np.array([0.0, 0.1]), "x1": np.array([1.0, 0.5])})
    assert found[0] == pytest.approx([0.5, 0.5, 0, 0, 0, 0, 0.5, 0.5])
