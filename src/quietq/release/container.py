"""The container of a release: safetensors with one JSON text in its header, checked before it is believed."""

import json
import math
import os
import re
import secrets
from pathlib import Path
from typing import Any

import numpy as np

from quietq.privacy.errors import InvalidInput

MOST_BYTES = 256 * 2**20
MOST_HEADER_BYTES = 2**20
MOST_DEPTH = 12
LARGEST = 1e100  # numbers beyond it could overflow between knots

Arrays = dict[str, np.ndarray]


class InvalidRelease(InvalidInput):
    """The file is not a release that can be trusted to be whole; the message says what is wrong with it."""


def pack(record: dict[str, object], arrays: Arrays) -> bytes:
    """The file's bytes: header length, header (padded so that the numbers are aligned), numbers."""
    header: dict[str, object] = {"__metadata__": {"quietq": json.dumps(record, allow_nan=False)}}
    end = 0
    for name, array in arrays.items():
        size = math.prod(array.shape) * 8
        header[name] = {"dtype": "F64", "shape": list(array.shape), "data_offsets": [end, end + size]}
        end += size
    if end + MOST_HEADER_BYTES > MOST_BYTES:
        raise InvalidInput(f"The release would have more than {MOST_BYTES} bytes: use fewer levels.")
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    numbers = [np.ascontiguousarray(array, dtype="<f8").tobytes() for array in arrays.values()]
    return b"".join([len(text).to_bytes(8, "little"), text, *numbers])


def unpack(data: bytes) -> tuple[dict[str, Any], Arrays]:
    """The JSON text and the arrays of a file's bytes."""
    length = int.from_bytes(data[:8], "little")
    require(len(data) <= MOST_BYTES, f"it has more than {MOST_BYTES} bytes")
    require(2 <= length <= min(MOST_HEADER_BYTES, len(data) - 8), "its header is cut off or too long")
    header = _parse(data[8 : 8 + length])
    metadata = header.pop("__metadata__", None)
    require(isinstance(metadata, dict) and set(metadata) == {"quietq"}, "its header must hold one text, 'quietq'")
    require(isinstance(metadata["quietq"], str), "its header must hold one text, 'quietq'")
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
    return _parse(metadata["quietq"].encode()), arrays


def _parse(data: bytes) -> dict[str, Any]:
    """A JSON object without surprises: no key twice, no NaN, no endless number, no depth, no control characters."""
    try:
        value = json.loads(
            data.decode(), object_pairs_hook=_once, parse_constant=_number, parse_float=_number, parse_int=_whole
        )
        json.dumps(value, ensure_ascii=False).encode()  # fails for half a surrogate pair
    except InvalidRelease:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidRelease("This is not a release: its header is not JSON.") from error
    require(isinstance(value, dict), "its header is not a JSON object")
    _shallow(value, MOST_DEPTH)
    return value


def _shallow(value: object, depth: int) -> None:
    require(depth > 0, "its header is nested too deeply")
    if isinstance(value, str):
        require(not re.search(r"[\x00-\x1f\x7f-\x9f]", value), "its text holds control characters")
    for item in [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ():
        _shallow(item, depth - 1)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    require(len(dict(pairs)) == len(pairs), "a key occurs twice")
    return dict(pairs)


def _number(text: str) -> float:
    number = float(text)
    require(math.isfinite(number), f"{text[:20]} is not a number")
    return number


def _whole(text: str) -> int:
    require(len(text) <= 16, "a number is too long")
    return int(text)


def require(true: object, otherwise: str) -> None:
    """Refuses the file with a reason unless the condition holds."""
    if not true:
        raise InvalidRelease(f"This is not a release: {otherwise}.")


def write(target: Path, data: bytes) -> None:
    """All of the data or nothing, under the final name: a neighbouring file is filled and then renamed."""
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
