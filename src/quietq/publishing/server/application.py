"""The application: the page, the releases and their values and policies under /v1, who may ask, and how it refuses."""

import json
import mimetypes
import secrets
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import Depends, FastAPI, Path as InPath, Query, Request, Response, params
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from jaxtyping import Float, Shaped
from pydantic import BaseModel, Field, FiniteFloat, ValidationError
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.routing import Match
from starlette.staticfiles import StaticFiles

from quietq.privacy import InvalidInput
from quietq.privacy.checks import plural
from quietq.publishing.server.catalogue import (
    ID_DIGITS,
    Catalogue,
    CertificateRecord,
    Marked,
    ReleaseList,
    Served,
)
from quietq.publishing.server.guard import MOST_BYTES, Guard, Metrics
from quietq.version import __version__

PAGE = Path(__file__).parent / "page"
MOST_STATES = 65_536
"""States in one request."""
MOST_VALUES = 1_048_576
"""Values in one answer: states times outputs."""
JSON = "application/json"
Question = Literal["values", "actions"]
States = Float[np.ndarray, "points d"]
Schema = dict[str, Any]
"""A part of the OpenAPI document."""


class Values(Marked):
    values: list[list[float]]


class Actions(Marked):
    actions: list[int] | list[list[float]] = Field(description="Their numbers, or the actions themselves.")


class Refusal(BaseModel):
    detail: str = Field(description="Why a request was refused, in one sentence.")


class StatesBody(BaseModel, extra="forbid", strict=True):
    """Many states, a list of coordinates for each; in one dimension plain numbers too."""

    states: list[FiniteFloat | list[FiniteFloat]] = Field(min_length=1, max_length=MOST_STATES, fail_fast=True)


def create_app(catalogue: Catalogue, token: str | None = None, hosts: Sequence[str] = ("*",)) -> FastAPI:
    """The application for these releases.

    With a token, nothing but the page and `/healthz` is open without it; requests must name one of `hosts`.
    """
    metrics = Metrics(catalogue)
    guards = [] if token is None else [Depends(_token_check(token))]
    no_telemetry: Any = dict.fromkeys(("auto_configure", "tracing", "metrics", "logs"), False)
    app = FastAPI(
        title="quietq",
        version=__version__,
        description="Released values and policies of private reinforcement learning. Every answer says whether what it "
        "was read from is certified or NOT PRIVATE. Errors are one sentence, in `detail`. "
        f"A request may hold {MOST_STATES:,} states and {MOST_BYTES:,} bytes at most.",
        redirect_slashes=False,
        docs_url=None,  # this page and the next load scripts from elsewhere
        redoc_url=None,
        openapi_url=None,  # it is a route below, which a token guards
        responses=refusals(400, 405) if token is None else refusals(400, 401, 405),
        telemetry=no_telemetry,  # traces would hold the states asked about
    )
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)
    app.add_middleware(Guard, metrics=metrics)
    for kind in (HTTPException, RequestValidationError, ClientDisconnect, Exception):
        app.add_exception_handler(kind, _refuse)
    add_question(app, catalogue, metrics, guards, "values", Values)
    add_question(app, catalogue, metrics, guards, "actions", Actions)
    add_records(app, catalogue, guards)

    text: Any = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}

    @app.get("/metrics", response_class=Response, responses=text, dependencies=guards)
    def counters() -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/openapi.json", include_in_schema=False, dependencies=guards)
    async def document() -> JSONResponse:
        return JSONResponse(app.openapi())

    @app.get("/healthz")
    async def health() -> dict[str, str | int]:
        return {"status": "ok", "releases": len(catalogue)}

    mimetypes.add_type("text/javascript", ".js")  # systems differ, and browsers run nothing that has another type
    app.mount("/", StaticFiles(directory=PAGE, html=True))
    return app


def _token_check(token: str) -> Callable[..., Awaitable[None]]:
    bearer = Depends(HTTPBearer(auto_error=False))

    async def check(credentials: Annotated[HTTPAuthorizationCredentials | None, bearer]) -> None:
        given = "" if credentials is None else credentials.credentials
        if not secrets.compare_digest(given.encode(), token.encode()):
            detail = "This needs the access token: send it as Authorization: Bearer TOKEN."
            raise HTTPException(401, detail, {"WWW-Authenticate": 'Bearer realm="quietq"'})

    return check


async def _refuse(request: Request, error: Exception) -> Response:
    status, detail, headers = 500, "The server failed to answer; its log says why.", None
    if isinstance(error, RequestValidationError):
        status, detail = 422, first_complaint(error.errors())
    elif isinstance(error, ClientDisconnect):
        status, detail = 400, "The body was cut off."  # for the counters: nobody reads it
    elif isinstance(error, HTTPException):
        status, detail, headers = error.status_code, error.detail, error.headers
        if detail in ("Not Found", "Method Not Allowed"):  # Starlette's words
            # The page's files may be at any address, so the other routes are asked again.
            there = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
            allowed = ", ".join(sorted({method for route in there for method in getattr(route, "methods", ())}))
            detail = "There is nothing at this address."
            if allowed or status == 405:
                status, headers = 405, {"Allow": allowed or "GET, HEAD"}
                detail = f"This address answers {headers['Allow']} only."
    return JSONResponse({"detail": detail}, status, headers)


def refusals(*statuses: int) -> dict[int | str, Schema]:
    """Returns what the OpenAPI document says of these statuses."""
    return {status: {"model": Refusal} for status in statuses}


def add_records(app: FastAPI, catalogue: Catalogue, guards: Sequence[params.Depends]) -> None:
    """Adds the list of what is served, and the certificate of each release."""
    listed = ReleaseList.from_records([entry.record for entry in catalogue.values()])

    @app.get("/v1/releases", response_model=ReleaseList, dependencies=guards)
    async def releases() -> Response:
        return _in_json(listed)

    address = "/v1/releases/{id}/certificate"

    @app.get(address, response_model=CertificateRecord, responses=refusals(404), dependencies=guards)
    async def certificate(id: Annotated[str, _id_in_path(catalogue)]) -> Response:
        return _in_json(_find(catalogue, id).certificate)


def add_question(
    app: FastAPI,
    catalogue: Catalogue,
    metrics: Metrics,
    guards: Sequence[params.Depends],
    question: Question,
    model: type[Marked],
) -> None:
    """Adds values or policies: by GET at the one state in the address, by POST at the states in the body."""
    in_path, path = _id_in_path(catalogue), f"/v1/releases/{{id}}/{'values' if question == 'values' else 'policy'}"
    one_state, body_schema = _schemas(catalogue)
    in_query = Query(description="One state; repeat it for each coordinate.", json_schema_extra=one_state)
    sent = {"requestBody": {"required": True, "content": {JSON: {"schema": body_schema}}}}

    def respond(entry: Served, states: States) -> Response:
        found, record = answer(entry, question, states), entry.record
        metrics.states.labels(record.id, question).inc(len(states))
        marks = {"privacy": record.privacy, "signed": record.signed}
        return _in_json(model.model_construct(**marks, **{question: found.tolist()}))

    @app.get(path, response_model=model, responses=refusals(404, 409, 422), dependencies=guards)
    async def at_one_state(id: Annotated[str, in_path], state: Annotated[list[FiniteFloat], in_query]) -> Response:
        entry = _find(catalogue, id)
        dimension = entry.release.box.dimension
        if len(state) != dimension:
            raise HTTPException(422, f"state must be given {dimension} times, once for each coordinate.")
        return respond(entry, np.array([state]))

    responses = refusals(404, 409, 413, 415, 422)

    @app.post(path, response_model=model, responses=responses, dependencies=guards, openapi_extra=sent)
    async def at_many_states(id: Annotated[str, in_path], request: Request) -> Response:
        entry = _find(catalogue, id)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
            raise HTTPException(415, f"Content-Type must be {JSON}.")
        body = await request.body()
        if len(body) <= 1024:  # the answer takes less time than a change of threads
            return respond(entry, parse(entry, body))
        return await run_in_threadpool(lambda: respond(entry, parse(entry, body)))


def parse(entry: Served, body: bytes) -> States:
    """The states in a body of JSON."""
    box = entry.release.box
    # Counted before it is parsed, so that a small body cannot become a large object.
    if body.count(b",") >= MOST_STATES * box.dimension or body.count(b"[") > MOST_STATES + 1:
        raise _too_many(entry)
    short = json.dumps({"states": [box.low]}) if box.dimension <= 4 else '{"states": [[…], …]}'
    example = f"The body must be like {short}"
    try:
        states = StatesBody.model_validate_json(body).states
    except ValidationError as error:
        raise HTTPException(422, f"{example}; {first_complaint(error.errors())}") from error
    rows = [state if isinstance(state, list) else [state] for state in states]
    if {len(row) for row in rows} != {box.dimension}:
        raise HTTPException(422, f"{example}: {plural(box.dimension, 'coordinate')} for each state.")
    return np.array(rows, np.float64)


def answer(entry: Served, question: Question, states: States) -> Shaped[np.ndarray, "points ..."]:
    """The release's own numbers."""
    if len(states) > MOST_STATES or len(states) * entry.record.outputs > MOST_VALUES:
        raise _too_many(entry)
    if question == "actions" and entry.release.what != "agent":
        raise HTTPException(409, "This release is a function, and only an agent has a policy: ask for its values.")
    ask = entry.release.values if question == "values" else entry.release.policy
    at_once = 1024  # states, whose features fit into memory for any release
    try:
        return np.concatenate([ask(states[i : i + at_once]) for i in range(0, len(states), at_once)])
    except InvalidInput as error:  # outside of the box, or NaN
        raise HTTPException(422, str(error)) from error


def first_complaint(errors: Sequence[ErrorDetails]) -> str:
    """The first of pydantic's complaints, without what was sent."""
    where = ".".join(str(part) for part in errors[0]["loc"])
    return f"{where[:60] or 'body'}: {errors[0]['msg'][:160].rstrip('.')}."


def _find(catalogue: Catalogue, id: str) -> Served:
    entry = catalogue.get(id[:ID_DIGITS])
    if entry is None or not entry.record.hash.startswith(id):
        raise HTTPException(404, "There is no release of that id: /v1/releases lists those that there are.")
    return entry


def _in_json(record: Marked) -> Response:
    return Response(record.model_dump_json(), media_type=JSON, headers=record.headers)


def _id_in_path(catalogue: Catalogue) -> Any:
    return InPath(json_schema_extra={"enum": [*catalogue]})


def _schemas(catalogue: Catalogue) -> tuple[Schema, Schema]:
    """Returns what the OpenAPI document says of one state and of a body; exact if all releases have the same box."""
    boxes = [entry.release.box for entry in catalogue.values()]
    number = {
        "type": "number",
        "minimum": min(min(box.low) for box in boxes),
        "maximum": max(max(box.high) for box in boxes),
    }
    sizes = [box.dimension for box in boxes]
    state = {"type": "array", "items": number, "minItems": min(sizes), "maxItems": max(sizes)}
    body = StatesBody.model_json_schema()
    body["properties"]["states"]["items"] = {"anyOf": [state, number]} if min(sizes) == 1 else state
    return state, body


def _too_many(entry: Served) -> HTTPException:
    most = min(MOST_STATES, MOST_VALUES // entry.record.outputs)
    return HTTPException(413, f"A request may hold at most {most} states here: send them in parts.")
