"""The application: its routes, who may ask, and how it refuses."""

import mimetypes
import secrets
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Path as InPath, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.routing import Match
from starlette.staticfiles import StaticFiles

from quietq.publishing.server.addresses import Guards, find, marked, refusals
from quietq.publishing.server.catalogue import Catalogue
from quietq.publishing.server.guard import MOST_BYTES, Guard, Metrics
from quietq.publishing.server.lists import add_lists
from quietq.publishing.server.questions import add_questions
from quietq.publishing.server.records import CertificateRecord, Health, ReleaseList, ReleaseRecord
from quietq.publishing.server.rollouts import add_rollouts
from quietq.publishing.server.states import MOST_STATES, sentence
from quietq.version import __version__

PAGE = Path(__file__).parent / "page"
_DESCRIPTION = (
    "Released values and policies of private reinforcement learning. Every answer says whether what it was read from "
    "is certified or NOT PRIVATE. Errors are one sentence, in `detail`. "
    f"A request may hold {MOST_STATES:,} states and {MOST_BYTES:,} bytes at most."
)
_NO_TELEMETRY: Any = dict.fromkeys(("auto_configure", "tracing", "metrics", "logs"), False)


def create_app(catalogue: Catalogue, token: str | None = None, hosts: Sequence[str] = ("*",)) -> FastAPI:
    """The application for these releases.

    With a token, nothing but the page and `/healthz` is open without it; requests must name one of `hosts`.
    """
    metrics, guards = Metrics(catalogue), [] if token is None else [Depends(_token_check(token))]
    app = FastAPI(
        title="quietq", version=__version__, description=_DESCRIPTION, redirect_slashes=False,
        docs_url=None, redoc_url=None,  # these pages load scripts from elsewhere
        openapi_url=None,  # it is a route below, which a token guards
        responses=refusals(400, 405, *([] if token is None else [401])),
        telemetry=_NO_TELEMETRY,  # traces would hold the states asked about
    )  # fmt: skip
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)
    app.add_middleware(Guard, metrics=metrics)
    for kind in (HTTPException, RequestValidationError, ClientDisconnect, Exception):
        app.add_exception_handler(kind, _refuse)
    add_questions(app, catalogue, metrics, guards)
    add_lists(app, catalogue, guards)
    add_rollouts(app, catalogue, metrics, guards)
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


def _add_records(app: FastAPI, catalogue: Catalogue, guards: Guards) -> None:
    in_path = InPath(json_schema_extra={"enum": [*catalogue]})
    listed = ReleaseList.of([entry.record for entry in catalogue.values()])

    @app.get("/v1/releases", dependencies=guards)
    async def all_releases(response: Response) -> ReleaseList:
        return marked(listed, response)

    @app.get("/v1/releases/{id}", responses=refusals(404), dependencies=guards)
    async def one_release(id: Annotated[str, in_path], response: Response) -> ReleaseRecord:
        return marked(find(catalogue, id).record, response)

    @app.get("/v1/releases/{id}/certificate", responses=refusals(404), dependencies=guards)
    async def certificate(id: Annotated[str, in_path], response: Response) -> CertificateRecord:
        return marked(find(catalogue, id).certificate, response)


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
