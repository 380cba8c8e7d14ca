"""A release from a file, which may come from anywhere.

No code in it is run, sizes are checked before anything is read, and whatever is not a release is answered with
`InvalidRelease`. A hash shows damage, and not who made the file: that takes a signature (`release.signature`).
"""

import os
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int

from quietq.noise.box import Box
from quietq.noise.kernels import Features
from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput, QuietqError
from quietq.publishing import signature
from quietq.publishing.checks import InvalidRelease, require
from quietq.publishing.container import MOST_BYTES, unpack
from quietq.publishing.kinds import Released, check_fit, put_together

FORMAT = 2
NOT_PRIVATE = "NOT PRIVATE"
FIELDS = frozenset({"format", "version", "privacy", "what", "kind", "box", "details", "certificate"})
"""All that is in the JSON text."""
_loaded: weakref.WeakSet[Any] = weakref.WeakSet()


@dataclass(frozen=True)
class Release:
    """A file that was read and checked."""

    hash: str
    """Of its whole content: its name."""
    what: Literal["agent", "function"]
    """Whether its outputs are values of actions to choose from."""
    function: Released
    certificate: Certificate
    version: str
    signer: bytes | None
    """The public key that it was signed with; the signature was found to be right."""

    @property
    def box(self) -> Box:
        """Where it is defined."""
        return self.function.box

    @property
    def private(self) -> bool:
        """Whether it is certified; everything else says NOT PRIVATE wherever it is shown."""
        return self.certificate.standing == "certified"

    def values(self, states: Float[np.ndarray, "points d"]) -> Float[np.ndarray, "points outputs"]:
        """The released values at so many states, always with an axis of outputs."""
        found = self.function(states[:, 0] if self.box.dimension == 1 else states)
        return np.asarray(found, np.float64).reshape(len(states), -1)

    @property
    def outputs(self) -> int:
        """How many values a state has."""
        return self.values(np.array([self.box.low])).shape[1]

    def policy(self, states: Float[np.ndarray, "points d"]) -> Int[np.ndarray, " points"]:
        """The best action at each state; only an agent has one."""
        if self.what != "agent":
            raise InvalidInput("This release is a function, and only an agent has a policy: ask for its values.")
        return self.values(states).argmax(axis=1)


def load(path: str | os.PathLike[str], *, features: Features | None = None) -> Released:
    """The private function in a file that `publish` wrote; InvalidRelease for any other file. It needs no JAX.

    Weights of a Features kernel need that kernel again, as `features`, because its feature map is code; it is checked
    against what the map gave at a few public points.
    """
    return open_release(path, features=features).function


def open_release(path: str | os.PathLike[str], *, features: Features | None = None) -> Release:
    """The same with what else is known of the file: its hash, what it is, who signed it."""
    data = read(path)
    try:
        return opened(data, features)
    except InvalidRelease as error:
        hint = " It is an agent that was saved: `quietq publish` makes a release of it." * (Path(path).suffix == ".npz")
        sentence = str(error).replace("This is not", f"{str(path)!r} is not", 1)
        raise InvalidRelease(f"{sentence}{hint}") from error


def read(path: str | os.PathLike[str]) -> bytes:
    """A file's bytes, unless they are too many."""
    source = Path(path)
    try:
        if source.is_dir():
            raise InvalidRelease(f"{str(source)!r} is a folder: name a release in it, a file that ends in .qq.")
        if not source.is_file():
            raise InvalidRelease(f"There is no file {str(source)!r}.")
        require(source.stat().st_size <= MOST_BYTES, f"it has more than {MOST_BYTES} bytes")
        with source.open("rb") as stream:
            return stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise InvalidRelease(f"The file could not be read: {error}") from error


def opened(data: bytes, features: Features | None) -> Release:
    """The release of a file's bytes, all of it checked against the rest."""
    unpacked = unpack(data)
    record = unpacked.record
    require(type(record.get("format")) is int, "the format must be a number")
    require(record["format"] == FORMAT, f"its format is {record['format']}, and only {FORMAT} is known here")
    require(set(record) == FIELDS, f"the JSON text must have the fields {sorted(FIELDS)}")
    require(isinstance(record["version"], str), "the version must be text")
    require(record["what"] in ("agent", "function"), "it must be an agent or a function")
    certificate, box = _certificate(record["certificate"]), _box(record["box"])
    marked = record["privacy"] == NOT_PRIVATE
    require(marked or record["privacy"] == "certified", "its privacy must be 'certified' or 'NOT PRIVATE'")
    require(marked != (certificate.standing == "certified"), "its privacy must be what its certificate says")
    sides = tuple(zip(box.low, box.high, strict=True))
    stated = certificate.domain
    require(stated is None or tuple(map(tuple, stated)) == sides, "its box must be the one that its certificate names")
    function = put_together(record["kind"], record["details"], unpacked.arrays, box, certificate, features)
    if not marked:
        check_fit(function, certificate)
    _loaded.add(function)
    signer = None
    if unpacked.signed is not None:
        signer = signature.checked(unpacked.hash, **unpacked.signed)
    return Release(unpacked.hash, record["what"], function, certificate, record["version"], signer)


def was_loaded(function: object) -> bool:
    """Whether it was read from a release in this process. A copy, or one made by hand, was not."""
    return function in _loaded


def _certificate(record: object) -> Certificate:
    try:
        with np.errstate(all="ignore"):  # absurd numbers may overflow on the way to being refused
            return Certificate.from_dict(record)
    except (QuietqError, ArithmeticError, ValueError, TypeError) as error:
        raise InvalidRelease(f"This is not a release: its certificate is not valid. {error}") from error


def _box(sides: Any) -> Box:
    pairs = isinstance(sides, list) and all(isinstance(side, list) and len(side) == 2 for side in sides)
    require(pairs and all(type(end) is float for side in sides for end in side), "its box must be pairs of numbers")
    try:
        return Box.of(sides)
    except InvalidInput as error:
        raise InvalidRelease(f"This is not a release: {error}") from error
