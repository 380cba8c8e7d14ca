"""The container of a release: safetensors with a few texts in its header, checked before they are believed.

The format is eight bytes of header length, a JSON header and raw float64 numbers, so it is written and read with NumPy
alone, and any safetensors reader opens it. In the header's texts are "quietq" (what the release is, in JSON), "sha256"
(a hash of that text and of all numbers: the release's name) and, if it was signed, "signature" and "signer".
"""

import hashlib
import json
import math
import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from quietq.privacy.errors import InvalidInput
from quietq.publishing.checks import parse, require

MOST_BYTES = 256 * 2**20
MOST_HEADER_BYTES = 2**20
LARGEST = 1e100  # numbers beyond it could overflow between knots
_BEGINNING, _MARK = 200, b"quietq"  # which a release and an exported network have near their beginning
_TEXTS = {"quietq", "sha256"}
_SIGNED = _TEXTS | {"signature", "signer"}

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Unpacked:
    """A file's content; its hash was found to be right, its signature was not looked at."""

    text: str
    record: dict[str, Any]
    """The text, read."""
    arrays: Arrays
    hash: str
    signed: dict[str, str] | None
    """Signature and signer, as they are."""


def content_hash(text: str, shapes: Iterable[tuple[str, tuple[int, ...]]], numbers: bytes | memoryview) -> str:
    """The name of a release: SHA-256 of its text, of its arrays' names and shapes, and of its numbers."""
    digest = hashlib.sha256(b"quietq release\0")
    named = json.dumps([[name, list(shape)] for name, shape in shapes])
    for part in (text.encode(), named.encode(), numbers):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def hash_of(text: str, arrays: Arrays) -> str:
    """The same of a record's text and its arrays."""
    return content_hash(text, [(name, array.shape) for name, array in arrays.items()], _numbers(arrays))


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
    return b"".join([len(written).to_bytes(8, "little"), written, _numbers(arrays)])


def unpack(data: bytes) -> Unpacked:
    """The content of a file's bytes."""
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
    shapes = [(name, array.shape) for name, array in arrays.items()]
    found = content_hash(texts["quietq"], shapes, numbers)
    record = parse(texts["quietq"].encode())
    signed = {name: texts[name] for name in sorted(_SIGNED - _TEXTS)} if set(texts) == _SIGNED else None
    require(texts["sha256"] == found, "its content does not have the hash that it states, so it was changed or damaged")
    return Unpacked(texts["quietq"], record, arrays, found, signed)


def _numbers(arrays: Arrays) -> bytes:
    return b"".join(np.ascontiguousarray(array, dtype="<f8").tobytes() for array in arrays.values())


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
    """All of the data or nothing, under the final name: a neighbouring file is filled and then renamed."""
    check_target(target)
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with open(unfinished, "xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
