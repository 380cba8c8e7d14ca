"""The releases that are served, by their ids, and what is told of them, as pydantic models for the OpenAPI document."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from quietq.mechanisms.container import read
from quietq.mechanisms.release_file import NOT_PRIVATE, OpenedFile, open_bytes
from quietq.mechanisms.signature import fingerprint, require_signer, signed_in_words
from quietq.privacy.checks import shown
from quietq.privacy.errors import InvalidInput
from quietq.publishing.server.audits import parse_audit, read_audit_beside
from quietq.publishing.server.plain_words import explain

ID_DIGITS = 16
"""So many digits of its hash name a release; more of them work too."""


class Marked(BaseModel):
    """Whatever is read from a release says how private that is, and who stands behind it."""

    privacy: Literal["certified", "NOT PRIVATE"]
    signed: str = Field(description="Who signed it, and whether that was checked against a key.")


class Values(Marked):
    values: list[list[float]]


class Actions(Marked):
    actions: list[int] | list[list[float]] = Field(description="Their numbers, or the actions themselves.")


class Sides(BaseModel):
    low: list[float]
    high: list[float]


class ReleaseRecord(Marked):
    """What the list of releases says of one."""

    id: str = Field(description="The first digits of the hash.")
    hash: str = Field(description="SHA-256 of the release's content.")
    name: str = Field(description="The name of its file.")
    what: Literal["agent", "function"]
    box: Sides
    items: int | None = Field(description="How many items there are, if a state is an item's whole place, from 0 on.")
    outputs: int = Field(description="How many values each state has.")
    actions: int | None = Field(
        description="How many actions an agent chooses among; null where the values are the action itself."
    )
    epsilon: float | None
    delta: float | None
    version: str = Field(description="Of the quietq that wrote it.")
    signer: str | None = Field(description="Fingerprint of the key that it was signed with.")
    signer_checked: bool = Field(description="Whether the server was given that key (`--key`).")


class ReleaseList(Marked):
    """All releases that are served."""

    releases: list[ReleaseRecord]

    @classmethod
    def of(cls, releases: list[ReleaseRecord]) -> "ReleaseList":
        """One that is not private makes the whole list not private."""
        privacy = "certified" if all(each.privacy == "certified" for each in releases) else NOT_PRIVATE
        signed = {each.signed for each in releases}
        several = "signed by several, or not all of them: see each release"
        return cls(privacy=privacy, signed=signed.pop() if len(signed) == 1 else several, releases=releases)


class CertificateRecord(Marked):
    """A certificate, as it is and in plain words, with what belongs to it."""

    certificate: dict[str, Any]
    text: str
    plain: list[str]
    assumptions: list[dict[str, str | bool]]
    cap: dict[str, float | str] | None = Field(description="What no algorithm with the same promise can beat.")
    audit: dict[str, str | float | bool | None] | None


class Health(BaseModel):
    status: Literal["ok"] = "ok"
    releases: int


class Refusal(BaseModel):
    detail: str = Field(description="Why a request was refused, in one sentence.")


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
        items=_count(getattr(release.function, "items", None)), outputs=outputs, actions=release.function.choices,
        epsilon=certificate.epsilon, delta=certificate.delta, version=release.version,
        signer=None if release.signer is None else fingerprint(release.signer), signer_checked=key is not None,
    )  # fmt: skip
    told = CertificateRecord(
        **marks, certificate=certificate.to_dict(), text=str(certificate), audit=audit, **explain(release)
    )
    return Served(release, record, told)


def _count(items: tuple[str, ...] | None) -> int | None:
    return None if items is None else len(items)
