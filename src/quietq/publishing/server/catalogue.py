"""The releases that are served, by their ids, and the records that describe each of them.

Every record is a pydantic model, so that the OpenAPI document has it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from quietq.privacy import InvalidInput
from quietq.privacy.checks import shown
from quietq.privacy.explain import NOT_PRIVATE, explain
from quietq.released.evaluated_policies import EvaluatedPolicies
from quietq.released.private_model import PrivateModel
from quietq.released.private_network import PrivateNetwork, PrivatePolicy
from quietq.released.private_world import PrivateWorld
from quietq.released.publishable import Publishable
from quietq.released.release_file import OpenedFile, Privacy, open_bytes, read
from quietq.released.signature import fingerprint, require_signer, signed_in_words

ID_DIGITS = 16
"""A release is named by this number of digits of its hash; more of them work too."""


What = Literal["agent", "function", "world", "policy values"]


class Marked(BaseModel):
    """Whatever is read from a release says how private that is, and who stands behind it."""

    privacy: Privacy
    signed: str = Field(description="Who signed it, and whether that was checked against a key.")

    @property
    def headers(self) -> dict[str, str]:
        """The marks, for whoever does not read the answer."""
        return {"X-Quietq-Privacy": self.privacy, "X-Quietq-Signed": self.signed}


class ReleaseRecord(Marked):
    """What the list of releases says of one."""

    id: str = Field(description="The first digits of the hash.")
    hash: str = Field(description="SHA-256 of the release's content.")
    name: str = Field(description="The name of its file.")
    what: What
    box: dict[Literal["low", "high"], list[float]] = Field(description="Its ends, a number for each coordinate.")
    coordinates: list[str] = Field(description="What each coordinate of a state is called.")
    items: list[str] | None = Field(description="The items of a catalogue, whose states are their places, from 0 on.")
    outputs: int = Field(description="How many values each state has.")
    names: list[str] = Field(description="What each of these values is called.")
    measure: str = Field(description="What the values are, for an axis.")
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
    def from_records(cls, releases: list[ReleaseRecord]) -> "ReleaseList":
        """One release that is not private makes the list not private."""
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


ServedFile = tuple[str, bytes]
"""A release's file as it was read once, by its name; workers are given these bytes, whatever happens to it later."""


@dataclass(frozen=True)
class Served:
    """One release, and what is said about it."""

    release: OpenedFile
    record: ReleaseRecord
    certificate: CertificateRecord


Catalogue = dict[str, Served]
WHAT: dict[type, What] = {PrivateWorld: "world", EvaluatedPolicies: "policy values"}
"""What releases are called that are neither an agent nor a function."""


def read_served(path: Path) -> ServedFile:
    """Reads a file whole; what is too large is refused before it is read."""
    return path.name, read(path)


def open_catalogue(files: Iterable[ServedFile], key: bytes | None = None) -> Catalogue:
    """The releases of these files, all checked; with a public `key`, a file that it did not sign is refused."""
    catalogue: Catalogue = {}
    for name, content in files:
        served = _open(name, content, key)
        other = catalogue.setdefault(served.record.id, served)
        if other is not served:
            both = f"{shown(other.record.name)} and {shown(name)}"
            raise InvalidInput(f"{both} hold the same release, {served.record.id}: give it once.")
    return catalogue


def _open(name: str, content: bytes, key: bytes | None) -> Served:
    try:
        release = open_bytes(content)
        require_signer("it", release.signer, key)
    except InvalidInput as error:
        raise InvalidInput(f"{shown(name)} cannot be served: {error}") from error
    function, certificate = release.function, release.certificate
    signed = signed_in_words(release.signer, key)
    record = ReleaseRecord(
        privacy=release.privacy,
        signed=signed,
        id=release.hash[:ID_DIGITS],
        hash=release.hash,
        name=name,
        what=WHAT.get(type(function), function.what),
        box={"low": list(release.box.low), "high": list(release.box.high)},
        coordinates=_coordinate_names(function),
        items=_items(function),
        outputs=function.outputs,
        names=_output_names(function),
        measure=_measure(function),
        actions=function.choices,
        epsilon=certificate.epsilon,
        delta=certificate.delta,
        version=release.version,
        signer=None if release.signer is None else fingerprint(release.signer),
        signer_checked=key is not None,
    )
    told = CertificateRecord(
        privacy=release.privacy,
        signed=signed,
        certificate=certificate.to_dict(),
        text=str(certificate),
        plain=[*(str(line) for line in explain(certificate, "everybody")), *function.in_words()],
        assumptions=[  # what is trusted first, as in print
            {"text": each.text, "enforced": each.enforced}
            for each in sorted(certificate.assumptions, key=lambda one: one.enforced)
        ],
    )
    return Served(release, record, told)


def _items(function: Publishable) -> list[str] | None:
    """The names of a catalogue's items, in their order."""
    return list(items) if (items := getattr(function, "items", None)) else None


def _coordinate_names(function: Publishable) -> list[str]:
    """Returns what the coordinates of a state are called: as they were declared, if anybody did."""
    if _items(function) is not None:
        return ["item"]
    numbered = [f"coordinate {k}" for k in range(function.box.dimension)]
    return _told("coordinate", function.labels.states) or (["state"] if len(numbered) == 1 else numbered)


def _output_names(function: Publishable) -> list[str]:
    """One name for each output, in their order: as they were declared, if anybody did."""
    if isinstance(function, EvaluatedPolicies):
        return list(function.names)
    actions = _told("action", function.labels.actions)
    if isinstance(function, PrivateWorld):
        after = ["the middle action"] if function.spaces.actions is None else actions
        return [f"next {where} after {action}" for action in after for where in _coordinate_names(function)]
    if actions:
        return actions
    if isinstance(function, PrivatePolicy) and function.choices is None:
        return ["action"] if function.outputs == 1 else [f"action[{k}]" for k in range(function.outputs)]
    if function.outputs == 1 and function.choices is None:
        return ["value"]
    each = "action" if function.choices is not None or isinstance(function, PrivateModel) else "output"
    return [f"{each} {k}" for k in range(function.outputs)]


def _told(kind: str, names: tuple[str, ...]) -> list[str]:
    """Names that begin as numbers do would be taken for values: they are told with their place."""
    return [f"{kind} {i} ({name})" if name[0] in "+-.0123456789" else name for i, name in enumerate(names)]


def _measure(function: Publishable) -> str:
    """Returns what an axis with these numbers is called."""
    if isinstance(function, PrivateWorld):
        return "expected next state"
    if isinstance(function, PrivatePolicy | PrivateNetwork) and function.output != "values":
        return "log-probability" if function.output == "log-probabilities" else "action taken"
    return "released value"
