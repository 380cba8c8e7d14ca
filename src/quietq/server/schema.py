"""What the OpenAPI document says about the routes; the routes themselves read requests by hand, for speed."""

from typing import Any

from quietq.server.answers import BYTES, JSON
from quietq.server.catalogue import Catalogue
from quietq.server.limits import MOST_BYTES, MOST_STATES, MOST_VALUES

Schema = dict[str, Any]
Responses = dict[int | str, Schema]

DESCRIPTION = (
    "Released values and policies of private reinforcement learning. Every answer says whether what it was read from "
    "is certified or NOT PRIVATE. Errors are one sentence, in `detail`. "
    f"A request may hold {MOST_STATES:,} states, ask for {MOST_VALUES:,} values and have {MOST_BYTES:,} bytes at most."
)
_NUMBER: Schema = {"type": "number"}
_TEXT: Schema = {"type": "string"}
_MAYBE_NUMBER: Schema = {"type": ["number", "null"]}
_PRIVACY: Schema = {"type": "string", "enum": ["certified", "NOT PRIVATE"]}
_SENTENCE: Schema = {"type": "object", "required": ["detail"], "properties": {"detail": _TEXT}}
_STATUSES = {
    400: "The body is not the JSON that it must be.",
    401: "The access token is missing or wrong.",
    404: "There is no such release.",
    405: "The route has other methods, which `Allow` names.",
    406: "The answer cannot be of a type that `Accept` allows.",
    408: "The body did not arrive in time.",
    409: "The release is a function, and only an agent has a policy.",
    413: "The request holds too many states, or asks for too many values, or has too many bytes.",
    415: "The body is neither JSON nor bytes.",
    422: "The states are not ones that this release knows: wrong shape, NaN, or outside of its box.",
    421: "The name in the Host header is not one that is answered.",
    503: "Too many requests wait already, or the counters cannot be read; `Retry-After` says when to ask again.",
}
_STATUS_HEADERS = {401: "WWW-Authenticate", 405: "Allow", 503: "Retry-After"}
_SIGNED: Schema = {"type": "string", "description": "Who signed it, and whether that was checked against a key."}
_PRIVACY_HEADER = {
    "X-Quietq-Privacy": {"description": "The same as the field `privacy`.", "schema": _PRIVACY},
    "X-Quietq-Signed": {"description": "The same as the field `signed`.", "schema": _TEXT},
}
_SHAPE_HEADER = {"X-Quietq-Shape": {"description": "Of the numbers, if they come as bytes.", "schema": _TEXT}}

RELEASE: Schema = {
    "type": "object",
    "required": ["id", "hash", "name", "what", "privacy", "box", "outputs", "actions", "epsilon", "delta", "version",
                 "signer", "signer_checked", "signed"],
    "properties": {
        "id": {"type": "string", "description": "The first digits of the hash."},
        "hash": {"type": "string", "description": "SHA-256 of the release's content."},
        "name": {"type": "string", "description": "Of its file."},
        "what": {"type": "string", "enum": ["agent", "function"]},
        "privacy": _PRIVACY,
        "box": {
            "type": "object",
            "required": ["low", "high"],
            "properties": {"low": {"type": "array", "items": _NUMBER}, "high": {"type": "array", "items": _NUMBER}},
        },
        "outputs": {"type": "integer", "description": "Values a state."},
        "actions": {"type": ["integer", "null"], "description": "The same for an agent."},
        "epsilon": _MAYBE_NUMBER,
        "delta": _MAYBE_NUMBER,
        "version": {"type": "string", "description": "Of the quietq that wrote it."},
        "signer": {"type": ["string", "null"], "description": "Fingerprint of the key that it was signed with."},
        "signer_checked": {"type": "boolean", "description": "Whether the server was given that key (`--key`)."},
        "signed": _SIGNED,
    },
}  # fmt: skip
RELEASES: Schema = {
    "type": "object",
    "required": ["releases", "privacy", "signed"],
    "properties": {"releases": {"type": "array", "items": RELEASE}, "privacy": _PRIVACY, "signed": _SIGNED},
}
CERTIFICATE: Schema = {
    "type": "object",
    "required": ["certificate", "text", "plain", "assumptions", "cap", "audit", "privacy", "signed"],
    "properties": {
        "certificate": {"type": "object"},
        "text": _TEXT,
        "plain": {"type": "array", "items": _TEXT},
        "assumptions": {"type": "array", "items": {"type": "object"}},
        "cap": {"type": ["object", "null"]},
        "audit": {"type": ["object", "null"]},
        "privacy": _PRIVACY,
        "signed": _SIGNED,
    },
}
HEALTH: Schema = {
    "type": "object",
    "required": ["status", "releases"],
    "properties": {"status": {"const": "ok"}, "releases": {"type": "integer"}},
}
_ANSWERS: dict[str, Schema] = {
    "values": {"type": "array", "items": {"type": "array", "items": _NUMBER}},
    "actions": {"type": "array", "items": {"type": "integer"}},
}


def answer(schema: Schema | None, *statuses: int, guarded: bool) -> Responses:
    """A route's responses: its JSON, or text if there is none, and the refusals that it knows."""
    content = {"text/plain": {"schema": _TEXT}} if schema is None else {JSON: {"schema": schema}}
    found: Responses = {200: {"description": "The answer.", "content": content}}
    known = {*statuses, 405, 421, *([401] if guarded else [])}
    for status in sorted(known):
        found[status] = {"description": _STATUSES[status], "content": {JSON: {"schema": _SENTENCE}}}
        if status in _STATUS_HEADERS:
            found[status]["headers"] = {_STATUS_HEADERS[status]: {"schema": _TEXT}}
    if schema is not None and "privacy" in schema["properties"]:
        found[200]["headers"] = _PRIVACY_HEADER
    return found


def states_answer(question: str, *statuses: int, guarded: bool) -> Responses:
    """The responses to a question about states."""
    schema = {
        "type": "object",
        "required": [question, "privacy", "signed"],
        "properties": {question: _ANSWERS[question], "privacy": _PRIVACY, "signed": _SIGNED},
    }
    found = answer(schema, 404, 406, 422, *statuses, *([409] if question == "actions" else []), guarded=guarded)
    numbers = "float64" if question == "values" else "int64"
    found[200]["content"][BYTES] = {
        "schema": {"type": "string", "format": "binary", "description": f"Little-endian {numbers}, state by state."}
    }
    found[200]["headers"] = _PRIVACY_HEADER | _SHAPE_HEADER
    return found


def release_parameter(catalogue: Catalogue) -> Schema:
    """The part of the address that names a release."""
    return {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "enum": catalogue.names}}


def state_parameter(catalogue: Catalogue) -> Schema:
    """The part of the address that holds one state."""
    return {
        "name": "state", "in": "query", "required": True, "explode": True,
        "description": "One state; repeat it for each coordinate.", "schema": _coordinates(catalogue),
    }  # fmt: skip


def states_body(catalogue: Catalogue) -> Schema:
    """The states that a request holds."""
    state, dimensions = _coordinates(catalogue), [entry.dimension for entry in catalogue]
    states = {
        "type": "array",
        "minItems": 1,
        "maxItems": MOST_STATES,
        "description": "A list of coordinates a state; in one dimension plain numbers too. All within the box.",
        "items": {"anyOf": [state, state["items"]]} if 1 in dimensions else state,
    }
    record = {
        "type": "object", "required": ["states"], "additionalProperties": False, "properties": {"states": states},
    }  # fmt: skip
    raw = {
        "type": "string", "format": "binary", "minLength": 8 * min(dimensions), "maxLength": MOST_BYTES,
        "description": "Little-endian float64, state by state.",
    }  # fmt: skip
    return {"required": True, "content": {JSON: {"schema": record}, BYTES: {"schema": raw}}}


def _coordinates(catalogue: Catalogue) -> Schema:
    """A state of any of the releases; exact if all have the same interval, and else what they have in common."""
    boxes = [entry.release.box for entry in catalogue]
    number = {
        "type": "number",
        "minimum": min(end for box in boxes for end in box.low),
        "maximum": max(end for box in boxes for end in box.high),
    }
    dimensions = [box.dimension for box in boxes]
    return {"type": "array", "items": number, "minItems": min(dimensions), "maxItems": max(dimensions)}
