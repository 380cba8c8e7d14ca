"""A feature map of the caller's own sees one person's rows at a time, and is refused if it looks at more than a row."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from quietq import Budget, FeatureKernel, InvalidInput, privatise
from quietq.feedback import Ratings

COUNT, NORM = 100, 1.0
READING: dict[str, Any] = {"box": (0, 1), "low": -1, "high": 1, "slope": 1, "people": COUNT, "norm": NORM, "levels": 6}
Map = Callable[[np.ndarray], np.ndarray]


def lines(x: np.ndarray) -> np.ndarray:
    return np.stack([np.ones_like(x), x], axis=-1)


def ratings(target: list[tuple[float, float]], repeat: int = 1) -> pl.DataFrame:
    generator = np.random.default_rng(3)
    rows = [(f"p{i}", x, x) for i, x in enumerate(0.45 + 0.1 * generator.random(COUNT - 1)) for _ in range(repeat)]
    rows += [("target", *row) for row in target]
    return pl.DataFrame(rows, schema=["person", "state", "rating"], orient="row")


def standardised(x: np.ndarray) -> np.ndarray:
    return lines((x - x.mean()) / (x.std() + 1e-9))


def moved(phi: Map, **change: Any) -> float:
    """How far one person's rows move the mean weights."""
    features = FeatureKernel(phi, rank=2)
    one, other = (
        Ratings.read(ratings(rows), features=features, **(READING | change)).weights()
        for rows in ([(0.5, 0.0)], [(0.0, 1.0)] * 200 + [(1.0, 1.0)] * 200)
    )
    return float(np.linalg.norm(one - other))


class Counting:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        self.calls += 1
        return lines(x) * (1 + 0.1 * self.calls)


@pytest.mark.parametrize(
    "phi",
    [
        standardised,
        Counting(),
        lambda x: lines(x / x.max()),
        lambda x: lines(np.sort(x)),
        lambda x: lines(x + 1e-6 * np.arange(len(x))),
        lambda x: lines(x) + (0.01 if len(x) == 1 else 0.0),
        lambda x: lines(x) + 1e-6 * x[0],
        lambda x: lines(x).astype(np.float32) + x.mean().astype(np.float32),
    ],
)
def test_maps_that_look_at_more_than_one_row_are_refused(phi: Map) -> None:
    with pytest.raises(InvalidInput, match=r"^phi must look at one point at a time and remember nothing"):
        moved(phi)


def test_a_map_that_hides_from_the_check_still_sees_one_person_at_a_time() -> None:
    """It standardises the data alone, which moved the mean weights by 0.18 where 0.02 is stated."""
    inside = standardised(np.linspace(0, 1, 64))
    assert np.ptp(inside[:, 1]) > 1

    def sly(x: np.ndarray) -> np.ndarray:
        return standardised(x) if len(x) > 64 else lines(x)

    assert moved(sly) <= 2 * NORM / COUNT * (1 + 1e-6)
    assert moved(lines) <= 2 * NORM / COUNT * (1 + 1e-6)


@pytest.mark.parametrize(
    ("phi", "message"),
    [
        (lambda x: x, r"phi must return shape \(points, 2\)"),
        (lambda x: lines(x).T, r"phi must return shape \(points, 2\)"),
        (lambda x: lines(x)[:-1], r"phi must return shape \(points, 2\)"),
        (lambda x: lines(x) * np.nan, "phi must return finite numbers"),
        (lambda x: lines(x).astype(complex), "phi's values must be real numbers"),
        (lambda x: {}["secret"], "^phi failed with KeyError on an array of points in "),
    ],
)
def test_other_maps_that_are_refused(phi: Map, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        moved(phi)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("values", [np.inf, np.nan, 1e200, 1e308])
def test_extreme_features_of_one_person_change_nobody_else(values: float) -> None:
    """Gram matrices that overflow or are singular in floating point."""

    def phi(x: np.ndarray) -> np.ndarray:
        return np.where(x[:, None] == 0.25, values, lines(x))

    features, allowed = FeatureKernel(phi, rank=2), 2 * NORM / COUNT * (1 + 1e-6)
    one = Ratings.read(ratings([]), features=features, **READING).weights()
    other = Ratings.read(ratings([(0.25, 1.0), (0.25, 0.3)]), features=features, **READING).weights()
    assert np.linalg.norm(one - other) <= allowed


def test_singular_systems_leave_the_others_as_they_are() -> None:
    features = FeatureKernel(lambda x: 1e8 * np.stack([x, x], axis=-1), rank=2)
    reading: dict[str, Any] = READING | {"ridge": 1e-9}
    frame = ratings([])
    one = Ratings.read(frame, features=features, **reading).weights()
    other = Ratings.read(frame.reverse(), features=features, **reading).weights()
    assert np.array_equal(one, other)


def test_weights_are_the_same_to_the_bit_in_any_order_and_company() -> None:
    """A ridge of 1e-9 magnifies rounding errors of sums so much that the slack in the noise could not cover them."""

    def waves(x: np.ndarray) -> np.ndarray:
        return np.cos(x[:, None] * 3.1 @ np.arange(8.0)[None, :])

    generator = np.random.default_rng(0)
    rows = 4000
    data = pl.DataFrame(
        {
            "person": generator.integers(0, 50, rows),
            "state": generator.integers(0, 9, rows) / 8,
            "rating": generator.random(rows),
        }
    )
    reading: dict[str, Any] = READING | {"features": FeatureKernel(waves, rank=8), "ridge": 1e-9, "norm": 1e6}
    expected = Ratings.read(data, **reading).weights()
    for seed in range(3):
        shuffled = data.sample(fraction=1, shuffle=True, seed=seed)
        assert np.array_equal(Ratings.read([shuffled[:1000], shuffled[1000:]], **reading).weights(), expected)


def test_the_certificate_says_what_is_trusted() -> None:
    people = Ratings.read(ratings([(0.5, 0.5)]), features=FeatureKernel(lines, rank=2), **READING)
    certificate = privatise(people, Budget(1.0, 1e-3)).certificate
    stated = {assumption.text: assumption.enforced for assumption in certificate.assumptions}
    assert stated["The feature map looks at one state at a time and remembers nothing."] is False
    assert any(enforced and "weights were clipped to length 1" in text for text, enforced in stated.items())
    assert any(not enforced and text.startswith("Each row stands under the name") for text, enforced in stated.items())


def test_maps_in_float32_are_allowed_their_rounding() -> None:
    weights = np.random.default_rng(0).normal(size=(2, 400)).astype(np.float32)

    def network(x: np.ndarray) -> np.ndarray:
        hidden = np.maximum(0, lines(x).astype(np.float32) @ weights)
        return hidden @ weights.T / 400

    assert moved(network) <= 2 * NORM / COUNT * (1 + 1e-6)


def test_many_features_and_many_rows_of_one_person() -> None:
    """Sums over more rows than fit at once, and a refusal whose advice works."""

    def phi(x: np.ndarray) -> np.ndarray:
        return np.cos(x[:, None] * np.arange(1024))

    rows = ratings([(i / 50, 1.0) for i in range(50)])
    people = Ratings.read(rows[-51:], features=FeatureKernel(phi, rank=1024), **READING)
    assert people.not_private["used_rows"] == 51
    with pytest.raises(InvalidInput, match=r"at most 1024 features, not 1025: use fewer\.$"):
        Ratings.read(rows, features=FeatureKernel(phi, rank=1025), **READING)


def test_advice_on_noise_for_features_works() -> None:
    people = Ratings.read(ratings([(0.5, 0.5)]), features=FeatureKernel(lines, rank=2), **READING)
    for wrong in ({"noise": "knots"}, {"pieces": 4}, {"noise": "k-norm", "pieces": 4}):
        with pytest.raises(InvalidInput, match=r"use noise='auto' here, without pieces|without features: leave it out"):
            privatise(people, Budget(1.0, 1e-3), **wrong)  # type: ignore[arg-type]
    assert privatise(people, Budget(1.0, 1e-3), noise="auto").certificate.standing == "certified"
