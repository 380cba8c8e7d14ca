"""The application: its routes, who may ask, and how it refuses."""

import mimetypes
import secrets
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from fastapi import Depends, FastAPI, Path as InPath, Query, Request, Response, params
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import FiniteFloat
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.routing import Match
from starlette.staticfiles import StaticFiles

from quietq.publishing.server.catalogue import (
    ID_DIGITS,
    Actions,
    Catalogue,
    CertificateRecord,
    Health,
    Marked,
    Refusal,
    ReleaseList,
    ReleaseRecord,
    Served,
    Values,
)
from quietq.publishing.server.guard import MOST_BYTES, Guard, Metrics
from quietq.publishing.server.states import BYTES, JSON, MOST_STATES, Question, States, answer, parse, schemas, sentence
from quietq.version import __version__

PAGE = Path(__file__).parent / "page"
_DESCRIPTION = (
    "Released values and policies of private reinforcement learning. Every answer says whether what it was read from "
    "is certified or NOT PRIVATE. Errors are one sentence, in `detail`. "
    f"A request may hold {MOST_STATES:,} states and {MOST_BYTES:,} bytes at most."
)
_SMALL = 1024  # bytes of a body whose answer does not keep others waiting
_NO_TELEMETRY: Any = dict.fromkeys(("auto_configure", "tracing", "metrics", "logs"), False)
Guards = Sequence[params.Depends]


def create_app(catalogue: Catalogue, token: str | None = None, hosts: Sequence[str] = ("*",)) -> FastAPI:
    """The application for these releases.

    With a token, nothing but the page and `/healthz` is open without it; requests must name one of `hosts`.
    """
    metrics, guards = Metrics(catalogue), [] if token is None else [Depends(_token_check(token))]
    app = FastAPI(
        title="quietq", version=__version__, description=_DESCRIPTION, redirect_slashes=False,
        docs_url=None, redoc_url=None,  # these pages load scripts from elsewhere
        openapi_url=None,  # it is a route below, which a token guards
        responses=_refusals(400, 405, *([] if token is None else [401])),
        telemetry=_NO_TELEMETRY,  # traces would hold the states asked about
    )  # fmt: skip
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)
    app.add_middleware(Guard, metrics=metrics)
    for kind in (HTTPException, RequestValidationError, ClientDisconnect, Exception):
        app.add_exception_handler(kind, _refuse)
    _add_questions(app, catalogue, metrics, guards)
    _add_records(app, catalogue, guards)

    text: Any = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}

    @app.get("/metrics", response_class=Response, responses=text, dependencies=guards)
    def counters() -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/openapi.json", include_in_schema=False, dependencies=guards)
    async def document() -> JSONResponse:
        return JSONResponse(app.openapi())

    @app.get("/healthz")
    async def health() -> Health:
        return Health(releases=len(catalogue))

    mimetypes.add_type("text/javascript", ".js")  # systems differ, and browsers run nothing that has another type
    app.mount("/", StaticFiles(directory=PAGE, html=True))
    return app


def _add_questions(app: FastAPI, catalogue: Catalogue, metrics: Metrics, guards: Guards) -> None:
    one, many = schemas(catalogue)
    in_path = InPath(json_schema_extra={"enum": [*catalogue]})
    in_query = Query(description="One state; repeat it for each coordinate.", json_schema_extra=one)
    numbers = {"schema": {"type": "string", "format": "binary", "description": "Little-endian, state by state."}}
    sent = {"requestBody": {"required": True, "content": {JSON: {"schema": many}, BYTES: numbers}}}
    answers: Any = {200: {"content": {BYTES: numbers}}}

    def add(path: str, question: Question, model: type[Marked], *statuses: int) -> None:
        def respond(entry: Served, states: States, request: Request, response: Response) -> Any:
            found, record = answer(entry, question, states), entry.record
            metrics.states.labels(record.id, question).inc(len(states))
            if request.headers.get("accept", "").strip().lower() == BYTES:
                content = found.astype("<i8" if found.dtype.kind == "i" else "<f8").tobytes()
                shape = {"X-Quietq-Shape": ",".join(map(str, found.shape))}
                return Response(content, media_type=BYTES, headers=_marks(record) | shape)
            response.headers.update(_marks(record))
            marks = {"privacy": record.privacy, "signed": record.signed}
            return model.model_construct(**marks, **{question: found.tolist()})  # nothing of ours needs a check

        @app.get(path, response_model=model, responses=answers | _refusals(*statuses), dependencies=guards)
        async def at_one_state(
            id: Annotated[str, in_path], state: Annotated[list[FiniteFloat], in_query], request: Request,
            response: Response,
        ) -> Any:  # fmt: skip
            entry = _find(catalogue, id)
            dimension = entry.release.box.dimension
            if len(state) != dimension:
                raise HTTPException(422, f"state must be given {dimension} times, once for each coordinate.")
            return respond(entry, np.array([state]), request, response)

        more = answers | _refusals(413, 415, *statuses)

        @app.post(path, response_model=model, responses=more, dependencies=guards, openapi_extra=sent)
        async def at_many_states(id: Annotated[str, in_path], request: Request, response: Response) -> Any:
            entry = _find(catalogue, id)
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind not in (JSON, BYTES):
                raise HTTPException(415, f"Content-Type must be {JSON} or {BYTES}.")
            body = await request.body()

            def work() -> Any:
                return respond(entry, parse(entry, kind, body), request, response)

            return work() if len(body) <= _SMALL else await run_in_threadpool(work)

    add("/v1/releases/{id}/values", "values", Values, 404, 422)
    add("/v1/releases/{id}/policy", "actions", Actions, 404, 409, 422)


def _add_records(app: FastAPI, catalogue: Catalogue, guards: Guards) -> None:
    in_path = InPath(json_schema_extra={"enum": [*catalogue]})
    listed = ReleaseList.of([entry.record for entry in catalogue.values()])

    @app.get("/v1/releases", dependencies=guards)
    async def all_releases(response: Response) -> ReleaseList:
        return _marked(listed, response)

    @app.get("/v1/releases/{id}", responses=_refusals(404), dependencies=guards)
    async def one_release(id: Annotated[str, in_path], response: Response) -> ReleaseRecord:
        return _marked(_find(catalogue, id).record, response)

    @app.get("/v1/releases/{id}/certificate", responses=_refusals(404), dependencies=guards)
    async def certificate(id: Annotated[str, in_path], response: Response) -> CertificateRecord:
        return _marked(_find(catalogue, id).certificate, response)


def _find(catalogue: Catalogue, id: str) -> Served:
    entry = catalogue.get(id[:ID_DIGITS])
    if entry is None or not entry.record.hash.startswith(id):
        raise HTTPException(404, "There is no release of that id: /v1/releases lists those that there are.")
    return entry


def _marked(record: Any, response: Response) -> Any:
    response.headers.update(_marks(record))
    return record


def _marks(record: Marked) -> dict[str, str]:
    return {"X-Quietq-Privacy": record.privacy, "X-Quietq-Signed": record.signed}


def _refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Refusal} for status in statuses}


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
        status, detail = 422, sentence(error.errors())
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
