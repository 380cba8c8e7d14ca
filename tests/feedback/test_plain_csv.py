"""No bytes in one person's cells change how another person's rows are read, whoever wrote the file."""

import csv
import gzip
import io
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st
from people_data import ROUNDING, SCHEMA, refused

from quietq import Budget, Exponential, InvalidInput
from quietq.feedback import Ratings, plain_csv
from quietq.feedback.rows import pieces
from quietq.feedback.schema import NAME, hashed, in_words
from quietq.privacy.relations import LipschitzBall

PEOPLE = 200
LEVELS = 6
GRID = np.arange(2**LEVELS + 1) / 2**LEVELS
READING = {"box": (0, 1), "low": 0, "high": 1, "slope": 1, "people": PEOPLE + 1}


def others(count: int = PEOPLE) -> list[list[str]]:
    generator = np.random.default_rng(7)
    return [
        [f"p{i}", "fine", f"{generator.random():.6f}", f"{0.8 + 0.2 * generator.random():.6f}"] for i in range(count)
    ]


HEADER = ["person", "note", "state", "rating"]


def by_hand(rows: list[list[str]]) -> bytes:
    return "".join(",".join(row) + "\n" for row in [HEADER, *rows]).encode()


def test_two_cells_that_begin_with_a_quote_swallow_nobody(tmp_path: Path) -> None:
    """With quotes that run across lines, they hide 177 people: 56 times the radius, d' = 10.7 where mu is 0.286."""
    path = tmp_path / "ratings.csv"
    rows = others()
    target = [["target", "ok", "0.5", "1.0"], ["target", "ok", "0.6", "1.0"]]
    path.write_bytes(by_hand([target[0], *rows[:177], target[1], *rows[177:]]))
    honest = Ratings.read(path, **READING)
    assert honest.not_private["used_rows"] == PEOPLE + 2
    target[0][1], target[1][1] = '"a', 'b"'
    attacked = by_hand([target[0], *rows[:177], target[1], *rows[177:]])
    path.write_bytes(attacked)
    # what a reader does that lets a quote run on, against what is promised
    loose = Ratings.read(pl.read_csv(io.BytesIO(attacked), infer_schema=False, ignore_errors=True), **READING)
    ball = honest.relation
    assert isinstance(ball, LipschitzBall)
    kernel = Exponential(ball.best_beta())
    difference = honest.functions()[0](GRID) - loose.functions()[0](GRID)
    assert loose.not_private["used_rows"] == 24
    assert np.abs(difference).max() > 50 * ball.radius
    mu = Budget(0.9, 1e-4).mu
    assert mu == pytest.approx(0.28596, abs=1e-5)
    assert kernel.norm_on(GRID, difference) / ball.rkhs_radius(kernel) * mu > 10
    with pytest.raises(InvalidInput, match=r"^Line 2 of '.*ratings\.csv' has a quote that does not open or close"):
        Ratings.read(path, **READING)


def read(path: Path) -> tuple[Ratings, pl.DataFrame]:
    people = Ratings.read(path, **READING)
    rows = [SCHEMA.clean(piece(), key=0)[0] for piece in pieces(path, SCHEMA)]
    return people, pl.concat(rows)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ratings, pl.DataFrame]:
    """Thirty people and one more, before that one writes anything else."""
    path = tmp_path_factory.mktemp("honest") / "ratings.csv"
    path.write_bytes(written(rows_with([("ok", "0.5", "0.1")], "target"), "csv"))
    return read(path)


def check(path: Path, before: tuple[Ratings, pl.DataFrame], after: bytes, secret: list[str]) -> None:
    """Refused by a line number, or else others are read the same to the bit, and the mean moves as little as stated."""
    honest, theirs = before
    path.write_bytes(after)
    try:
        other, ours = read(path)
    except InvalidInput as error:
        message = str(error)
        assert message.startswith("Line ")
        assert message.split()[1].isdigit()
        assert not any(len(cell) > 3 and cell in message for cell in secret)
        return
    people = hashed(pl.Series([f"p{i}" for i in range(1000)]), key=0).implode()
    a, b = (frame.filter(pl.col("person").is_in(people)) for frame in (theirs, ours))
    assert a.height == 30
    assert a.sort("person").equals(b.sort("person"))
    ball = honest.relation
    assert isinstance(ball, LipschitzBall)
    difference = honest.functions()[0](GRID) - other.functions()[0](GRID)
    assert np.abs(difference).max() <= ball.radius * ROUNDING
    assert np.abs(np.diff(difference)).max() * 2**LEVELS <= ball.lipschitz * ROUNDING


nasty = st.sampled_from(
    ['"', '""', ',"', '",', '"a', 'a"', '"\r', "\x00", "\ufeff", "\t", ",", ",,,", "'", "\\", "#", "\x1f\x8b"]
)
text = st.text(max_size=6) | nasty | st.lists(nasty, max_size=4).map("".join)
names = st.just("target") | text
ONCE = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def is_somebody_else(name: str) -> bool:
    form = in_words(pl.Series([name.encode("utf-8", "surrogatepass").decode("utf-8", "replace")]))[NAME][0]
    return form is not None and form.startswith("p")


def rows_with(cells: list[tuple[str, str, str]], name: str) -> list[list[str]]:
    rows = others(30)
    for place, cell in zip((0, 11, 30 + 2), cells, strict=False):
        rows.insert(place, [name, *cell])
    return rows


def written(rows: list[list[str]], writer: str) -> bytes:
    if writer == "by hand":
        return "".join(",".join(row) + "\n" for row in [HEADER, *rows]).encode("utf-8", "surrogatepass")
    if writer == "csv":
        file = io.StringIO(newline="")
        csv.writer(file).writerows([HEADER, *rows])
        return file.getvalue().encode("utf-8", "surrogatepass")
    if writer == "pandas":
        return pd.DataFrame(rows, columns=HEADER).to_csv(index=False).encode("utf-8", "surrogatepass")  # type: ignore[union-attr]
    return pl.DataFrame(rows, schema=HEADER, orient="row").write_csv().encode()


@pytest.mark.parametrize("writer", ["by hand", "csv", "pandas", "polars"])
@ONCE
@given(name=names, cells=st.lists(st.tuples(text, text, text), min_size=1, max_size=3))
def test_any_text_in_one_persons_cells(
    tmp_path: Path, honest: tuple[Ratings, pl.DataFrame], writer: str, name: str, cells: list[tuple[str, str, str]]
) -> None:
    assume(not is_somebody_else(name))
    flat = [name, *(cell for row in cells for cell in row)]
    if writer == "by hand":
        assume(not any(c in cell for cell in flat for c in "\r\n"))
        assume("," not in name)  # else whoever wrote the file put the row under another name
    check(tmp_path / "ratings.csv", honest, written(rows_with(cells, name), writer), flat)


@ONCE
@given(st.lists(st.tuples(*[st.binary(max_size=5)] * 3), min_size=1, max_size=3))
def test_any_bytes_in_one_persons_cells(
    tmp_path: Path, honest: tuple[Ratings, pl.DataFrame], cells: list[tuple[bytes, bytes, bytes]]
) -> None:
    assume(not any(c in cell for row in cells for cell in row for c in b"\r\n"))
    lines = by_hand(others(30)).splitlines(keepends=True)
    for place, row in zip((1, 9, 20), cells, strict=False):
        lines.insert(place, b"target," + b",".join(row) + b"\n")
    check(tmp_path / "ratings.csv", honest, b"".join(lines), [])


@pytest.mark.parametrize("block", [1, 7, 64, 1 << 24])
def test_plain_files_mean_what_the_csv_module_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(plain_csv, "BLOCK", block)
    cells = ["a", "", "x,y", '"', '""', 'say "no"', " b ", ",", '",', "a\tb", "ü", "\x00", "\ufeff", "\x1f\x8b\x08"]
    rows = [[one, "", other] for one in cells for other in cells]
    for end, last, suffix, separator in (
        ("\n", "\n", "csv", ","),
        ("\r\n", "\r\n\r\n", "txt", ","),
        ("\n", "", "tsv", "\t"),
    ):
        file = io.StringIO(newline="")
        writer = csv.writer(file, lineterminator=end, delimiter=separator)
        writer.writerows([["one", "two, three", "four"], *rows])
        path = tmp_path / f"table.{suffix}"
        path.write_bytes(b"\xef\xbb\xbf" + (file.getvalue().removesuffix(end) + last).encode())
        assert plain_csv.names(path) == ["one", "two, three", "four"]
        found = pl.concat(piece() for piece in plain_csv.pieces(path, ["four", "one"])).fill_null("").rows()
        assert found == [(row[2], row[0]) for row in rows]


def test_what_is_not_plain_is_refused_by_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ratings.csv"
    good = b"person,state,rating\na,0.5,0.5\n"
    for line, what in {
        b'secret,"0.5,0.5': "has a quote",
        b'sec"ret,0.5,0.5': "has a quote",
        b'"sec"ret,0.5,0.5': "has a quote",
        b'"sec""ret,0.5,0.5': "has a quote",
        b' "secret",0.5,0.5': "has a quote",
        b'"secret" ,0.5,0.5': "has a quote",
        b'"secret\n2",0.5,0.5': "has a quote",
        b"secret,0.5": "does not have 3 cells",
        b"secret,0.5,0.5,0.5": "does not have 3 cells",
        b"secret": "does not have 3 cells",
        b"secret" * 175_000 + b",0.5,0.5": "has more than 1048576 bytes",
    }.items():
        for block in (16, 1 << 24):
            monkeypatch.setattr(plain_csv, "BLOCK", block)
            for before in (good, good + b"\n\n", good.replace(b"\n", b"\r\n")):
                path.write_bytes(before + line + b"\n" + b"b,0.5,0.5\n")
                with pytest.raises(InvalidInput, match=f"^Line {before.count(10) + 1} of .* {what}") as caught:
                    Ratings.read(path, box=(0, 1), low=0, high=1, slope=1, people=3)
                assert "secret" not in str(caught.value)
                if len(line) > 1000:
                    break


def test_headers(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    rows = b"\na,0.5,0.5,0.5\n"
    path.write_bytes(b'"person","state",rating,"no ""t, e"' + rows)
    assert Ratings.read(path, **READING).not_private["used_rows"] == 1
    path.write_bytes(b"person,state,rating,state" + rows)
    refused(path, "There are 2 columns called 'state'")
    path.write_bytes(b"person,state,rating,note,note\na,0.5,0.5,x,y\n")
    assert Ratings.read(path, **READING).not_private["used_rows"] == 1
    path.write_bytes(b"secret,0.5,0.7\nb,0.5,0.7\n")
    with pytest.raises(InvalidInput, match="the first line must name the columns") as caught:
        Ratings.read(path, **READING)
    assert "secret" not in str(caught.value)
    data = b"person,state,rating\na,0.5,0.5\n"
    for packed in (
        gzip.compress(data),
        zlib.compress(data),
        b"\x28\xb5\x2f\xfd" + data,
        data.decode().encode("utf-16"),
    ):
        path.write_bytes(packed)
        refused(path, "its first line must name the columns, in plain UTF-8 text")


def test_a_cell_at_the_start_of_a_block_is_not_taken_for_a_compressed_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = b"\x1f\x8b\x08" + bytes(7)  # as gzip begins
    monkeypatch.setattr(plain_csv, "BLOCK", 1)
    path = tmp_path / "ratings.csv"
    path.write_bytes(b"person,state,rating\na,0.5,0.5\n" + hidden + b",0.5,0.5\nb,0.5,0.5\n")
    assert Ratings.read(path, **READING).not_private["people_present"] == 3


def test_errors_of_polars_are_not_quoted() -> None:
    lazy = pl.LazyFrame({"person": ["a", "b"], "state": ["0.5", "secret"], "rating": [0.5, 0.5]})
    with pytest.raises(InvalidInput, match="it failed with") as caught:
        Ratings.read(lazy.with_columns(pl.col("state").cast(pl.Float64)), **READING)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
