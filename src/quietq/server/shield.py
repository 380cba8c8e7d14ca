"""What every request passes on its way in and out: its Host, the token, the headers of safety, the counters."""

import hmac
import time
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quietq.server.hosts import is_allowed
from quietq.server.measures import Measures

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
_GUARDED = ("/v1/", "/v1", "/metrics", "/openapi.json")


class Shield:
    """ASGI middleware; plain, because it runs on every request."""

    def __init__(self, app: ASGIApp, measures: Measures, token: str | None, hosts: frozenset[str] | None) -> None:
        self._app = app
        self._measures = measures
        self._token = None if token is None else token.encode()
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets a request through, or refuses it for the name that it asks for or for want of the token."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        status = 500
        path = scope["path"]
        # Answers depend on the states that were asked about, which are nobody else's business.
        cache = b"no-store" if path.startswith("/v1/") else b"no-cache"

        async def guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *_HEADERS, (b"cache-control", cache)]
            await send(message)

        try:
            if self._hosts is not None and not self._meant(scope, self._hosts):
                await _misdirected(scope, receive, guarded)
            elif self._token is not None and path.startswith(_GUARDED) and not self._allowed(scope):
                await _unauthorised(scope, receive, guarded)
            else:
                await self._app(scope, receive, guarded)
        finally:
            route: Any = scope.get("route")
            template = getattr(route, "path", "other")
            self._measures.request(template, scope["method"], status, time.perf_counter() - begun)

    @staticmethod
    def _meant(scope: Scope, hosts: frozenset[str]) -> bool:
        """Without the header it is no browser, which alone is in danger."""
        return all(is_allowed(value, hosts) for name, value in scope["headers"] if name == b"host")

    def _allowed(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        # Compared in full in any case, so that the time taken tells nothing.
        return hmac.compare_digest(token.strip(), self._token or b"") and scheme.lower() == b"bearer"


async def _misdirected(scope: Scope, receive: Receive, send: Send) -> None:
    sentence = "The Host header must name this machine, as localhost or 127.0.0.1 do, or be allowed by --allow-host."
    await JSONResponse({"detail": sentence}, 421)(scope, receive, send)


async def _unauthorised(scope: Scope, receive: Receive, send: Send) -> None:
    answer = JSONResponse(
        {"detail": "This needs the access token: send it as Authorization: Bearer TOKEN."},
        status_code=401,
        headers={"WWW-Authenticate": 'Bearer realm="quietq"'},
    )
    await answer(scope, receive, send)
