"""The one file of a release: what was released, and its certificate. It may come from anywhere.

Its container is that of safetensors: eight bytes of header length, a JSON header and raw float64 numbers, so it is
written and read with NumPy alone, and any safetensors reader opens it. In the header's texts are "quietq" (what the
release is, in JSON), "sha256" (a hash of that text and of all numbers: the release's name) and, if it was signed,
"signature" and "signer".

No code in it is run, sizes are checked before anything is read, and whatever is not a release is answered with
`InvalidRelease`. A hash shows damage, and not who made the file: that takes a signature.
"""

import json
import math
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Union

import numpy as np
from jaxtyping import Float, Shaped

from quietq.noise import Box
from quietq.privacy import Certificate, InvalidInput, QuietqError
from quietq.privacy.certificate import Sides
from quietq.privacy.checks import Line, Record, read_record, shown
from quietq.privacy.explain import NOT_PRIVATE
from quietq.released import signature
from quietq.released.evaluated_policies import EvaluatedPolicies
from quietq.released.private_function import PrivateKnots, PrivateTable
from quietq.released.private_model import PrivateModel
from quietq.released.private_network import PrivateNetwork, PrivatePolicy
from quietq.released.private_world import PrivateWorld
from quietq.released.publishable import Arrays, InvalidRelease, Json, Labels, Publishable, hash_of, raw, require
from quietq.version import __version__

FORMAT = 6
Privacy = Literal["certified", "NOT PRIVATE"]
_KINDS: tuple[type[Publishable], ...] = (
    EvaluatedPolicies,
    PrivateTable,
    PrivateKnots,
    PrivateModel,
    PrivateNetwork,
    PrivatePolicy,
    PrivateWorld,
)
KINDS = {kind.details: kind for kind in _KINDS}
"""All that a file can hold, by the record of its details: nothing in it can name another class."""


class Header(Record, frozen=True, tag=False, tag_field=None, kw_only=True):
    """The text of a file: all of it but the numbers."""

    format: Literal[6] = FORMAT
    version: Line = __version__
    privacy: Privacy
    box: Sides
    labels: Labels
    details: Union[tuple(KINDS)]  # noqa: UP007  # pyright: ignore[reportInvalidTypeForm, reportInvalidTypeArguments]
    """The record of one kind."""
    certificate: Json
    """The certificate, as `Certificate.to_dict` gives it."""


@dataclass(frozen=True)
class OpenedFile:
    """A file that was read and checked."""

    hash: str
    """The hash of its whole content, which is its name."""
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

    def values(self, states: Float[np.ndarray, "points d"]) -> Float[np.ndarray, "points outputs"]:
        """Returns the released values at states, always with an axis of outputs."""
        found = self.function(states[:, 0] if self.box.dimension == 1 else states)
        return np.asarray(found, np.float64).reshape(len(states), -1)

    def policy(self, states: Float[np.ndarray, "points d"]) -> Shaped[np.ndarray, "points ..."]:
        """Returns the number of each state's best action, or the action itself, where that is numbers."""
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
    if type(function) not in KINDS.values():  # a subclass may have put anything in them
        raise InvalidInput(f"A {type(function).__name__} cannot be published.")
    header = Header(
        privacy=mark(function.certificate),
        box=tuple(zip(function.box.low, function.box.high, strict=True)),
        labels=function.labels,
        details=function.describe(),
        certificate=function.certificate.to_dict(),
    )
    text, arrays = json.dumps(header.to_dict(), allow_nan=False), function.to_arrays()[1]
    data = pack(text, arrays, None if sign is None else signature.sign(hash_of(text, arrays), sign))
    opened = open_bytes(data)  # what would be refused is not written
    replace_file(Path(path), data)
    return opened.hash


def load(path: str | os.PathLike[str]) -> Publishable:
    """Reads what `publish` wrote, without JAX, or raises InvalidRelease; it runs no code of the file.

    Args:
        path: The `.qq` file.

    """
    return open_release(path).function


def open_release(path: str | os.PathLike[str]) -> OpenedFile:
    """Reads what `load` does, with what else is known of the file: its hash, what it is, who signed it.

    Args:
        path: The `.qq` file.

    """
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
    """Returns what a file holds, of its text and numbers, and the version that wrote it."""
    stated = record.get("format")
    require(stated == FORMAT, f"its format is {shown(stated)}, and only {FORMAT} is known here")
    header: Header = read_record(Header, record)
    certificate = Certificate.from_dict(header.certificate)
    kind, box = KINDS[type(header.details)], Box.of(header.box)
    require(header.privacy == mark(certificate), "its privacy must be what its certificate says")
    named = kind.own_box or certificate.domain in (None, header.box)
    require(named, "its box must be the one that its certificate names")
    function = kind.from_file(header.details, arrays, box, certificate, header.labels)
    if certificate.standing == "certified":
        function.check_certificate(certificate)
    return function.issued(), header.version


# The container: bytes that are checked before they are believed


MOST_BYTES = 256 * 2**20
MOST_HEADER_BYTES = 2**20
LARGEST = 1e100  # numbers beyond it could overflow between knots
MOST_DEPTH = 12
MOST_ITEMS, MOST_FIELDS = 40_000, 8_000
"""Limits on a header's commas and colons: a catalogue has some 16,000 items, and a certificate of many queries 4,000
fields. So no header takes long to read."""
_CONTROL = re.compile(r"[\x7f-\x9f]|\\[bfnrt]|\\u00[01]")
_BEGINNING, _MARK = 200, b"quietq"  # which a release and an exported network have near their beginning
_TEXTS = {"quietq", "sha256"}
_SIGNED = _TEXTS | {"signature", "signer"}


@dataclass(frozen=True)
class Unpacked:
    """A file's content; its hash was found to be right, its signature was not looked at."""

    text: str
    record: Json
    """The text, read."""
    arrays: Arrays
    hash: str
    signed: dict[str, str] | None
    """Signature and signer, as they are."""


def digest_of(released: Publishable) -> str:
    """A name for what a released thing computes: of its kind and numbers, and not of its certificate, box or labels."""
    details, arrays = released.to_arrays()
    return hash_of(json.dumps(details, sort_keys=True), arrays)


def pack(text: str, arrays: Arrays, signed: Mapping[str, str] | None = None) -> bytes:
    """The file's bytes: header length, header (padded so that the numbers are aligned), numbers."""
    header: dict[str, object] = {
        "__metadata__": {"quietq": text, "sha256": hash_of(text, arrays), **({} if signed is None else signed)}
    }
    end = 0
    for name, array in arrays.items():
        size = math.prod(array.shape) * 8
        header[name] = {"dtype": "F64", "shape": list(array.shape), "data_offsets": [end, end + size]}
        end += size
    if end + MOST_HEADER_BYTES > MOST_BYTES:
        raise InvalidInput(f"The release would have more than {MOST_BYTES} bytes: use fewer levels.")
    written = json.dumps(header).encode()
    written += b" " * (-len(written) % 8)
    return b"".join([len(written).to_bytes(8, "little"), written, *map(raw, arrays.values())])


def unpack(data: bytes) -> Unpacked:
    length = int.from_bytes(data[:8], "little")
    require(len(data) <= MOST_BYTES, f"it has more than {MOST_BYTES} bytes")
    require(2 <= length <= min(MOST_HEADER_BYTES, len(data) - 8), "its header is cut off or too long")
    header = parse(data[8 : 8 + length])
    texts = header.pop("__metadata__", None)
    require(isinstance(texts, dict) and set(texts) in (_TEXTS, _SIGNED), f"its texts must be {sorted(_TEXTS)}")
    require(all(isinstance(text, str) for text in texts.values()), "its texts must be text")
    arrays, end, numbers = {}, 0, memoryview(data)[8 + length :]
    for name, entry in header.items():
        require(isinstance(entry, dict) and set(entry) == {"dtype", "shape", "data_offsets"}, "an array is ill-defined")
        shape = entry["shape"]
        whole = isinstance(shape, list) and 1 <= len(shape) <= 8 and all(type(n) is int and n > 0 for n in shape)
        require(whole and entry["dtype"] == "F64", "arrays must hold float64 numbers")
        begin, end = end, end + math.prod(shape) * 8
        require(entry["data_offsets"] == [begin, end] and end <= len(numbers), "an array does not lie where it must")
        arrays[name] = np.frombuffer(numbers[begin:end], dtype="<f8").astype(np.float64).reshape(shape)
        require(bool((np.abs(arrays[name]) <= LARGEST).all()), "a number is not finite, or too large")
    require(end == len(numbers), "it has bytes that belong to nothing")
    text, found = texts["quietq"], hash_of(texts["quietq"], arrays)
    record = parse(text.encode())
    signed = {name: texts[name] for name in sorted(_SIGNED - _TEXTS)} if set(texts) == _SIGNED else None
    require(texts["sha256"] == found, "its content does not have the hash that it states, so it was changed or damaged")
    return Unpacked(text, record, arrays, found, signed)


def parse(data: bytes) -> Json:
    """A JSON object as `json.dumps` writes it, to the letter, without depth or control characters.

    So no key occurs twice, every number is finite and has one spelling, and what is read is what was hashed.
    """
    small = data.count(b",") < MOST_ITEMS and data.count(b'":') < MOST_FIELDS
    require(small, f"its header has more than {MOST_ITEMS} items or {MOST_FIELDS} fields")
    try:
        text = data.decode().rstrip(" ")
        value = json.loads(text)
        written = json.dumps(value, allow_nan=False)
        readable = json.dumps(value, ensure_ascii=False)
        readable.encode()  # fails for half a surrogate pair
    except (ValueError, RecursionError) as error:
        raise InvalidRelease("This is not a release: its header is not JSON.") from error
    require(written == text, "its header is not spelled as quietq spells it, every key and number once")
    require(isinstance(value, dict), "its header is not a JSON object")
    _check_depth(value, MOST_DEPTH)
    plain = readable.replace("\\\\", "")  # what is left of backslashes begins a control character, or a quotation mark
    require(not _CONTROL.search(plain), "its text holds control characters")
    return value


def _check_depth(value: Json | list[object], depth: int) -> None:
    require(depth > 1, "its header is nested too deeply")
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, dict | list):
            _check_depth(item, depth - 1)


def read(path: str | os.PathLike[str]) -> bytes:
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


def check_target(target: Path) -> None:
    """Refuses a file that cannot be written, or that is there and nothing that was published: it might be missed."""
    if target.is_dir() or not target.parent.is_dir():
        raise InvalidInput(f"The file to write must lie in a folder that exists, and {str(target)!r} does not.")
    if target.exists():
        with target.open("rb") as stream:
            beginning = stream.read(_BEGINNING)
        if _MARK not in beginning:
            raise InvalidInput(f"{str(target)!r} is there and not a release, so it is not replaced: name another file.")


def replace_file(target: Path, data: bytes) -> None:
    check_target(target)
    write_whole(target, data)


def write_whole(target: Path, data: bytes, mode: int = 0o666) -> None:
    """All of the data or nothing, under the final name: a neighbouring file is filled and then renamed."""
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with open(unfinished, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
