"""One person, however spelt and wherever their rows are, counts once."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from people_data import GRID, LEVELS, OK, frame, refused

from quietq.rewards import People, ratings

SAME = {
    "text": ["Ann", " ann", "ANN ", "ann", "\tAnn\n", "\uff21nn"],
    "number": ["7", "7.0", " 7", "+7", "007", "7."],
}


@pytest.mark.parametrize("names", SAME.values(), ids=SAME.keys())
def test_spellings_of_one_name_are_one_person(names):
    data = pl.DataFrame({"person": names, "state": [0.1] * len(names), "rating": [1.0] * len(names)})
    assert People.read(data, box=(0, 1), low=0, high=1, slope=1, count=1).not_private["people_present"] == 1


def test_types_of_one_name_are_one_person():
    numbers = [pl.Int64, pl.Int8, pl.UInt64, pl.Float64, pl.String, pl.Categorical]
    parts: list[object] = [
        pl.DataFrame({"person": pl.Series(["7"]).cast(dtype), "state": [0.1 * i], "rating": [1.0]})
        for i, dtype in enumerate(numbers)
    ]
    parts.append(pd.DataFrame({"person": [7, 7.0], "state": [0.7, 0.8], "rating": [1.0, 1.0]}))
    parts.append(pd.DataFrame({"person": ["7", 7], "state": [0.7, 0.8], "rating": [1.0, 1.0]}))
    assert People.read(parts, box=(0, 1), low=0, high=1, slope=1, count=1).not_private["people_present"] == 1


def test_numbers_too_large_for_an_integer_stay_apart():
    data = pl.DataFrame({"person": [2**64 - 1, 2**64 - 2], "state": [0.1, 0.2], "rating": [1.0, 1.0]})
    assert data.schema["person"] == pl.UInt64
    assert People.read(data, box=(0, 1), low=0, high=1, slope=1, count=2).not_private["people_present"] == 2


@pytest.mark.parametrize("batch", [1, 3, 1000])
def test_a_person_split_over_chunks_and_files_counts_once(tmp_path, monkeypatch, batch):
    monkeypatch.setattr(ratings, "BATCH", batch)
    rng = np.random.default_rng(1)
    data = pl.DataFrame({"person": rng.integers(0, 5, 60), "state": rng.random(60), "rating": rng.random(60)})
    whole = People.read(data, box=(0, 1), low=0, high=1, slope=1, count=6, levels=LEVELS).functions()[0](GRID)
    files = []
    for i in range(4):
        part = data[i::4]
        path = tmp_path / (f"{i}.csv" if i % 2 else f"{i}.parquet")
        part.write_csv(path) if i % 2 else part.write_parquet(path)
        files.append(path)
    split = People.read(files, box=(0, 1), low=0, high=1, slope=1, count=6, levels=LEVELS)
    np.testing.assert_allclose(split.functions()[0](GRID), whole, atol=1e-12)
    assert split.not_private["people_present"] == 5


def test_more_people_than_declared_are_refused():
    refused(frame({str(i): [(0.5, 0.5)] for i in range(4)}), "more people in the data than the 3")


@pytest.mark.parametrize(
    "names",
    [
        ["1e3", "1000", "1000.0"],
        ["7.5", "7.50", "07.5"],
        ["0" * 30 + "12345678901234567890123", "12345678901234567890123"],
        ["a\u200bnn", "ann", "\ufeffann", "an\u00adn"],
    ],
)
def test_more_spellings_of_one_name(names):
    data = pl.DataFrame({"person": names, "state": [0.1] * len(names), "rating": [1.0] * len(names)})
    assert People.read(data, **OK).not_private["people_present"] == 1


def test_large_ids_that_became_floating_point_numbers_are_refused():
    """10**16 as a float and as an integer would be one person counted twice."""
    blurred = pd.DataFrame({"person": [10.0**16, None], "state": [0.1, 0.2], "rating": [1.0, 1.0]})
    refused(blurred, "which blur")
