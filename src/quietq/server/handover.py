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
from dataclasses import dataclass, field
from pathlib import Path

from quietq.privacy.checks import shown
from quietq.privacy.errors import InvalidInput
from quietq.release.container import MOST_BYTES
from quietq.server.catalogue import MOST_AUDIT_BYTES, Catalogue, audit_beside, is_there, read_entry
from quietq.server.limits import LEAST_TOKEN

TOKEN = "QUIETQ_TOKEN"
_METRICS = "PROMETHEUS_MULTIPROC_DIR"
_LIST, _MOST_TOKEN_BYTES = "releases.json", 4096


@dataclass(frozen=True)
class Handover:
    """What a worker is given when it starts; not by the environment, which others of the same user can read."""

    folder: Path
    token: str | None = field(repr=False)
    hosts: frozenset[str] | None
    """Names that are answered, besides this machine's own; None for any."""
    key: bytes | None = None
    """The public key that all releases must be signed with, if there is one."""


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
def handed_on(files: list[Path], key: bytes | None = None) -> Iterator[tuple[Catalogue, Path]]:
    """Copies the files into a folder, reads the copies, and sets up the environment of the workers to start."""
    with tempfile.TemporaryDirectory(prefix="quietq-serve-", ignore_cleanup_errors=True) as name:
        folder = Path(name)  # only its owner can look inside
        lock = _locked(folder)
        try:
            catalogue = _copied(files, folder, key)
            (folder / "metrics").mkdir()
            said: dict[str, str | None] = {_METRICS: str(folder / "metrics"), TOKEN: None}
            # A worker is one of several, and answers many at once already.
            said |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
            with _environment(said):
                yield catalogue, folder
        finally:
            if lock is not None:
                os.close(lock)


def taken_over(handover: Handover) -> Catalogue:
    """The releases, in a worker; they must be those that the parent read."""
    folder = handover.folder
    entries = []
    for number, (name, content_hash) in enumerate(json.loads((folder / _LIST).read_text())):
        entry = read_entry(*_copy_of(folder, number, name), handover.key)
        if entry.release.hash != content_hash:
            raise InvalidInput(f"The copy of {shown(name)} is not what was read when the server started.")
        entries.append(entry)
    return Catalogue(entries)


def _copied(files: list[Path], folder: Path, key: bytes | None) -> Catalogue:
    entries = []
    for number, file in enumerate(files):
        if not file.is_file():
            raise InvalidInput(f"There is no file {str(file)!r}.")
        copy, _, audit = _copy_of(folder, number, file.name)
        _copy(file, copy, MOST_BYTES, file.name)
        if is_there(audit_beside(file)):
            _copy(audit_beside(file), audit, MOST_AUDIT_BYTES, audit_beside(file).name)
        entries.append(read_entry(copy, file.name, audit, key))
    catalogue = Catalogue(entries)
    (folder / _LIST).write_text(json.dumps([[entry.name, entry.release.hash] for entry in entries]))
    return catalogue


def _copy(source: Path, copy: Path, most: int, name: str) -> None:
    with source.open("rb") as stream:
        if os.fstat(stream.fileno()).st_size > most:
            raise InvalidInput(f"{shown(name)} must have at most {most} bytes.")
        with copy.open("xb") as target:
            shutil.copyfileobj(stream, target)


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
