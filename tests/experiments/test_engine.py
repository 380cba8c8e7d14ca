"""Tasks are done once, kept whole, found again by configuration and code, and the same wherever they are done."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import pytest
from small_tasks import Fails, Square

from quietq.experiments import Claim, Shelf, carry_out, shelf, tables_of, write_tables
from quietq.learning import trainer


def done(marks: Path) -> list[int]:
    return [int(line) for line in marks.read_text().split()] if marks.exists() else []


def squares(marks: Path, count: int) -> list[Square]:
    return [Square(i, str(marks)) for i in range(count)]


def test_what_was_done_is_not_done_again(tmp_path):
    marks, kept = tmp_path / "marks", Shelf(tmp_path / "shelf")
    first = carry_out(squares(marks, 3), kept)
    told = []
    both = carry_out(squares(marks, 5) * 2, kept, progress=lambda *state: told.append(state))
    assert sorted(done(marks)) == [0, 1, 2, 3, 4]
    assert list(both) == squares(marks, 5)
    assert {task: both[task] for task in first} == first
    assert [state[:2] for state in told] == [(3, 5), (4, 5), (5, 5)]
    assert carry_out(squares(marks, 5), Shelf(None)) == both  # which keeps nothing, and so looks at nothing
    assert len(done(marks)) == 10


def test_another_configuration_or_other_code_is_another_task(tmp_path, monkeypatch):
    marks, kept = tmp_path / "marks", Shelf(tmp_path / "shelf")
    carry_out(squares(marks, 1), kept)
    assert kept.get(Square(0, str(marks), kind="two")) is None
    assert kept.get(Fails(0, str(marks))) is None
    monkeypatch.setattr(shelf, "hash_of_code", lambda places: "other code")
    assert kept.get(Square(0, str(marks))) is None


@pytest.mark.parametrize(
    "torn",
    [
        "",
        '{"rows": [{"num',
        "[]",
        "{}",
        '{"rows": [1]}',
        "\x00\x01",
        "[" * 100_000,
        '{"rows": [{"number": 3, "square": 9}]}',
        '{"configuration": OWN, "rows": []}',
        '{"configuration": OWN, "rows": [{"number": [3]}]}',
        '{"configuration": {}, "rows": [{"number": 3}]}',
    ],
)
def test_a_torn_file_is_as_none(tmp_path, torn):
    kept, task = Shelf(tmp_path), Square(3, str(tmp_path / "marks"))
    kept.put(task, task.rows())
    (file,) = (path for path in tmp_path.iterdir() if path.suffix == ".json")
    file.write_text(torn.replace("OWN", json.dumps(task.describe())))
    assert kept.get(task) is None
    assert carry_out([task], kept)[task] == [{"number": 3, "square": 9}]
    assert kept.get(task) == [{"number": 3, "square": 9}]


def test_an_error_loses_nothing_that_was_done(tmp_path):
    marks, kept = tmp_path / "marks", Shelf(tmp_path / "shelf")
    with pytest.raises(ArithmeticError, match="7 is too much"):
        carry_out([*squares(marks, 3), Fails(7, str(marks)), *squares(marks, 40)], kept)
    assert set(done(marks)) >= {0}
    assert [number for number in done(marks) if kept.get(Square(number, str(marks))) is None] == []


def test_what_cannot_be_kept_is_given_all_the_same(tmp_path, monkeypatch):
    full = OSError(28, "No space left on device")
    monkeypatch.setattr(shelf.tempfile, "NamedTemporaryFile", lambda *_, **__: (_ for _ in ()).throw(full))
    task = Square(3, str(tmp_path / "marks"))
    with pytest.warns(RuntimeWarning, match=r"'square of 3' could not be kept: No space left on device\."):
        assert carry_out([task], Shelf(tmp_path))[task] == [{"number": 3, "square": 9}]


def test_the_first_of_each_program_comes_before_the_others(tmp_path, monkeypatch):
    from quietq.experiments import engine

    monkeypatch.setattr(engine.os, "cpu_count", lambda: 1)
    marks = tmp_path / "marks"
    carry_out([Square(i, str(marks), kind="ab"[i // 3]) for i in range(6)], Shelf(None))
    assert done(marks) == [0, 3, 1, 2, 4, 5]


KILLED = """
import sys, time
from small_tasks import Square
from quietq.experiments import Shelf, carry_out, engine
engine.os.cpu_count = lambda: 1
slow = Square.rows
def rows(self):
    time.sleep(0.2)
    return slow(self)
Square.rows = rows
carry_out([Square(i, sys.argv[1]) for i in range(50)], Shelf(__import__("pathlib").Path(sys.argv[2])))
"""


def test_after_a_kill_it_goes_on_where_it_was(tmp_path):
    marks, kept = tmp_path / "marks", Shelf(tmp_path / "shelf")
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(marks), str(tmp_path / "shelf")], cwd=Path(__file__).parent
    )
    while len(done(marks)) < 3:
        assert process.poll() is None
    process.kill()
    process.wait()
    before = [task for task in squares(marks, 50) if kept.get(task) is not None]
    assert len(before) >= 2
    carry_out(squares(marks, 50), kept)
    repeated = len(done(marks)) - 50
    assert repeated <= 1  # the one that was under way


def test_tables_are_written_with_what_made_them(tmp_path):
    tasks = squares(tmp_path / "marks", 2)
    rows = carry_out(tasks, Shelf(None))
    claim = Claim("squares", "they grow", "0, 1", "holds", "tests/experiments/test_engine.py")
    files = write_tables(tables_of(rows), [claim], tasks, tmp_path)
    assert [file.name for file in files] == ["squares.csv", "squares.json", "verdicts.csv", "verdicts.json"]
    with (tmp_path / "squares.csv").open() as stream:
        assert list(csv.DictReader(stream)) == [{"number": "0", "square": "0"}, {"number": "1", "square": "1"}]
    made_by = json.loads((tmp_path / "squares.json").read_text())["tasks"]
    assert made_by == [task.describe() for task in tasks]


def test_on_one_core_runs_are_not_spread(monkeypatch):
    monkeypatch.setattr(trainer.os, "cpu_count", lambda: 2)
    runs, sizes = trainer.Runs(jnp.arange(16), None, None), []  # type: ignore[arg-type]

    def program(runs: trainer.Runs, carry: None) -> jnp.ndarray:
        sizes.append(len(runs.keys))
        return runs.keys

    with trainer.on_one_core():
        trainer._spread(program, runs, None, public=True)
    assert sizes == [16]
    trainer._spread(program, runs, None, public=True)
    assert sizes == [16, 8, 8]
