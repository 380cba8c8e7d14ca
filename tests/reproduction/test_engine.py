"""Tasks are done once, kept whole, found again by configuration and code, and the same wherever they are done."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import small_tasks
from small_tasks import fails, of, slowly, square

from reproduction import engine, results
from reproduction.engine import carry_out
from reproduction.experiment import Claim, Task, tables_of
from reproduction.results import Cache, write_tables


def done(marks: Path) -> list[int]:
    return [int(line) for line in marks.read_text().split()] if marks.exists() else []


def squares(marks: Path, count: int) -> list[Task]:
    return [of(square, i, marks) for i in range(count)]


def test_what_was_done_is_not_done_again(tmp_path):
    marks, kept = tmp_path / "marks", Cache(tmp_path / "cache")
    first = carry_out(squares(marks, 3), kept)
    told = []
    both = carry_out(squares(marks, 5) * 2, kept, progress=lambda *state: told.append(state))
    assert sorted(done(marks)) == [0, 1, 2, 3, 4]
    assert list(both) == squares(marks, 5)
    assert {task: both[task] for task in first} == first
    assert [state[:2] for state in told] == [(3, 5), (4, 5), (5, 5)]
    assert carry_out(squares(marks, 5), Cache(None)) == both  # which keeps nothing, and so looks at nothing
    assert len(done(marks)) == 10


def test_another_configuration_or_other_code_is_another_task(tmp_path, monkeypatch):
    marks, kept = tmp_path / "marks", Cache(tmp_path / "cache")
    carry_out(squares(marks, 1), kept)
    assert kept.get(of(square, 0, marks, kind="two")) is None
    assert kept.get(of(fails, 0, marks)) is None
    monkeypatch.setattr(results, "code", lambda: "other code")
    assert kept.get(of(square, 0, marks)) is None


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
    kept, task = Cache(tmp_path), of(square, 3, tmp_path / "marks")
    kept.put(task, task.rows())
    (file,) = (path for path in tmp_path.iterdir() if path.suffix == ".json")
    file.write_text(torn.replace("OWN", json.dumps(task.describe())))
    assert kept.get(task) is None
    assert carry_out([task], kept)[task] == [{"number": 3, "square": 9}]
    assert kept.get(task) == [{"number": 3, "square": 9}]


def test_an_error_loses_nothing_that_was_done(tmp_path):
    marks, kept = tmp_path / "marks", Cache(tmp_path / "cache")
    with pytest.raises(ArithmeticError, match="7 is too much"):
        carry_out([*squares(marks, 3), of(fails, 7, marks), *squares(marks, 40)], kept)
    assert set(done(marks)) >= {0}
    assert [number for number in done(marks) if kept.get(of(square, number, marks)) is None] == []


def test_what_cannot_be_kept_is_given_all_the_same(tmp_path, monkeypatch):
    full = OSError(28, "No space left on device")
    monkeypatch.setattr(results.tempfile, "NamedTemporaryFile", lambda *_, **__: (_ for _ in ()).throw(full))
    task = of(square, 3, tmp_path / "marks")
    with pytest.warns(RuntimeWarning, match=r"'square of 3' could not be kept: No space left on device\."):
        assert carry_out([task], Cache(tmp_path))[task] == [{"number": 3, "square": 9}]


def test_the_first_of_each_program_comes_before_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(engine.os, "cpu_count", lambda: 1)
    marks = tmp_path / "marks"
    carry_out([of(square, i, marks, "ab"[i // 3]) for i in range(6)], Cache(None))
    assert done(marks) == [0, 3, 1, 2, 4, 5]


KILLED = """
import sys
from pathlib import Path
from small_tasks import of, slowly
from reproduction import engine
from reproduction.results import Cache
engine.os.cpu_count = lambda: 1
engine.carry_out([of(slowly, i, sys.argv[1]) for i in range(50)], Cache(Path(sys.argv[2])))
"""


@pytest.mark.slow  # by default: Ctrl-C (test_interrupt.py), torn files and errors above
def test_after_a_kill_it_goes_on_where_it_was(tmp_path, monkeypatch):
    marks, kept = tmp_path / "marks", Cache(tmp_path / "cache")
    here = Path(__file__)
    found = os.pathsep.join([str(here.parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", KILLED, str(marks), str(tmp_path / "cache")]
    process = subprocess.Popen(command, cwd=here.parents[2], env=os.environ | {"PYTHONPATH": found})
    while len(done(marks)) < 3:
        assert process.poll() is None
    process.kill()
    process.wait()
    tasks = [of(slowly, i, marks) for i in range(50)]
    monkeypatch.setattr(small_tasks.time, "sleep", lambda seconds: None)
    assert len([task for task in tasks if kept.get(task) is not None]) >= 2
    carry_out(tasks, kept)
    repeated = len(done(marks)) - 50
    assert repeated <= 1  # the one that was under way


def test_tables_are_written_with_what_made_them(tmp_path):
    tasks = squares(tmp_path / "marks", 2)
    rows = carry_out(tasks, Cache(None))
    claim = Claim("squares", "they grow", "0, 1", "holds", "tests/reproduction/test_engine.py")
    files = write_tables(tables_of(rows), [claim], tasks, tmp_path)
    assert [file.name for file in files] == ["squares.csv", "squares.json", "verdicts.csv", "verdicts.json"]
    with (tmp_path / "squares.csv").open() as stream:
        assert list(csv.DictReader(stream)) == [{"number": "0", "square": "0"}, {"number": "1", "square": "1"}]
    made_by = json.loads((tmp_path / "squares.json").read_text())["tasks"]
    assert made_by == [task.describe() for task in tasks]
