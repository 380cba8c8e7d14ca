"""What Prometheus is told: counts and times by route, never anything that a request contained."""

import os
import struct
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from quietq.server.catalogue import Catalogue
from quietq.server.limits import Refusal

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable by which all workers count into one folder; prometheus_client looks at it when imported."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Measures:
    """The counters of one worker."""

    def __init__(self, catalogue: Catalogue) -> None:
        here = self._registry = CollectorRegistry()
        by = ("route", "method", "status")
        requests = Counter("quietq_requests", "Requests answered.", by, registry=here)
        seconds = Histogram("quietq_request_seconds", "Time to answer.", ("route",), buckets=_SECONDS, registry=here)
        states = Counter("quietq_states", "States answered for.", ("release", "question"), registry=here)
        # Looked up once: few labels, many requests.
        self._request, self._time, self._state = cache(requests.labels), cache(seconds.labels), cache(states.labels)
        info = Gauge(
            "quietq_release", "A release that is served; always 1.", ("release", "what", "privacy"),
            multiprocess_mode="max", registry=here,
        )  # fmt: skip
        for entry in catalogue:
            info.labels(entry.id, entry.release.what, entry.privacy).set(1)

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Counts an answer; `route` is a template of ours, not what was asked."""
        self._request(route, method if method in _METHODS else "other", status).inc()
        self._time(route).observe(seconds)

    def states(self, release: str, question: str, count: int) -> None:
        """Counts states that were answered for."""
        self._state(release, question).inc(count)

    def text(self) -> bytes:
        """All of it, of all workers, in Prometheus' text format."""
        if FOLDER not in os.environ:
            return generate_latest(self._registry)
        files = [str(path) for path in sorted(Path(os.environ[FOLDER]).glob("*.db"))]
        together = CollectorRegistry()
        together.register(_Together(_merged(files) or _merged([file for file in files if _merged([file])])))
        found = generate_latest(together)
        if not found:
            raise Refusal(503, "The counters cannot be read: their folder is gone or damaged.")
        return found


class _Together(Collector):
    """The counters of all workers, as they were read."""

    def __init__(self, found: list[Any]) -> None:
        self._found = found

    def collect(self) -> Iterable[Any]:
        return self._found


def _merged(files: list[str]) -> list[Any]:
    """The counters in these files; none if one of them is damaged, as a worker that is killed may leave it."""
    try:
        return list(MultiProcessCollector.merge(files))
    except (OSError, ValueError, LookupError, RuntimeError, TypeError, struct.error):
        return []
