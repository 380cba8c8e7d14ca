"""What the parent process hands on to its workers: a private folder with copies of the files, and the token.

The copies are why an id never changes its answers: a file may be replaced while the server runs, and a worker that
starts later still reads what the parent read.
"""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quietq.privacy.checks import shown
from quietq.privacy.errors import InvalidInput
from quietq.server.catalogue import Catalogue, audit_beside, read_entry
from quietq.server.limits import LEAST_TOKEN

FOLDER, TOKEN = "QUIETQ_SERVE", "QUIETQ_TOKEN"
_METRICS = "PROMETHEUS_MULTIPROC_DIR"
_LIST, _MOST_TOKEN_BYTES = "releases.json", 4096


def read_token(file: Path | None) -> str | None:
    """The access token from a file, or else from the environment; None if there is none."""
    if file is None:
        token, where = os.environ.get(TOKEN), TOKEN
    else:
        if not file.is_file():
            raise InvalidInput(f"There is no file {str(file)!r} with a token.")
        with file.open("rb") as stream:
            token, where = stream.read(_MOST_TOKEN_BYTES).decode("ascii", "replace").rstrip("\r\n"), str(file)
    if token is None:
        return None
    if len(token) < LEAST_TOKEN or not all("!" <= letter <= "~" for letter in token):
        raise InvalidInput(
            f"The token in {where} must be at least {LEAST_TOKEN} letters, digits or signs of ASCII without spaces."
        )
    return token


@contextmanager
def handed_on(files: list[Path], token: str | None) -> Iterator[Catalogue]:
    """Copies the files, reads the copies, and tells processes that are started in the meantime where they are."""
    with tempfile.TemporaryDirectory(prefix="quietq-serve-", ignore_cleanup_errors=True) as name:
        folder = Path(name)  # only its owner can look inside
        lock = _locked(folder)
        try:
            catalogue = _copied(files, folder)
            (folder / "metrics").mkdir()
            said = {FOLDER: name, _METRICS: str(folder / "metrics"), TOKEN: token}
            # A worker is one of several, and answers many at once already.
            said |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
            with _environment(said):
                yield catalogue
        finally:
            if lock is not None:
                os.close(lock)


def taken_over() -> tuple[Catalogue, str | None]:
    """What the parent handed on, in a worker; the releases must be those that the parent read."""
    token = os.environ.pop(TOKEN, None)
    folder = Path(os.environ[FOLDER])
    entries = []
    for number, (name, content_hash) in enumerate(json.loads((folder / _LIST).read_text())):
        entry = read_entry(*_copy_of(folder, number, name))
        if entry.release.hash != content_hash:
            raise InvalidInput(f"The copy of {shown(name)} is not what was read when the server started.")
        entries.append(entry)
    return Catalogue(entries), token


def _copied(files: list[Path], folder: Path) -> Catalogue:
    entries = []
    for number, file in enumerate(files):
        if not file.is_file():
            raise InvalidInput(f"There is no file {str(file)!r}.")
        copy, _, audit = _copy_of(folder, number, file.name)
        shutil.copyfile(file, copy)
        if audit_beside(file).is_file():
            shutil.copyfile(audit_beside(file), audit)
        entries.append(read_entry(copy, file.name, audit))
    catalogue = Catalogue(entries)
    (folder / _LIST).write_text(json.dumps([[entry.name, entry.release.hash] for entry in entries]))
    return catalogue


def _copy_of(folder: Path, number: int, name: str) -> tuple[Path, str, Path]:
    copy = folder / f"{number}.qq"
    return copy, name, audit_beside(copy)


def _locked(folder: Path) -> int | None:
    """A lock by which the system's cleaner of old temporary files knows that this folder is in use."""
    if sys.platform == "win32":
        return None
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


@contextmanager
def _environment(values: dict[str, str | None]) -> Iterator[None]:
    """Variables of the environment while processes are started; None takes one away."""
    before = {name: os.environ.get(name) for name in values}
    _set(values)
    try:
        yield
    finally:
        _set(before)


def _set(values: dict[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
