"""Rows that are put down on the way do not stay on the disk: what a killed process left goes with the next read."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

from quietq.feedback.buckets import LOCK, PREFIX, remove_left_folders, rows_folder
from quietq.feedback.ratings import Ratings

SPILLS = """if True:
    import time
    import polars as pl
    from quietq.feedback import buckets
    from quietq.feedback.ratings import Ratings

    def batches():
        for first in range(0, 3000, 500):
            yield pl.DataFrame({"person": range(first, first + 500), "state": 0.5, "rating": 0.5})
        print("spilled", flush=True)
        time.sleep(600)

    buckets.BYTES_IN_MEMORY = 1000
    Ratings.read(batches(), box=(0, 1), low=0, high=1, slope=1, people=3000)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    (made := tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    return made


@contextmanager
def spilling(folder: Path) -> Iterator[subprocess.Popen]:
    """Another process, which has put rows down and reads on."""
    command, environment = [sys.executable, "-c", SPILLS], os.environ | {"TMPDIR": str(folder)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "spilled\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def read() -> None:
    rows = pl.DataFrame({"person": ["a", "b"], "state": [0.1, 0.9], "rating": [0.0, 1.0]})
    Ratings.read(rows, box=(0, 1), low=0, high=1, slope=1, people=2)


def test_what_a_killed_process_left_goes_with_the_next_read(folder: Path) -> None:
    with spilling(folder) as process:
        (left,) = folder.iterdir()
        process.send_signal(signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL
    assert list(left.rglob("*.parquet"))
    read()
    assert not list(folder.iterdir())


def test_what_another_process_uses_stays(folder: Path) -> None:
    with spilling(folder):
        (used,) = folder.iterdir()
        before = {path: path.read_bytes() for path in used.rglob("*") if path.is_file()}
        assert len(before) > 1
        read()
        assert {path: path.read_bytes() for path in used.rglob("*") if path.is_file()} == before


def test_what_this_process_uses_stays_and_is_its_own(folder: Path) -> None:
    with rows_folder() as used:
        (used / "rows").touch()
        read()
        assert (used / "rows").exists()
        assert used.stat().st_mode & 0o077 == 0
    assert not list(folder.iterdir())


def test_a_folder_that_is_being_removed_loses_its_lock_last(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed half-way through would else leave rows that no later read takes for left."""
    unlink, gone = os.unlink, []

    def note(path, **further):
        unlink(path, **further)
        gone.append(Path(path).name)

    with rows_folder() as used:
        for number in range(20):
            (used / f"{number}.parquet").touch()
        monkeypatch.setattr(os, "unlink", note)
    assert len(gone) == 21
    assert gone[-1] == LOCK
    assert not list(folder.iterdir())


def left_in(place: Path, name: str = f"{PREFIX}left") -> Path:
    """A folder as a killed process leaves it."""
    (left := place / name).mkdir(mode=0o700)
    (left / LOCK).touch()
    (left / "0-0.parquet").write_bytes(b"rows")
    return left


def test_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    victim = left_in(tmp_path, "victim")
    (folder / f"{PREFIX}planted").symlink_to(victim)
    (locked := folder / f"{PREFIX}locked").mkdir()
    (locked / LOCK).symlink_to(victim / LOCK)
    (locked / "rows").touch()
    read()
    assert sorted(path.name for path in victim.iterdir()) == [LOCK, "0-0.parquet"]
    assert (folder / f"{PREFIX}planted").is_symlink()
    assert (locked / "rows").exists()


def test_links_in_a_folder_go_and_what_they_lead_to_stays(folder: Path, tmp_path: Path) -> None:
    victim, left = left_in(tmp_path, "victim"), left_in(folder)
    (left / "inner").mkdir()
    (left / "inner" / "rows").touch()
    for place in (left, left / "inner"):
        (place / "to a folder").symlink_to(victim)
        (place / "to a file").symlink_to(victim / "0-0.parquet")
    read()
    assert not left.exists()
    assert sorted(path.name for path in victim.iterdir()) == [LOCK, "0-0.parquet"]


def test_nobody_elses_folder_is_touched(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left, user = left_in(folder), os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    read()
    assert (left / "0-0.parquet").exists()


def test_only_folders_of_this_kind_that_are_whole_are_removed(folder: Path) -> None:
    other = left_in(folder, "quietq-serve-left")
    (begun := folder / f"{PREFIX}begun").mkdir()  # by a process that has not locked it yet
    (folder / f"{PREFIX}file").touch()
    before = sorted(folder.rglob("*"))
    read()
    assert sorted(folder.rglob("*")) == before
    assert begun in before
    assert other in before


def test_what_cannot_be_removed_now_is_removed_later(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = left_in(folder)
    unlink = os.unlink

    def refuse(path, **further):
        if path == "0-0.parquet":
            raise PermissionError
        unlink(path, **further)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refuse)
        remove_left_folders()
    assert (left / LOCK).exists()
    remove_left_folders()
    assert not left.exists()


def test_a_temporary_folder_that_is_not_there_ends_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    read()
