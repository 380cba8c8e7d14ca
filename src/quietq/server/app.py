"""The application: its routes, who may ask, and how it refuses."""

import mimetypes
import secrets
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Match
from starlette.staticfiles import StaticFiles

from quietq.server.catalogue import Catalogue
from quietq.server.guard import MOST_BYTES, Guard
from quietq.server.metrics import Metrics
from quietq.server.models import Health
from quietq.server.routes import add_questions, add_records, refusals
from quietq.server.states import MOST_STATES, MOST_VALUES, sentence
from quietq.version import __version__

_DESCRIPTION = (
    "Released values and policies of private reinforcement learning. Every answer says whether what it was read from "
    "is certified or NOT PRIVATE. Errors are one sentence, in `detail`. "
    f"A request may hold {MOST_STATES:,} states, ask for {MOST_VALUES:,} values and have {MOST_BYTES:,} bytes at most."
)
PAGE = Path(__file__).parent / "page"
_NO_TELEMETRY: Any = dict.fromkeys(("auto_configure", "tracing", "metrics", "logs"), False)


def create_app(catalogue: Catalogue, token: str | None = None, hosts: Sequence[str] = ("*",)) -> FastAPI:
    """The application for these releases.

    With a token, nothing but the page and `/healthz` is open without it; requests must name one of `hosts`.
    """
    metrics = Metrics(catalogue)
    app = FastAPI(
        title="quietq", version=__version__, description=_DESCRIPTION, redirect_slashes=False,
        docs_url=None, redoc_url=None,  # these pages load scripts from elsewhere
        openapi_url=None,  # it is a route below, which a token guards
        responses=refusals(400, 405, *([] if token is None else [401])),
        telemetry=_NO_TELEMETRY,  # traces would hold the states asked about
    )  # fmt: skip
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)
    app.add_middleware(Guard, metrics=metrics)
    app.add_exception_handler(HTTPException, _refuse)
    app.add_exception_handler(RequestValidationError, _refuse_parameters)
    app.add_exception_handler(ClientDisconnect, _refuse_cut_off)
    app.add_exception_handler(Exception, _fail)
    guards = [] if token is None else [Depends(_token_check(token))]
    add_questions(app, catalogue, metrics, guards)
    add_records(app, catalogue, guards)

    @app.get("/metrics", response_class=PlainTextResponse, dependencies=guards)
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


def _token_check(token: str) -> Callable[..., Awaitable[None]]:
    Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))]

    async def check(credentials: Credentials) -> None:
        given = "" if credentials is None else credentials.credentials
        if not secrets.compare_digest(given.encode(), token.encode()):
            detail = "This needs the access token: send it as Authorization: Bearer TOKEN."
            raise HTTPException(401, detail, {"WWW-Authenticate": 'Bearer realm="quietq"'})

    return check


async def _refuse(request: Request, error: Exception) -> Response:
    """One sentence; Starlette's own words for an address or a method that is not there are none."""
    assert isinstance(error, HTTPException)
    detail, headers = error.detail, dict(error.headers or {})
    if error.status_code == 404 and detail == "Not Found":
        detail = "There is nothing at this address."
    elif error.status_code == 405:  # the page's files are at all addresses, so the routes are asked again
        there = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
        allowed = sorted({method for route in there for method in getattr(route, "methods", ())})
        headers["Allow"] = ", ".join(allowed) or "GET, HEAD"
        detail = f"This address answers {headers['Allow']} only."
    return JSONResponse({"detail": detail}, error.status_code, headers)


async def _refuse_parameters(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return JSONResponse({"detail": sentence(error.errors())}, 422)


async def _refuse_cut_off(request: Request, error: Exception) -> Response:
    return JSONResponse({"detail": "The body was cut off."}, 400)  # for the counters: nobody reads it


async def _fail(request: Request, error: Exception) -> Response:
    return JSONResponse({"detail": "The server failed to answer; its log says why."}, 500)
