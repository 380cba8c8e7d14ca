"""What every request passes on its way in and out: the limit on its body, the headers of safety, the counters."""

import os
import time

from fastapi import HTTPException
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quietq.publishing.server.catalogue import Catalogue

MOST_BYTES = 8 * 2**20
"""Bytes of a request's body, however they arrive."""
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",  # answers depend on the states that were asked about: nobody else's business
}
_OTHER_HOST = "The Host header must name this machine, as localhost or 127.0.0.1 do, or be allowed by --allow-host."


class Metrics:
    """What one worker reports to Prometheus: counts and times by route, never anything that a request contained."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._registry = here = CollectorRegistry()
        self.requests = Counter("quietq_requests", "Requests answered.", ("route", "method", "status"), registry=here)
        self.seconds = Histogram("quietq_request_seconds", "Time to answer.", ("route",), registry=here)
        self.states = Counter("quietq_states", "States answered for.", ("release", "question"), registry=here)
        labels = ("release", "what", "privacy")
        info = Gauge("quietq_release", "A release; always 1.", labels, multiprocess_mode="max", registry=here)
        for entry in catalogue.values():
            info.labels(entry.record.id, entry.record.what, entry.record.privacy).set(1)

    def text(self) -> bytes:
        """All of it, of all workers: prometheus_client keeps their counters in a folder if the environment has one."""
        registry = self._registry
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            MultiProcessCollector(registry := CollectorRegistry())
        return generate_latest(registry)


class Guard:
    """ASGI middleware, the outermost."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics
        self._headers = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        status, size, replaced = 500, 0, False

        async def receive_bounded() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > MOST_BYTES:
                raise HTTPException(413, f"The body must have at most {MOST_BYTES} bytes: send the states in parts.")
            return message

        async def send_safely(message: Message) -> None:
            nonlocal status, replaced
            if message["type"] == "http.response.start":
                status = message["status"]
                replaced = status == 400 and dict(message["headers"])[b"content-type"].startswith(b"text/")
                if replaced:  # TrustedHostMiddleware refuses in plain text, and nobody else
                    await JSONResponse({"detail": _OTHER_HOST}, status, _HEADERS)(scope, receive, send)
                message["headers"] = [*message["headers"], *self._headers]
            if not replaced:
                await send(message)

        try:
            await self._app(scope, receive_bounded, send_safely)
        finally:
            template = getattr(scope.get("route"), "path", "other")  # of ours, not what was asked
            known = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
            method = scope["method"] if scope["method"] in known else "other"
            self._metrics.requests.labels(template, method, status).inc()
            self._metrics.seconds.labels(template).observe(time.perf_counter() - begun)
