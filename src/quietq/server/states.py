"""The states that a request asks about, from JSON, from bytes or from the address; anything else is refused."""

import json
import re
from typing import Any

import numpy as np
from jaxtyping import Float

from quietq.privacy.words import plural
from quietq.server.catalogue import Entry
from quietq.server.limits import MOST_STATES, MOST_VALUES, Refusal

States = Float[np.ndarray, "points d"]
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_LONGEST = 400  # characters of a number; more than any float64 needs


def from_query(entry: Entry, given: list[str]) -> States:
    """One state from the address, a coordinate an item."""
    if len(given) != entry.dimension:
        each = ", once for each coordinate" if entry.dimension > 1 else ""
        raise Refusal(422, f"state must be given {times(entry.dimension)}{each}, not {times(len(given))}.")
    for text in given:
        if len(text) > _LONGEST or not _NUMBER.fullmatch(text):
            raise Refusal(422, f"state must be a number such as 0.25, not {_piece(text)}.")
    return np.array([[float(text) for text in given]])


def from_bytes(entry: Entry, body: bytes) -> States:
    """Little-endian float64 numbers, state by state."""
    width = 8 * entry.dimension
    if not body or len(body) % width:
        raise Refusal(
            422,
            f"The body must be float64 numbers, {entry.dimension} a state, so some multiple of {width} bytes, "
            f"not {len(body)}.",
        )
    _check_count(entry, len(body) // width)
    return np.frombuffer(body, "<f8").astype(np.float64).reshape(-1, entry.dimension)


def from_json(entry: Entry, body: bytes) -> States:
    """`{"states": [[0.1], [0.9]]}`, a list of coordinates a state; in one dimension plain numbers too."""
    # Counted before it is parsed, so that a small body cannot become a large object.
    if body.count(b",") >= MOST_STATES * entry.dimension or body.count(b"[") > MOST_STATES + 1:
        raise _too_many(f"more than {MOST_STATES}")
    if body.count(b"{") > 1:
        raise _shape(entry)
    try:
        record = json.loads(
            body.decode(), object_pairs_hook=_once, parse_constant=_constant, parse_int=float, strict=True
        )
    except RecursionError:
        raise Refusal(400, "The body is nested too deeply.") from None
    except ValueError:  # also of text that is not UTF-8
        raise Refusal(400, "The body must be one JSON object in UTF-8, without NaN or Infinity.") from None
    if not isinstance(record, dict) or set(record) != {"states"} or not isinstance(record["states"], list):
        raise _shape(entry)
    states = record["states"]
    _check_count(entry, len(states))
    if entry.dimension == 1:
        states = [state if isinstance(state, list) else [state] for state in states]
    if not all(isinstance(state, list) and len(state) == entry.dimension for state in states):
        raise _shape(entry)
    if {type(number) for state in states for number in state} != {float}:
        raise _shape(entry)
    return np.array(states, np.float64)


def _check_count(entry: Entry, states: int) -> None:
    if states == 0:
        raise Refusal(422, "states must hold at least one state.")
    if states > MOST_STATES:
        raise _too_many(str(states))
    if states * entry.outputs > MOST_VALUES:
        raise Refusal(
            413,
            f"A request may ask for at most {MOST_VALUES} values, and {plural(states, 'state')} have {entry.outputs} "
            "each: send fewer at a time.",
        )


def _too_many(found: str) -> Refusal:
    return Refusal(413, f"A request may hold at most {MOST_STATES} states, not {found}: send them in parts.")


def _shape(entry: Entry) -> Refusal:
    example = json.dumps({"states": [list(entry.release.box.low)]}) if entry.dimension <= 4 else '{"states": [[…], …]}'
    return Refusal(422, f"The body must be like {example}: a list of states, {_per(entry)}, all of them numbers.")


def _per(entry: Entry) -> str:
    return f"{plural(entry.dimension, 'coordinate')} each"


def times(count: int) -> str:
    """How often, in words.

    >>> times(1), times(3)
    ('once', '3 times')
    """
    return "once" if count == 1 else f"{count} times"


def _piece(text: str) -> str:
    """The beginning of what was sent, as a sentence can hold it."""
    return json.dumps(text[:20])


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a name occurs twice")
    return dict(pairs)


def _constant(name: str) -> float:
    raise ValueError(name)
