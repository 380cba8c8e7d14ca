"""The releases that are served, by their ids."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quietq.privacy.checks import shown
from quietq.privacy.errors import InvalidInput
from quietq.publishing.loading import NOT_PRIVATE, Release, opened, read
from quietq.publishing.server.audits import parse_audit, read_audit_beside
from quietq.publishing.server.models import CertificateRecord, ReleaseRecord, Sides
from quietq.publishing.server.plain_words import explain
from quietq.publishing.signature import fingerprint, require_signer, signed_in_words

ID_DIGITS = 16
"""So many digits of its hash name a release; more of them work too."""


@dataclass(frozen=True)
class ServedFile:
    """A release's file as it was read once; workers are given these bytes, whatever happens to the file later."""

    name: str
    content: bytes = field(repr=False)
    audit: bytes | None = field(repr=False)


@dataclass(frozen=True)
class Entry:
    """One release, and what is told about it."""

    release: Release
    record: ReleaseRecord
    certificate: CertificateRecord


Catalogue = dict[str, Entry]


def read_file(path: Path) -> ServedFile:
    """A release's file and the audit beside it."""
    return ServedFile(path.name, read(path), read_audit_beside(path))


def open_catalogue(files: Iterable[ServedFile], key: bytes | None = None) -> Catalogue:
    """The releases of these files, all checked; with a public `key`, a file that it did not sign is refused."""
    catalogue: Catalogue = {}
    for file in files:
        entry = _open_entry(file, key)
        other = catalogue.setdefault(entry.record.id, entry)
        if other is not entry:
            both = f"{shown(other.record.name)} and {shown(file.name)}"
            raise InvalidInput(f"{both} hold the same release, {entry.record.id}: give it once.")
    return catalogue


def _open_entry(file: ServedFile, key: bytes | None) -> Entry:
    try:
        release = opened(file.content, None)
        require_signer("it", release.signer, key)
        # No key signs an audit: beside what one did sign, it would be taken for the signer's word.
        audit = None if file.audit is None or key is not None else parse_audit(file.audit, release.hash)
    except InvalidInput as error:
        raise InvalidInput(f"{shown(file.name)} cannot be served: {error}") from error
    certificate, outputs = release.certificate, release.outputs
    privacy = "certified" if release.private else NOT_PRIVATE
    marks: Any = {"privacy": privacy, "signed": signed_in_words(release.signer, key)}
    record = ReleaseRecord(
        **marks, id=release.hash[:ID_DIGITS], hash=release.hash, name=file.name, what=release.what,
        box=Sides(low=list(release.box.low), high=list(release.box.high)),
        outputs=outputs, actions=outputs if release.what == "agent" else None,
        epsilon=certificate.epsilon, delta=certificate.delta, version=release.version,
        signer=None if release.signer is None else fingerprint(release.signer), signer_checked=key is not None,
    )  # fmt: skip
    told = CertificateRecord(
        **marks, certificate=certificate.to_dict(), text=str(certificate), audit=audit, **explain(release)
    )
    return Entry(release, record, told)
