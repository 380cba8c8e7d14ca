"""One person's cell must not make floating-point numbers of everybody's names, which would round or remove them.

Readers of tables choose a column's type by its cells: among whole numbers, one "1.5", one blank or one NULL will do.
"""

import sqlite3
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from people_data import OK

from quietq import InvalidInput
from quietq.feedback import Ratings

REFUSED = "must hold people's names as text or whole numbers, not as"
COUNT: dict[str, Any] = {**OK, "people": 1000}
LONG = [10**17 + i for i in range(50)]


def table(first: str) -> str:
    """A file in which the first person has that name, and everybody else a long number."""
    return "\n".join(["person,state,rating", *(f"{name},0.5,1" for name in [first, *LONG[1:]])])


def refused(source: object, **change: Any) -> str:
    with pytest.raises(InvalidInput, match=REFUSED) as caught:
        Ratings.read(source, **COUNT, **change)
    return str(caught.value)


def present(*sources: object, **change: Any) -> int:
    return Ratings.read(list(sources), **COUNT, **change).not_private["people_present"]


def frame(names: Any) -> pd.DataFrame:
    return pd.DataFrame({"person": names, "state": 0.5, "rating": 1.0})


@pytest.mark.parametrize("first", ["1.5", "", "1e3"])
def test_one_cell_does_not_remove_everybody_else(first: str, tmp_path: Path) -> None:
    text = table(first)
    everybody = 49 + bool(first)
    refused(pd.read_csv(StringIO(text)))
    if first:
        refused(pl.read_csv(StringIO(text)))
    else:  # Polars has whole numbers with gaps
        assert present(pl.read_csv(StringIO(text))) == everybody
    (tmp_path / "ratings.csv").write_text(text)
    assert present(tmp_path / "ratings.csv") == everybody
    # what the refusal advises
    assert present(pd.read_csv(StringIO(text), dtype={"person": "string"})) == everybody
    assert present(pl.read_csv(StringIO(text), schema_overrides={"person": pl.String})) == everybody


def test_a_null_in_a_database_does_not_remove_everybody_else() -> None:
    with sqlite3.connect(":memory:") as database:
        database.execute("create table ratings(person integer, state real, rating real)")
        rows = [(None if i == 0 else name, 0.5, 1.0) for i, name in enumerate(LONG)]
        database.executemany("insert into ratings values(?, ?, ?)", rows)
        ask = "select * from ratings"
        sentence = refused(pd.read_sql(ask, database))
        assert "Float64" in sentence
        assert present(pd.read_sql(ask, database, dtype_backend="numpy_nullable")) == 49  # as the refusal advises
        as_text = "select cast(person as text) as person, state, rating from ratings"
        assert present(pd.read_sql(as_text, database)) == 49
    database.close()


def test_pieces_of_a_file_with_types_of_their_own_are_refused() -> None:
    """pandas reads a long file in pieces: a blank in one, text in another, and a column of objects holds floats."""
    names = pd.concat([pd.Series([float(name) for name in LONG], dtype=object), pd.Series(["ann"], dtype=object)])
    assert "large floating-point numbers" in refused(frame(names.to_list()))
    assert present(frame(pd.Series([*LONG, "ann"], dtype=object))) == 51


SMALL = np.array([3.0, 7.0])
TYPES = {
    **{name: pd.Series(SMALL, dtype=name) for name in ("float64", "float32", "float16", "Float64", "Float32")},
    "big-endian": pd.Series(SMALL.astype(">f8")),
    "categories": pd.Series(SMALL).astype("category"),
    "float32 categories": pd.Series(SMALL.astype(np.float32)).astype("category"),
    "sparse": pd.Series(pd.arrays.SparseArray(SMALL)),
    "arrow": pd.Series(SMALL, dtype=pd.ArrowDtype(pa.float32())),
    "arrow's half": pd.Series(pd.array(SMALL.astype(np.float16), dtype=pd.ArrowDtype(pa.float16()))),
    "arrow's dictionary": pd.Series(
        pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array(SMALL).dictionary_encode()]))  # pyright: ignore
    ),
    "nothing but blanks": pd.Series([np.nan, np.nan]),
}


@pytest.mark.parametrize("names", TYPES.values(), ids=TYPES.keys())
def test_pandas_columns_are_refused_by_their_type_whatever_they_hold(names: pd.Series) -> None:
    refused(frame(names))
    refused([frame(["a", "b"]), frame(names)])


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32])
def test_polars_columns_and_parquet_files_are_refused_by_their_type(dtype: Any, tmp_path: Path) -> None:
    data = pl.DataFrame({"person": pl.Series([3, 7], dtype=dtype), "state": [0.5, 0.5], "rating": [1.0, 1.0]})
    data.write_parquet(tmp_path / "ratings.parquet")
    whole = data.with_columns(pl.col("person").cast(pl.Int64))
    whole.write_parquet(tmp_path / "whole.parquet")
    for source in (data, data.lazy(), tmp_path / "ratings.parquet"):
        refused(source)
        refused([tmp_path / "whole.parquet", source])
    assert present(tmp_path / "whole.parquet", whole) == 2


def test_ray_refuses_the_same_before_it_starts(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    data = pl.DataFrame({"person": [3.0, 7.0], "state": [0.5, 0.5], "rating": [1.0, 1.0]})
    data.write_parquet(tmp_path / "ratings.parquet")
    for source in (data, data.to_pandas(), tmp_path / "ratings.parquet"):
        refused(source, engine="ray")


def test_short_whole_numbers_can_be_converted() -> None:
    data = frame([3.0, 7.0, np.nan])
    refused(data)
    assert present(data.astype({"person": "Int64"}), frame([3, 7, 8])) == 3


@pytest.mark.parametrize("kind", [float, np.float64, np.float32, np.float16, np.longdouble])
def test_a_floating_point_number_among_objects_is_one_name_in_any_width(kind: type) -> None:
    objects = frame(pd.Series([kind(7), kind("0.1"), kind("nan"), kind("inf"), "ann"], dtype=object))
    read = Ratings.read([objects, frame(["7", "0.1", "ann"])], **COUNT).not_private
    assert (read["people_present"], read["without_person"]) == (3, 2)
    bits = {np.float32: 24, np.float16: 11}.get(kind, 53)
    assert present(frame(pd.Series([kind(2**bits - 1), "ann"], dtype=object)), frame([2**bits - 1])) == 2
    refused(frame(pd.Series([kind(2**bits), "ann"], dtype=object)))


@pytest.mark.parametrize("column", ["state", "rating"])
def test_a_truth_value_is_no_number_in_a_column_of_objects_either(column: str) -> None:
    data = frame(["a", "b"]).assign(**{column: pd.Series([True, 0.5], dtype=object)})
    assert Ratings.read(data, **COUNT).not_private["used_rows"] == 1
    for typed in (pd.Series([True, False]), pd.Series([True, None], dtype="boolean")):
        with pytest.raises(InvalidInput, match="must hold numbers, not Boolean"):
            Ratings.read(data.assign(**{column: typed}), **COUNT)
