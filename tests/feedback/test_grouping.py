import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from quietq.feedback import grouping
from quietq.feedback.grouping import group, grouped, whole_people


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def rows(kind: str, count: int = 5000, people: int = 300, seed: int = 0) -> pl.DataFrame:
    generator = np.random.default_rng(seed)
    person = generator.integers(-people // 2, people // 2, count)
    numbered = {"numbers": person >= -people, "names": person > people, "both": person % 2 == 0}[kind]
    return pl.DataFrame(
        {
            "number": [int(i) if is_number else None for i, is_number in zip(person, numbered, strict=True)],
            "name": [None if is_number else f"p{i}" for i, is_number in zip(person, numbered, strict=True)],
            "x0": generator.integers(0, 50, count) / 49,  # with ties
            "rating": generator.random(count),
        },
        schema={"number": pl.Int64, "name": pl.String, "x0": pl.Float64, "rating": pl.Float64},
    )


def pieces(frame: pl.DataFrame, size: int = 700) -> Iterator[pl.DataFrame]:
    yield from frame.iter_slices(size)


def in_one_order(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.sort("number", "name", "x0", "rating")


def check(frames: list[pl.DataFrame], frame: pl.DataFrame) -> None:
    """All rows are there, everybody's are in one frame and together, and in the order of what they say."""
    assert in_one_order(pl.concat(frames)).equals(in_one_order(frame))
    seen = [frozenset(part.select("number", "name").unique().iter_rows()) for part in frames]
    assert sum(map(len, seen)) == len(frozenset().union(*seen)) == frame.select("number", "name").n_unique()
    for part in frames:
        starts, columns = grouped(part)
        expected = in_one_order(part)
        ends = np.append(starts[1:], part.height)
        everybody = [[column[a:b].tobytes() for column in columns.values()] for a, b in zip(starts, ends, strict=True)]
        alone = [one.select("x0", "rating").to_numpy() for one in expected.partition_by("number", "name")]
        assert sorted(everybody) == sorted([column.tobytes() for column in one.T] for one in alone)


@pytest.mark.parametrize("kind", ["numbers", "names", "both"])
@pytest.mark.parametrize("rows_in_memory", [100, pytest.param(1500, marks=pytest.mark.slow), 10_000])
@pytest.mark.parametrize("rows_at_once", [64, pytest.param(1000, marks=pytest.mark.slow), 250_000])
def test_everybody_is_in_one_place(
    folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str, rows_in_memory: int, rows_at_once: int
) -> None:
    monkeypatch.setattr(grouping, "_ROWS_AT_ONCE", rows_at_once)
    monkeypatch.setattr(grouping, "_PARTITIONS", 16)  # fewer files
    frame = rows(kind, 3000)
    check(list(whole_people(pieces(frame), rows_in_memory)), frame)
    assert not list(folder.iterdir())


def test_spills_into_a_private_folder_and_removes_it(folder: Path) -> None:
    parts = whole_people(pieces(rows("numbers", 2000)), rows_in_memory=1000)
    next(parts)
    (made,) = folder.iterdir()
    assert made.stat().st_mode & 0o077 == 0
    assert list(made.glob("*.parquet"))
    list(parts)
    assert not list(folder.iterdir())


def test_removes_the_folder_if_reading_fails(folder: Path) -> None:
    def failing() -> Iterator[pl.DataFrame]:
        yield from pieces(rows("numbers", 2000))
        assert list(folder.iterdir())
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(whole_people(failing(), rows_in_memory=1000))
    assert not list(folder.iterdir())


def test_removes_the_folder_if_nobody_wants_the_rest(folder: Path) -> None:
    parts = whole_people(pieces(rows("numbers", 2000)), rows_in_memory=1000)
    next(parts)
    assert list(folder.iterdir())
    assert isinstance(parts, Generator)
    parts.close()
    assert not list(folder.iterdir())


def test_nothing(folder: Path) -> None:
    assert group([]) == []
    assert group([rows("numbers").clear()]) == []


CASES = ["states that differ in their last bits", "states that are the same", "numbers that mix alike", "far apart"]


@pytest.mark.parametrize("case", CASES)
def test_order_is_exact(case: str) -> None:
    generator = np.random.default_rng(1)
    number, x = generator.integers(0, 50, 20_000), generator.random(20_000)
    if case.startswith("states"):
        x = 0.5 + x * (1e-12 if case.endswith("bits") else 0.0)
    elif case.startswith("numbers"):
        inverse = pow(int(grouping._MIXER), -1, 2**64)  # so that the mixed numbers are 0, 1, 2, ...
        number = np.array([i * inverse % 2**64 for i in range(50)], dtype=np.uint64).astype(np.int64)[number]
    else:
        number = np.array([-(2**63), -1, 0, 1, 2**63 - 1])[number % 5]
    columns = {"number": number, "name": None, "x0": x, "rating": generator.random(20_000)}
    frame = pl.DataFrame(columns, schema_overrides={"name": pl.String})
    check([frame], frame)


def test_nobody_has_too_many_rows(monkeypatch):
    """Rows beyond a public number are left out evenly, and only those of the person who has them."""
    monkeypatch.setattr(grouping, "MOST_ROWS", 10)
    frame = pl.DataFrame({"number": [1] * 4 + [2] * 95 + [3] * 10, "name": None, "x": np.linspace(0, 1, 109)})
    (found,) = grouping.group([frame.with_columns(pl.col("name").cast(pl.String), pl.col("number").cast(pl.Int64))])
    assert sorted(np.diff(found.starts, append=len(found.columns["x"])).tolist()) == [4, 10, 10]
    assert len(set(found.columns["x"])) == 24


@pytest.mark.parametrize("people", [3, 400])
@pytest.mark.parametrize("steps", ["whole", "halves", "twice", "far"])
def test_rows_of_episodes_are_in_one_order_however_they_come(people, steps):
    """By person, then by all other columns; whether bits were enough to sort by, or not, shows in nothing."""
    rng = np.random.default_rng(people)
    step = {"whole": rng.permutation(4000) % 50, "halves": rng.random(4000), "twice": rng.integers(0, 3, 4000),
            "far": rng.permutation(4000) * 1e9}[steps]  # fmt: skip
    person = rng.integers(-people, people, 4000)
    frame = pl.DataFrame({"number": person, "name": pl.Series([None] * 4000, dtype=pl.String),
                          "episode": pl.Series(rng.integers(0, 5, 4000)).hash(seed=0), "step": step * 1.0,
                          "x": rng.random(4000)})  # fmt: skip
    found = []
    for part in (frame, frame.sample(fraction=1, shuffle=True, seed=1)):
        starts, columns = grouped(part)
        rows = pl.DataFrame(dict(columns)).with_columns(of=pl.Series(np.searchsorted(starts, np.arange(4000), "right")))
        assert rows.equals(rows.sort("of", "episode", "step", "x"))
        assert len(starts) == frame["number"].n_unique()
        found.append(rows)
    assert found[0].equals(found[1])
    alone = grouped(frame.filter(pl.col("number") == person[0]))
    place = np.flatnonzero(found[0]["x"] == alone.columns["x"][0])[0]
    assert np.array_equal(found[0]["x"][int(place) : int(place) + len(alone.columns["x"])], alone.columns["x"])


@pytest.mark.parametrize("cells", [2**60, 2**20, 40])
def test_the_quick_order_is_that_of_person_and_state_where_its_first_bits_are_the_same(cells):
    rng = np.random.default_rng(0)
    # people whose mixed numbers agree in their first 30 bits, and others
    alike = (np.uint64(12345) << np.uint64(34)) | (rng.integers(2**10, size=500).astype(np.uint64) << np.uint64(24))
    numbers = np.concatenate([alike * np.uint64(pow(int(grouping._MIXER), -1, 2**64)), np.arange(200, dtype=np.uint64)])
    numbers = rng.choice(numbers, size=4000).view(np.int64)
    x = rng.integers(cells, size=4000) / cells
    order, people, states = grouping._order_by_key(numbers, x)
    mixed = numbers.astype(np.uint64) * grouping._MIXER >> np.uint64(24)
    expected = np.lexsort((x, mixed))
    assert np.array_equal(np.sort(order), np.arange(4000))
    assert np.array_equal(people, mixed[expected])
    assert np.array_equal(states, x[expected])
    assert np.array_equal(mixed[order], people)
    assert np.array_equal(x[order], states)
