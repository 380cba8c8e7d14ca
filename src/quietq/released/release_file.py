"""The one file of a release: what was released, and its certificate. It may come from anywhere.

No code in it is run, sizes are checked before anything is read, and whatever is not a release is answered with
`InvalidRelease`. A hash shows damage, and not who made the file: that takes a signature.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Float, Shaped

from quietq.noise import Box
from quietq.privacy import Certificate, InvalidInput, QuietqError
from quietq.privacy.certificate import Sides
from quietq.privacy.checks import shown
from quietq.privacy.explain import NOT_PRIVATE
from quietq.privacy.records import Line, Record, read_record
from quietq.released import signature
from quietq.released.container import hash_of, pack, read, replace_file, unpack
from quietq.released.evaluated_policies import EvaluatedPolicies, PolicyValueDetails
from quietq.released.private_function import (
    CellDetails,
    KnotDetails,
    PrivateCells,
    PrivateKnots,
    PrivateSum,
    PrivateTable,
    SumDetails,
    TableDetails,
)
from quietq.released.private_model import ModelDetails, PrivateModel
from quietq.released.private_network import NetworkDetails, PolicyDetails, PrivateNetwork, PrivatePolicy
from quietq.released.private_world import PrivateWorld, WorldDetails
from quietq.released.publishable import Arrays, InvalidRelease, Json, Labels, Publishable, Stored, require
from quietq.version import __version__

FORMAT = 5
Privacy = Literal["certified", "NOT PRIVATE"]
_KINDS: tuple[type[Publishable], ...] = (
    EvaluatedPolicies,
    PrivateTable,
    PrivateKnots,
    PrivateSum,
    PrivateCells,
    PrivateModel,
    PrivateNetwork,
    PrivatePolicy,
    PrivateWorld,
)
KINDS = {kind.details: kind for kind in _KINDS}
"""All that a file can hold, by the record of its details: nothing in it can name another class."""


class Header(Record, frozen=True, tag=False, tag_field=None, kw_only=True):
    """The text of a file: all of it but the numbers."""

    format: Literal[5] = FORMAT
    version: Line = __version__
    privacy: Privacy
    box: Sides
    labels: Labels
    details: (
        PolicyValueDetails
        | TableDetails
        | KnotDetails
        | SumDetails
        | CellDetails
        | ModelDetails
        | NetworkDetails
        | PolicyDetails
        | WorldDetails
    )
    certificate: Json
    """As `Certificate.to_dict` has it."""


@dataclass(frozen=True)
class OpenedFile:
    """A file that was read and checked."""

    hash: str
    """Of its whole content: its name."""
    function: Publishable
    certificate: Certificate
    version: str
    signer: bytes | None = None
    """The public key that it was signed with; the signature was found to be right."""

    @property
    def what(self) -> Literal["agent", "function"]:
        return self.function.what

    @property
    def box(self) -> Box:
        return self.function.box

    @property
    def privacy(self) -> Privacy:
        """Certified, or NOT PRIVATE, which is said wherever it is shown."""
        return mark(self.certificate)

    @property
    def private(self) -> bool:
        return self.privacy != NOT_PRIVATE

    def values(self, states: Float[np.ndarray, "points d"]) -> Float[np.ndarray, "points outputs"]:
        """The released values at so many states, always with an axis of outputs."""
        found = self.function(states[:, 0] if self.box.dimension == 1 else states)
        return np.asarray(found, np.float64).reshape(len(states), -1)

    def policy(self, states: Float[np.ndarray, "points d"]) -> Shaped[np.ndarray, "points ..."]:
        """The number of each state's best action, or the action itself, where that is numbers."""
        if self.what != "agent":
            raise InvalidInput("This release is a function, and only an agent has a policy: ask for its values.")
        values = self.values(states)
        return values if self.function.choices is None else values.argmax(axis=1)


def mark(certificate: Certificate) -> Privacy:
    return "certified" if certificate.standing == "certified" else NOT_PRIVATE


def write_release(
    function: Publishable, path: str | os.PathLike[str], sign: str | os.PathLike[str] | None = None
) -> str:
    """Writes the file, whole or not at all, and gives its hash; what is not certified is marked as NOT PRIVATE.

    `sign` is the file of a private key.
    """
    if KINDS.get(function.details) is not type(function):  # a subclass may have put anything in them
        raise InvalidInput(f"A {type(function).__name__} cannot be published.")
    details, arrays = function.to_arrays()
    header = Header(
        privacy=mark(function.certificate),
        box=tuple(zip(function.box.low, function.box.high, strict=True)),
        labels=function.labels,
        details=details,  # pyright: ignore[reportArgumentType]
        certificate=function.certificate.to_dict(),
    )
    text = json.dumps(header.to_dict(), allow_nan=False)
    data = pack(text, arrays, None if sign is None else signature.sign(hash_of(text, arrays), sign))
    opened = open_bytes(data)  # what would be refused is not written
    replace_file(Path(path), data)
    return opened.hash


def load(path: str | os.PathLike[str]) -> Publishable:
    """The private function in a file that `publish` wrote; InvalidRelease for any other file. It needs no JAX."""
    return open_release(path).function


def open_release(path: str | os.PathLike[str]) -> OpenedFile:
    """The same with what else is known of the file: its hash, what it is, who signed it."""
    data = read(path)
    try:
        return open_bytes(data)
    except InvalidRelease as error:
        raise InvalidRelease(str(error).replace("This is not", f"{str(path)!r} is not", 1)) from error


def open_bytes(data: bytes) -> OpenedFile:
    """The release of a file's bytes, all of it checked against the rest."""
    unpacked = unpack(data)
    try:
        with np.errstate(all="ignore"):  # absurd numbers may overflow on the way to being refused
            function, version = _released(unpacked.record, unpacked.arrays)
    except InvalidRelease:
        raise
    except (QuietqError, ArithmeticError, ValueError, TypeError) as error:
        raise InvalidRelease(f"This is not a release: {error}") from error
    signer = None if unpacked.signed is None else signature.checked(unpacked.hash, **unpacked.signed)
    return OpenedFile(unpacked.hash, function, function.certificate, version, signer)


def _released(record: Json, arrays: Arrays) -> tuple[Publishable, str]:
    """What a file holds, of its text and numbers, and the version that wrote it."""
    stated = record.get("format")
    require(stated == FORMAT, f"its format is {shown(stated)}, and only {FORMAT} is known here")
    header: Header = read_record(Header, record)
    certificate = Certificate.from_dict(header.certificate)
    kind, box = KINDS[type(header.details)], Box.of(header.box)
    require(header.privacy == mark(certificate), "its privacy must be what its certificate says")
    named = kind.own_box or certificate.domain in (None, header.box)
    require(named, "its box must be the one that its certificate names")
    function = kind.from_arrays(Stored(header.details, arrays, box, certificate, header.labels))
    if certificate.standing == "certified":
        function.check_certificate(certificate)
    return function, header.version
