"""The two questions, values and policy, and their answers in JSON or in bytes."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from jaxtyping import Shaped

from quietq.privacy.errors import InvalidInput
from quietq.server.catalogue import Entry
from quietq.server.limits import Refusal
from quietq.server.states import States, from_bytes, from_json

Question = Literal["values", "actions"]
JSON, BYTES = "application/json", "application/octet-stream"
_AT_ONCE = 1024  # states whose features fit into memory for any release; other threads get a turn in between
_LONGEST_ACCEPT = 500
_READERS: dict[str, Callable[[Entry, bytes], States]] = {JSON: from_json, BYTES: from_bytes}


@dataclass(frozen=True)
class Answer:
    """What is sent back, and how many states it is about."""

    content: bytes
    kind: str
    headers: dict[str, str]
    states: int


def answered(entry: Entry, question: Question, states: States, kind: str) -> Answer:
    """The answer for these states, as JSON or as bytes."""
    found = _asked(entry, question, states)
    headers = {"X-Quietq-Privacy": entry.privacy, "X-Quietq-Signed": entry.signed}
    if kind == BYTES:
        headers["X-Quietq-Shape"] = ",".join(str(size) for size in found.shape)
        return Answer(found.astype("<f8" if question == "values" else "<i8").tobytes(), kind, headers, len(states))
    pieces = [json.dumps(found[i : i + _AT_ONCE].tolist())[1:-1] for i in range(0, len(found), _AT_ONCE)]
    text = f'{{"{question}": [{", ".join(pieces)}], "privacy": "{entry.privacy}", "signed": "{entry.signed}"}}'
    return Answer(text.encode(), kind, headers, len(states))


def body_answered(entry: Entry, question: Question, body: bytes, sent: str, kind: str) -> Answer:
    """The answer for the states in a request's body, whose type is `sent`."""
    return answered(entry, question, _READERS[sent](entry, body), kind)


def sent_type(header: str, encoding: str) -> str:
    """The type of a request's body, of which there are two."""
    name, _, parameters = header.partition(";")
    kind, charset = name.strip().lower(), parameters.replace(" ", "").lower()
    if kind not in _READERS or (charset and charset not in ("charset=utf-8", 'charset="utf-8"')):
        raise Refusal(415, f"Content-Type must be {JSON} (in UTF-8) or {BYTES}.")
    if encoding.strip().lower() not in ("", "identity"):
        raise Refusal(415, "Content-Encoding is not supported: send the body as it is.")
    return kind


def wanted_type(accept: str) -> str:
    """The type that the Accept header likes best; JSON if it likes both as much."""
    found = _best(accept) if len(accept) <= _LONGEST_ACCEPT else None
    if found is None:
        raise Refusal(406, f"Accept must allow {JSON} or {BYTES}.")
    return found


@lru_cache(maxsize=64)
def _best(accept: str) -> str | None:
    if not accept.strip():
        return JSON
    weights = {kind: _weight(kind, accept) for kind in (JSON, BYTES)}
    best = max(weights, key=weights.__getitem__)  # the first of equals
    return best if weights[best] > 0 else None


def _weight(kind: str, accept: str) -> float:
    """What an Accept header gives a type: the q of the most specific range that covers it."""
    closest, weight = 0, 0.0
    for item in accept.lower().split(","):
        name, *parameters = (part.strip() for part in item.split(";"))
        closeness = {kind: 3, kind.partition("/")[0] + "/*": 2, "*/*": 1}.get(name, 0)
        if closeness > closest:
            closest, weight = closeness, _q(parameters)
    return weight


def _q(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return min(max(float(value), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0


def _asked(entry: Entry, question: Question, states: States) -> Shaped[np.ndarray, "points ..."]:
    ask = entry.release.values if question == "values" else entry.release.policy
    try:
        if len(states) <= _AT_ONCE:
            return ask(states)
        return np.concatenate([ask(states[i : i + _AT_ONCE]) for i in range(0, len(states), _AT_ONCE)])
    except InvalidInput as error:  # outside of the box, or NaN
        raise Refusal(422, str(error)) from error
