"""How a file from anywhere is doubted: one error, and JSON without surprises."""

import json
import math
import re
from typing import Any

from quietq.privacy.errors import InvalidInput

MOST_DEPTH = 12


class InvalidRelease(InvalidInput):
    """The file is not a release that can be trusted to be whole; the message says what is wrong with it."""


def require(true: object, otherwise: str) -> None:
    """Refuses the file with a reason unless the condition holds."""
    if not true:
        raise InvalidRelease(f"This is not a release: {otherwise}.")


def parse(data: bytes) -> dict[str, Any]:
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
