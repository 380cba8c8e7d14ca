"""The states that a request asks about: what they must look like, how many there may be, and the answer for them."""

import json
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import HTTPException, Query
from jaxtyping import Float, Shaped
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from quietq.privacy.errors import InvalidInput
from quietq.server.catalogue import Catalogue, Entry

MOST_STATES, MOST_VALUES = 65_536, 1_048_576
"""States in one request, and values in one answer."""
Question = Literal["values", "actions"]
States = Float[np.ndarray, "points d"]
_AT_ONCE = 1024  # states whose features fit into memory for any release


def state_types(catalogue: Catalogue) -> tuple[Any, type[BaseModel]]:
    """One state in an address, and many in a JSON body, as FastAPI and pydantic read and document them.

    The document says where the states of all releases lie; each release checks its own box.
    """
    boxes = [entry.record.box for entry in catalogue.values()]
    ends = {"minimum": min(min(box.low) for box in boxes), "maximum": max(max(box.high) for box in boxes)}
    least, most = (choose(len(box.low) for box in boxes) for choose in (min, max))
    coordinate = Annotated[float, Field(allow_inf_nan=False, json_schema_extra=ends)]
    state = Annotated[list[coordinate], Field(min_length=least, max_length=most)]
    item = coordinate | state if least == 1 else state  # in one dimension plain numbers too
    states = Annotated[list[item], Field(min_length=1, max_length=MOST_STATES, fail_fast=True)]
    body = create_model("States", __config__=ConfigDict(extra="forbid", strict=True), states=(states, ...))
    one = Query(min_length=least, max_length=most, description="One state; repeat it for each coordinate.")
    return Annotated[list[coordinate], one], body


def parse_bytes(entry: Entry, body: bytes) -> States:
    """Little-endian float64 numbers, state by state."""
    width = 8 * entry.dimension
    if not body or len(body) % width:
        detail = f"The body must be float64 numbers, {entry.dimension} for each state: some multiple of {width} bytes, "
        raise HTTPException(422, f"{detail}not {len(body)}.")
    return np.frombuffer(body, "<f8").astype(np.float64).reshape(-1, entry.dimension)


def parse_json(entry: Entry, body: bytes, model: type[BaseModel]) -> States:
    """`{"states": [[0.1], [0.9]]}`, a list of coordinates for each state."""
    # Counted before it is parsed, so that a small body cannot become a large object.
    if body.count(b",") >= MOST_STATES * entry.dimension or body.count(b"[") > MOST_STATES + 1:
        raise _too_many(entry)
    example = json.dumps({"states": [entry.record.box.low]}) if entry.dimension <= 4 else '{"states": [[…], …]}'
    try:
        states = model.model_validate_json(body).model_dump()["states"]
    except ValidationError as error:
        raise HTTPException(422, f"The body must be like {example}; {sentence(error.errors())}") from error
    rows = [state if isinstance(state, list) else [state] for state in states]
    if {len(row) for row in rows} != {entry.dimension}:
        raise HTTPException(422, f"The body must be like {example}: {entry.dimension} coordinates for each state.")
    return np.array(rows, np.float64)


def answer(entry: Entry, question: Question, states: States) -> Shaped[np.ndarray, "points ..."]:
    """The release's own numbers, a bounded number of states at a time."""
    if len(states) > _most_states(entry):
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


def _most_states(entry: Entry) -> int:
    return min(MOST_STATES, MOST_VALUES // entry.record.outputs)


def _too_many(entry: Entry) -> HTTPException:
    return HTTPException(413, f"A request may hold at most {_most_states(entry)} states here: send them in parts.")
