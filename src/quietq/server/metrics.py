"""What Prometheus is told: counts and times by route, never anything that a request contained."""

import os
import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from quietq.server.catalogue import Catalogue

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable by which all workers count into one folder; prometheus_client looks at it when imported."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    """The counters of one worker."""

    def __init__(self, catalogue: Catalogue) -> None:
        here = self._registry = CollectorRegistry()
        self._requests = Counter("quietq_requests", "Requests answered.", ("route", "method", "status"), registry=here)
        self._seconds = Histogram("quietq_request_seconds", "Time to answer.", ("route",), registry=here)
        self._states = Counter("quietq_states", "States answered for.", ("release", "question"), registry=here)
        labels = ("release", "what", "privacy")
        info = Gauge("quietq_release", "A release; always 1.", labels, multiprocess_mode="max", registry=here)
        for entry in catalogue.values():
            info.labels(entry.record.id, entry.record.what, entry.record.privacy).set(1)

    def count_request(self, route: str, method: str, status: int, begun: float) -> None:
        """Counts an answer; `route` is a template of ours, not what was asked."""
        self._requests.labels(route, method if method in _METHODS else "other", status).inc()
        self._seconds.labels(route).observe(time.perf_counter() - begun)

    def count_states(self, release: str, question: str, count: int) -> None:
        """Counts states that were answered for."""
        self._states.labels(release, question).inc(count)

    def text(self) -> bytes:
        """All of it, of all workers, in Prometheus' text format."""
        if FOLDER not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)
        return generate_latest(together)
