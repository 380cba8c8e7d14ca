"""The application: which address leads to which answer, and what the OpenAPI document says of it."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.routing import Match

from quietq.server import schema
from quietq.server.answers import Question
from quietq.server.catalogue import Catalogue
from quietq.server.endpoints import Endpoint, Endpoints
from quietq.server.limits import Refusal
from quietq.server.measures import Measures
from quietq.server.page_files import PageFile, read_page
from quietq.server.shield import Shield
from quietq.version import __version__

_QUESTIONS: tuple[tuple[str, Question], ...] = (("values", "values"), ("policy", "actions"))
_WITH = {408: {"Connection": "close"}, 503: {"Retry-After": "1"}}  # what some refusals add
_NO_TELEMETRY: Any = dict.fromkeys(("auto_configure", "tracing", "metrics", "logs"), False)


class _LeanRoute(APIRoute):
    """A route whose endpoint takes the request as it is and gives the response itself: a third of the time a call."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        return self.endpoint


def application(catalogue: Catalogue, token: str | None = None, hosts: frozenset[str] | None = None) -> FastAPI:
    """The application for these releases.

    With a token, nothing but the page and `/healthz` is open without it; with `hosts`, only these names and those of
    this machine are answered.
    """
    app = FastAPI(
        title="quietq", version=__version__, description=schema.DESCRIPTION,
        docs_url=None, redoc_url=None,  # these pages load scripts from elsewhere
        redirect_slashes=False,
        telemetry=_NO_TELEMETRY,  # traces would hold the states asked about
    )  # fmt: skip
    measures = Measures(catalogue)
    app.router.route_class = _LeanRoute
    app.add_middleware(Shield, measures=measures, token=token, hosts=hosts)
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(HTTPException, _no_route)
    _add_routes(app, catalogue, Endpoints(catalogue, measures), guarded=token is not None)
    for file in read_page():
        app.add_api_route(file.path, _page(file), methods=["GET", "HEAD"], include_in_schema=False)
    if token is not None:
        _describe_token(app)
    return app


def _add_routes(app: FastAPI, catalogue: Catalogue, endpoints: Endpoints, guarded: bool) -> None:
    """All routes that programs use; the busiest come first, because they are tried in this order."""
    one, release = "/v1/releases/{id}", schema.release_parameter(catalogue)
    for name, question in _QUESTIONS:
        app.add_api_route(
            f"{one}/{name}", endpoints.one_state(question), methods=["GET"], name=f"{name} at one state",
            responses=schema.states_answer(question, guarded=guarded), response_class=Response,
            openapi_extra={"parameters": [release, schema.state_parameter(catalogue)]},
        )  # fmt: skip
        app.add_api_route(
            f"{one}/{name}", endpoints.many_states(question), methods=["POST"], name=f"{name} at many states",
            responses=schema.states_answer(question, 400, 408, 413, 415, 503, guarded=guarded), response_class=Response,
            openapi_extra={"parameters": [release], "requestBody": schema.states_body(catalogue)},
        )  # fmt: skip

    def add(path: str, endpoint: Endpoint, responses: schema.Responses, **more: object) -> None:
        app.add_api_route(path, endpoint, responses=responses, openapi_extra=more or None, response_class=Response)

    add(f"{one}/certificate", endpoints.certificate, schema.answer(schema.CERTIFICATE, 404, guarded=guarded),
        parameters=[release])  # fmt: skip
    add(one, endpoints.release, schema.answer(schema.RELEASE, 404, guarded=guarded), parameters=[release])
    add("/v1/releases", endpoints.releases, schema.answer(schema.RELEASES, guarded=guarded))
    add("/healthz", endpoints.health, schema.answer(schema.HEALTH, guarded=False))
    add("/metrics", endpoints.metrics, schema.answer(None, 503, guarded=guarded))


def _page(file: PageFile) -> Endpoint:
    async def page(request: Request) -> Response:
        return Response(file.content, media_type=file.kind)

    return page


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return JSONResponse({"detail": error.sentence}, error.status, _WITH.get(error.status))


async def _no_route(request: Request, error: Exception) -> Response:
    """No such address, or not with this method; the answer names all methods, also those of other routes there."""
    assert isinstance(error, HTTPException)
    if error.status_code != 405:
        return JSONResponse({"detail": "There is nothing at this address."}, error.status_code)
    there = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    allowed = ", ".join(sorted(method for route in there for method in route.methods))
    return JSONResponse({"detail": f"This address answers {allowed} only."}, 405, {"Allow": allowed})


def _describe_token(app: FastAPI) -> None:
    """Says in the OpenAPI document that a token is needed."""
    document = app.openapi()  # made once; later calls give this one
    document.setdefault("components", {})["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for path, operations in document["paths"].items():
        if path != "/healthz":
            for operation in operations.values():
                operation["security"] = [{"token": []}]
