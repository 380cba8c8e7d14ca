"""The releases that are served, by their ids, each with what an audit of it found."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quietq.mechanisms.container import read
from quietq.mechanisms.release_file import OpenedFile, open_bytes
from quietq.mechanisms.signature import fingerprint, require_signer, signed_in_words
from quietq.privacy.checks import shown
from quietq.privacy.errors import InvalidInput
from quietq.publishing.server.audits import parse_audit, read_audit_beside
from quietq.publishing.server.models import CertificateRecord, ReleaseRecord, Sides
from quietq.publishing.server.plain_words import explain

ID_DIGITS = 16
"""So many digits of its hash name a release; more of them work too."""


@dataclass(frozen=True)
class ServedFile:
    """A release's file as it was read once; workers are given these bytes, whatever happens to the file later."""

    name: str
    content: bytes = field(repr=False)
    audit: bytes | None = field(repr=False)


@dataclass(frozen=True)
class Served:
    """One release, and what is told about it."""

    release: OpenedFile
    record: ReleaseRecord
    certificate: CertificateRecord


Catalogue = dict[str, Served]


def read_served(path: Path) -> ServedFile:
    """A release's file and the audit beside it."""
    return ServedFile(path.name, read(path), read_audit_beside(path))


def open_catalogue(files: Iterable[ServedFile], key: bytes | None = None) -> Catalogue:
    """The releases of these files, all checked; with a public `key`, a file that it did not sign is refused."""
    catalogue: Catalogue = {}
    for file in files:
        served = _open(file, key)
        other = catalogue.setdefault(served.record.id, served)
        if other is not served:
            both = f"{shown(other.record.name)} and {shown(file.name)}"
            raise InvalidInput(f"{both} hold the same release, {served.record.id}: give it once.")
    return catalogue


def _open(file: ServedFile, key: bytes | None) -> Served:
    try:
        release = open_bytes(file.content)
        require_signer("it", release.signer, key)
        # No key signs an audit: beside what one did sign, it would be taken for the signer's word.
        audit = None if file.audit is None or key is not None else parse_audit(file.audit, release.hash)
        certificate, outputs = release.certificate, release.function.outputs
    except InvalidInput as error:
        raise InvalidInput(f"{shown(file.name)} cannot be served: {error}") from error
    marks: Any = {"privacy": release.privacy, "signed": signed_in_words(release.signer, key)}
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
    return Served(release, record, told)
