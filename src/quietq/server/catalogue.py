"""The releases that are served, and what is told about each."""

import json
import math
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from quietq.privacy.checks import shown
from quietq.privacy.errors import InvalidInput
from quietq.release.loading import NOT_PRIVATE, Release, opened, read
from quietq.release.signature import fingerprint, require_signer, signed_in_words

MOST_AUDIT_BYTES = 2**16
SHORT = 16  # hexadecimal digits of a hash that name a release


@dataclass(frozen=True)
class Entry:
    """One release, the name of its file, and what an audit found, if somebody laid that beside it."""

    release: Release
    name: str
    audit: dict[str, Any] | None = None
    key: bytes | None = None
    """The public key that the release was found to be signed with, if one was given."""

    @property
    def id(self) -> str:
        """What it is asked for by; its whole hash works too."""
        return self.release.hash[:SHORT]

    @cached_property
    def privacy(self) -> str:
        """What every answer says of it."""
        return "certified" if self.release.private else NOT_PRIVATE

    @cached_property
    def signed(self) -> str:
        """Who stands behind it, said wherever it is said to be certified: a file alone cannot prove its promise."""
        return signed_in_words(self.release.signer, self.key)

    @cached_property
    def outputs(self) -> int:
        """How many values a state has."""
        return self.release.outputs

    @cached_property
    def dimension(self) -> int:
        """How many coordinates a state has."""
        return self.release.box.dimension

    def describe(self) -> dict[str, Any]:
        """What the list of releases says of it, as plain JSON types."""
        release = self.release
        return {
            "id": self.id,
            "hash": release.hash,
            "name": self.name,
            "what": release.what,
            "privacy": self.privacy,
            "box": {"low": list(release.box.low), "high": list(release.box.high)},
            "outputs": self.outputs,
            "actions": self.outputs if release.what == "agent" else None,
            "epsilon": release.certificate.epsilon,
            "delta": release.certificate.delta,
            "version": release.version,
            "signer": None if release.signer is None else fingerprint(release.signer),
            "signer_checked": self.key is not None,
            "signed": self.signed,
        }


class Catalogue:
    """All entries, by their ids and by their whole hashes."""

    def __init__(self, entries: list[Entry]) -> None:
        if not entries:
            raise InvalidInput("There must be at least one release to serve.")
        self._entries = entries
        self._by_name: dict[str, Entry] = {}
        for entry in entries:
            other = self._by_name.get(entry.id)
            if other is not None:
                raise InvalidInput(
                    f"{shown(other.name)} and {shown(entry.name)} hold the same release, {entry.id}: give it once."
                )
            self._by_name[entry.id] = self._by_name[entry.release.hash] = entry

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, name: str) -> Entry | None:
        """The entry of an id or a hash."""
        return self._by_name.get(name)

    @property
    def names(self) -> list[str]:
        """All ids and hashes."""
        return list(self._by_name)

    @property
    def privacy(self) -> str:
        """Of all of them together: one that is not private is enough."""
        return "certified" if all(entry.release.private for entry in self) else NOT_PRIVATE

    @property
    def signed(self) -> str:
        """Of all of them together, if it is the same of all."""
        found = {entry.signed for entry in self}
        return found.pop() if len(found) == 1 else "signed by several, or not all of them: see each release"


def read_entry(path: Path, name: str, audit: Path, key: bytes | None = None) -> Entry:
    """The entry of a release's file; `audit` is where an audit's result lies, if there is one.

    With a public `key`, a file that it did not sign is refused.
    """
    try:
        release = opened(read(path), None)  # not by its path: it is a copy, and its own name is said below
        require_signer("it", release.signer, key)
        return Entry(release, name, read_audit(audit, release.hash) if is_there(audit) else None, key)
    except InvalidInput as error:
        raise InvalidInput(f"{shown(name)} cannot be served: {error}") from error


def audit_beside(path: Path) -> Path:
    """Where the audit of a release's file lies.

    >>> audit_beside(Path("runs/agent.qq")).name
    'agent.audit.json'
    """
    return path.with_name(f"{path.stem}.audit.json")


def is_there(audit: Path) -> bool:
    """Whether there is an audit; a link is refused, for whoever may write here could have any file shown by it."""
    try:
        kind = audit.lstat().st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(kind):
        raise InvalidInput(f"its audit, {shown(audit.name)}, must be a plain file, not a link or a folder.")
    return True


def read_audit(path: Path, release_hash: str) -> dict[str, Any]:
    """What an audit found: a small, flat JSON object, because the page shows it to people who did not write it."""
    with path.open("rb") as stream:
        data = stream.read(MOST_AUDIT_BYTES + 1)
    if len(data) > MOST_AUDIT_BYTES:
        raise InvalidInput(f"its audit must have at most {MOST_AUDIT_BYTES} bytes.")
    try:
        found = json.loads(data.decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("its audit must be a JSON object in UTF-8, and no name in it may occur twice.") from error
    if not isinstance(found, dict) or not all(map(_plain, (*found, *found.values()))):
        raise InvalidInput("its audit must be a JSON object of finite numbers, texts, true, false and null only.")
    if "release" not in found:
        raise InvalidInput(
            "its audit must name the release that it is of, by its hash in the field release; `quietq audit ... "
            "--release FILE` writes such an audit."
        )
    if found["release"] != release_hash:
        raise InvalidInput(f"its audit is of another release, {shown(found['release'])}.")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a name occurs twice")
    return dict(pairs)


def _plain(value: object) -> bool:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return math.isfinite(value) if isinstance(value, float) else abs(value) <= 2**53
    if isinstance(value, str):
        return value.isprintable()  # no control characters, no half of a pair
    return value is None or isinstance(value, bool)
