"""The states that a request asks about: what they must look like, how many there may be, and the answer for them."""

import json
from typing import Any, Literal

import numpy as np
from fastapi import HTTPException
from jaxtyping import Float, Shaped
from pydantic import BaseModel, Field, FiniteFloat, ValidationError

from quietq.privacy.errors import InvalidInput
from quietq.privacy.words import plural
from quietq.publishing.server.catalogue import Catalogue, Served

MOST_STATES, MOST_VALUES = 65_536, 1_048_576
"""States in one request, and values in one answer."""
JSON, BYTES = "application/json", "application/octet-stream"
Question = Literal["values", "actions"]
States = Float[np.ndarray, "points d"]
_EXAMPLE = '{"states": [[…], …]}'
_AT_ONCE = 1024  # states whose features fit into memory for any release


class StatesBody(BaseModel, extra="forbid", strict=True):
    """Many states, a list of coordinates for each; in one dimension plain numbers too."""

    states: list[FiniteFloat | list[FiniteFloat]] = Field(min_length=1, max_length=MOST_STATES, fail_fast=True)


def schemas(catalogue: Catalogue) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the OpenAPI document says of one state and of a body; exact if all releases have the same box."""
    boxes = [entry.release.box for entry in catalogue.values()]
    number = {"type": "number", "minimum": min(min(box.low) for box in boxes),
              "maximum": max(max(box.high) for box in boxes)}  # fmt: skip
    sizes = [box.dimension for box in boxes]
    state = {"type": "array", "items": number, "minItems": min(sizes), "maxItems": max(sizes)}
    body = StatesBody.model_json_schema()
    body["properties"]["states"]["items"] = {"anyOf": [state, number]} if min(sizes) == 1 else state
    return state, body


def parse(entry: Served, kind: str, body: bytes) -> States:
    """The states in a body: JSON, or little-endian float64 numbers, state by state."""
    box = entry.release.box
    if kind == BYTES:
        width = 8 * box.dimension
        if not body or len(body) % width:
            detail = f"The body must be float64 numbers, {box.dimension} for each state: some multiple of {width} bytes"
            raise HTTPException(422, f"{detail}, not {len(body)}.")
        return np.frombuffer(body, "<f8").astype(np.float64).reshape(-1, box.dimension)
    # Counted before it is parsed, so that a small body cannot become a large object.
    if body.count(b",") >= MOST_STATES * box.dimension or body.count(b"[") > MOST_STATES + 1:
        raise _too_many(entry)
    example = f"The body must be like {json.dumps({'states': [box.low]}) if box.dimension <= 4 else _EXAMPLE}"
    try:
        states = StatesBody.model_validate_json(body).states
    except ValidationError as error:
        raise HTTPException(422, f"{example}; {sentence(error.errors())}") from error
    rows = [state if isinstance(state, list) else [state] for state in states]
    if {len(row) for row in rows} != {box.dimension}:
        raise HTTPException(422, f"{example}: {plural(box.dimension, 'coordinate')} for each state.")
    return np.array(rows, np.float64)


def answer(entry: Served, question: Question, states: States) -> Shaped[np.ndarray, "points ..."]:
    """The release's own numbers, a bounded number of states at a time."""
    if len(states) > MOST_STATES or len(states) * entry.record.outputs > MOST_VALUES:
        raise _too_many(entry)
    if question == "actions" and entry.release.what != "agent":
        raise HTTPException(409, "This release is a function, and only an agent has a policy: ask for its values.")
    ask = entry.release.values if question == "values" else entry.release.policy
    try:
        return np.concatenate([ask(states[i : i + _AT_ONCE]) for i in range(0, len(states), _AT_ONCE)])
    except InvalidInput as error:  # outside of the box, or NaN
        raise HTTPException(422, str(error)) from error


def sentence(errors: Any) -> str:
    """The first of pydantic's complaints, without what was sent."""
    where = ".".join(str(part) for part in errors[0]["loc"])
    return f"{where[:60] or 'body'}: {errors[0]['msg'][:160].rstrip('.')}."


def _too_many(entry: Served) -> HTTPException:
    most = min(MOST_STATES, MOST_VALUES // entry.record.outputs)
    return HTTPException(413, f"A request may hold at most {most} states here: send them in parts.")
