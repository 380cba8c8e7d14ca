"""Ratings for the tests of `Ratings`."""

import numpy as np
import polars as pl
import pytest

from quietq import InvalidInput
from quietq.feedback import Ratings
from quietq.feedback.schema import Number, Schema

LEVELS = 7
GRID = np.arange(2**LEVELS + 1) / 2**LEVELS
ROUNDING = 1 + 1e-6  # what `privatise` allows for


def frame(people: dict[str, list[tuple[float, float]]]) -> pl.DataFrame:
    flat = [(person, x, y) for person, their in people.items() for x, y in their]
    return pl.DataFrame(flat, schema={"person": pl.String, "state": pl.Float64, "rating": pl.Float64}, orient="row")


SCHEMA = Schema(
    "ratings",
    "person",
    {"x0": Number("state", "state", 0, 1, scales=True), "rating": Number("rating", "rating", 0, 1, clips=True)},
)
OK = {"box": (0, 1), "low": 0, "high": 1, "slope": 1, "people": 3}


def refused(source, message, **change):
    with pytest.raises(InvalidInput, match=message):
        Ratings.read(source, **{**OK, **change})
