"""The application: its routes, who may ask, and how it refuses."""

import mimetypes
import secrets
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.routing import Match
from starlette.staticfiles import StaticFiles

from quietq.publishing.server.catalogue import Catalogue
from quietq.publishing.server.guard import MOST_BYTES, Guard, Metrics
from quietq.publishing.server.routes import MOST_STATES, add_questions, add_records, first_complaint, refusals
from quietq.version import __version__

PAGE = Path(__file__).parent / "page"


class Health(BaseModel):
    status: Literal["ok"] = "ok"
    releases: int


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
    add_questions(app, catalogue, metrics, guards)
    add_records(app, catalogue, guards)

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
