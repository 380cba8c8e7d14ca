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
from quietq.privacy.explain import NOT_PRIVATE
from quietq.released import signature
from quietq.released.container import hash_of, pack, read, replace_file, unpack
from quietq.released.evaluated_policies import EvaluatedPolicies
from quietq.released.private_function import PrivateCells, PrivateKnots, PrivateSum, PrivateTable
from quietq.released.private_model import PrivateModel
from quietq.released.private_network import PrivateNetwork, PrivatePolicy
from quietq.released.private_world import PrivateWorld
from quietq.released.publishable import InvalidRelease, Publishable, Stored, Unchecked, require
from quietq.version import __version__

FORMAT = 5
Privacy = Literal["certified", "NOT PRIVATE"]
FIELDS = frozenset({"format", "version", "privacy", "kind", "box", "details", "certificate"})
"""All that is in the JSON text."""
_CLASSES: tuple[type[Publishable], ...] = (
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
KINDS = {kind.kind: kind for kind in _CLASSES}
"""All that a file can hold: nothing in it can name another class."""


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
    certificate = function.certificate
    details, arrays = function.to_arrays()
    if KINDS.get(function.kind) is not type(function):  # a subclass may have put anything in them
        raise InvalidInput(f"A {type(function).__name__} cannot be published.")
    record = {
        "format": FORMAT,
        "version": __version__,
        "privacy": mark(certificate),
        "kind": function.kind,
        "box": [[float(low), float(high)] for low, high in zip(function.box.low, function.box.high, strict=True)],
        "details": details,
        "certificate": certificate.to_dict(),
    }
    text = json.dumps(record, allow_nan=False)
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
    record = unpacked.record
    require(type(record.get("format")) is int, "the format must be a number")
    require(record["format"] == FORMAT, f"its format is {record['format']}, and only {FORMAT} is known here")
    require(set(record) == FIELDS, f"the JSON text must have the fields {sorted(FIELDS)}")
    require(isinstance(record["version"], str), "the version must be text")
    require(isinstance(record["kind"], str) and record["kind"] in KINDS, f"its kind must be one of {sorted(KINDS)}")
    require(isinstance(record["details"], dict), "its details must be a JSON object")
    kind, certificate, box = KINDS[record["kind"]], _certificate(record["certificate"]), _box(record["box"])
    require(record["privacy"] == mark(certificate), "its privacy must be what its certificate says")
    stated = certificate.domain
    sides = tuple(zip(box.low, box.high, strict=True))
    same = kind.own_box or stated is None or stated == sides
    require(same, "its box must be the one that its certificate names")
    function = kind.from_arrays(Stored(record["details"], unpacked.arrays, box, certificate))
    if certificate.standing == "certified":
        function.check_certificate(certificate)
    signer = None if unpacked.signed is None else signature.checked(unpacked.hash, **unpacked.signed)
    return OpenedFile(unpacked.hash, function, certificate, record["version"], signer)


def _certificate(record: object) -> Certificate:
    try:
        with np.errstate(all="ignore"):  # absurd numbers may overflow on the way to being refused
            return Certificate.from_dict(record)
    except (QuietqError, ArithmeticError, ValueError, TypeError) as error:
        raise InvalidRelease(f"This is not a release: its certificate is not valid. {error}") from error


def _box(sides: Unchecked) -> Box:
    pairs = isinstance(sides, list) and all(isinstance(side, list) and len(side) == 2 for side in sides)
    require(pairs and all(type(end) is float for side in sides for end in side), "its box must be pairs of numbers")
    try:
        return Box.of(sides)
    except InvalidInput as error:
        raise InvalidRelease(f"This is not a release: {error}") from error
