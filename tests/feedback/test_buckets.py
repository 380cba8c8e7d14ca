"""Everybody's rows are in one bucket, in an order of their own, whatever is in memory and whatever in files."""

import gc
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from people_data import SCHEMA

from quietq import InvalidInput
from quietq.feedback import buckets, schema
from quietq.feedback.buckets import Bucket, Buckets, opened, read_buckets
from quietq.feedback.feedback import Engine
from quietq.feedback.ratings import Ratings
from quietq.feedback.schema import Group, Number
from quietq.feedback.statistic import Vector
from quietq.feedback.transitions import Steps


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def rows(kind: str, count: int = 3000, people: int = 300, seed: int = 0) -> pl.DataFrame:
    generator = np.random.default_rng(seed)
    person = generator.integers(-people // 2, people // 2, count)
    named = {"numbers": person > people, "names": person >= -people, "both": person % 2 == 1}[kind]
    return pl.DataFrame(
        {
            "person": [f"p{i}" if is_name else str(i) for i, is_name in zip(person, named, strict=True)],
            "state": generator.integers(0, 50, count) / 49,  # with ties
            "rating": generator.random(count),
        }
    )


@dataclass(frozen=True)
class Present(Vector):
    """Nothing but that somebody is there."""

    size = 1
    bound = 1.0

    def of_people(self, starts: np.ndarray, columns: Any) -> np.ndarray:
        return np.ones((len(starts), 1))


@dataclass(frozen=True)
class Other(Present):
    """The same, asked for again."""


def read(frame: pl.DataFrame, size: int = 700) -> Buckets:
    found, tally, counts = read_buckets(list(frame.iter_slices(size)), SCHEMA, Engine(), Present(), keep=True)
    assert counts["rows"] == frame.height
    assert found is not None
    assert tally.people == found.total(Other()).people
    return found


def people_in(found: Buckets | None) -> list[bytes]:
    """What each person's rows are, to the bit, in no order of people."""
    assert found is not None
    everybody = []
    for starts, columns in map(opened, found.buckets):
        table = np.stack([columns["x0"], columns["rating"]], axis=1)
        everybody += [one.tobytes() for one in np.split(table, starts[1:])]
    return sorted(everybody)


def written_out(frame: pl.DataFrame) -> list[bytes]:
    parts = frame.sort("person", "state", "rating").partition_by("person", include_key=False)
    return sorted(np.ascontiguousarray(one.to_numpy()).tobytes() for one in parts)


@pytest.mark.parametrize("kind", ["numbers", "names", "both"])
@pytest.mark.parametrize("bytes_in_memory", [1000, pytest.param(30_000, marks=pytest.mark.slow), 10**6])
@pytest.mark.parametrize("bytes_of_a_bucket", [pytest.param(3000, marks=pytest.mark.slow), 10**6])
@pytest.mark.parametrize("bytes_at_once", [20, pytest.param(24_000, marks=pytest.mark.slow), 10**6])
def test_everybody_is_in_one_place(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    bytes_in_memory: int,
    bytes_of_a_bucket: int,
    bytes_at_once: int,
) -> None:
    monkeypatch.setattr(buckets, "BYTES_AT_ONCE", bytes_at_once)
    monkeypatch.setattr(buckets, "BYTES_IN_MEMORY", bytes_in_memory)
    monkeypatch.setattr(buckets, "BYTES_OF_A_BUCKET", bytes_of_a_bucket)
    monkeypatch.setattr(buckets, "BUCKETS", 8)  # fewer files
    frame = rows(kind)
    found = read(frame)
    assert people_in(found) == written_out(frame)
    assert any(isinstance(one, Path) for one in found.buckets) == (bytes_in_memory < 10**6)
    del found
    gc.collect()
    assert not list(folder.iterdir())


def test_files_are_in_a_private_folder_that_goes_with_the_people(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "BYTES_IN_MEMORY", 1000)
    found = read(rows("numbers"))
    (made,) = folder.iterdir()
    assert made.stat().st_mode & 0o077 == 0
    left = {path.name.partition("-")[0] for path in made.rglob("*.parquet")}
    assert left == {"bucket"}  # and nothing with hashes of people
    with pytest.raises(InvalidInput, match="kept in files cannot be copied elsewhere"):
        pickle.dumps(found)
    del found
    gc.collect()
    assert not list(folder.iterdir())


def test_the_folder_is_removed_if_reading_fails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "BYTES_IN_MEMORY", 1000)

    def failing() -> Iterator[pl.DataFrame]:
        for _ in range(9):
            yield from rows("numbers").iter_slices(700)
        assert list(folder.iterdir())
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        read_buckets(failing(), SCHEMA, Engine(), Present(), keep=True)
    assert not list(folder.iterdir())


def test_rows_come_back_from_a_folder_of_any_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (odd := folder / "t[1]*").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(odd))
    monkeypatch.setattr(buckets, "BYTES_IN_MEMORY", 100)
    frame = rows("both", 50)
    assert people_in(read(frame, 7)) == written_out(frame)


def test_nothing(folder: Path) -> None:
    for source in (empty := rows("numbers").clear(), [empty, empty]):
        assert read_buckets(source, SCHEMA, Engine(), Present(), keep=True)[0].buckets == []  # type: ignore[union-attr]
    assert not list(folder.iterdir())


CASES = ["states that differ in their last bits", "states that are the same", "hashes that begin alike", "far apart"]


@pytest.mark.parametrize("case", CASES)
def test_order_is_exact(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(1)
    number, x = generator.integers(0, 50, 20_000), generator.random(20_000)
    if case.startswith("states"):
        x = 0.5 + x * (1e-12 if case.endswith("bits") else 0.0)
    elif case.startswith("hashes"):
        monkeypatch.setattr(schema, "hashed", lambda people, key: (people % 7 * 2**32 + people).cast(pl.UInt64))
    else:
        number = np.array([-(2**63), -1, 0, 1, 2**63 - 1])[number % 5]
    frame = pl.DataFrame({"person": number, "state": x, "rating": generator.random(20_000)})
    assert people_in(read(frame)) == written_out(frame)


def test_nobody_has_too_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the one who has them is held to a sample, which is neither the first rows nor the least."""
    frame = pl.DataFrame({"person": [1] * 4 + [2] * 95 + [3] * 10, "state": np.linspace(0, 1, 109), "rating": 0.5})
    monkeypatch.setattr(buckets, "MOST_ROWS", 10)
    (found,) = read(frame).buckets or []
    assert isinstance(found, Bucket)
    assert sorted(np.diff(found.starts, append=len(found.columns["x0"])).tolist()) == [4, 10, 10]
    sampled = found.columns["x0"][(found.columns["x0"] > 0.03) & (found.columns["x0"] < 0.9)]
    assert np.ptp(sampled) > 0.5
    assert len(set(found.columns["x0"])) == 24


def test_a_sample_goes_by_a_person_s_own_rows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone and in company, in memory and in files, in any order and however read: and nobody else changes."""
    others = rows("both", 300)
    states = np.random.default_rng(0).random(5000)
    loud = pl.DataFrame({"person": "loud", "state": states, "rating": (7 * states) % 1})
    monkeypatch.setattr(buckets, "MOST_ROWS", 1000)
    (kept,) = people_in(read(loud))
    assert len(kept) == 1000 * 16
    assert kept != written_out(loud.sort("state")[:1000])[0]
    assert not set(np.frombuffer(kept).reshape(-1, 2)[:, 0]) - set(states)
    monkeypatch.setattr(buckets, "BYTES_OF_A_BUCKET", 24 * 1000)
    monkeypatch.setattr(buckets, "BUCKETS", 4)
    for memory in (10**6, 1000):
        monkeypatch.setattr(buckets, "BYTES_IN_MEMORY", memory)
        assert people_in(read(loud[::-1])) == [kept]
        both = pl.concat([others, loud]).sample(fraction=1, shuffle=True, seed=0)
        assert people_in(read(both)) == sorted([*written_out(others), kept])


def test_a_sample_does_not_go_by_how_many_rows_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last piece of a source may have one row, and two if one more person is there."""
    monkeypatch.setattr(buckets, "MOST_ROWS", 100)
    state = Number("state", "state", 0, 10, clips=True, scales=True)
    wide = schema.Schema("ratings", "person", {**SCHEMA.fields, "x0": state})
    states = 10 * np.random.default_rng(0).random(400)
    loud = pl.DataFrame({"person": "loud", "state": states, "rating": 0.5})
    (kept,), both = (
        people_in(read_buckets(list(frame.iter_slices(size)), wide, Engine(), Present(), keep=True)[0])
        for frame, size in ((loud, 1), (pl.concat([loud, loud.with_columns(person=pl.lit("other"))]), 800))
    )
    assert both == [kept, kept]


def test_what_a_row_says_has_the_same_hash_on_every_machine_and_version() -> None:
    frame = pl.DataFrame({"x0": [0.0, 0.5], "rating": [1.0, 1.0], "choice": pl.Series([0, 2], dtype=pl.Int64)})
    assert schema.hashed_rows(frame).tolist() == HASHED_ROWS
    assert schema.hashed_rows(frame[::-1]).tolist() == HASHED_ROWS[::-1]


HASHED_ROWS = [997654267128680, 1156811606683180194]


@pytest.mark.parametrize("people", [3, 400])
@pytest.mark.parametrize("steps", ["whole", "halves", "twice", "far"])
def test_rows_of_episodes_are_in_one_order_however_they_come(people: int, steps: str) -> None:
    """By person, then by all other columns; whether one number was enough to sort by, or not, shows in nothing."""
    rng = np.random.default_rng(people)
    step = {"whole": rng.permutation(4000) % 50, "halves": rng.random(4000), "twice": rng.integers(0, 3, 4000),
            "far": rng.permutation(4000) * 1e9}[steps]  # fmt: skip
    steps_of = Steps("sessions", "person", {"episode": Group("visit", "episode"), "step": Number("t", "step"),
                                          "s0": Number("x", "state", 0, 1, scales=True)}, pairs=False)  # fmt: skip
    frame = pl.DataFrame({"person": rng.integers(-people, people, 4000), "visit": rng.integers(0, 5, 4000),
                          "t": step * 1.0, "x": rng.random(4000)})  # fmt: skip
    found = []
    for part in (frame, frame.sample(fraction=1, shuffle=True, seed=1)):
        ordered = buckets._in_order(steps_of.clean(part, key=5)[0], steps_of)
        together = ordered["person"].rle().struct.field("value")
        assert together.n_unique() == len(together) == frame["person"].n_unique()
        for one in ordered.partition_by("person"):
            assert one.equals(one.sort("episode", "step", "s0"))
        found.append(ordered.sort("person", maintain_order=True))
    assert found[0].equals(found[1])


READS = """if True:
    import os, sys
    import polars as pl
    from quietq.feedback import buckets
    from quietq.feedback.ratings import Ratings
    buckets.BYTES_IN_MEMORY, buckets.BUCKETS, buckets.BYTES_AT_ONCE = 20_000, 4, 1000

    def parts():
        for number in range(12):
            print("part", flush=True)
            sys.stdin.readline()
            yield pl.read_parquet("rows.parquet")[number * 1000 : (number + 1) * 1000]

    arrange = buckets._arrange_share
    def slowly(*given, **more):
        print("arranging", flush=True)
        sys.stdin.readline()
        return arrange(*given, **more)
    buckets._arrange_share = slowly
    people = Ratings.read(parts(), box=[(0, 1)] * 2, state=["state", "other"], low=0, high=1, people=100)
    print("read", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("lines", [1, 11, 15])
def test_a_read_that_is_killed_at_any_point_leaves_nothing_to_the_next(
    folder: Path, monkeypatch: pytest.MonkeyPatch, lines: int
) -> None:
    """And the next has the same sums."""
    generator = np.random.default_rng(0)
    frame = pl.DataFrame({"person": generator.integers(0, 80, 12_000), "state": generator.random(12_000),
                          "other": generator.random(12_000), "rating": generator.random(12_000)})  # fmt: skip
    (work := folder / "work").mkdir()
    (place := folder / "temporary").mkdir()
    frame.write_parquet(work / "rows.parquet")
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    process = subprocess.Popen(
        [sys.executable, "-c", READS], cwd=work, env=os.environ | {"TMPDIR": str(place)}, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, bufsize=1,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    for _ in range(lines):
        assert process.stdout.readline()
        process.stdin.write("\n")
    time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert bool(list(place.iterdir())) == (lines > 1)
    how = {"box": [(0, 1)] * 2, "state": ["state", "other"], "low": 0, "high": 1, "people": 100}
    again = Ratings.read(work / "rows.parquet", **how)
    assert not list(place.iterdir())
    statistic = buckets_statistic(again)
    monkeypatch.setattr(buckets, "BYTES_IN_MEMORY", 20_000)
    assert np.array_equal(again.mean(statistic), Ratings.read(work / "rows.parquet", **how).mean(statistic))


def buckets_statistic(people: Ratings):
    from quietq.feedback.row_statistics import SecondMoments

    assert people.loss is not None
    return SecondMoments(people.loss, lambda points: 2 * points - 1, 2)


def test_hashes_are_the_same_on_every_machine_and_version() -> None:
    numbers, texts = [0, 1, -1, 2**63 - 1], ["a", "ann", "exactly8", "somewhat longer", "straße"]
    _, of_names = np.random.SeedSequence(2024).generate_state(2, np.uint64)
    assert schema._hashed_text(pl.Series(texts), of_names).tolist() == PINNED[4:]  # as they are
    texts.pop()
    who = pl.Series([*map(str, numbers), *texts])
    found = schema.hashed(who, 2024)
    assert found.n_unique() == 8
    assert found.to_list() == PINNED[:8]
    assert schema.hashed(pl.Series(numbers), 2024).to_list() == PINNED[:4]
    assert schema.hashed(who.reverse(), 2024).to_list() == PINNED[7::-1]  # each by itself
    assert not set(schema.hashed(who, 2025)) & set(PINNED)
    assert schema.hashed(pl.Series(["a", "", None, "\u200b", "1"]), 2024).to_list() == [
        PINNED[4],
        *[None] * 3,
        PINNED[1],
    ]
    assert schema.hashed(pl.Series([0, None, 1]), 2024).to_list() == [PINNED[0], None, PINNED[1]]


PINNED = [
    17443131444368409224,
    61710107810710309,
    2100842796968632803,
    4742512617839774681,
    6967513039974162569,
    4963331742726025774,
    17120217745643394569,
    16764969074260250529,
    11725694668316764999,
]


def test_hashes_spread_people_evenly() -> None:
    many = pl.Series([*map(str, range(40_000)), *(f"person {i}" for i in range(40_000))])
    for key in range(3):
        found = schema.hashed(many, key).to_numpy()
        assert len(np.unique(found)) == 80_000
        for digit in (found % 64, found // 64**2 % 64, found >> np.uint64(58)):
            counts = np.bincount(digit.astype(np.int64), minlength=64)
            assert ((counts - 1250) ** 2 / 1250).sum() < 150  # chi-square of 63: p < 1e-8 beyond
