"""In data frames too, one odd value says something about its own row alone."""

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from people_data import OK, SCHEMA, refused

from quietq.feedback import Ratings
from quietq.feedback.rows import pieces
from quietq.feedback.schema import Number, hashed

READING: dict[str, Any] = {"box": (0, 1), "low": 0, "high": 1, "slope": 1, "people": 50}


class Shouting(str):
    def __str__(self) -> str:
        raise RuntimeError("secret")


class Odd:
    def __str__(self) -> str:
        raise RuntimeError("secret")

    __eq__ = __hash__ = __float__ = __str__  # type: ignore[assignment]


ODD = {
    "list": [1, 2],
    "dict": {"a": 1},
    "bytes": b"\xff",
    "date": datetime.date(2020, 1, 1),
    "time": pd.Timestamp("2020-01-01"),
    "no time": pd.NaT,
    "missing": pd.NA,
    "none": None,
    "huge": 10**400,
    "more digits than are written out": 10**5000,
    "large": 2**70,
    "boolean": True,
    "decimal": Decimal("0.25"),
    "no decimal": Decimal("sNaN"),
    "complex": 1j,
    "text": "0.25",
    "half a character": "\ud800",
    "subclass": Shouting("x"),
    "nan": float("nan"),
    "infinite": float("inf"),
    "float": 1.5,
    "array": np.zeros(2),
    "series": pl.Series([1, 2]),
    "object": Odd(),
}


def others(frame: pd.DataFrame, kept: list[int]) -> pl.DataFrame:
    rows = pl.concat(SCHEMA.clean(piece(), key=0)[0] for piece in pieces(frame, SCHEMA))
    return rows.filter(pl.col("person").is_in(hashed(pl.Series(kept), key=0).implode())).sort("person")


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
@pytest.mark.parametrize("column", ["person", "state", "rating"])
def test_an_odd_value_changes_nobody_else(column: str, odd: object) -> None:
    ids = [2**60 + i for i in range(20)]  # as floating-point numbers they would all be one
    generator = np.random.default_rng(0)
    data = pd.DataFrame({"person": ids, "state": generator.random(20), "rating": generator.random(20)}).astype(object)
    expected = others(data, ids[1:])
    assert expected.height == 19
    data.at[0, column] = odd
    assert others(data, ids[1:]).equals(expected)


@pytest.mark.parametrize(("low", "high"), [(0, 3), (0, 10), (-5, 7.3), (-1, 1)])
@pytest.mark.parametrize("scales", [True, False])
def test_a_cell_has_the_same_bits_alone_and_in_company(low: float, high: float, scales: bool) -> None:
    """How many rows a piece has goes by who else is there: a sample of a person's rows by their bits must not."""
    field = Number("x", "state", low, high, clips=True, scales=scales)
    cells = pl.Series([-0.0, 0.0, low, high, *np.random.default_rng(0).uniform(low - 1, high + 1, 200)])
    together = field.read(cells)[0].to_numpy()
    alone = np.concatenate([field.read(cells[i : i + 1])[0].to_numpy() for i in range(len(cells))])
    assert together.tobytes() == alone.tobytes()
    assert not np.signbit(together[together == 0]).any()


def test_names_in_columns_of_objects_are_those_of_other_columns() -> None:
    values = [7, 7.0, "7", "007", Decimal("7.00"), np.int8(7), np.float32(7), np.str_("7"), "7e0", Decimal("7")]
    mixed = pd.DataFrame({"person": pd.Series(values, dtype=object), "state": 0.5, "rating": 0.5})
    parts = [mixed, pl.DataFrame({"person": [7], "state": [0.5], "rating": [0.5]})]
    parts.append(mixed.assign(person=pd.array([7] * 10, dtype="Int64")))
    parts.append(mixed.assign(person=pd.Categorical(["7"] * 10)))
    parts.append(mixed.assign(person=np.full(10, 7, ">i4"), state=np.full(10, 0.5, ">f4")))
    read = Ratings.read(parts, **OK).not_private
    assert (read["people_present"], read["used_rows"]) == (1, 41)


def test_types_that_cannot_be_names_or_numbers_are_refused_as_types() -> None:
    good = pd.DataFrame({"person": ["a", "b"], "state": [0.5, 0.5], "rating": [0.5, 0.5]})
    dates = pd.Series(["2020-01-01", None]).astype("datetime64[ns]")
    refused(good.assign(person=dates), "must hold text or numbers, not datetime64")
    refused(good.assign(state=dates), "must hold text or numbers, not datetime64")
    refused(good.assign(rating=[True, False]), "must hold numbers, not Boolean")
    refused(good.assign(rating=pd.Categorical([True, False])), "must hold numbers, not Boolean")
    refused(good.assign(rating=[1j, 2]), "must hold text or numbers, not complex128")
    refused(pd.concat([good, good[["state"]]], axis=1), "There are 2 columns called 'state'")
    plain = pl.DataFrame({"person": ["a", "b"], "state": [0.5, 0.5], "rating": [0.5, 0.5]})
    for names in (pl.Series([b"a", b"b"]), pl.Series([[1], [2]]), pl.Series([{"a": 1}] * 2), pl.Series([Odd(), Odd()])):
        refused(plain.with_columns(person=names), "must hold names or numbers of people, not")
        refused(plain.with_columns(state=names), "must hold numbers, not")
    refused(plain.with_columns(state=pl.Series(["0.5", "0.5"], dtype=pl.Categorical)), "must hold numbers, not")


@pytest.mark.parametrize(
    "dtype", [pl.Categorical, pl.Enum(["7", "8"]), pl.Decimal(10, 2), pl.Int128, pl.UInt64, pl.String]
)
def test_polars_frames_and_parquet_by_type(tmp_path: Path, dtype: Any) -> None:
    names = pl.Series(["7", "8"]).cast(dtype) if dtype != pl.Decimal else pl.Series([7, 8]).cast(dtype)
    data = pl.DataFrame({"person": names, "state": [0.5, 0.5], "rating": [0.5, 0.5]})
    data.write_parquet(tmp_path / "ratings.parquet")
    both = [data, tmp_path / "ratings.parquet", pl.DataFrame({"person": [7], "state": [0.1], "rating": [0.1]})]
    assert Ratings.read(both, **OK).not_private["people_present"] == 2
