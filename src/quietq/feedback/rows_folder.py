"""Temporary folders for people's rows, which do not outlive their process for long.

Only the user can read such a folder, and it is removed when it is done with. A process that is killed removes nothing,
so each folder holds a file that its process keeps locked. The operating system frees the lock however the process
ends, and the next read removes every folder of the same user whose lock is free.

The file is locked before it gets its name: one of that name that is not locked belongs to no process any more.
"""

import atexit
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "quietq-rows-"
LOCK = ".quietq-lock"
SHORT_PLACE = "/tmp"
"""Where folders are made whose path must be short."""


@contextmanager
def rows_folder(place: str | None = None) -> Iterator[Path]:
    """A new folder for this process alone, which is removed at the end, or by the next read if there is no end.

    `place` is where it is made: in the usual place for temporary files, unless that is said.
    """
    process, folder = os.getpid(), Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))

    def remove() -> None:
        if os.getpid() == process:  # and not a fork of it
            with suppress(OSError):
                with _opened(folder, os.O_RDONLY | os.O_DIRECTORY) as place:
                    _empty(place)
                os.rmdir(folder)

    atexit.register(remove)
    try:
        with open(folder / f"{LOCK}.new", "xb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rename(lock.name, folder / LOCK)
            yield folder
    finally:
        remove()
        atexit.unregister(remove)


def remove_left_folders() -> None:
    """Removes the folders of this user whose process has ended; links, and whatever is another's, are left alone."""
    for place in {tempfile.gettempdir(), SHORT_PLACE}:
        with suppress(OSError), os.scandir(place) as entries:
            for entry in entries:
                if entry.name.startswith(PREFIX):
                    with suppress(OSError):  # in use, no folder, or gone meanwhile
                        _remove_if_left(Path(entry.path))


def _remove_if_left(folder: Path) -> None:
    with _opened(folder, os.O_RDONLY | os.O_DIRECTORY) as place:
        if os.fstat(place).st_uid != os.geteuid():
            return
        with _opened(LOCK, os.O_RDWR | os.O_NONBLOCK, within=place) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _empty(place)
    os.rmdir(folder)


@contextmanager
def _opened(path: Path | str, flags: int, within: int | None = None) -> Iterator[int]:
    """That file or folder itself, and never one that a link leads to."""
    found = os.open(path, flags | os.O_NOFOLLOW, dir_fd=within)
    try:
        yield found
    finally:
        os.close(found)


def _empty(place: int) -> None:
    """Removes all that is in a folder, the lock last: without it, no later read would remove what is still there."""
    for name in set(os.listdir(place)) - {LOCK}:
        with suppress(OSError):
            _remove(name, place)
    if os.listdir(place) == [LOCK]:
        os.unlink(LOCK, dir_fd=place)


def _remove(name: str, place: int) -> None:
    try:
        os.unlink(name, dir_fd=place)  # a link goes, and what it leads to stays
    except IsADirectoryError:
        shutil.rmtree(name, ignore_errors=True, dir_fd=place)
