"""The releases that are served, by their ids, and what is told of each."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quietq.mechanisms.container import read
from quietq.mechanisms.evaluated_policies import EvaluatedPolicies
from quietq.mechanisms.private_world import PrivateWorld
from quietq.mechanisms.release_file import OpenedFile, open_bytes
from quietq.mechanisms.signature import fingerprint, require_signer, signed_in_words
from quietq.privacy.checks import shown
from quietq.privacy.errors import InvalidInput
from quietq.publishing.server.audits import parse_audit, read_audit_beside
from quietq.publishing.server.outputs import measure_of, names_of
from quietq.publishing.server.plain_words import explain
from quietq.publishing.server.records import CertificateRecord, ReleaseRecord
from quietq.publishing.server.stages import sides_of, stage_of

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
    releases = {id: served.release for id, served in catalogue.items()}
    for served in catalogue.values():
        if isinstance(served.release.function, PrivateWorld):
            served.record.stage = stage_of(served.release.function, releases)
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
    function = release.function
    record = ReleaseRecord(
        **marks, id=release.hash[:ID_DIGITS], hash=release.hash, name=file.name, what=_what(release),
        box=sides_of(release.box),
        items=_count(getattr(function, "items", None)), outputs=outputs, names=names_of(function),
        measure=measure_of(function), actions=function.choices, stage=None,
        epsilon=certificate.epsilon, delta=certificate.delta, version=release.version,
        signer=None if release.signer is None else fingerprint(release.signer), signer_checked=key is not None,
    )  # fmt: skip
    told = CertificateRecord(
        **marks, certificate=certificate.to_dict(), text=str(certificate), audit=audit, **explain(release)
    )
    return Served(release, record, told)


def _what(release: OpenedFile) -> Any:
    kinds = {PrivateWorld: "world", EvaluatedPolicies: "policy values"}
    return kinds.get(type(release.function), release.what)


def _count(items: tuple[str, ...] | None) -> int | None:
    return None if items is None else len(items)
