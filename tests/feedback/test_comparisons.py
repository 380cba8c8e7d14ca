"""Who preferred what to what: read, made private, and what one person can do."""

import numpy as np
import polars as pl
import pytest

from quietq import Budget, Comparisons, InvalidInput, load, privatise, publish

SIDES = {"left": ["a", "b"], "right": ["c", "d"], "box": [(0, 1), (0, 1)]}


def liking(states: np.ndarray) -> np.ndarray:
    """Two peaks, and nothing that a sum over coordinates could show."""
    return 4 * np.maximum(*(np.exp(-((states - at) ** 2).sum(axis=-1) / 0.16) for at in (0.25, 0.75)))


def choices(people: int, rows: int = 20) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    left, right = rng.random((2, people * rows, 2))
    first = rng.random(len(left)) < 1 / (1 + np.exp(liking(right) - liking(left)))
    columns = {"person": np.repeat(np.arange(people), rows), "choice": np.where(first, "left", "right")}
    return pl.DataFrame(columns | {"a": left[:, 0], "b": left[:, 1], "c": right[:, 0], "d": right[:, 1]})


def test_what_people_prefer_is_found(tmp_path):
    private = privatise(Comparisons.read(choices(1000), people=1000, **SIDES), Budget(1.0, 1e-5))
    states = np.random.default_rng(1).random((1000, 2))
    assert np.corrcoef(private(states), liking(states))[0, 1] > 0.95
    assert (private.certificate.standing, private.certificate.method) == ("certified", "reward/rounds")
    publish(private, tmp_path / "reward.qq")
    assert np.array_equal(load(tmp_path / "reward.qq")(states), private(states))


def test_sides_can_be_swapped():
    """Left and right are names: whoever swaps states and choices says the same."""
    frame = choices(50)
    swap = pl.when(pl.col("choice") == "left").then(pl.lit("right")).otherwise(pl.lit("left"))
    other = frame.select("person", swap.alias("choice"), a="c", b="d", c="a", d="b")
    one, two = (Comparisons.read(rows, people=50, **SIDES) for rows in (frame, other))
    states = np.random.default_rng(1).random((50, 2))
    found = [privatise(each, Budget(1.0, 1e-5), simulate=3)(states) for each in (one, two)]
    assert found[0] == pytest.approx(found[1], abs=1e-6)


def test_ties_and_what_is_left_out():
    rows = pl.DataFrame(
        {"person": ["p", "p", "q", "r"], "choice": [" LEFT", "Tie", "middle", "right"], "a": [0.1, 0.2, 0.3, 7.0],
         "b": [0.1] * 4, "c": [0.5] * 4, "d": [0.5] * 4}
    )  # fmt: skip
    found = Comparisons.read(rows, people=5, **SIDES).not_private
    assert (found["used_rows"], found["bad_choice"], found["outside_state"]) == (2, 1, 1)


def test_a_box_has_as_many_sides_as_there_are_columns():
    with pytest.raises(InvalidInput, match="right has 1 columns, but left has 2"):
        Comparisons.read(choices(2), left=["a", "b"], right="c", box=[(0, 1), (0, 1)], people=2)
